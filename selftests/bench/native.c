// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bench, level 1: the plugin's own objects for GPU content, between a stand-in
 * for libdrm and real files. Each case is a ratio measured in one run:
 * throughput of a dump (fsync included) and of a restore, over the slower of
 * copies and storage, measured with the same shapes, copies before the runs and
 * storage before and after each: storage may be fast at first and slower
 * once it has been used for a while, and a virtual machine's neighbours come
 * and go. Then how time grows with bytes and with the number of BOs.
 *
 * usage: native DIR [BYTES [JSON]]	DIR is on the storage to be measured
 *
 *	BENCH_CASES="SET/GPUS ..."	only these, and no growth
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>
#include <liburing.h>

#include "copy.h"
#include "log.h"
#include "standin.h"
#include "wanted.h"
#include "workload.h"

#include "../../plugin/amdgpu/plugin.h"

#define RUNS		3
/* Beside the slots: indexes, lists of BOs, rings, stacks of threads. */
#define RSS_BESIDE	(48 * MIB)
#define MAX_GPUS	4
#define MIB		(UINT64_C(1) << 20)
#define CAL_DEPTH	4	/* requests of CAL_SIZE in flight for each file */
#define CAL_SIZE	(16 * MIB)

/* Medians; rates in bytes per second. */
struct result {
	double dump, restore;
	double cpu, cpu_back;		/* seconds per GiB, engines taken off */
	double copy, copy_back, write, read;	/* calibrations */
	double ratio, ratio_back;	/* of each run, to its calibrations */
	uint64_t rss, rss_back;		/* bytes at most, BOs taken off */
	uint64_t cached;		/* of the page files, in memory */
	uint64_t stored;
};

static int dir;
static uint64_t bytes = 4096 * MIB;

