// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images through a streamer, here threads of this program with a directory
 * behind them: what is put is taken, in order and once; what is not whole is
 * refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "imgformat.h"
#include "sample.h"
#include "stream.h"
#include "streamlist.h"
#include "table.h"

#define PAGES	"amdgpu-pages-gpucr-7-1111.img"
#define BYTES	(3 * (size_t)GPUCR_CHUNK_SIZE + 3 * GPUCR_PAGE_SIZE)

static int dir;
static uint8_t *content;
static struct gpucr_chunks chunks;

/* A file on its way. */
static struct mover {
	pthread_t thread;
	int from, to;
	bool running;
} movers[16];
static int clashes;	/* taken while another was not read to its end */

static void *move(void *arg)
{
	static __thread char buf[65536];
	struct mover *m = arg;
	ssize_t n;

	while ((n = read(m->from, buf, sizeof(buf))) > 0) {
		if (write(m->to, buf, n) != n)
			break;
	}
	close(m->from);
	close(m->to);
	return NULL;
}

static int start(int from, int to)
{
	size_t i;

	for (i = 0; i < 16 && movers[i].running; i++)
		;
	if (i == 16)
		return -EMFILE;
	movers[i] = (struct mover){ .from = from, .to = to, .running = true };
	return -pthread_create(&movers[i].thread, NULL, move, &movers[i]);
}

static void settle(void)
{
	struct timespec t;
	size_t i;

	for (i = 0; i < 16; i++) {
		if (!movers[i].running)
			continue;
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec += 5;
		if (pthread_timedjoin_np(movers[i].thread, NULL, &t))
			clashes++;
		movers[i].running = false;
	}
}

static int put(const char *name)
{
	int p[2], fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0 || pipe(p) || start(p[0], fd))
		return -EIO;
	return p[1];
}

static int take(const char *name)
{
	int p[2], fd = openat(dir, name, O_RDONLY);

	settle();
	if (fd < 0)
		return -ENOENT;
	if (pipe(p) || start(fd, p[1]))
		return -EIO;
	/* It is given once. */
	unlinkat(dir, name, 0);
	return p[0];
}

