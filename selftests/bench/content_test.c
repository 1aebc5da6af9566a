// SPDX-License-Identifier: GPL-2.0-only
/*
 * The copy engine on the stand-in: what is dumped comes back, byte by byte,
 * whatever the number of GPUs and the size of BOs, and one failure ends all.
 * (The limit is not kept where gpucr_pace_take() does not wait.)
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "../ktap.h"
#include "log.h"
#include "standin.h"
#include "workload.h"

#include "../../plugin/amdgpu/plugin.h"

#define MAX_GPUS	4
#define MIB		(UINT64_C(1) << 20)
#define BYTES		(96 * MIB)

static const struct set sets[] = {
	{ "one BO a GPU", 0, false, 0, 0 },
	{ "BOs of 3 MiB", 3 * MIB, false, 0, 0 },
	{ "BOs of 12 KiB", 12 * 1024, false, 0, 0 },
	{ "BOs of 4 MiB, half zeros", 4 * MIB, false, 4, 2 },
	/* More zeros than one submission takes, by packets and by bytes. */
	{ "BOs of 12 KiB, most zeros", 12 * 1024, false, 1000, 4 },
	{ "BOs of 3 MiB, most zeros", 3 * MIB, false, 1, 30 },
};

#define NUM_SETS	(sizeof(sets) / sizeof(sets[0]))

static const struct set dull = {
	"dull content", 3 * MIB, true, 4, 2
};

static int dir;
static unsigned int errors;
static char last_error[512];

static void count(enum gpucr_log_level level, const char *text)
{
	if (level != GPUCR_LOG_ERROR)
		return;
	/* The first that is told names the cause. */
	if (!errors++)
		strncpy(last_error, text, sizeof(last_error) - 1);
}

static void clear(struct gpucr_img_pages *pages, unsigned int gpus)
{
	unsigned int i;

	for (i = 0; i < gpus; i++) {
		unlinkat(dir, pages[i].file, 0);
		gpucr_chunks_clear(&pages[i].chunks);
	}
}

/* GPUCR_CANARY: a byte that changes on the way, which must be seen. */
static void spoil(const struct gpucr_img_pages *p)
{
	int fd;

	if (!getenv("GPUCR_CANARY"))
		return;
	fd = openat(dir, p->file, O_WRONLY);
	if (fd < 0 || pwrite(fd, "x", 1, 4711) != 1)
		ktap_note("cannot spoil %s", p->file);
	close(fd);
}

/* What may differ from one dump to another. */
struct way {
	bool uring;
	uint64_t max_buffer;
	int zstd_level;
	struct gpucr_pace *pace;
};

/* Bytes of the first page file, and what the restore copied to all GPUs. */
static uint64_t last_stored, last_copied;

static bool comes_back(const struct set *set, unsigned int gpus,
		       const struct way *way)
{
	struct gpucr_img_pages pages[MAX_GPUS] = { 0 };
	struct content_job jobs[MAX_GPUS];
	struct gpucr_kfd_state s;
	unsigned int i;
	bool ok;

	workload_make(set, gpus, BYTES, &s);
	workload_jobs(jobs, gpus, &s, pages, dir, true);
	for (i = 0; i < gpus; i++) {
		jobs[i].cfg.uring = way->uring;
		jobs[i].cfg.max_buffer = way->max_buffer;
		jobs[i].cfg.zstd_level = way->zstd_level;
		jobs[i].cfg.pace = way->pace;
	}
	ok = !content_dump(jobs, gpus, NULL);
	last_stored = pages[0].chunks.file_bytes;
	workload_poison(&s);
	spoil(&pages[0]);
	workload_jobs(jobs, gpus, &s, pages, dir, false);
	for (i = 0; i < gpus; i++)
		jobs[i].cfg.pace = way->pace;
	last_copied = standin_copied();
	ok = ok && !content_restore(jobs, gpus) && workload_check(set, &s);
	last_copied = standin_copied() - last_copied;
	clear(pages, gpus);
	workload_free(&s);
	return ok;
}

/* A sink whose storage is done with nothing before it must be. */
struct hoard {
	const struct iovec *slots;
	bool held[MAIN_SLOTS];
	unsigned int num, most;
};

static bool *hoard_at(struct hoard *h, const void *buf)
{
	unsigned int i = 0;

	while (h->slots[i].iov_base != buf)
		i++;
	return &h->held[i];
}

static int hoard_put(void *arg, uint64_t pos, void *buf, size_t len)
{
	struct hoard *h = arg;
	bool zero = !*(const uint64_t *)buf;

	(void)pos;
	(void)len;
	*hoard_at(h, buf) = !zero;
	h->num += !zero;
	h->most = h->num > h->most ? h->num : h->most;
	return 0;
}

static bool hoard_needs(void *arg, const void *buf, size_t len)
{
	(void)len;
	return *hoard_at(arg, buf);
}

