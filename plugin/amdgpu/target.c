// SPDX-License-Identifier: GPL-2.0-only
#include "target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "rendernode.h"
#include "report.h"
#include "stream.h"
#include "upstream.h"
#include "version.h"

#include "content.h"
#include "copy.h"
#include "plugin.h"
#include "sharedmem.h"
#include "targetmap.h"

static int compare_keys(const void *a, const void *b)
{
	const struct target_key *x = a, *y = b;

	if (x->local_gpu_id != y->local_gpu_id)
		return x->local_gpu_id < y->local_gpu_id ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static uint32_t local_gpu_id(const struct target *t, uint32_t user_gpu_id)
{
	uint32_t i;

	for (i = 0; i < t->counts.num_devices; i++) {
		if (t->state.devices[i].user_gpu_id == user_gpu_id)
			return t->state.devices[i].actual_gpu_id;
	}
	return 0;
}

static int make_keys(struct target *t)
{
	uint32_t i;

	t->keys = calloc((size_t)t->counts.num_bos + 1, sizeof(*t->keys));
	if (!t->keys)
		return -ENOMEM;
	for (i = 0; i < t->counts.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &t->state.bos[i];

		if (!gpucr_kfd_bo_has_content(b->alloc_flags))
			continue;
		t->keys[t->num_keys++] = (struct target_key){
			.local_gpu_id = local_gpu_id(t, b->gpu_id),
			.offset = b->offset,
		};
	}
	qsort(t->keys, t->num_keys, sizeof(*t->keys), compare_keys);
	for (i = 1; i < t->num_keys; i++) {
		if (compare_keys(&t->keys[i - 1], &t->keys[i]))
			continue;
		gpucr_err("pid %d has the buffer object at offset 0x%llx of GPU 0x%04x twice (bo-shared); such a one cannot be restored yet",
			  t->task.pid, (unsigned long long)t->keys[i].offset,
			  t->keys[i].local_gpu_id);
		return -EOPNOTSUPP;
	}
	return 0;
}

int target_refuse_shared(const struct target *a, const struct target *b)
{
	size_t i = 0, j = 0;

	while (i < a->num_keys && j < b->num_keys) {
		int c = compare_keys(&a->keys[i], &b->keys[j]);

		if (!c) {
			gpucr_err("pid %d and pid %d share the buffer object at offset 0x%llx of GPU 0x%04x (bo-shared); shared ones cannot be restored yet",
				  a->task.pid, b->task.pid,
				  (unsigned long long)a->keys[i].offset,
				  a->keys[i].local_gpu_id);
			return -EOPNOTSUPP;
		}
		i += c < 0;
		j += c > 0;
	}
	return 0;
}

void target_free(struct target *t)
{
	gpucr_ckpt_close(t->ckpt);
	gpucr_kfd_state_clear(&t->state);
	free(t->keys);
	free(t);
}

int target_read(struct target *t)
{
	uint64_t start;
	int err, phase;

	if (t->read)
		return 0;
	err = gpucr_kfd_state_alloc(&t->state, &t->counts);
	if (err) {
		gpucr_err("pid %d: no memory for %u buffer objects and %llu bytes of private data",
			  t->task.pid, t->counts.num_bos,
			  (unsigned long long)t->counts.priv_size);
		return err;
	}
	phase = gpucr_report_begin(plugin_report, "checkpoint", t->task.ns_pid);
	start = gpucr_now_ns();
	err = gpucr_ckpt_read(t->ckpt, &t->state);
	t->read_us = (gpucr_now_ns() - start) / 1000;
	gpucr_report_end(plugin_report, phase, 0);
	if (!err)
		err = make_keys(t);
	if (err)
		gpucr_kfd_state_clear(&t->state);
	t->read = !err;
	return err;
}

int target_check_space(int dir, uint64_t bytes)
{
	struct statvfs st;
	uint64_t need = bytes + bytes / 20, have;

	/* What is behind a streamer is not known. */
	if (gpucr_stream_on() || fstatvfs(dir, &st))
		return 0;
	have = (uint64_t)st.f_bavail * st.f_frsize;
	if (need <= have)
		return 0;
	gpucr_err("the image directory has %llu MiB free, GPU memory and 5 %% need %llu MiB (no-space); use a larger one, or space-check = off",
		  (unsigned long long)have >> 20,
		  (unsigned long long)need >> 20);
	return -ENOSPC;
}

int target_device(const struct target *t, const struct gpucr_topology *topo,
		  uint32_t index, struct gpucr_img_device *ret)
{
	const struct kfd_criu_device_bucket *b = &t->state.devices[index];
	const struct gpucr_node *node;

	node = gpucr_topology_find_by_gpu_id(topo, b->actual_gpu_id);
	if (!node) {
		gpucr_err("pid %d uses GPU 0x%04x, which the topology does not show here (no-gpu); run criu where that GPU is visible",
			  t->task.pid, b->actual_gpu_id);
		return -ENODEV;
	}
	gpucr_img_device_from_node(ret, topo, node, b->user_gpu_id);
	return 0;
}

static int fill_devices(const struct target *t, const struct target_env *env,
			struct gpucr_img_kfd *img)
{
	uint32_t i;
	int err;

	img->devices = calloc((size_t)t->counts.num_devices + 1,
			      sizeof(*img->devices));
	if (!img->devices)
		return -ENOMEM;
	for (i = 0; i < t->counts.num_devices; i++) {
		err = target_device(t, env->topo, i, &img->devices[i]);
		if (err)
			return err;
		img->num_devices++;
	}
	return 0;
}

static int fill_bos(const struct target *t, struct gpucr_img_kfd *img)
{
	uint32_t i;

	img->bos = calloc((size_t)t->counts.num_bos + 1, sizeof(*img->bos));
	if (!img->bos)
		return -ENOMEM;
	for (i = 0; i < t->counts.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &t->state.bos[i];

		img->bos[i] = (struct gpucr_img_bo){
			.addr = b->addr,
			.size = b->size,
			.offset = b->offset,
			.alloc_flags = b->alloc_flags,
			.gpu_id = b->gpu_id,
		};
	}
	img->num_bos = t->counts.num_bos;
	return 0;
}

static int fill_priv(const struct target *t, struct target_env *env,
		     struct gpucr_img_kfd *img)
{
	int err;

	err = gpucr_kfd_rules_match(&env->rules, &t->state,
				    &img->bo_record_size);
	if (err)
		return err;
	gpucr_kfd_driver(&env->rules, img->driver, sizeof(img->driver));
	gpucr_dbg("pid %d: private data with a layout of %u bytes a BO",
		  t->task.pid, img->bo_record_size);
	if (img->bo_record_size && env->rules.bo_known == GPUCR_KNOWN_NOT) {
		env->rules.bo_record = img->bo_record_size;
		env->rules.bo_known = GPUCR_KNOWN_SEEN;
		gpucr_kfd_rules_note(&env->rules);
	}
	img->priv = malloc(t->counts.priv_size + 1);
	if (!img->priv)
		return -ENOMEM;
	memcpy(img->priv, t->state.priv, t->counts.priv_size);
	img->priv_size = t->counts.priv_size;
	return 0;
}

/* Memory for copies is shared out among the GPUs. */
static uint64_t buffer_limit(const struct gpucr_opts *opts, size_t num_gpus)
{
	uint64_t limit = MAIN_BUFFER_SUM / num_gpus;

	if (opts->max_buffer_size && opts->max_buffer_size < limit)
		return opts->max_buffer_size;
	return limit;
}

/* No single wait may take longer than the whole pause. */
static unsigned int wait_limit(const struct gpucr_opts *opts,
			       unsigned int usual_ms)
{
	unsigned int ms = opts->pause_limit * 1000;

	return ms && ms < usual_ms ? ms : usual_ms;
}

static int add_job(struct target *t, struct target_env *env,
		   struct gpucr_img_kfd *img, const struct gpucr_img_device *d,
		   struct content_job *j)
{
	struct gpucr_img_pages *p = &img->pages[img->num_pages];

	*j = (struct content_job){
		.cfg = {
			.dir = env->dir,
			.gpu_id = d->user_gpu_id,
			.slots = MAIN_SLOTS,
			.slot_size = MAIN_SLOT_SIZE,
			.uring = env->opts->io_uring,
			.zstd_level = env->opts->zstd_level,
			.pace = &env->pace,
			.progress = env->progress,
			.copy_ms = wait_limit(env->opts,
					      env->opts->copy_deadline * 1000),
			.store_ms = wait_limit(env->opts,
					       GPUCR_STORE_DEADLINE_MS),
			.plain = img->upstream,
		},
		.state = &t->state,
		.pages = p,
	};
	j->cfg.drm_fd = gpucr_drm_open_render(d->render_minor);
	if (j->cfg.drm_fd < 0) {
		gpucr_err("GPU 0x%04x: render node renderD%u cannot be opened: %s (no-render-node)",
			  d->local_gpu_id, d->render_minor,
			  strerror(-j->cfg.drm_fd));
		return j->cfg.drm_fd;
	}
	p->gpu_id = d->user_gpu_id;
	if (img->upstream)
		gpucr_up_pages_name(p->file, img->id, d->user_gpu_id);
	else
		gpucr_img_pages_name(p->file, img->id, d->user_gpu_id);
	env->writing(p->file);
	img->num_pages++;
	return 0;
}

static int run_jobs(struct target_env *env, struct content_job *jobs,
		    size_t num, struct gpucr_img_kfd *img)
{
	const struct content_watch watch = { watch_tick, &env->watch };
	uint64_t start = gpucr_now_ns();
	size_t i;
	int err, ended;

	for (i = 0; i < num; i++)
		jobs[i].cfg.max_buffer = buffer_limit(env->opts, num);
	gpucr_progress_phase(env->progress, "copy", 0);
	watch_begin();
	err = content_dump(jobs, num, &watch);
	ended = watch_end();
	img->copy_us = (gpucr_now_ns() - start) / 1000;
	env->copy_ms += img->copy_us / 1000;
	err = err ? err : ended;
	for (i = 0; i < num; i++) {
		if (err && jobs[i].err == err && jobs[i].placed)
			gpucr_report_place(plugin_report, &jobs[i].place);
		/* Some may be whole although another failed. */
		if (jobs[i].pages->chunks.num)
			env->wrote(jobs[i].pages->file);
		env->raw_bytes += jobs[i].pages->chunks.raw_bytes;
		env->stored_bytes += jobs[i].pages->chunks.file_bytes;
	}
	return err;
}

static int write_content(struct target *t, struct target_env *env,
			 struct gpucr_img_kfd *img)
{
	struct content_job *jobs = calloc(img->num_devices + 1, sizeof(*jobs));
	size_t i, num = 0;
	int err = 0, phase;

	img->pages = calloc(img->num_devices + 1, sizeof(*img->pages));
	if (!img->pages || !jobs)
		err = -ENOMEM;
	for (i = 0; i < img->num_devices && !err; i++) {
		if (!gpucr_img_content_bytes(img, img->devices[i].user_gpu_id))
			continue;
		err = add_job(t, env, img, &img->devices[i], &jobs[num]);
		num += !err;
	}
	phase = gpucr_report_begin(plugin_report, "copy", t->task.ns_pid);
	if (!err && num)
		err = run_jobs(env, jobs, num, img);
	if (!err)
		gpucr_report_end(plugin_report, phase,
				 gpucr_img_content_bytes(img, 0));
	for (i = 0; i < num; i++)
		close(jobs[i].cfg.drm_fd);
	free(jobs);
	return err;
}

static void fill_head(const struct target *t, struct gpucr_img_kfd *img,
		      uint32_t id)
{
	struct utsname u;

	memset(img, 0, sizeof(*img));
	img->id = id;
	img->pid = t->task.ns_pid;
	img->num_objects = t->counts.num_objects;
	img->time = time(NULL);
	snprintf(img->writer, sizeof(img->writer), "gpucr %s",
		 GPUCR_LIB_VERSION);
	if (!uname(&u))
		snprintf(img->kernel_release, sizeof(img->kernel_release),
			 "%s", u.release);
}

static int write_process(struct target *t, struct target_env *env,
			 struct gpucr_img_kfd *img)
{
	const char *fault;
	int err;

	gpucr_progress_phase(env->progress, "read", t->task.pid);
	err = target_read(t);
	img->read_us = t->read_us;
	if (!err)
		err = fill_devices(t, env, img);
	if (!err)
		err = fill_bos(t, img);
	if (!err)
		err = fill_priv(t, env, img);
	if (!err && env->late)
		err = sharedmem_refuse(t->task.pid, img);
	if (!err)
		err = targetmap_fill(t->task.pid, env->kfd, img);
	if (!err && env->opts->space_check)
		err = target_check_space(env->dir,
					 gpucr_img_content_bytes(img, 0));
	gpucr_progress_expect(env->progress, gpucr_img_content_bytes(img, 0));
	if (!err)
		err = write_content(t, env, img);
	if (err)
		return err;
	gpucr_progress_phase(env->progress, "copied", 0);
	/* What the reader would refuse must not be called a dump. */
	fault = gpucr_img_kfd_fault(img);
	if (!fault)
		return 0;
	gpucr_err("pid %d: %s (image-fault)", t->task.pid, fault);
	return -EPROTO;
}

int target_write(struct target *t, struct target_env *env, uint32_t id)
{
	char name[GPUCR_IMG_NAME_MAX];
	struct gpucr_img_kfd img;
	int err = 0;

	fill_head(t, &img, id);
	img.upstream = env->opts->format == GPUCR_FORMAT_UPSTREAM;
	if (t->image_id) {
		img.alias_of = t->image_id;
		img.num_objects = 0;
	} else if (t->no_gpu) {
		img.no_gpu = true;
	} else {
		err = write_process(t, env, &img);
	}
	gpucr_image_kfd_name(name, env->opts->format, id);
	env->writing(name);
	if (!err)
		err = img.upstream ?
		      gpucr_up_kfd_write(env->dir, &img, env->topo) :
		      gpucr_img_kfd_write(env->dir, &img);
	gpucr_img_kfd_clear(&img);
	if (err)
		return err;
	env->wrote(name);
	if (!t->image_id)
		t->image_id = id;
	/* The dma-bufs pin nothing any more. */
	gpucr_kfd_state_close_bos(&t->state);
	return 0;
}