static void give_up(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu_now(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

/* --- calibration: files of the same number and size, fsync included */

struct cal_file {
	struct io_uring ring;
	int fd;
	uint64_t size, queued, done;
};

static void cal_queue(struct cal_file *f, void *buf, bool write)
{
	uint64_t len = f->size - f->queued;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&f->ring);

	if (len > CAL_SIZE)
		len = CAL_SIZE;
	if (write)
		io_uring_prep_write(sqe, f->fd, buf, len, f->queued);
	else
		io_uring_prep_read(sqe, f->fd, buf, len, f->queued);
	io_uring_sqe_set_data(sqe, buf);
	f->queued += len;
	if (io_uring_submit(&f->ring) < 0)
		give_up("io_uring");
}

static void cal_wait(struct cal_file *f, bool write)
{
	struct io_uring_cqe *cqe;
	void *buf;

	if (io_uring_wait_cqe(&f->ring, &cqe))
		give_up("io_uring");
	if (cqe->res <= 0) {
		errno = -cqe->res;
		give_up("calibration");
	}
	f->done += cqe->res;
	buf = io_uring_cqe_get_data(cqe);
	io_uring_cqe_seen(&f->ring, cqe);
	if (f->queued < f->size)
		cal_queue(f, buf, write);
}

static void cal_name(char *name, size_t len, unsigned int i)
{
	snprintf(name, len, "calibration-%u", i);
}

static void cal_unlink(unsigned int files)
{
	unsigned int i;
	char name[32];

	for (i = 0; i < files; i++) {
		cal_name(name, sizeof(name), i);
		unlinkat(dir, name, 0);
	}
}

static void cal_open(struct cal_file *f, unsigned int i, bool write)
{
	char name[32];

	cal_name(name, sizeof(name), i);
	f->fd = openat(dir, name, (write ? O_WRONLY | O_CREAT | O_TRUNC :
				   O_RDONLY) | O_DIRECT, 0600);
	if (f->fd < 0 && errno == EINVAL)
		f->fd = openat(dir, name, write ? O_WRONLY | O_CREAT | O_TRUNC :
			       O_RDONLY, 0600);
	if (f->fd < 0 || io_uring_queue_init(CAL_DEPTH, &f->ring, 0))
		give_up(name);
}

/* Bytes per second to or from files of size bytes each. */
static double cal_run(unsigned int files, uint64_t size, void **bufs,
		      bool write)
{
	struct cal_file f[MAX_GPUS] = { 0 };
	double start = now();
	unsigned int i, j;
	bool more = true;

	for (i = 0; i < files; i++) {
		cal_open(&f[i], i, write);
		f[i].size = size;
		for (j = 0; j < CAL_DEPTH && f[i].queued < size; j++)
			cal_queue(&f[i], bufs[i * CAL_DEPTH + j], write);
	}
	while (more) {
		more = false;
		for (i = 0; i < files; i++) {
			if (f[i].done == size)
				continue;
			cal_wait(&f[i], write);
			more = true;
		}
	}
	for (i = 0; i < files; i++) {
		if (write && fsync(f[i].fd))
			give_up("fsync");
		close(f[i].fd);
		io_uring_queue_exit(&f[i].ring);
	}
	return files * size / (now() - start);
}

static void *cal_buffer(unsigned int n)
{
	uint64_t *p = aligned_alloc(4096, CAL_SIZE);
	size_t i;

	if (!p)
		give_up("calibration");
	for (i = 0; i < CAL_SIZE / sizeof(*p); i++)
		p[i] = (i + n) * UINT64_C(0x9e3779b97f4a7c15);
	return p;
}

/* Files of one shape, and what the storage did with them. */
struct cal {
	unsigned int files;
	uint64_t size;
	void *bufs[MAX_GPUS * CAL_DEPTH];
};

/* The files are there from then on. */
static void cal_begin(struct cal *c, unsigned int files, uint64_t size)
{
	unsigned int i;

	c->files = files;
	c->size = size;
	for (i = 0; i < files * CAL_DEPTH; i++)
		c->bufs[i] = cal_buffer(i);
}

/* To free an old file's room takes as long as it takes. */
static double cal_write(struct cal *c)
{
	cal_unlink(c->files);
	return cal_run(c->files, c->size, c->bufs, true);
}

static double cal_read(struct cal *c)
{
	return cal_run(c->files, c->size, c->bufs, false);
}

static void cal_end(struct cal *c)
{
	unsigned int i;

	cal_unlink(c->files);
	for (i = 0; i < c->files * CAL_DEPTH; i++)
		free(c->bufs[i]);
}

/* --- calibration: the engines alone, from the BOs to nowhere */

struct copier {
	pthread_t thread;
	const struct content_job *job;
	struct gpucr_copy_bo *bos;
	size_t num;
};

static int put_nowhere(void *arg, uint64_t pos, void *buf, size_t len)
{
	(void)arg;
	(void)pos;
	(void)buf;
	(void)len;
	return 0;
}

static bool needs_nothing(void *arg, const void *buf, size_t len)
{
	(void)arg;
	(void)buf;
	(void)len;
	return false;
}

static int settle_nothing(void *arg, void *buf, size_t len)
{
	(void)arg;
	(void)buf;
	(void)len;
	return 0;
}

static void *copy_alone(void *arg)
{
	static const struct gpucr_copy_sink nowhere = {
		.put = put_nowhere, .needs = needs_nothing,
		.settle = settle_nothing,
	};
	struct copier *k = arg;
	struct gpucr_copy_config cfg = {
		.gpu_id = k->job->cfg.gpu_id,
		.deadline_ms = GPUCR_COPY_DEADLINE_MS,
	};
	struct gpucr_copy *c;

	gpucr_copy_size(&cfg, MAIN_SLOTS, MAIN_SLOT_SIZE, 0);
	if (gpucr_copy_open(&cfg, &c) ||
	    gpucr_copy_from_gpu(c, k->bos, k->num, &nowhere))
		give_up("copy");
	gpucr_copy_close(c);
	return NULL;
}

static double copy_run(const struct content_job *jobs, unsigned int gpus,
		       const struct gpucr_kfd_state *s)
{
	struct copier k[MAX_GPUS] = { 0 };
	double start;
	unsigned int i, j;

	for (i = 0; i < gpus; i++) {
		k[i].job = &jobs[i];
		k[i].bos = calloc(s->n.num_bos, sizeof(*k[i].bos));
		for (j = i; j < s->n.num_bos; j += gpus)
			k[i].bos[k[i].num++] = (struct gpucr_copy_bo){
				.dmabuf_fd = s->bos[j].dmabuf_fd,
				.index = j,
				.size = s->bos[j].size,
			};
	}
	start = now();
	for (i = 0; i < gpus; i++)
		pthread_create(&k[i].thread, NULL, copy_alone, &k[i]);
	for (i = 0; i < gpus; i++)
		pthread_join(k[i].thread, NULL);
	start = now() - start;
	for (i = 0; i < gpus; i++)
		free(k[i].bos);
	return bytes / start;
}

/* --- measurement */

/* A line of /proc/self/status, in bytes. */
static uint64_t status_bytes(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), " %llu", &kib);
	}
	if (f)
		fclose(f);
	return kib << 10;
}

