// SPDX-License-Identifier: GPL-2.0-only
/* Page files: what goes in comes out, and a wrong byte is found. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "checksum.h"
#include "table.h"
#include "pages.h"
#include "sample.h"

#define NAME	"amdgpu-pages-gpucr-1-0001.img"
/* Four chunks: data, zeros, data, a short one. */
#define BYTES	(3 * (size_t)GPUCR_CHUNK_SIZE + 3 * GPUCR_PAGE_SIZE)

static int dir;
static uint8_t *content;
static struct gpucr_chunks chunks;

static void fill(void)
{
	size_t i;

	for (i = 0; i < BYTES; i++)
		content[i] = i / GPUCR_CHUNK_SIZE == 1 ? 0 : i * 7 + i / 4096;
}

static int write_pages(void)
{
	struct gpucr_pages_writer w;

	gpucr_chunks_clear(&chunks);
	CHECK(!gpucr_pages_create(&w, dir, NAME, BYTES));
	CHECK(!gpucr_pages_append(&w, content, 2 * GPUCR_CHUNK_SIZE));
	CHECK(!gpucr_pages_append(&w, content + 2 * GPUCR_CHUNK_SIZE,
				  BYTES - 2 * GPUCR_CHUNK_SIZE));
	CHECK(!gpucr_pages_commit(&w, &chunks));
	return 0;
}

static int read_back(void)
{
	struct gpucr_pages_reader r;
	uint8_t *back = malloc(BYTES);
	int err;

	CHECK(back && !gpucr_pages_open(&r, dir, NAME, &chunks));
	memset(back, 0xee, BYTES);
	err = gpucr_pages_read(&r, 0, back, BYTES);
	gpucr_pages_close(&r);
	CHECK(!err && !memcmp(back, content, BYTES));
	free(back);
	return 0;
}

static int round_trip(void)
{
	CHECK(!write_pages());
	CHECK(!gpucr_chunks_fault(&chunks));
	CHECK(chunks.num == 4);
	return read_back();
}

static int zeros_not_stored(void)
{
	struct stat st;

	CHECK(!write_pages());
	CHECK(chunks.v[1].codec == GPUCR_CODEC_ZERO);
	CHECK(!fstatat(dir, NAME, &st, 0));
	CHECK((size_t)st.st_size == BYTES - GPUCR_CHUNK_SIZE);
	CHECK((st.st_mode & 07777) == 0600);
	return 0;
}

static bool extent_is(uint64_t pos, uint64_t max, uint64_t len, bool zero)
{
	bool is;

	return gpucr_chunks_extent(&chunks, pos, max, &is) == len && is == zero;
}

static int extents_of_zeros(void)
{
	const uint64_t chunk = GPUCR_CHUNK_SIZE;
	struct gpucr_pages_reader r;

	CHECK(!write_pages());
	CHECK(extent_is(0, BYTES, chunk, false));
	CHECK(extent_is(0, 4096, 4096, false));
	CHECK(extent_is(chunk, BYTES - chunk, chunk, true));
	CHECK(extent_is(chunk + 4096, BYTES - chunk - 4096, chunk - 4096,
			true));
	CHECK(extent_is(chunk, 8192, 8192, true));
	CHECK(extent_is(2 * chunk, BYTES - 2 * chunk, BYTES - 2 * chunk,
			false));
	CHECK(!gpucr_pages_open(&r, dir, NAME, &chunks));
	CHECK(!gpucr_pages_pass(&r, chunk, chunk));
	CHECK(!gpucr_pages_pass(&r, chunk + 4096, 8192));
	/* Data must not be taken for zeros. */
	CHECK(gpucr_pages_pass(&r, 0, chunk) == -EINVAL);
	CHECK(gpucr_pages_pass(&r, chunk, chunk + 4096) == -EINVAL);
	CHECK(gpucr_pages_pass(&r, BYTES, 4096) == -EINVAL);
	gpucr_pages_close(&r);
	return 0;
}