static void none(void)
{
	static const char * const names[] = {
		"gpucr-kfd-7.img", "gpucr-renderD-9.img", PAGES,
		"gpucr-stream-1.img", "gpucr-stream-2.img",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlinkat(dir, names[i], 0);
	gpucr_streamlist_clear();
}

static int put_manifests(void)
{
	struct gpucr_img_render render = { .id = 9 };
	struct gpucr_img_kfd kfd;

	none();
	gpucr_stream_set(put);
	sample_device(&render.device, 0x1111);
	CHECK(!sample_kfd(&kfd));
	CHECK(!gpucr_img_kfd_write(-1, &kfd));
	CHECK(!gpucr_img_render_write(-1, &render));
	gpucr_img_kfd_clear(&kfd);
	settle();
	CHECK(sample_no_tmp(dir));
	gpucr_stream_set(take);
	gpucr_streamlist_clear();
	return 0;
}

static int listed(int where, enum gpucr_img_kind kind, uint32_t id)
{
	uint32_t *ids;
	size_t num;
	int ok;

	if (gpucr_image_list(where, gpucr_image_format(where), kind, &ids,
			     &num))
		return 0;
	ok = num == 1 && *ids == id;
	free(ids);
	return ok;
}

static int manifests_come_back(void)
{
	struct gpucr_img_render render;
	struct gpucr_img_kfd *kfd;
	int i;

	CHECK(!put_manifests());
	CHECK(!gpucr_streamlist_read());
	settle();
	CHECK(faccessat(dir, "gpucr-kfd-7.img", F_OK, 0));
	CHECK(listed(-1, GPUCR_IMG_KFD, 7));
	CHECK(listed(-1, GPUCR_IMG_RENDER, 9));
	/* As often as one likes, though the streamer has given it. */
	for (i = 0; i < 2; i++) {
		CHECK(!gpucr_img_kfd_read(-1, 7, &kfd));
		CHECK(kfd->num_bos == 6 && kfd->pid == 4711);
		gpucr_img_kfd_free(kfd);
		CHECK(!gpucr_img_render_read(-1, 9, &render));
	}
	CHECK(gpucr_img_kfd_read(-1, 8, &kfd) == -ENOENT);
	CHECK(!clashes);
	return 0;
}

/* What a streamer extracts is read as any directory. */
static int extracted(void)
{
	struct gpucr_img_kfd *kfd;

	CHECK(!put_manifests());
	gpucr_stream_set(NULL);
	CHECK(!gpucr_img_kfd_read(dir, 7, &kfd));
	gpucr_img_kfd_free(kfd);
	CHECK(listed(dir, GPUCR_IMG_KFD, 7));
	return 0;
}

static int none_is_no_error(void)
{
	none();
	gpucr_stream_set(take);
	sample_errors();
	CHECK(gpucr_streamlist_read() == -ENOENT);
	CHECK(!sample_errors());
	return 0;
}

/* Refused, by one message that has this text. */
static int refused(const char *text)
{
	int err;

	sample_errors();
	err = gpucr_streamlist_read();
	settle();
	CHECK(err == -EBADMSG && sample_errors() == 1);
	CHECK(strstr(sample_last_error(), text));
	return 0;
}

static int change(const char *name, off_t length, off_t at)
{
	int fd = openat(dir, name, O_RDWR);
	uint8_t byte;
	off_t len = lseek(fd, 0, SEEK_END);

	CHECK(fd >= 0 && !ftruncate(fd, len + length));
	if (at >= 0) {
		CHECK(pread(fd, &byte, 1, at) == 1);
		byte ^= 4;
		CHECK(pwrite(fd, &byte, 1, at) == 1);
	}
	close(fd);
	return 0;
}

static int damaged_manifests(void)
{
	CHECK(!put_manifests() && !change("gpucr-kfd-7.img", -1, -1));
	CHECK(!refused("gpucr-kfd-7.img: its length"));
	CHECK(!put_manifests() && !change("gpucr-kfd-7.img", 1, -1));
	CHECK(!refused("gpucr-kfd-7.img: its length"));
	CHECK(!put_manifests() && !change("gpucr-kfd-7.img", 0, 100));
	CHECK(!refused("gpucr-kfd-7.img: its checksum"));
	CHECK(!put_manifests() && !change("gpucr-stream-2.img", 0, 20));
	CHECK(!refused("gpucr-stream-2.img: its header"));
	CHECK(!put_manifests() && !unlinkat(dir, "gpucr-renderD-9.img", 0));
	CHECK(!refused("gpucr-renderD-9.img: the image streamer does not"));
	return 0;
}

/* Records with a good checksum that name no manifest. */
static int damaged_records(void)
{
	static const struct {
		const char *payload;
		size_t len;
	} bad[] = {
		{ "\1\0\0", 3 },
		{ "\1\0\0\0", 4 },
		{ "\3\0\0\0gpucr-stream-1.img", 22 },
		{ "\1\0\0\0gpucr\0kfd", 13 },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		none();
		gpucr_stream_set(put);
		CHECK(!gpucr_imgfile_write(-1, "gpucr-stream-1.img",
					   GPUCR_IMG_RECORD, bad[i].payload,
					   bad[i].len));
		settle();
		gpucr_stream_set(take);
		CHECK(!refused("gpucr-stream-1.img: it names"));
	}
	return 0;
}

static int put_pages(int level)
{
	uint8_t *copy = malloc(BYTES);
	struct gpucr_pages_writer w;
	int fd;

	none();
	gpucr_stream_set(put);
	gpucr_chunks_clear(&chunks);
	CHECK(copy);
	memcpy(copy, content, BYTES);
	fd = gpucr_stream_open(PAGES);
	CHECK(fd >= 0);
	CHECK(!gpucr_pages_create_on(&w, fd, PAGES, BYTES, NULL));
	CHECK(!level || !gpucr_pages_set_zstd(&w, level));
	CHECK(!gpucr_pages_append(&w, copy, 2 * GPUCR_CHUNK_SIZE));
	CHECK(!gpucr_pages_append(&w, copy + 2 * GPUCR_CHUNK_SIZE,
				  BYTES - 2 * GPUCR_CHUNK_SIZE));
	CHECK(!gpucr_pages_commit(&w, &chunks));
	close(fd);
	free(copy);
	settle();
	gpucr_stream_set(take);
	return 0;
}

/* In two parts, as slots have it. */
static int take_pages(uint8_t *back)
{
	struct gpucr_fetch *fetch;
	struct gpucr_pages_reader r;
	int err = gpucr_pages_open(&r, -1, PAGES, &chunks);

	if (err)
		return err;
	fetch = gpucr_fetch_open(GPUCR_STORE_DEADLINE_MS);
	gpucr_pages_set_fetch(&r, fetch);
	gpucr_pages_begin(&r, 0, back, GPUCR_CHUNK_SIZE);
	memset(back, 0xee, BYTES);
	err = gpucr_pages_read(&r, 0, back, GPUCR_CHUNK_SIZE);
	if (!err)
		err = gpucr_pages_read(&r, GPUCR_CHUNK_SIZE,
				       back + GPUCR_CHUNK_SIZE,
				       BYTES - GPUCR_CHUNK_SIZE);
	gpucr_fetch_close(fetch);
	gpucr_pages_close(&r);
	settle();
	return err;
}

static int pages_come_back(void)
{
	uint8_t *back = malloc(BYTES);
	int level;

	for (level = 0; level < 2; level++) {
		struct stat st;

		CHECK(back && !put_pages(level));
		CHECK(!fstatat(dir, PAGES, &st, 0));
		CHECK((uint64_t)st.st_size == chunks.file_bytes);
		CHECK(chunks.v[1].codec == GPUCR_CODEC_ZERO);
		CHECK(!level || chunks.v[0].codec == GPUCR_CODEC_ZSTD);
		CHECK(!take_pages(back));
		CHECK(!memcmp(back, content, BYTES));
	}
	free(back);
	return 0;
}

static int pages_refused(const char *text)
{
	uint8_t *back = malloc(BYTES);
	int err;

	sample_errors();
	err = take_pages(back);
	free(back);
	CHECK(err && sample_errors() == 1);
	CHECK(strstr(sample_last_error(), text));
	return 0;
}

static int damaged_pages(void)
{
	struct gpucr_chunk k;

	CHECK(!put_pages(0) && !change(PAGES, -1, -1));
	CHECK(!pages_refused("it ends early, in chunk 2 or"));
	CHECK(!put_pages(0) && !change(PAGES, 1, -1));
	CHECK(!pages_refused("that the manifest says"));
	CHECK(!put_pages(0) && !change(PAGES, 0, 12345));
	CHECK(!pages_refused("chunk 0 at 0x0 has a wrong checksum"));
	CHECK(!put_pages(0) && !unlinkat(dir, PAGES, 0));
	CHECK(!pages_refused("the image streamer does not have it"));
	/* An index that no stream can have. */
	CHECK(!put_pages(0));
	k = chunks.v[0];
	chunks.v[0].offset = chunks.v[2].offset;
	chunks.v[2].offset = k.offset;
	CHECK(!gpucr_chunks_fault(&chunks));
	CHECK(!pages_refused("chunk 0 does not follow"));
	return 0;
}

static int half_pipe(const char *name)
{
	int p[2];

	(void)name;
	if (pipe(p))
		return -EIO;
	close(p[0]);
	return p[1];
}

static int streamer_gone(void)
{
	struct gpucr_outfile o;

	gpucr_stream_set(half_pipe);
	CHECK(!gpucr_outfile_create(&o, -1, "one.img"));
	sample_errors();
	CHECK(gpucr_outfile_write(&o, "x", 1, 1) == -ESPIPE);
	CHECK(gpucr_outfile_write(&o, "x", 1, 0) == -EPIPE);
	CHECK(sample_errors() == 1);
	CHECK(strstr(sample_last_error(), "stream-lost"));
	gpucr_outfile_abort(&o);
	return 0;
}

/* A streamer that takes nothing does not keep who is told to stop. */
static int stopped(void)
{
	struct gpucr_outfile o;
	int p[2], stop = 0;

	gpucr_stream_set(put);
	CHECK(!pipe(p) && !fcntl(p[1], F_SETFL, O_NONBLOCK));
	CHECK(!gpucr_outfile_on_pipe(&o, p[1], "one.img"));
	o.stop = &stop;
	CHECK(!gpucr_outfile_write(&o, content, 4096, 0));
	stop = EIO;
	CHECK(gpucr_outfile_write(&o, content, BYTES, 4096) == -ECANCELED);
	gpucr_outfile_abort(&o);
	close(p[0]);
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "manifests come back, without a directory",
		  manifests_come_back },
		{ "what was extracted is a directory as any", extracted },
		{ "none is no error", none_is_no_error },
		{ "damaged manifests are refused", damaged_manifests },
		{ "damaged records are refused", damaged_records },
		{ "pages come back, compressed and not", pages_come_back },
		{ "damaged pages are refused", damaged_pages },
		{ "the streamer has gone", streamer_gone },
		{ "a write that waits can be stopped", stopped },
	};
	size_t i;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	sample_quiet();
	dir = sample_dir();
	content = malloc(BYTES);
	if (dir < 0 || !content)
		ktap_bail("no directory, or no memory");
	for (i = 0; i < BYTES; i++)
		content[i] = i / GPUCR_CHUNK_SIZE == 1 ? 0 : i * 7 + i / 4096;
	rc = ktap_run(tests, sizeof(tests) / sizeof(*tests));
	none();
	gpucr_chunks_clear(&chunks);
	free(content);
	return rc;
}