/* From here on the peak is counted; what is in memory now is no part of it. */
static uint64_t rss_begin(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY);

	if (fd < 0 || write(fd, "5", 1) != 1)
		give_up("/proc/self/clear_refs");
	close(fd);
	return status_bytes("VmRSS:");
}

static uint64_t rss_grown(uint64_t before)
{
	uint64_t peak = status_bytes("VmHWM:");

	return peak > before ? peak - before : 0;
}

/* Of a file, bytes that the page cache has. */
static uint64_t cached_bytes(const char *name)
{
	int fd = openat(dir, name, O_RDONLY);
	unsigned char *in;
	struct stat st;
	uint64_t n = 0;
	size_t i, pages;
	void *map;

	if (fd < 0 || fstat(fd, &st) || !st.st_size) {
		close(fd);
		return 0;
	}
	pages = (st.st_size + 4095) / 4096;
	in = malloc(pages);
	map = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (!in || map == MAP_FAILED || mincore(map, st.st_size, in))
		give_up(name);
	for (i = 0; i < pages; i++)
		n += in[i] & 1 ? 4096 : 0;
	munmap(map, st.st_size);
	free(in);
	close(fd);
	return n;
}

static double cpu_used(double since_all, double since_engines)
{
	return (cpu_now() - since_all - (standin_cpu() - since_engines)) /
	       (bytes / (double)(1024 * MIB));
}

static void drop_pages(struct gpucr_img_pages *pages, unsigned int gpus)
{
	unsigned int i;

	for (i = 0; i < gpus; i++) {
		gpucr_chunks_clear(&pages[i].chunks);
		unlinkat(dir, pages[i].file, 0);
	}
}

static void dump_once(const struct gpucr_kfd_state *s, unsigned int gpus,
		      struct gpucr_img_pages *pages, double *rate, double *cpu)
{
	struct content_job jobs[MAX_GPUS];
	double start, all, engines;

	drop_pages(pages, gpus);
	workload_jobs(jobs, gpus, s, pages, dir, true);
	all = cpu_now();
	engines = standin_cpu();
	start = now();
	if (content_dump(jobs, gpus, NULL))
		give_up("dump");
	*rate = bytes / (now() - start);
	*cpu = cpu_used(all, engines);
}

static void restore_once(const struct gpucr_kfd_state *s, unsigned int gpus,
			 struct gpucr_img_pages *pages, double *rate,
			 double *cpu)
{
	double start, all = cpu_now(), engines = standin_cpu();
	struct content_job jobs[MAX_GPUS];

	workload_jobs(jobs, gpus, s, pages, dir, false);
	start = now();
	if (content_restore(jobs, gpus))
		give_up("restore");
	*rate = bytes / (now() - start);
	*cpu = cpu_used(all, engines);
}

/* Of the time that the slower of engines and storage needs. */
static double eta(double rate, double copy, double storage, uint64_t stored)
{
	double least = bytes / copy, other = stored / storage;

	return (least > other ? least : other) * rate / bytes;
}

static uint64_t file_bytes(const struct gpucr_img_pages *pages,
			   unsigned int gpus)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < gpus; i++)
		sum += pages[i].chunks.file_bytes;
	return sum;
}

/* One direction: what each run gave, and the storage around the runs. */
struct runs {
	double rate[RUNS], cpu[RUNS], ratio[RUNS];
	double copy, storage[RUNS + 1];
};

