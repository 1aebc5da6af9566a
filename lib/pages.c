// SPDX-License-Identifier: GPL-2.0-only
#include "pages.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checksum.h"
#include "log.h"
#include "stream.h"

/* On disk, little endian. */
struct chunk_record {
	uint64_t offset;
	uint32_t raw_len;
	uint32_t stored_len;
	uint32_t codec;
	uint32_t zero;
	uint64_t xxh3;
};

_Static_assert(sizeof(struct chunk_record) == GPUCR_CHUNK_RECORD, "layout");

void gpucr_chunks_clear(struct gpucr_chunks *c)
{
	free(c->v);
	memset(c, 0, sizeof(*c));
}

int gpucr_chunks_pack(const struct gpucr_chunks *c, uint8_t **ret, size_t *len)
{
	struct chunk_record *r;
	size_t i;

	r = calloc(c->num + 1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	for (i = 0; i < c->num; i++) {
		r[i].offset = htole64(c->v[i].offset);
		r[i].raw_len = htole32(c->v[i].raw_len);
		r[i].stored_len = htole32(c->v[i].stored_len);
		r[i].codec = htole32(c->v[i].codec);
		r[i].xxh3 = htole64(c->v[i].xxh3);
	}
	*ret = (uint8_t *)r;
	*len = c->num * sizeof(*r);
	return 0;
}

int gpucr_chunks_unpack(struct gpucr_chunks *c, const uint8_t *records,
			size_t len)
{
	struct chunk_record r;
	size_t i;

	if (len % sizeof(r))
		return -EBADMSG;
	c->num = len / sizeof(r);
	c->v = calloc(c->num + 1, sizeof(*c->v));
	if (!c->v) {
		c->num = 0;
		return -ENOMEM;
	}
	for (i = 0; i < c->num; i++) {
		memcpy(&r, records + i * sizeof(r), sizeof(r));
		if (r.zero)
			return -EBADMSG;
		c->v[i].offset = le64toh(r.offset);
		c->v[i].raw_len = le32toh(r.raw_len);
		c->v[i].stored_len = le32toh(r.stored_len);
		c->v[i].codec = le32toh(r.codec);
		c->v[i].xxh3 = le64toh(r.xxh3);
	}
	return 0;
}

/* What a chunk takes of the page file. */
static uint64_t stored_room(const struct gpucr_chunk *k)
{
	uint64_t len = k->stored_len;

	if (k->codec == GPUCR_CODEC_ZSTD)
		len = (len + GPUCR_PAGE_SIZE - 1) & ~(uint64_t)(GPUCR_PAGE_SIZE - 1);
	return len;
}

static bool is_outside(const struct gpucr_chunk *k, uint64_t file_end)
{
	return k->offset > file_end || stored_room(k) > file_end - k->offset;
}

static const char *chunk_fault(const struct gpucr_chunk *k, uint64_t file_end)
{
	switch (k->codec) {
	case GPUCR_CODEC_ZERO:
		if (k->offset || k->stored_len || k->xxh3)
			return "a chunk of zeros claims stored bytes";
		return NULL;
	case GPUCR_CODEC_NONE:
		if (k->stored_len != k->raw_len)
			return "a plain chunk's stored length is not its length";
		if (is_outside(k, file_end))
			return "a chunk lies outside the page file";
		return NULL;
	case GPUCR_CODEC_ZSTD:
		if (!k->stored_len || k->stored_len >= k->raw_len)
			return "a compressed chunk is not shorter than its content";
		if (k->offset % GPUCR_PAGE_SIZE || is_outside(k, file_end))
			return "a compressed chunk lies outside the page file";
		return NULL;
	}
	return "a chunk has a codec that this program does not know";
}

const char *gpucr_chunks_fault(const struct gpucr_chunks *c)
{
	uint64_t left = c->raw_bytes;
	size_t i;

	/* A power of two, so that it divides every buffer size. */
	if (c->chunk_size < GPUCR_PAGE_SIZE ||
	    c->chunk_size & (c->chunk_size - 1) ||
	    c->chunk_size > GPUCR_CHUNK_SIZE)
		return "the chunk size is not possible";
	if (!c->raw_bytes || c->raw_bytes % GPUCR_PAGE_SIZE)
		return "the content is not whole pages";
	if (c->num != (c->raw_bytes - 1) / c->chunk_size + 1)
		return "the number of chunks does not fit the content";
	for (i = 0; i < c->num; i++) {
		const char *fault = chunk_fault(&c->v[i], c->file_bytes);
		uint64_t want = left < c->chunk_size ? left : c->chunk_size;

		if (!fault && c->v[i].raw_len != want)
			fault = "a chunk's length does not fit its place";
		if (fault)
			return fault;
		left -= want;
	}
	return NULL;
}

static int begin_index(struct gpucr_pages_writer *w, uint64_t raw_bytes)
{
	memset(w, 0, sizeof(*w));
	w->chunks.chunk_size = GPUCR_CHUNK_SIZE;
	w->chunks.raw_bytes = raw_bytes;
	w->room = (raw_bytes + GPUCR_CHUNK_SIZE - 1) / GPUCR_CHUNK_SIZE;
	w->chunks.v = calloc(w->room + 1, sizeof(*w->chunks.v));
	w->out.fd = -1;
	return w->chunks.v ? 0 : -ENOMEM;
}

int gpucr_pages_create(struct gpucr_pages_writer *w, int dir, const char *name,
		       uint64_t raw_bytes)
{
	int err = begin_index(w, raw_bytes);

	return err ? err : gpucr_outfile_create(&w->out, dir, name);
}

int gpucr_pages_create_on(struct gpucr_pages_writer *w, int pipe,
			  const char *name, uint64_t raw_bytes,
			  const int *stop)
{
	int err = begin_index(w, raw_bytes);

	pipe = err ? -1 : fcntl(pipe, F_DUPFD_CLOEXEC, 3);
	if (pipe < 0)
		return err ? err : -errno;
	err = gpucr_outfile_on_pipe(&w->out, pipe, name);
	w->out.stop = stop;
	return err;
}

static bool is_zero(const void *buf, size_t len)
{
	const uint64_t *p = buf;
	size_t i, n = len / sizeof(*p);

	for (i = 0; i + 8 <= n; i += 8) {
		if (p[i] | p[i + 1] | p[i + 2] | p[i + 3] | p[i + 4] |
		    p[i + 5] | p[i + 6] | p[i + 7])
			return false;
	}
	for (; i < n; i++) {
		if (p[i])
			return false;
	}
	return true;
}

int gpucr_pages_set_store(struct gpucr_pages_writer *w,
			  const struct gpucr_store_config *cfg)
{
	struct gpucr_store_config c = *cfg;

	c.fd = w->out.fd;
	c.name = w->out.name;
	c.expect = w->chunks.raw_bytes;
	return gpucr_store_open(&c, &w->store);
}

int gpucr_pages_set_zstd(struct gpucr_pages_writer *w, int level)
{
	return gpucr_zip_open(w->out.name, level, GPUCR_CHUNK_SIZE, &w->zip);
}

int gpucr_pages_set_plain(struct gpucr_pages_writer *w)
{
	uint64_t head = htole64(w->chunks.raw_bytes);
	int err;

	err = gpucr_outfile_write(&w->out, &head, sizeof(head), 0);
	w->chunks.file_bytes = sizeof(head);
	w->plain = true;
	return err;
}

/* A chunk that is not zeros, to the end of the file. */
static void place_chunk(struct gpucr_pages_writer *w, struct gpucr_chunk *k,
			void *buf)
{
	size_t packed;

	k->xxh3 = gpucr_checksum(buf, k->raw_len);
	packed = w->zip ? gpucr_zip_pack(w->zip, buf, k->raw_len) : 0;
	k->codec = packed ? GPUCR_CODEC_ZSTD : GPUCR_CODEC_NONE;
	k->stored_len = packed ? packed : k->raw_len;
	k->offset = w->chunks.file_bytes;
	w->chunks.file_bytes += stored_room(k);
}

/* Index record of the next chunk; *room: bytes to be written for it. */
static int note_chunk(struct gpucr_pages_writer *w, void *buf, size_t len,
		      size_t *room)
{
	struct gpucr_chunks *c = &w->chunks;
	struct gpucr_chunk *k = &c->v[c->num];

	if (c->num == w->room)
		return -EOVERFLOW;
	k->raw_len = len;
	if (!w->plain && is_zero(buf, len))
		k->codec = GPUCR_CODEC_ZERO;
	else
		place_chunk(w, k, buf);
	*room = stored_room(k);
	c->num++;
	return 0;
}

/* The end of what the index says is stored. */
static int write_run(struct gpucr_pages_writer *w, const char *buf, size_t len)
{
	uint64_t pos = w->chunks.file_bytes - len;

	if (!len)
		return 0;
	return w->store ? gpucr_store_write(w->store, buf, len, pos) :
			  gpucr_outfile_write(&w->out, buf, len, pos);
}

int gpucr_pages_append(struct gpucr_pages_writer *w, void *buf, size_t len)
{
	char *p = buf, *run = buf;	/* [run, p) is to be written */
	int err = 0;

	while (len && !err) {
		size_t n = len < GPUCR_CHUNK_SIZE ? len : GPUCR_CHUNK_SIZE;
		size_t room = 0;

		err = note_chunk(w, p, n, &room);
		/* What follows does not lie at its end in the file. */
		if (!err && room != n) {
			err = write_run(w, run, p - run + room);
			run = p + n;
		}
		p += n;
		len -= n;
	}
	return err ? err : write_run(w, run, p - run);
}

bool gpucr_pages_needs(const struct gpucr_pages_writer *w, const void *buf,
		       size_t len)
{
	return w->store && gpucr_store_needs(w->store, buf, len);
}

int gpucr_pages_settle(struct gpucr_pages_writer *w, const void *buf,
		       size_t len)
{
	return w->store ? gpucr_store_settle(w->store, buf, len) : 0;
}

static int close_store(struct gpucr_pages_writer *w)
{
	int err = gpucr_pages_settle(w, NULL, 0);

	gpucr_store_close(w->store);
	w->store = NULL;
	gpucr_zip_close(w->zip);
	w->zip = NULL;
	return err;
}

int gpucr_pages_commit(struct gpucr_pages_writer *w, struct gpucr_chunks *ret)
{
	int err = close_store(w);

	if (!err && gpucr_chunks_fault(&w->chunks))
		err = -EINVAL;
	/* Room that was asked for in advance and is not needed. */
	if (!err && !w->out.pipe &&
	    ftruncate(w->out.fd, w->chunks.file_bytes)) {
		err = -errno;
		gpucr_err("%s: ftruncate: %s (io-error)", w->out.name,
			  strerror(-err));
	}
	if (err) {
		gpucr_pages_abort(w);
		return err;
	}
	err = gpucr_outfile_commit(&w->out);
	if (err) {
		gpucr_chunks_clear(&w->chunks);
		return err;
	}
	*ret = w->chunks;
	memset(&w->chunks, 0, sizeof(w->chunks));
	return 0;
}

void gpucr_pages_abort(struct gpucr_pages_writer *w)
{
	close_store(w);
	gpucr_outfile_abort(&w->out);
	gpucr_chunks_clear(&w->chunks);
}

static int open_pipe(struct gpucr_pages_reader *r)
{
	r->pipe = true;
	r->pos = 0;
	r->fd = gpucr_stream_open(r->name);
	if (r->fd == -ENOENT)
		gpucr_err("%s: the image streamer does not have it (image-incomplete); restore another checkpoint",
			  r->name);
	return r->fd < 0 ? r->fd : 0;
}

int gpucr_pages_open(struct gpucr_pages_reader *r, int dir, const char *name,
		     const struct gpucr_chunks *chunks)
{
	struct stat st;

	r->pipe = false;
	r->name = name;
	r->chunks = chunks;
	r->unzip = NULL;
	r->fetch = NULL;
	r->ahead = NULL;
	r->num_ahead = 0;
	if (gpucr_stream_on())
		return open_pipe(r);
	r->fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0 || fstat(r->fd, &st)) {
		int err = -errno;

		gpucr_err("%s: cannot be opened: %s (image-damaged)", name,
			  strerror(-err));
		gpucr_pages_close(r);
		return err;
	}
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == chunks->file_bytes) {
		/* Past the page cache, where the filesystem allows it. */
		fcntl(r->fd, F_SETFL, O_RDONLY | O_DIRECT);
		return 0;
	}
	gpucr_err("%s: %lld bytes long, the manifest says %llu (image-damaged); restore another checkpoint",
		  name, (long long)st.st_size,
		  (unsigned long long)chunks->file_bytes);
	gpucr_pages_close(r);
	return -EBADMSG;
}

