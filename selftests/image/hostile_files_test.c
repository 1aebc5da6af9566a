// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files made to hurt: huge numbers, lengths that lie, the wrong file under a
 * right name, no file at all. Each is refused, in seconds and in little memory:
 * the limits below end the program where something is allocated, or read, by
 * a number that nobody checked. Each test fails without its check in
 * lib/imgfile.c, lib/pages.c or lib/imgmsg.c.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "imgmsg.h"
#include "sample.h"
#include "table.h"

#define NAME		"gpucr-kfd-7.img"
#define LIMIT_MB	96
#define SECONDS		60

/* The sanitizer reserves terabytes of addresses, so it has a limit of its own. */
#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=96:allocator_may_return_null=0";
}

static void limit_memory(void)
{
}
#else
static void limit_memory(void)
{
	struct rlimit l = { LIMIT_MB << 20, LIMIT_MB << 20 };

	setrlimit(RLIMIT_AS, &l);
}
#endif

static int dir;

struct header {
	char magic[8];
	uint32_t version, kind;
	uint64_t len, payload_xxh3, header_xxh3;
};

/* A manifest around the payload, right in all but what the caller changes. */
static void make_header(struct header *h, const void *payload, size_t len)
{
	memcpy(h->magic, GPUCR_IMG_MAGIC, 8);
	h->version = htole32(GPUCR_IMG_VERSION);
	h->kind = htole32(GPUCR_IMG_KFD);
	h->len = htole64(len);
	h->payload_xxh3 = htole64(XXH3_64bits(payload, len));
	h->header_xxh3 = htole64(XXH3_64bits(h, 32));
}

static int write_manifest(const void *payload, size_t len)
{
	uint8_t *file = malloc(sizeof(struct header) + len);
	struct header h;
	int err;

	if (!file)
		return -1;
	make_header(&h, payload, len);
	memcpy(file, &h, sizeof(h));
	memcpy(file + sizeof(h), payload, len);
	err = sample_write(dir, NAME, file, sizeof(h) + len);
	free(file);
	return err;
}

static int refused(void)
{
	struct gpucr_img_kfd *img;

	sample_errors();
	CHECK(gpucr_img_kfd_read(dir, 7, &img) == -EBADMSG);
	CHECK(sample_errors() == 1 && strstr(sample_last_error(), NAME));
	return 0;
}

/* The twin of all that follows. */
static int good_is_taken(void)
{
	struct gpucr_img_kfd img, *back;
	uint8_t *payload;
	size_t len;

	CHECK(!sample_kfd(&img));
	CHECK(!gpucr_imgmsg_pack_kfd(&img, &payload, &len));
	CHECK(!write_manifest(payload, len));
	CHECK(!gpucr_img_kfd_read(dir, 7, &back));
	gpucr_img_kfd_free(back);
	gpucr_img_kfd_clear(&img);
	free(payload);
	return 0;
}

static int length_lies(void)
{
	static const uint64_t lies[] = {
		0, 1, 99, 101, UINT32_MAX, UINT64_C(1) << 62, UINT64_MAX,
	};
	uint8_t file[sizeof(struct header) + 100] = { 0 };
	struct header h;
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		make_header(&h, file, 100);
		h.len = htole64(lies[i]);
		h.header_xxh3 = htole64(XXH3_64bits(&h, 32));
		memcpy(file, &h, sizeof(h));
		CHECK(!sample_write(dir, NAME, file, sizeof(file)));
		CHECK(!refused());
	}
	return 0;
}

/* Holes cost whoever makes them nothing. */
static int sparse(uint64_t size, bool with_header)
{
	struct header h;
	int fd, err;

	make_header(&h, "", 0);
	CHECK(!sample_write(dir, NAME, &h, with_header ? sizeof(h) : 0));
	fd = openat(dir, NAME, O_WRONLY);
	CHECK(fd >= 0);
	err = ftruncate(fd, (off_t)size);
	close(fd);
	CHECK(!err);
	return refused();
}

static int long_holes(void)
{
	CHECK(!sparse(UINT64_C(1) << 30, false));
	CHECK(!sparse(UINT64_C(1) << 30, true));
	CHECK(!sparse((UINT64_C(1) << 30) + 1, true));
	CHECK(!sparse(UINT64_C(1) << 40, true));
	return 0;
}

/* Each byte of the message in turn becomes the length of something huge. */
static int huge_fields(void)
{
	static const uint8_t huge[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
	};
	struct gpucr_img_kfd img, *back;
	uint8_t *payload, *lie;
	size_t len, i;

	CHECK(!sample_kfd(&img));
	CHECK(!gpucr_imgmsg_pack_kfd(&img, &payload, &len));
	lie = malloc(len + sizeof(huge));
	CHECK(lie);
	for (i = 0; i < len; i++) {
		memcpy(lie, payload, i);
		memcpy(lie + i, huge, sizeof(huge));
		memcpy(lie + i + sizeof(huge), payload + i, len - i);
		if (!gpucr_img_kfd_parse(NAME, lie, len + sizeof(huge), &back))
			gpucr_img_kfd_free(back);
	}
	free(lie);
	free(payload);
	gpucr_img_kfd_clear(&img);
	return 0;
}