static void take_ratios(struct runs *v, uint64_t stored)
{
	unsigned int i;

	for (i = 0; i < RUNS; i++)
		v->ratio[i] = eta(v->rate[i], v->copy,
				  (v->storage[i] + v->storage[i + 1]) / 2,
				  stored);
}

static void measure_dump(const struct gpucr_kfd_state *s, unsigned int gpus,
			 struct gpucr_img_pages *pages, struct cal *cal,
			 struct result *r)
{
	struct content_job jobs[MAX_GPUS];
	struct runs v = { 0 };
	uint64_t before, grown;
	unsigned int i;

	workload_jobs(jobs, gpus, s, pages, dir, true);
	v.copy = cal ? copy_run(jobs, gpus, s) : 0;
	v.storage[0] = cal ? cal_write(cal) : 0;
	for (i = 0; i < RUNS; i++) {
		before = rss_begin();
		dump_once(s, gpus, pages, &v.rate[i], &v.cpu[i]);
		grown = rss_grown(before);
		r->rss = grown > r->rss ? grown : r->rss;
		v.storage[i + 1] = cal ? cal_write(cal) : 0;
	}
	r->stored = file_bytes(pages, gpus);
	for (i = 0; i < gpus; i++)
		r->cached += cached_bytes(pages[i].file);
	take_ratios(&v, r->stored);
	r->dump = median(v.rate, RUNS);
	r->cpu = median(v.cpu, RUNS);
	r->ratio = median(v.ratio, RUNS);
	r->copy = v.copy;
	r->write = median(v.storage, RUNS + 1);
}

static void measure_restore(const struct set *set,
			    const struct gpucr_kfd_state *s, unsigned int gpus,
			    struct gpucr_img_pages *pages, struct cal *cal,
			    struct result *r)
{
	struct content_job jobs[MAX_GPUS];
	struct runs v = { 0 };
	uint64_t before, grown;
	unsigned int i;

	workload_jobs(jobs, gpus, s, pages, dir, true);
	v.copy = cal ? copy_run(jobs, gpus, s) : 0;
	v.storage[0] = cal ? cal_read(cal) : 0;
	for (i = 0; i < RUNS; i++) {
		workload_poison(s);
		before = rss_begin();
		restore_once(s, gpus, pages, &v.rate[i], &v.cpu[i]);
		grown = rss_grown(before);
		r->rss_back = grown > r->rss_back ? grown : r->rss_back;
		if (!workload_check(set, s))
			exit(1);
		v.storage[i + 1] = cal ? cal_read(cal) : 0;
	}
	take_ratios(&v, r->stored);
	r->restore = median(v.rate, RUNS);
	r->cpu_back = median(v.cpu, RUNS);
	r->ratio_back = median(v.ratio, RUNS);
	r->copy_back = v.copy;
	r->read = median(v.storage, RUNS + 1);
}

/* Engines of factor times what the storage does, each way. */
static void measure(const struct set *set, unsigned int gpus, double factor,
		    const struct gpucr_kfd_state *s, struct cal *cal,
		    struct result *r)
{
	struct gpucr_img_pages pages[MAX_GPUS] = { 0 };

	standin_set_rate(factor * cal_write(cal) / gpus);
	measure_dump(s, gpus, pages, cal, r);
	standin_set_rate(factor * cal_read(cal) / gpus);
	measure_restore(set, s, gpus, pages, cal, r);
	drop_pages(pages, gpus);
}

static void number(struct json_object *o, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.3f", value);
	json_object_object_add(o, key, json_object_new_double_s(value, text));
}

static void integer(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_int64(value));
}

static struct json_object *as_json(const struct set *set, unsigned int gpus,
				   double factor, const struct result *r)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "set", json_object_new_string(set->name));
	integer(o, "gpus", gpus);
	integer(o, "bytes", bytes);
	integer(o, "stored_bytes", r->stored);
	number(o, "copy_to_storage", factor);
	number(o, "storage_write_bytes_per_s", r->write);
	number(o, "storage_read_bytes_per_s", r->read);
	number(o, "copy_bytes_per_s", r->copy);
	number(o, "copy_back_bytes_per_s", r->copy_back);
	number(o, "dump_bytes_per_s", r->dump);
	number(o, "restore_bytes_per_s", r->restore);
	number(o, "dump_ratio", r->ratio);
	number(o, "restore_ratio", r->ratio_back);
	number(o, "cpu_s_per_gib", r->cpu);
	number(o, "restore_cpu_s_per_gib", r->cpu_back);
	integer(o, "rss_bytes", r->rss);
	integer(o, "restore_rss_bytes", r->rss_back);
	integer(o, "page_cache_bytes", r->cached);
	return o;
}