/* Two readers, as of two GPUs, whose reads are in flight together. */
static int read_in_advance(void)
{
	struct gpucr_fetch *f = gpucr_fetch_open(GPUCR_STORE_DEADLINE_MS);
	uint8_t *back = aligned_alloc(GPUCR_PAGE_SIZE,
				      2 * (size_t)GPUCR_CHUNK_SIZE);
	struct gpucr_pages_reader r[2];
	int i;

	CHECK(f && back && !write_pages());
	memset(back, 0xee, 2 * (size_t)GPUCR_CHUNK_SIZE);
	for (i = 0; i < 2; i++) {
		CHECK(!gpucr_pages_open(&r[i], dir, NAME, &chunks));
		gpucr_pages_set_fetch(&r[i], f);
		CHECK(gpucr_pages_is_ready(&r[i], 0));
		gpucr_pages_begin(&r[i], 0, back + i * GPUCR_CHUNK_SIZE,
				  GPUCR_CHUNK_SIZE);
	}
	for (i = 1; i >= 0; i--) {
		while (!gpucr_pages_is_ready(&r[i], 1000000))
			;
		CHECK(!gpucr_pages_read(&r[i], 0, back + i * GPUCR_CHUNK_SIZE,
					GPUCR_CHUNK_SIZE));
		CHECK(!memcmp(back + i * GPUCR_CHUNK_SIZE, content,
			      GPUCR_CHUNK_SIZE));
	}
	gpucr_fetch_close(f);
	for (i = 0; i < 2; i++)
		gpucr_pages_close(&r[i]);
	free(back);
	return 0;
}

static int flipped_bit_found(void)
{
	struct gpucr_pages_reader r;
	size_t at[] = { 0, 12345, GPUCR_CHUNK_SIZE, BYTES - GPUCR_CHUNK_SIZE - 1 };
	uint8_t *buf = malloc(BYTES);
	size_t i;

	CHECK(buf);
	for (i = 0; i < 4; i++) {
		uint8_t byte;
		int fd;

		CHECK(!write_pages());
		fd = openat(dir, NAME, O_RDWR);
		CHECK(fd >= 0 && pread(fd, &byte, 1, at[i]) == 1);
		byte ^= 4;
		CHECK(pwrite(fd, &byte, 1, at[i]) == 1);
		close(fd);
		CHECK(!gpucr_pages_open(&r, dir, NAME, &chunks));
		sample_errors();
		CHECK(gpucr_pages_read(&r, 0, buf, BYTES) == -EBADMSG);
		CHECK(sample_errors() == 1);
		CHECK(strstr(sample_last_error(), NAME));
		gpucr_pages_close(&r);
	}
	free(buf);
	return 0;
}

static int wrong_length_refused(void)
{
	struct gpucr_pages_reader r;
	int fd;

	CHECK(!write_pages());
	fd = openat(dir, NAME, O_RDWR);
	CHECK(fd >= 0 && !ftruncate(fd, chunks.file_bytes - 1));
	CHECK(gpucr_pages_open(&r, dir, NAME, &chunks) == -EBADMSG);
	CHECK(!ftruncate(fd, chunks.file_bytes + 1));
	CHECK(gpucr_pages_open(&r, dir, NAME, &chunks) == -EBADMSG);
	close(fd);
	CHECK(!unlinkat(dir, NAME, 0));
	CHECK(gpucr_pages_open(&r, dir, NAME, &chunks) == -ENOENT);
	return 0;
}

/* The file size limit stands for a full disk. */
static int failed_write_leaves_nothing(void)
{
	struct rlimit old, small = { .rlim_cur = GPUCR_CHUNK_SIZE };
	struct gpucr_pages_writer w;
	int err;

	unlinkat(dir, NAME, 0);
	CHECK(!getrlimit(RLIMIT_FSIZE, &old));
	small.rlim_max = old.rlim_max;
	CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	CHECK(!gpucr_pages_create(&w, dir, NAME, BYTES));
	CHECK(!setrlimit(RLIMIT_FSIZE, &small));
	err = gpucr_pages_append(&w, content, BYTES);
	CHECK(!setrlimit(RLIMIT_FSIZE, &old));
	CHECK(err == -EFBIG);
	gpucr_pages_abort(&w);
	CHECK(faccessat(dir, NAME, F_OK, 0));
	CHECK(sample_no_tmp(dir));
	return 0;
}

static int short_stream_refused(void)
{
	struct gpucr_pages_writer w;
	struct gpucr_chunks c;

	CHECK(!gpucr_pages_create(&w, dir, NAME, BYTES));
	CHECK(!gpucr_pages_append(&w, content, GPUCR_CHUNK_SIZE));
	CHECK(gpucr_pages_commit(&w, &c) < 0);
	CHECK(sample_no_tmp(dir));
	return 0;
}