static int hoard_settle(void *arg, void *buf, size_t len)
{
	struct hoard *h = arg;

	(void)len;
	if (!buf || !*hoard_at(h, buf))
		return 0;
	*hoard_at(h, buf) = false;
	h->num--;
	return 0;
}

/* Every other slot is zeros, which keep none from the storage. */
static void slots_for_data(void)
{
	const struct set set = { "", MAIN_SLOT_SIZE, false, 1, 2 };
	struct gpucr_copy_config cfg = {
		.slots = MAIN_SLOTS, .slot_size = MAIN_SLOT_SIZE,
		.deadline_ms = GPUCR_COPY_DEADLINE_MS,
	};
	struct gpucr_copy_bo bos[BYTES / MAIN_SLOT_SIZE];
	struct iovec slots[MAIN_SLOTS];
	struct hoard h = { .slots = slots };
	const struct gpucr_copy_sink sink = {
		.put = hoard_put, .needs = hoard_needs,
		.settle = hoard_settle, .arg = &h,
	};
	struct gpucr_kfd_state s;
	struct gpucr_copy *c;
	unsigned int i;
	int err;

	workload_make(&set, 1, BYTES, &s);
	for (i = 0; i < s.n.num_bos; i++)
		bos[i] = (struct gpucr_copy_bo){
			.dmabuf_fd = s.bos[i].dmabuf_fd,
			.index = i,
			.size = s.bos[i].size,
		};
	if (gpucr_copy_open(&cfg, &c))
		ktap_bail("no copies");
	gpucr_copy_buffers(c, slots, MAIN_SLOTS);
	err = gpucr_copy_from_gpu(c, bos, s.n.num_bos, &sink);
	ktap_ok(!err && h.most > MAIN_SLOTS / 2,
		"zeros keep no slot from the storage, which had %u", h.most);
	gpucr_copy_close(c);
	workload_free(&s);
}

/* XXH3 of the first page file that a dump makes. */
static uint64_t file_sum(bool uring)
{
	struct gpucr_img_pages pages[1] = { 0 };
	struct content_job jobs[1];
	struct gpucr_kfd_state s;
	uint64_t sum = 0;
	struct stat st;
	void *p;
	int fd;

	workload_make(&sets[3], 1, BYTES, &s);
	workload_jobs(jobs, 1, &s, pages, dir, true);
	jobs[0].cfg.uring = uring;
	if (content_dump(jobs, 1, NULL))
		ktap_bail("no dump");
	fd = openat(dir, pages[0].file, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		ktap_bail("no page file");
	p = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		ktap_bail("no page file");
	sum = XXH3_64bits(p, st.st_size);
	munmap(p, st.st_size);
	close(fd);
	clear(pages, 1);
	workload_free(&s);
	return sum;
}

/* The file size limit stands for a full disk: all GPUs' files meet it. */
static void full_disk(void)
{
	struct gpucr_img_pages pages[MAX_GPUS] = { 0 };
	struct rlimit old, small = { .rlim_cur = 5 * MIB };
	struct content_job jobs[MAX_GPUS];
	struct gpucr_kfd_state s;
	int err;

	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	workload_make(&sets[1], MAX_GPUS, BYTES, &s);
	workload_jobs(jobs, MAX_GPUS, &s, pages, dir, true);
	errors = 0;
	setrlimit(RLIMIT_FSIZE, &small);
	err = content_dump(jobs, MAX_GPUS, NULL);
	setrlimit(RLIMIT_FSIZE, &old);
	ktap_ok(err == -EFBIG, "a full disk fails the dump");
	ktap_ok(errors && strstr(last_error, "amdgpu-pages-gpucr-1-"),
		"and the first message names a file: %s", last_error);
	clear(pages, MAX_GPUS);
	workload_free(&s);
}

/* One GPU's file is damaged: the others' being whole must not hide it. */
static void damaged_file(void)
{
	struct gpucr_img_pages pages[MAX_GPUS] = { 0 };
	struct content_job jobs[MAX_GPUS];
	struct gpucr_kfd_state s;
	int err, fd;

	workload_make(&sets[0], MAX_GPUS, BYTES, &s);
	workload_jobs(jobs, MAX_GPUS, &s, pages, dir, true);
	err = content_dump(jobs, MAX_GPUS, NULL);
	fd = openat(dir, pages[2].file, O_WRONLY);
	if (err || fd < 0 || pwrite(fd, "x", 1, 9 * MIB) != 1)
		ktap_bail("the image to damage could not be made");
	close(fd);
	workload_jobs(jobs, MAX_GPUS, &s, pages, dir, false);
	errors = 0;
	err = content_restore(jobs, MAX_GPUS);
	ktap_ok(err == -EBADMSG && strstr(last_error, pages[2].file) &&
		strstr(last_error, "chunk-checksum"),
		"a damaged file of one GPU fails the restore: %s", last_error);
	clear(pages, MAX_GPUS);
	workload_free(&s);
}

static bool has_no_files(void)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY);
	DIR *d = fdopendir(fd);
	struct dirent *e;
	bool none = d;

	while (d && (e = readdir(d)))
		none = none && *e->d_name == '.';
	closedir(d);
	return none;
}

