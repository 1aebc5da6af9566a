// SPDX-License-Identifier: GPL-2.0-only
#include "content.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "copy.h"
#include "log.h"
#include "pages.h"
#include "stream.h"

#define CONTENT_MAX_SLOTS	16
/* How often who waits for the workers looks around. */
#define WATCH_NS		100000000

/* The GPU's BOs that have content, in the order of the image. */
static int list_bos(const struct content_config *cfg,
		    const struct gpucr_kfd_state *s,
		    struct gpucr_copy_bo **ret, size_t *num, uint64_t *bytes)
{
	uint32_t i;

	*num = 0;
	*bytes = 0;
	*ret = calloc((size_t)s->n.num_bos + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (i = 0; i < s->n.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &s->bos[i];

		if (b->gpu_id != cfg->gpu_id ||
		    !gpucr_kfd_bo_has_content(b->alloc_flags))
			continue;
		(*ret)[(*num)++] = (struct gpucr_copy_bo){
			.dmabuf_fd = b->dmabuf_fd,
			.index = i,
			.size = b->size,
		};
		*bytes += b->size;
	}
	return 0;
}

static void tell_rate(const struct content_config *cfg, const char *what,
		      size_t num, uint64_t bytes, uint64_t since_ms)
{
	gpucr_info("GPU 0x%04x: %s %zu BOs, %llu bytes in %llu ms",
		   cfg->gpu_id, what, num, (unsigned long long)bytes,
		   (unsigned long long)(gpucr_now_ms() - since_ms));
}

static int open_copy(const struct content_config *cfg, struct gpucr_copy **ret)
{
	struct gpucr_copy_config c = {
		.drm_fd = cfg->drm_fd,
		.gpu_id = cfg->gpu_id,
		.deadline_ms = cfg->copy_ms ?: GPUCR_COPY_DEADLINE_MS,
		.stop = cfg->stop,
	};

	gpucr_copy_size(&c, cfg->slots, cfg->slot_size, cfg->max_buffer);
	return gpucr_copy_open(&c, ret);
}

/* A page file being written. */
struct drain {
	const struct content_config *cfg;
	struct gpucr_pages_writer w;
};

static int to_file(void *arg, uint64_t pos, void *buf, size_t len)
{
	struct drain *d = arg;
	uint64_t before = d->w.chunks.file_bytes;
	int err;

	(void)pos;
	err = gpucr_pages_append(&d->w, buf, len);
	if (err)
		return err;
	gpucr_progress_add(d->cfg->progress, len);
	gpucr_pace_take(d->cfg->pace, d->w.chunks.file_bytes - before,
			d->cfg->stop);
	return 0;
}

static bool needs_file(void *arg, const void *buf, size_t len)
{
	struct drain *d = arg;

	return gpucr_pages_needs(&d->w, buf, len);
}

static int settle_file(void *arg, void *buf, size_t len)
{
	struct drain *d = arg;

	return gpucr_pages_settle(&d->w, buf, len);
}

/* What a GPU's fill is made of. */
struct filler {
	const struct content_config *cfg;
	struct gpucr_pages_reader pages;
	struct gpucr_copy_bo *bos;
	struct gpucr_copy *copy;
	size_t num;
	uint64_t bytes;
	bool bad;		/* a chunk, at bad_pos of the stream */
	uint64_t bad_pos;
};

static uint64_t file_extent(void *arg, uint64_t pos, uint64_t max, bool *zero)
{
	struct filler *f = arg;

	return gpucr_chunks_extent(f->pages.chunks, pos, max, zero);
}

static int read_file(struct filler *f, uint64_t pos, void *buf, size_t len)
{
	gpucr_pace_take(f->cfg->pace,
			gpucr_chunks_stored(f->pages.chunks, pos, len),
			f->cfg->stop);
	return gpucr_pages_read(&f->pages, pos, buf, len);
}

static int from_file(void *arg, uint64_t pos, void *buf, size_t len)
{
	struct filler *f = arg;
	int err = buf ? read_file(f, pos, buf, len) :
			gpucr_pages_pass(&f->pages, pos, len);

	if (!err) {
		gpucr_progress_add(f->cfg->progress, len);
		return 0;
	}
	f->bad = true;
	f->bad_pos = (uint64_t)f->pages.at * f->pages.chunks->chunk_size;
	return err;
}

static int set_store(const struct content_config *cfg,
		     const struct gpucr_copy *c, struct gpucr_pages_writer *w)
{
	struct iovec slots[CONTENT_MAX_SLOTS];
	struct gpucr_store_config store = {
		.uring = cfg->uring,
		/* Behind its header nothing is aligned. */
		.direct = !cfg->plain,
		.buffers = slots,
		.deadline_ms = cfg->store_ms ?: GPUCR_STORE_DEADLINE_MS,
	};

	store.num_buffers = gpucr_copy_buffers(c, slots, CONTENT_MAX_SLOTS);
	return gpucr_pages_set_store(w, &store);
}

/* The page file: of a directory, with writes in flight; or a pipe. */
static int open_file(const struct content_job *j, const struct gpucr_copy *c,
		     uint64_t bytes, struct gpucr_pages_writer *w)
{
	const struct content_config *cfg = &j->cfg;
	int err;

	if (j->pipe >= 0)
		return gpucr_pages_create_on(w, j->pipe, j->pages->file, bytes,
					     cfg->stop);
	err = gpucr_pages_create(w, cfg->dir, j->pages->file, bytes);
	return err ? err : set_store(cfg, c, w);
}

static int dump_bos(struct content_job *j, const struct gpucr_copy_bo *bos,
		    size_t num, uint64_t bytes)
{
	const struct content_config *cfg = &j->cfg;
	struct gpucr_img_pages *ret = j->pages;
	struct drain d = { .cfg = cfg };
	const struct gpucr_copy_sink sink = {
		.put = to_file, .needs = needs_file, .settle = settle_file,
		.arg = &d,
	};
	struct gpucr_copy *c;
	int err;

	err = open_copy(cfg, &c);
	if (err)
		return err;
	err = open_file(j, c, bytes, &d.w);
	if (!err && cfg->plain)
		err = gpucr_pages_set_plain(&d.w);
	else if (!err && cfg->zstd_level)
		err = gpucr_pages_set_zstd(&d.w, cfg->zstd_level);
	if (!err)
		err = gpucr_copy_from_gpu(c, bos, num, &sink);
	/* Writes end before the memory that they come from goes. */
	if (err)
		gpucr_pages_abort(&d.w);
	else
		err = gpucr_pages_commit(&d.w, &ret->chunks);
	j->placed = gpucr_copy_failed_at(c, &j->place);
	gpucr_copy_close(c);
	return err;
}

static int dump_gpu(struct content_job *j)
{
	uint64_t bytes, start = gpucr_now_ms();
	struct gpucr_copy_bo *bos;
	size_t num;
	int err;

	err = list_bos(&j->cfg, j->state, &bos, &num, &bytes);
	if (!err && bytes)
		err = dump_bos(j, bos, num, bytes);
	if (!err)
		tell_rate(&j->cfg, "read", num, bytes, start);
	free(bos);
	return err;
}

/* A thread and its job. */
struct worker {
	struct content_job *job;
	int (*run)(struct content_job *j);
	pthread_t thread;
	bool started;
	struct gpucr_log_capture log;
	int *stop;		/* shared: errno of the first failure */
};

/* The first failure of all is the one that counts. */
static void give_up(int *stop, int err)
{
	int none = 0;

	if (err)
		__atomic_compare_exchange_n(stop, &none, -err, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	gpucr_log_capture(&w->log);
	/*
	 * CRIU changes mount namespaces, which the kernel refuses to a task
	 * that shares its root and current directory. The kernel's workers
	 * behind a ring share them with us.
	 */
	if (unshare(CLONE_FS)) {
		w->job->err = -errno;
		gpucr_err("unshare: %s (thread-failed)", strerror(errno));
	} else {
		w->job->err = w->run(w->job);
	}
	give_up(w->stop, w->job->err);
	gpucr_log_capture(NULL);
	return NULL;
}

/* Signals are for CRIU's own thread. */
static int start_worker(struct worker *w)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	w->started = !err;
	if (err)
		gpucr_err("no thread for GPU 0x%04x: %s (thread-failed)",
			  w->job->cfg.gpu_id, strerror(-err));
	return err;
}

/* The failure that stopped the others is told first. */
static void tell_logs(struct worker *w, size_t num, int first)
{
	size_t i;

	for (i = 0; i < num; i++) {
		if (first && w[i].job->err == -first)
			gpucr_log_release(&w[i].log);
	}
	for (i = 0; i < num; i++)
		gpucr_log_release(&w[i].log);
}

/* Until the worker has ended. */
static void wait_for(struct worker *w, const struct content_watch *watch)
{
	struct timespec t;
	int err;

	do {
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += WATCH_NS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		err = pthread_clockjoin_np(w->thread, NULL, CLOCK_MONOTONIC,
					   &t);
		if (err == ETIMEDOUT && watch &&
		    !__atomic_load_n(w->stop, __ATOMIC_RELAXED))
			give_up(w->stop, watch->tick(watch->arg));
	} while (err == ETIMEDOUT);
}

/* CRIU's way to a streamer is for this thread only. */
static int open_pipe(struct content_job *j)
{
	j->pipe = gpucr_stream_on() ? gpucr_stream_open(j->pages->file) : -1;
	return gpucr_stream_on() && j->pipe < 0 ? j->pipe : 0;
}

/* The worker's own is closed: this ends the file. */
static void close_pipe(struct content_job *j)
{
	if (j->pipe >= 0)
		close(j->pipe);
	j->pipe = -1;
}

static int run_all(struct content_job *jobs, size_t num,
		   int (*run)(struct content_job *j),
		   const struct content_watch *watch)
{
	struct worker *w = calloc(num + 1, sizeof(*w));
	int stop = 0, err = 0;
	size_t i;

	if (!w)
		return -ENOMEM;
	for (i = 0; i < num && !err; i++) {
		w[i].job = &jobs[i];
		w[i].run = run;
		w[i].stop = &stop;
		jobs[i].cfg.stop = &stop;
		err = open_pipe(&jobs[i]);
		if (!err)
			err = start_worker(&w[i]);
	}
	if (err)
		__atomic_store_n(&stop, -err, __ATOMIC_RELAXED);
	for (i = 0; i < num; i++) {
		if (w[i].started)
			wait_for(&w[i], watch);
		if (w[i].job)
			close_pipe(&jobs[i]);
		jobs[i].cfg.stop = NULL;
	}
	for (i = 0; i < num && w[i].job; i++)
		;
	tell_logs(w, i, stop);
	free(w);
	return -stop;
}

int content_dump(struct content_job *jobs, size_t num,
		 const struct content_watch *watch)
{
	return run_all(jobs, num, dump_gpu, watch);
}

static int begin_file(void *arg, uint64_t pos, void *buf, size_t len)
{
	struct filler *f = arg;

	if (buf)
		gpucr_pages_begin(&f->pages, pos, buf, len);
	return 0;
}

static bool file_ready(void *arg, uint64_t wait_ns)
{
	struct filler *f = arg;

	return gpucr_pages_is_ready(&f->pages, wait_ns);
}

static int open_filler(const struct content_job *j, struct gpucr_fetch *fetch,
		       struct filler *f, struct gpucr_copy_fill *ret)
{
	int err;