static int reads_whole_chunks_only(void)
{
	struct gpucr_pages_reader r;
	uint8_t *buf = malloc(BYTES);

	CHECK(buf && !write_pages());
	CHECK(!gpucr_pages_open(&r, dir, NAME, &chunks));
	CHECK(gpucr_pages_read(&r, 4096, buf, GPUCR_CHUNK_SIZE) == -EINVAL);
	CHECK(gpucr_pages_read(&r, 0, buf, 4096) == -EINVAL);
	CHECK(gpucr_pages_read(&r, 4 * (uint64_t)GPUCR_CHUNK_SIZE, buf,
			       4096) == -EINVAL);
	CHECK(!gpucr_pages_read(&r, GPUCR_CHUNK_SIZE, buf, GPUCR_CHUNK_SIZE));
	gpucr_pages_close(&r);
	free(buf);
	return 0;
}

/* --- compressed ---------------------------------------------------------- */

/* As fill(), and noise in the third chunk, which does not shrink. */
static void fill_mixed(void)
{
	uint64_t x = 88172645463325252ULL, *p;
	size_t i;

	fill();
	p = (uint64_t *)(content + 2 * GPUCR_CHUNK_SIZE);
	for (i = 0; i < GPUCR_CHUNK_SIZE / sizeof(*p); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = x;
	}
}

static int write_zstd(int level)
{
	struct gpucr_pages_writer w;
	uint8_t *copy = malloc(BYTES);

	CHECK(copy);
	fill_mixed();
	memcpy(copy, content, BYTES);
	gpucr_chunks_clear(&chunks);
	CHECK(!gpucr_pages_create(&w, dir, NAME, BYTES));
	CHECK(!gpucr_pages_set_zstd(&w, level));
	CHECK(!gpucr_pages_append(&w, copy, BYTES));
	CHECK(!gpucr_pages_commit(&w, &chunks));
	free(copy);
	return 0;
}

static int zstd_round_trip(void)
{
	struct stat st;

	CHECK(!write_zstd(1));
	CHECK(!gpucr_chunks_fault(&chunks));
	CHECK(chunks.v[0].codec == GPUCR_CODEC_ZSTD);
	CHECK(chunks.v[1].codec == GPUCR_CODEC_ZERO);
	CHECK(chunks.v[2].codec == GPUCR_CODEC_NONE);
	CHECK(!fstatat(dir, NAME, &st, 0));
	CHECK((uint64_t)st.st_size == chunks.file_bytes);
	CHECK(chunks.file_bytes % GPUCR_PAGE_SIZE == 0);
	CHECK(chunks.file_bytes < BYTES - 2 * GPUCR_CHUNK_SIZE + 64 * 4096);
	CHECK(!read_back());
	CHECK(!write_zstd(19));
	return read_back();
}

/* One reader for good and bad, as when the rest of a file is verified. */
static int refused_once(const char *what)
{
	struct gpucr_pages_reader r;
	uint8_t *buf = malloc(GPUCR_CHUNK_SIZE);
	int err;

	CHECK(buf && !gpucr_pages_open(&r, dir, NAME, &chunks));
	sample_errors();
	err = gpucr_pages_read(&r, 0, buf, GPUCR_CHUNK_SIZE);
	CHECK(err == -EBADMSG && sample_errors() == 1);
	CHECK(strstr(sample_last_error(), what));
	CHECK(!gpucr_pages_read(&r, 2 * GPUCR_CHUNK_SIZE, buf,
				GPUCR_CHUNK_SIZE));
	gpucr_pages_close(&r);
	free(buf);
	return 0;
}

static int flip(off_t at)
{
	uint8_t byte;
	int fd = openat(dir, NAME, O_RDWR);

	CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
	byte ^= 4;
	CHECK(pwrite(fd, &byte, 1, at) == 1);
	close(fd);
	return 0;
}

static int zstd_damaged(void)
{
	off_t at;

	CHECK(!write_zstd(1));
	for (at = 0; at < (off_t)chunks.v[0].stored_len; at += 97) {
		CHECK(!flip(at));
		CHECK(!refused_once("chunk-checksum"));
		CHECK(!flip(at));
	}
	/* A good frame of other bytes. */
	chunks.v[0].xxh3 ^= 1;
	CHECK(!refused_once("wrong checksum"));
	chunks.v[0].xxh3 ^= 1;
	chunks.v[0].stored_len--;
	CHECK(!refused_once("cannot be unpacked"));
	chunks.v[0].stored_len = 1;
	return refused_once("cannot be unpacked");
}