/* A dump of all GPUs that is to fail; its files are to be gone. */
static int failing_dump(struct content_config *cfg,
			const struct content_watch *watch)
{
	struct gpucr_img_pages pages[MAX_GPUS] = { 0 };
	struct content_job jobs[MAX_GPUS];
	struct gpucr_kfd_state s;
	unsigned int i;
	int err;

	workload_make(&sets[1], MAX_GPUS, BYTES, &s);
	workload_jobs(jobs, MAX_GPUS, &s, pages, dir, true);
	for (i = 0; i < MAX_GPUS && cfg; i++) {
		jobs[i].cfg.copy_ms = cfg->copy_ms;
		jobs[i].cfg.store_ms = cfg->store_ms;
		jobs[i].cfg.pace = cfg->pace;
	}
	errors = 0;
	err = content_dump(jobs, MAX_GPUS, watch);
	clear(pages, MAX_GPUS);
	workload_free(&s);
	return err;
}

static int say_stop(void *arg)
{
	++*(unsigned int *)arg;
	return -ECANCELED;
}

/* Whoever waits has had enough, in the middle of it. */
static void cancelled(void)
{
	struct gpucr_pace slow = { .rate = 8 * MIB };
	struct content_config cfg = { .pace = &slow };
	unsigned int ticks = 0;
	const struct content_watch watch = { say_stop, &ticks };
	int err = failing_dump(&cfg, &watch);

	ktap_ok(err == -ECANCELED && ticks == 1 && !errors,
		"a dump that is cancelled ends: %d, asked %u times", err,
		ticks);
	ktap_ok(has_no_files(), "and leaves nothing");
}

static void hanging_engine(void)
{
	struct content_config cfg = { .copy_ms = 300, .store_ms = 300 };
	int err;

	standin_hang(true);
	err = failing_dump(&cfg, NULL);
	standin_hang(false);
	ktap_ok(err == -ETIMEDOUT && has_no_files() &&
		strstr(last_error, "copy-timeout") &&
		strstr(last_error, "SDMA from BO "),
		"an engine that hangs is named: %s", last_error);
}

/* At least as long as the limit asks for; how much longer is no matter. */
static void limited(void)
{
	struct gpucr_pace pace = { .rate = 64 * MIB };
	const struct way way = { .uring = true, .pace = &pace };
	struct timespec a, b;
	bool ok;

	clock_gettime(CLOCK_MONOTONIC, &a);
	ok = comes_back(&sets[1], 2, &way);
	clock_gettime(CLOCK_MONOTONIC, &b);
	/* Written and read: twice 96 MiB. */
	ktap_ok(ok && (b.tv_sec - a.tv_sec) * 1000 +
		(b.tv_nsec - a.tv_nsec) / 1000000 >= 2950,
		"a limit is kept by all threads");
}

int main(void)
{
	static const unsigned int gpus[] = { 1, 2, MAX_GPUS };
	static const struct way plain = { .uring = true };
	static const struct way no_uring = { .uring = false };
	static const struct way small = {
		.uring = true, .max_buffer = 2 * MIB,
	};
	static const struct way zstd = { .uring = true, .zstd_level = 1 };
	char name[] = "/var/tmp/gpucr-content.XXXXXX";
	unsigned int i, j;
	bool ok;

	ktap_plan(NUM_SETS * 3 + 8 + 1 + 3 + 3);
	if (!mkdtemp(name))
		ktap_bail("no directory %s", name);
	dir = open(name, O_RDONLY | O_DIRECTORY);
	gpucr_log_set_sink(count);
	for (i = 0; i < NUM_SETS; i++) {
		for (j = 0; j < 3; j++)
			ktap_ok(comes_back(&sets[i], gpus[j], &plain),
				"%s, %u GPUs", sets[i].name, gpus[j]);
	}
	ok = comes_back(&sets[3], 2, &plain);
	ktap_ok(ok && last_copied == BYTES / 2,
		"zeros are not copied to a GPU, %llu bytes of %llu are",
		(unsigned long long)last_copied, (unsigned long long)BYTES);
	slots_for_data();
	ktap_ok(comes_back(&sets[1], 2, &no_uring), "without io_uring");
	ktap_ok(file_sum(true) == file_sum(false), "and it is the same file");
	ktap_ok(comes_back(&sets[1], 2, &small),
		"with one slot of 2 MiB a GPU");
	ktap_ok(comes_back(&sets[3], 2, &zstd), "zstd on noise");
	ktap_ok(comes_back(&dull, 2, &zstd), "zstd on %s", dull.name);
	ktap_ok(last_stored && last_stored < BYTES / 2 / 2 / 4,
		"and %llu bytes are stored", (unsigned long long)last_stored);
	limited();
	full_disk();
	damaged_file();
	cancelled();
	hanging_engine();
	rmdir(name);
	return ktap_exit();
}
