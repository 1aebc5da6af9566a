// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes in flight: all arrive, memory is free after settling, errors come out.
 * (The test of room in advance fails without fallocate, and without the
 * ftruncate at the end.)
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "pages.h"
#include "sample.h"
#include "store.h"
#include "table.h"

#define NAME	"amdgpu-pages-gpucr-1-0001.img"
#define SLOT	(2 * (size_t)GPUCR_CHUNK_SIZE)
#define SLOTS	3
/* Many times round, and a short end. */
#define BYTES	(20 * SLOT + 3 * GPUCR_PAGE_SIZE)

static int dir;
static uint8_t *slots[SLOTS];

static uint8_t byte_at(size_t i)
{
	/* Every third chunk is zeros. */
	return i / GPUCR_CHUNK_SIZE % 3 == 1 ? 0 : i * 7 + i / 4096 + 1;
}

static int open_writer(struct gpucr_pages_writer *w, bool uring, bool direct)
{
	struct gpucr_store_config cfg = {
		.uring = uring,
		.direct = direct,
		.deadline_ms = 20000,
	};

	CHECK(!gpucr_pages_create(w, dir, NAME, BYTES));
	return gpucr_pages_set_store(w, &cfg);
}

/* As the copy engine does: a slot is settled, then used again. */
static int write_stream(struct gpucr_pages_writer *w, unsigned int misalign)
{
	size_t pos, i, n = 0;

	for (pos = 0; pos < BYTES; pos += SLOT) {
		size_t len = BYTES - pos < SLOT ? BYTES - pos : SLOT;
		uint8_t *buf = slots[n++ % SLOTS] + misalign;
		int err = gpucr_pages_settle(w, buf, SLOT);

		for (i = 0; !err && i < len; i++)
			buf[i] = byte_at(pos + i);
		if (!err)
			err = gpucr_pages_append(w, buf, len);
		if (err)
			return err;
	}
	return 0;
}

static int compare(const struct gpucr_chunks *c)
{
	struct gpucr_pages_reader r;
	uint8_t *buf = aligned_alloc(GPUCR_STORE_ALIGN, SLOT);
	size_t pos, i;

	CHECK(buf && !gpucr_pages_open(&r, dir, NAME, c));
	for (pos = 0; pos < BYTES; pos += SLOT) {
		size_t len = BYTES - pos < SLOT ? BYTES - pos : SLOT;

		CHECK(!gpucr_pages_read(&r, pos, buf, len));
		for (i = 0; i < len && buf[i] == byte_at(pos + i); i++)
			;
		CHECK(i == len);
	}
	gpucr_pages_close(&r);
	free(buf);
	return 0;
}

static int round_trip(bool uring, bool direct, unsigned int misalign)
{
	struct gpucr_pages_writer w;
	struct gpucr_chunks c;

	CHECK(!open_writer(&w, uring, direct));
	CHECK(!write_stream(&w, misalign));
	CHECK(!gpucr_pages_commit(&w, &c));
	CHECK(!compare(&c));
	gpucr_chunks_clear(&c);
	return 0;
}

static int in_flight(void)
{
	return round_trip(true, false, 0);
}

static int in_flight_direct(void)
{
	return round_trip(true, true, 0);
}

static int one_by_one(void)
{
	return round_trip(false, false, 0);
}

static int one_by_one_direct(void)
{
	return round_trip(false, true, 0);
}

/* O_DIRECT cannot have it: it is left, and every byte arrives. */
static int memory_not_aligned(void)
{
	CHECK(!round_trip(false, true, 64));
	return round_trip(true, true, 64);
}

/* The file size limit stands for a full disk. */
static int full_disk(void)
{
	struct rlimit old, small = { .rlim_cur = 5 * SLOT };
	struct gpucr_pages_writer w;
	int err, append;

	unlinkat(dir, NAME, 0);
	CHECK(!getrlimit(RLIMIT_FSIZE, &old));
	small.rlim_max = old.rlim_max;
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	CHECK(!open_writer(&w, true, true));
	CHECK(!setrlimit(RLIMIT_FSIZE, &small));
	sample_errors();
	append = write_stream(&w, 0);
	err = gpucr_pages_settle(&w, NULL, 0);
	CHECK(!setrlimit(RLIMIT_FSIZE, &old));
	CHECK(err == -EFBIG && (!append || append == err));
	/* Once, however many writes it met. */
	CHECK(sample_errors() == 1);
	CHECK(strstr(sample_last_error(), NAME));
	gpucr_pages_abort(&w);
	CHECK(faccessat(dir, NAME, F_OK, 0));
	return !sample_no_tmp(dir);
}