static int read_pipe(struct gpucr_pages_reader *r, void *buf, size_t len,
		     uint64_t pos)
{
	if (pos != r->pos)
		return -ESPIPE;
	r->pos += len;
	return gpucr_stream_read(r->fd, buf, len);
}

/* Not every file can be read past the page cache from everywhere. */
static int read_stored(struct gpucr_pages_reader *r, void *buf, size_t len,
		       uint64_t pos)
{
	int err;

	if (r->pipe)
		return read_pipe(r, buf, len, pos);
	err = gpucr_pread_all(r->fd, buf, len, pos);
	if (err != -EINVAL)
		return err;
	fcntl(r->fd, F_SETFL, O_RDONLY);
	return gpucr_pread_all(r->fd, buf, len, pos);
}

/* How many bytes from chunk i on lie side by side, at most max. */
static size_t run_length(const struct gpucr_chunks *c, size_t i, size_t max)
{
	size_t len = 0;
	uint64_t at = c->v[i].offset;

	for (; i < c->num && c->v[i].codec == GPUCR_CODEC_NONE; i++) {
		if (c->v[i].offset != at + len ||
		    c->v[i].raw_len > max - len)
			break;
		len += c->v[i].raw_len;
	}
	return len;
}

/* A run that is being read. */
struct gpucr_pages_ahead {
	int id;
	void *buf;
	size_t len;
};