static bool report(struct json_object *all, const struct set *set,
		   unsigned int gpus, double factor, const struct result *r)
{
	bool good = r->ratio >= WANTED && r->ratio_back >= WANTED &&
		    r->cpu <= CPU_LIMIT &&
		    r->cpu_back <= CPU_LIMIT &&
		    r->rss <= MAIN_SLOTS * MAIN_SLOT_SIZE * gpus + RSS_BESIDE &&
		    r->rss_back <= TASK_SLOTS * TASK_SLOT_SIZE * gpus +
				   RSS_BESIDE;

	printf("%-9s %4u %5.2f %6.0f %6.0f %6.0f %6.0f %6.0f %7.0f %6.2f %6.2f %5.2f %5.2f %5.0f %5.0f %6.0f  %s\n",
	       set->name, gpus, factor, r->write / MIB, r->read / MIB,
	       r->copy / MIB, r->copy_back / MIB, r->dump / MIB,
	       r->restore / MIB, r->ratio, r->ratio_back, r->cpu, r->cpu_back,
	       r->rss / (double)MIB, r->rss_back / (double)MIB,
	       r->cached / (double)MIB, good ? "ok" : "BELOW");
	fflush(stdout);
	json_object_array_add(all, as_json(set, gpus, factor, r));
	return good;
}

static const struct set sets[] = {
	{ "one", 0, false, 0, 0 },
	{ "4m", 4 * MIB, false, 0, 0 },
	{ "64k", 64 * 1024, false, 0, 0 },
	/* Of up to four GPUs each gets its half. */
	{ "4m-zeros", 4 * MIB, false, 4, 2 },
};

#define NUM_SETS	(sizeof(sets) / sizeof(sets[0]))

/* 40,960 BOs of 64 KiB where the others have 4 GiB. */
static uint64_t set_bytes(const struct set *set, uint64_t all)
{
	return set->bo_size == 64 * 1024 ? all / 8 * 5 : all;
}

/* BENCH_CASES, "one/1 4m/4": only these. */
static bool is_wanted(const struct set *set, unsigned int gpus)
{
	const char *only = getenv("BENCH_CASES");
	char name[32], *list, *save, *word;
	bool found = false;

	if (!only || !*only)
		return true;
	snprintf(name, sizeof(name), "%s/%u", set->name, gpus);
	list = strdup(only);
	if (!list)
		give_up("BENCH_CASES");
	for (word = strtok_r(list, " ", &save); word && !found;
	     word = strtok_r(NULL, " ", &save))
		found = !strcmp(word, name);
	free(list);
	return found;
}

/* All rates of one set on so many GPUs. Returns how many are below. */
static unsigned int run_set(struct json_object *all, const struct set *set,
			    unsigned int gpus)
{
	static const double factors[] = { 0.25, 1, 4 };
	struct gpucr_kfd_state s;
	unsigned int i, below = 0;
	struct cal cal;

	if (!is_wanted(set, gpus))
		return 0;
	workload_make(set, gpus, bytes, &s);
	cal_begin(&cal, gpus, bytes / gpus / (set->zero_of ?: 1));
	for (i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
		struct result r = { 0 };

		measure(set, gpus, factors[i], &s, &cal, &r);
		below += !report(all, set, gpus, factors[i], &r);
	}
	cal_end(&cal);
	workload_free(&s);
	return below;
}