	f->cfg = &j->cfg;
	f->pages.fd = -1;
	err = list_bos(&j->cfg, j->state, &f->bos, &f->num, &f->bytes);
	if (!err)
		err = gpucr_pages_open(&f->pages, j->cfg.dir, j->pages->file,
				       &j->pages->chunks);
	if (!err) {
		gpucr_pages_set_fetch(&f->pages, fetch);
		err = open_copy(&j->cfg, &f->copy);
	}
	*ret = (struct gpucr_copy_fill){
		.c = f->copy, .bos = f->bos, .num = f->num,
		.extent = file_extent, .source = from_file,
		.begin = begin_file, .ready = file_ready, .arg = f,
	};
	return err;
}

static void close_filler(struct filler *f)
{
	gpucr_pages_close(&f->pages);
	gpucr_copy_close(f->copy);
	free(f->bos);
}

/* The BO of a chunk that could not be had, or that of a copy. */
static bool failed_at(const struct filler *f, struct gpucr_copy_place *ret)
{
	size_t i;

	if (!f->bad)
		return f->copy && gpucr_copy_failed_at(f->copy, ret);
	ret->gpu_id = f->cfg->gpu_id;
	ret->offset = f->bad_pos;
	for (i = 0; i < f->num && ret->offset >= f->bos[i].size; i++)
		ret->offset -= f->bos[i].size;
	ret->bo = i < f->num ? f->bos[i].index : 0;
	return i < f->num;
}

static int fill_together(struct content_job *jobs, size_t num)
{
	struct gpucr_copy_fill *fills = calloc(num + 1, sizeof(*fills));
	struct filler *f = calloc(num + 1, sizeof(*f));
	uint64_t start = gpucr_now_ms();
	struct gpucr_fetch *fetch;
	size_t i, opened = 0;
	int err = fills && f ? 0 : -ENOMEM;

	fetch = gpucr_fetch_open(GPUCR_STORE_DEADLINE_MS);
	for (; opened < num && !err; opened++)
		err = open_filler(&jobs[opened], fetch, &f[opened],
				  &fills[opened]);
	if (!err)
		err = gpucr_copy_to_gpus(fills, num);
	for (i = 0; i < opened && err; i++)
		jobs[i].placed = failed_at(&f[i], &jobs[i].place);
	for (i = 0; i < num && !err; i++)
		tell_rate(&jobs[i].cfg, "filled", fills[i].num, f[i].bytes,
			  start);
	/* What is being read goes to the memory of the slots. */
	gpucr_fetch_close(fetch);
	for (i = 0; i < opened; i++)
		close_filler(&f[i]);
	free(f);
	free(fills);
	return err;
}

int content_restore(struct content_job *jobs, size_t num)
{
	size_t i;
	int err = 0;

	if (!gpucr_stream_on())
		return fill_together(jobs, num);
	/* A streamer gives one file at a time. */
	for (i = 0; i < num && !err; i++)
		err = fill_together(&jobs[i], 1);
	return err;
}

static int restore_gpu(struct content_job *j)
{
	return content_restore(j, 1);
}

int content_restore_apart(struct content_job *jobs, size_t num,
			  const struct content_watch *watch)
{
	return run_all(jobs, num, restore_gpu, watch);
}