void gpucr_pages_set_fetch(struct gpucr_pages_reader *r, struct gpucr_fetch *f)
{
	if (r->pipe || !f)
		return;
	r->ahead = calloc(GPUCR_FETCH_DEPTH, sizeof(*r->ahead));
	r->fetch = r->ahead ? f : NULL;
}

void gpucr_pages_begin(struct gpucr_pages_reader *r, uint64_t pos, void *buf,
		       size_t len)
{
	size_t i = pos / r->chunks->chunk_size, got;
	char *p = buf;

	for (; r->fetch && len && i < r->chunks->num; p += got, len -= got) {
		const struct gpucr_chunk *k = &r->chunks->v[i];
		int id = -ENOENT;

		if (k->raw_len > len)
			return;
		got = k->codec == GPUCR_CODEC_NONE ?
			run_length(r->chunks, i, len) : k->raw_len;
		if (k->codec == GPUCR_CODEC_NONE)
			id = gpucr_fetch_begin(r->fetch, r->fd, p, got,
					       k->offset);
		if (id >= 0)
			r->ahead[r->num_ahead++] = (struct gpucr_pages_ahead){
				.id = id, .buf = p, .len = got,
			};
		i += (got - 1) / r->chunks->chunk_size + 1;
	}
}

bool gpucr_pages_is_ready(struct gpucr_pages_reader *r, uint64_t wait_ns)
{
	return !r->num_ahead ||
	       gpucr_fetch_is_done(r->fetch, r->ahead->id, wait_ns);
}