/* A frame that holds more or less than the chunk that it is given out for. */
static int zstd_other_length(void)
{
	struct gpucr_unzip *u = gpucr_unzip_open(GPUCR_CHUNK_SIZE);
	struct gpucr_zip *z;
	uint8_t *in = calloc(1, GPUCR_CHUNK_SIZE), *out;
	size_t n;

	CHECK(u && in);
	CHECK(!gpucr_zip_open("test", 1, GPUCR_CHUNK_SIZE, &z));
	memset(in, 7, 8 * GPUCR_PAGE_SIZE);
	n = gpucr_zip_pack(z, in, 8 * GPUCR_PAGE_SIZE);
	CHECK(n);
	memcpy(gpucr_unzip_input(u), in, n);
	/* Of exactly the length, so that a byte beyond is seen. */
	out = malloc(7 * GPUCR_PAGE_SIZE);
	CHECK(out);
	CHECK(gpucr_unzip_unpack(u, n, out, 7 * GPUCR_PAGE_SIZE) == -EBADMSG);
	free(out);
	out = malloc(9 * GPUCR_PAGE_SIZE);
	CHECK(out);
	CHECK(gpucr_unzip_unpack(u, n, out, 9 * GPUCR_PAGE_SIZE) == -EBADMSG);
	CHECK(!gpucr_unzip_unpack(u, n, out, 8 * GPUCR_PAGE_SIZE));
	CHECK(gpucr_unzip_unpack(u, (size_t)GPUCR_CHUNK_SIZE * 2, out,
				 8 * GPUCR_PAGE_SIZE) == -EBADMSG);
	free(out);
	free(in);
	gpucr_zip_close(z);
	gpucr_unzip_close(u);
	return 0;
}

/* Noise is tried, then left alone, then tried again. */
static int zstd_skips_noise(void)
{
	struct gpucr_zip *z;
	uint8_t *buf = malloc(GPUCR_CHUNK_SIZE);
	unsigned int i, packed = 0;

	CHECK(buf && !gpucr_zip_open("test", 1, GPUCR_CHUNK_SIZE, &z));
	fill_mixed();
	for (i = 0; i < 16; i++) {
		memcpy(buf, content + 2 * GPUCR_CHUNK_SIZE, GPUCR_CHUNK_SIZE);
		CHECK(!gpucr_zip_pack(z, buf, GPUCR_CHUNK_SIZE));
		CHECK(!memcmp(buf, content + 2 * GPUCR_CHUNK_SIZE,
			      GPUCR_CHUNK_SIZE));
	}
	for (i = 0; i < 112 + 16; i++) {
		memcpy(buf, content, GPUCR_CHUNK_SIZE);
		packed += gpucr_zip_pack(z, buf, GPUCR_CHUNK_SIZE) > 0;
	}
	CHECK(packed == 16);
	gpucr_zip_close(z);
	free(buf);
	return 0;
}

/* Whatever the CPU computes it with: another machine reads it. */
static int checksum_is_xxh3(void)
{
	size_t len;

	for (len = 0; len < 3000; len++)
		CHECK(gpucr_checksum(content + len % 8, len) ==
		      XXH3_64bits(content + len % 8, len));
	CHECK(gpucr_checksum(content, BYTES) == XXH3_64bits(content, BYTES));
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "what goes in comes out", round_trip },
		{ "chunks of zeros are not stored", zeros_not_stored },
		{ "extents of zeros, which can be passed", extents_of_zeros },
		{ "two files read in advance", read_in_advance },
		{ "a flipped bit is found", flipped_bit_found },
		{ "another length is refused", wrong_length_refused },
		{ "a failed write leaves nothing", failed_write_leaves_nothing },
		{ "a stream that ends early", short_stream_refused },
		{ "reads are of whole chunks", reads_whole_chunks_only },
		{ "the checksum is XXH3, of any length", checksum_is_xxh3 },
		{ "zstd: what goes in comes out", zstd_round_trip },
		{ "zstd: damage is found", zstd_damaged },
		{ "zstd: a frame of another length", zstd_other_length },
		{ "zstd: noise is left alone", zstd_skips_noise },
	};
	int ret;

	dir = sample_dir();
	content = malloc(BYTES);
	if (dir < 0 || !content)
		return 1;
	fill();
	sample_quiet();
	ret = ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
	gpucr_chunks_clear(&chunks);
	free(content);
	return ret;
}