/* 4 MiB of empty messages would need 50 times their length. */
static int empty_messages(void)
{
	static const unsigned int fields[] = { 10, 11, 12, 13 };
	size_t len = 4 << 20, i, j;
	uint8_t *p = malloc(len);

	CHECK(p);
	for (i = 0; i < 4; i++) {
		for (j = 0; j < len; j += 2) {
			p[j] = (uint8_t)(fields[i] << 3 | 2);
			p[j + 1] = 0;
		}
		CHECK(!write_manifest(p, len));
		CHECK(!refused());
	}
	free(p);
	return 0;
}

/* Whatever is not a regular file, under the manifest's name. */
static int other_files(void)
{
	struct gpucr_img_kfd *img;
	int i;

	for (i = 0; i < 4; i++) {
		unlinkat(dir, NAME, 0);
		CHECK(!(i == 0 ? mkfifoat(dir, NAME, 0600) :
			i == 1 ? mkdirat(dir, NAME, 0700) :
			i == 2 ? symlinkat(NAME, dir, NAME) :
				 symlinkat("/dev/zero", dir, NAME)));
		CHECK(gpucr_img_kfd_read(dir, 7, &img) < 0);
		unlinkat(dir, NAME, i == 1 ? AT_REMOVEDIR : 0);
	}
	return 0;
}

/* --- page files ---------------------------------------------------------- */

#define PAGES		"amdgpu-pages-gpucr-7-1111.img"
#define NUM		4
#define BYTES		((uint64_t)NUM * GPUCR_CHUNK_SIZE)

static struct gpucr_chunks chunks;

static int write_pages(uint8_t seed)
{
	struct gpucr_pages_writer w;
	uint8_t *buf = malloc(BYTES);

	CHECK(buf);
	memset(buf, seed, BYTES);
	gpucr_chunks_clear(&chunks);
	CHECK(!gpucr_pages_create(&w, dir, PAGES, BYTES));
	CHECK(!gpucr_pages_append(&w, buf, BYTES));
	CHECK(!gpucr_pages_commit(&w, &chunks));
	free(buf);
	return 0;
}

static int read_pages(void)
{
	struct gpucr_pages_reader r;
	uint8_t *buf;
	int err;

	err = gpucr_pages_open(&r, dir, PAGES, &chunks);
	if (err)
		return err;
	buf = malloc(BYTES);
	err = buf ? gpucr_pages_read(&r, 0, buf, BYTES) : -ENOMEM;
	free(buf);
	gpucr_pages_close(&r);
	return err;
}

static int pages_cut(void)
{
	uint64_t n;
	int fd;

	CHECK(!write_pages(1) && !read_pages());
	fd = openat(dir, PAGES, O_WRONLY);
	CHECK(fd >= 0);
	for (n = 0; n <= NUM; n++) {
		CHECK(!ftruncate(fd, (off_t)(n * GPUCR_CHUNK_SIZE + (n == NUM))));
		CHECK(read_pages() == -EBADMSG);
	}
	CHECK(!ftruncate(fd, INT64_C(1) << 42));
	CHECK(read_pages() == -EBADMSG);
	close(fd);
	return 0;
}

/* The page file of another dump, of the same length. */
static int pages_exchanged(void)
{
	struct gpucr_chunks old;

	CHECK(!write_pages(1));
	old = chunks;
	memset(&chunks, 0, sizeof(chunks));
	CHECK(!write_pages(2) && !read_pages());
	gpucr_chunks_clear(&chunks);
	chunks = old;
	sample_errors();
	CHECK(read_pages() == -EBADMSG);
	CHECK(strstr(sample_last_error(), "chunk 0 at 0x0"));
	return 0;
}

static int pages_no_file(void)
{
	int i;

	CHECK(!write_pages(1));
	for (i = 0; i < 3; i++) {
		unlinkat(dir, PAGES, 0);
		CHECK(!(i == 0 ? mkfifoat(dir, PAGES, 0600) :
			i == 1 ? symlinkat("/dev/zero", dir, PAGES) :
				 symlinkat(PAGES, dir, PAGES)));
		CHECK(read_pages() < 0);
	}
	unlinkat(dir, PAGES, 0);
	return 0;
}

/* A file that shrinks under the reader, as on a shared disk. */
static int pages_shrink(void)
{
	struct gpucr_pages_reader r;
	uint8_t *buf = malloc(BYTES);

	CHECK(buf && !write_pages(1));
	CHECK(!gpucr_pages_open(&r, dir, PAGES, &chunks));
	CHECK(!ftruncate(openat(dir, PAGES, O_WRONLY), GPUCR_CHUNK_SIZE + 1));
	CHECK(!gpucr_pages_read(&r, 0, buf, GPUCR_CHUNK_SIZE));
	CHECK(gpucr_pages_read(&r, 0, buf, BYTES) == -EBADMSG);
	gpucr_pages_close(&r);
	free(buf);
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "good is taken", good_is_taken },
		{ "the header's length lies", length_lies },
		{ "files of a TiB of holes", long_holes },
		{ "huge lengths within the message", huge_fields },
		{ "many empty messages", empty_messages },
		{ "manifest: pipe, directory, loop, device", other_files },
		{ "pages: cut at each chunk, too long", pages_cut },
		{ "pages: of another dump", pages_exchanged },
		{ "pages: pipe, device, loop", pages_no_file },
		{ "pages: shorter while it is read", pages_shrink },
	};

	dir = sample_dir();
	if (dir < 0)
		return 1;
	limit_memory();
	alarm(SECONDS);
	sample_quiet();
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