/* The run at buf, if it was begun: is it there? -ENOENT: it was not. */
static int end_ahead(struct gpucr_pages_reader *r, const void *buf, size_t len)
{
	struct gpucr_pages_ahead *a = r->ahead;
	ssize_t n;

	if (!r->num_ahead || a->buf != buf || a->len != len)
		return -ENOENT;
	n = gpucr_fetch_end(r->fetch, a->id);
	memmove(a, a + 1, --r->num_ahead * sizeof(*a));
	/* Not every file can be read so; and of a short one the rest is told. */
	if (n == -EINVAL || (n >= 0 && n != (ssize_t)len))
		return -ENOENT;
	return n < 0 ? (int)n : 0;
}

static int check_chunk(const struct gpucr_pages_reader *r, size_t i,
		       const void *buf)
{
	const struct gpucr_chunk *k = &r->chunks->v[i];

	if (k->codec == GPUCR_CODEC_ZERO || r->chunks->unchecked ||
	    gpucr_checksum(buf, k->raw_len) == k->xxh3)
		return 0;
	gpucr_err("%s: chunk %zu at 0x%llx has a wrong checksum (chunk-checksum); restore another checkpoint",
		  r->name, i, (unsigned long long)k->offset);
	return -EBADMSG;
}

uint64_t gpucr_chunks_stored(const struct gpucr_chunks *c, uint64_t pos,
			     uint64_t len)
{
	size_t i = pos / c->chunk_size;
	uint64_t sum = 0, end = pos + len;

	for (; i < c->num && i * (uint64_t)c->chunk_size < end; i++)
		sum += stored_room(&c->v[i]);
	return sum;
}

uint64_t gpucr_chunks_extent(const struct gpucr_chunks *c, uint64_t pos,
			     uint64_t max, bool *zero)
{
	size_t i = pos / c->chunk_size;
	uint64_t end = pos;

	*zero = i < c->num && c->v[i].codec == GPUCR_CODEC_ZERO;
	for (; i < c->num && end - pos < max; i++) {
		if ((c->v[i].codec == GPUCR_CODEC_ZERO) != *zero)
			return end - pos;
		end = (i + 1) * (uint64_t)c->chunk_size;
	}
	/* Behind the last chunk is nothing, which a read will tell. */
	return max;
}