static int file_that_cannot_be_written(void)
{
	struct gpucr_store_config cfg = {
		.name = "read-only", .uring = true, .deadline_ms = 20000,
	};
	struct gpucr_store *s;

	cfg.fd = openat(dir, "read-only", O_RDONLY | O_CREAT, 0600);
	CHECK(cfg.fd >= 0 && !gpucr_store_open(&cfg, &s));
	gpucr_store_write(s, slots[0], GPUCR_PAGE_SIZE, 0);
	CHECK(gpucr_store_settle(s, NULL, 0) == -EBADF);
	/* And it stays so. */
	CHECK(gpucr_store_write(s, slots[0], GPUCR_PAGE_SIZE, 0) == -EBADF);
	gpucr_store_close(s);
	close(cfg.fd);
	return 0;
}

/* Room is asked for in advance, where that can be; what is not needed is given back. */
static int room_in_advance(void)
{
	struct gpucr_pages_writer w;
	struct gpucr_chunks c;
	struct statfs fs;
	struct stat st;
	bool possible;
	int fd;

	fd = openat(dir, "try", O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && !fstatfs(fd, &fs));
	possible = fs.f_type != TMPFS_MAGIC && !fallocate(fd, 0, 0, BYTES);
	close(fd);
	unlinkat(dir, "try", 0);
	CHECK(!open_writer(&w, true, true));
	CHECK(!fstat(w.out.fd, &st));
	ktap_note("possible: %d, size %lld", possible, (long long)st.st_size);
	CHECK(st.st_size == (possible ? (off_t)BYTES : 0));
	CHECK(!write_stream(&w, 0));
	CHECK(!gpucr_pages_commit(&w, &c));
	CHECK(!fstatat(dir, NAME, &st, 0));
	CHECK((uint64_t)st.st_size == c.file_bytes && c.file_bytes < BYTES);
	CHECK(st.st_blocks * 512 < (blkcnt_t)c.file_bytes + (1 << 20));
	gpucr_chunks_clear(&c);
	return 0;
}

/* A pipe that nobody reads stands for storage that hangs. */
static int write_that_hangs(void)
{
	struct gpucr_store_config cfg = {
		.name = "hangs", .uring = true, .deadline_ms = 300,
	};
	struct gpucr_store *s;
	int p[2], n;

	CHECK(!pipe(p));
	n = fcntl(p[1], F_GETPIPE_SZ);
	CHECK(n > 0 && write(p[1], slots[0], n) == n);
	cfg.fd = p[1];
	CHECK(!gpucr_store_open(&cfg, &s));
	if (strncmp(gpucr_store_how(s), "io_uring", 8)) {
		gpucr_store_close(s);
		ktap_note("no io_uring: not tried");
		return 0;
	}
	sample_errors();
	CHECK(!gpucr_store_write(s, slots[0], GPUCR_PAGE_SIZE, 0));
	CHECK(gpucr_store_settle(s, NULL, 0) == -ETIMEDOUT);
	CHECK(sample_errors() == 1);
	CHECK(strstr(sample_last_error(), "io-timeout"));
	gpucr_store_close(s);
	close(p[0]);
	close(p[1]);
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "in flight", in_flight },
		{ "in flight, past the page cache", in_flight_direct },
		{ "one by one", one_by_one },
		{ "one by one, past the page cache", one_by_one_direct },
		{ "memory that is not aligned", memory_not_aligned },
		{ "a full disk is one error", full_disk },
		{ "a failure stays", file_that_cannot_be_written },
		{ "room in advance, and given back", room_in_advance },
		{ "storage that hangs", write_that_hangs },
	};
	size_t i;

	dir = sample_dir();
	for (i = 0; i < SLOTS; i++) {
		slots[i] = aligned_alloc(GPUCR_STORE_ALIGN,
					 SLOT + GPUCR_STORE_ALIGN);
		if (!slots[i])
			return 1;
	}
	if (dir < 0)
		return 1;
	sample_quiet();
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