/* Seconds of a dump and of a restore, engines as fast as they can. */
static void grow_point(struct json_object *to, const struct set *set)
{
	struct gpucr_img_pages pages[MAX_GPUS] = { 0 };
	struct json_object *o = json_object_new_object();
	struct gpucr_kfd_state s;
	struct result r = { 0 };

	workload_make(set, 1, bytes, &s);
	standin_set_rate(0);
	measure_dump(&s, 1, pages, NULL, &r);
	measure_restore(set, &s, 1, pages, NULL, &r);
	printf("%8llu MiB %8u BOs: dump %7.3f s, restore %7.3f s\n",
	       (unsigned long long)bytes / MIB, s.n.num_bos, bytes / r.dump,
	       bytes / r.restore);
	fflush(stdout);
	integer(o, "bytes", bytes);
	integer(o, "bos", s.n.num_bos);
	number(o, "dump_s", bytes / r.dump);
	number(o, "restore_s", bytes / r.restore);
	json_object_array_add(to, o);
	drop_pages(pages, 1);
	workload_free(&s);
}

/* More bytes in BOs of one size; as many bytes in more BOs. */
static void grow(struct json_object *doc, uint64_t all)
{
	struct json_object *by_bytes = json_object_new_array();
	struct json_object *by_bos = json_object_new_array();
	static const uint64_t sizes[] = {
		16 * MIB, MIB, 256 << 10, 128 << 10, 64 << 10,
	};
	struct set set = { .name = "growth", .bo_size = 4 * MIB };
	unsigned int i;

	for (i = 1; i <= 5; i++) {
		bytes = all / 5 / (16 * MIB) * (16 * MIB) * i;
		if (bytes)
			grow_point(by_bytes, &set);
	}
	bytes = all / 8 * 5;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		set.bo_size = sizes[i];
		grow_point(by_bos, &set);
	}
	json_object_object_add(doc, "growth_bytes", by_bytes);
	json_object_object_add(doc, "growth_bos", by_bos);
}

static void quiet(enum gpucr_log_level level, const char *text)
{
	if (level <= GPUCR_LOG_WARN)
		fprintf(stderr, "%s\n", text);
}

static void run_all(uint64_t all, const char *machine, const char *file)
{
	struct json_object *doc = json_object_new_object();
	struct json_object *cases = json_object_new_array();
	unsigned int i, gpus, below = 0;

	json_object_object_add(doc, "machine", json_object_new_string(machine));
	json_object_object_add(doc, "cases", cases);
	for (i = 0; i < NUM_SETS; i++) {
		bytes = set_bytes(&sets[i], all);
		for (gpus = 1; gpus <= MAX_GPUS; gpus *= 2)
			below += run_set(cases, &sets[i], gpus);
	}
	if (!getenv("BENCH_CASES"))
		grow(doc, all);
	if (file)
		json_object_to_file_ext(file, doc, JSON_C_TO_STRING_PRETTY);
	printf("%u of %zu cases below what is wanted\n", below,
	       json_object_array_length(cases));
	json_object_put(doc);
	if (below)
		exit(1);
}

int main(int argc, char **argv)
{
	const char *machine = getenv("BENCH_MACHINE");

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: %s DIR [BYTES [JSON]]\n", argv[0]);
		return 2;
	}
	dir = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		give_up(argv[1]);
	if (argc > 2)
		bytes = strtoull(argv[2], NULL, 0);
	if (!bytes || bytes % (128 * MIB)) {
		fprintf(stderr, "BYTES: a multiple of 128 MiB\n");
		return 2;
	}
	gpucr_log_set_sink(quiet);
	printf("MiB/s and ratios, medians of %d; each run's ratio is to the slower of copies and storage around it, wanted %.2f;\n"
	       "CPU seconds per GiB without the engines' own, at most %.1f; MiB at most in memory beside the BOs, and of the\n"
	       "page files in the page cache\n",
	       RUNS, WANTED, CPU_LIMIT);
	printf("%-9s %4s %5s %6s %6s %6s %6s %6s %7s %6s %6s %5s %5s %5s %5s %6s\n",
	       "BOS", "GPUS", "COPY:", "WRITE", "READ", "COPY", "BACK", "DUMP",
	       "RESTORE", "D/MIN", "R/MIN", "DCPU", "RCPU", "DRSS", "RRSS",
	       "CACHED");
	run_all(bytes, machine ? machine : "not told", argc > 3 ? argv[3] : NULL);
	return 0;
}