static int pipe_failed(const struct gpucr_pages_reader *r, size_t i, int err)
{
	if (err == -EBADMSG)
		gpucr_err("%s: it ends early, in chunk %zu or behind it (image-damaged); restore another checkpoint",
			  r->name, i);
	else if (err == -ESPIPE)
		gpucr_err("%s: chunk %zu does not follow the one before it, as in a stream (image-damaged)",
			  r->name, i);
	else
		gpucr_err("%s: chunk %zu does not come from the image streamer: %s (stream-lost)",
			  r->name, i, strerror(-err));
	return err;
}

static int read_failed(const struct gpucr_pages_reader *r, size_t i, int err)
{
	if (r->pipe)
		return pipe_failed(r, i, err);
	gpucr_err("%s: chunk %zu at 0x%llx cannot be read: %s (io-error)",
		  r->name, i, (unsigned long long)r->chunks->v[i].offset,
		  strerror(-err));
	return err;
}

static int unpack_chunk(struct gpucr_pages_reader *r, size_t i, void *buf)
{
	const struct gpucr_chunk *k = &r->chunks->v[i];
	int err;

	if (!r->unzip)
		r->unzip = gpucr_unzip_open(r->chunks->chunk_size);
	if (!r->unzip)
		return -ENOMEM;
	err = read_stored(r, gpucr_unzip_input(r->unzip), stored_room(k),
			  k->offset);
	if (err)
		return read_failed(r, i, err);
	err = gpucr_unzip_unpack(r->unzip, k->stored_len, buf, k->raw_len);
	if (err)
		gpucr_err("%s: chunk %zu at 0x%llx cannot be unpacked (chunk-checksum); restore another checkpoint",
			  r->name, i, (unsigned long long)k->offset);
	return err;
}

/* Chunk i and those that one read brings with it. *got: their bytes. */
static int read_run(struct gpucr_pages_reader *r, size_t i, void *buf,
		    size_t max, size_t *got)
{
	const struct gpucr_chunk *k = &r->chunks->v[i];
	int err;

	if (k->codec == GPUCR_CODEC_ZERO) {
		memset(buf, 0, k->raw_len);
		*got = k->raw_len;
		return 0;
	}
	if (k->codec == GPUCR_CODEC_ZSTD) {
		*got = k->raw_len;
		return unpack_chunk(r, i, buf);
	}
	*got = run_length(r->chunks, i, max);
	err = end_ahead(r, buf, *got);
	if (err == -ENOENT)
		err = read_stored(r, buf, *got, k->offset);
	return err ? read_failed(r, i, err) : 0;
}

/* Behind the last chunk: a streamer does not tell the length before. */
static int check_end(const struct gpucr_pages_reader *r)
{
	int err = r->pos == r->chunks->file_bytes ? gpucr_stream_end(r->fd) :
						    -EBADMSG;

	if (err)
		gpucr_err("%s: it has not the %llu bytes that the manifest says (image-damaged); restore another checkpoint",
			  r->name, (unsigned long long)r->chunks->file_bytes);
	return err;
}

/* The chunks before i have been read. */
static int end_read(const struct gpucr_pages_reader *r, size_t i)
{
	return r->pipe && i == r->chunks->num ? check_end(r) : 0;
}

int gpucr_pages_read(struct gpucr_pages_reader *r, uint64_t pos, void *buf,
		     size_t len)
{
	size_t i = pos / r->chunks->chunk_size;
	char *p = buf;
	int err = 0;

	if (pos % r->chunks->chunk_size)
		return -EINVAL;
	while (len && !err) {
		size_t got;

		if (i >= r->chunks->num || r->chunks->v[i].raw_len > len)
			return -EINVAL;
		r->at = i;
		err = read_run(r, i, p, len, &got);
		for (len -= err ? 0 : got; !err && got; i++) {
			r->at = i;
			err = check_chunk(r, i, p);
			p += r->chunks->v[i].raw_len;
			got -= r->chunks->v[i].raw_len;
		}
	}
	return err ? err : end_read(r, i);
}

int gpucr_pages_pass(struct gpucr_pages_reader *r, uint64_t pos, size_t len)
{
	bool zero;

	r->at = pos / r->chunks->chunk_size;
	if (pos + len > r->chunks->raw_bytes ||
	    gpucr_chunks_extent(r->chunks, pos, len, &zero) != len || !zero)
		return -EINVAL;
	return end_read(r, pos + len == r->chunks->raw_bytes ? r->chunks->num :
							       r->at);
}

void gpucr_pages_close(struct gpucr_pages_reader *r)
{
	free(r->ahead);
	gpucr_unzip_close(r->unzip);
	r->fetch = NULL;
	r->ahead = NULL;
	r->num_ahead = 0;
	r->unzip = NULL;
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}
