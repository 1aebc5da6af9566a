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
#include <xxhash.h>

#include "log.h"

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
		if (k->offset > file_end ||
		    k->stored_len > file_end - k->offset)
			return "a chunk lies outside the page file";
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

int gpucr_pages_create(struct gpucr_pages_writer *w, int dir, const char *name,
		       uint64_t raw_bytes)
{
	memset(w, 0, sizeof(*w));
	w->chunks.chunk_size = GPUCR_CHUNK_SIZE;
	w->chunks.raw_bytes = raw_bytes;
	w->room = (raw_bytes + GPUCR_CHUNK_SIZE - 1) / GPUCR_CHUNK_SIZE;
	w->chunks.v = calloc(w->room + 1, sizeof(*w->chunks.v));
	w->out.fd = -1;
	if (!w->chunks.v)
		return -ENOMEM;
	return gpucr_outfile_create(&w->out, dir, name);
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

static int append_chunk(struct gpucr_pages_writer *w, const void *buf,
			size_t len)
{
	struct gpucr_chunks *c = &w->chunks;
	struct gpucr_chunk *k = &c->v[c->num];
	int err;

	if (c->num == w->room)
		return -EOVERFLOW;
	k->raw_len = len;
	if (is_zero(buf, len)) {
		k->codec = GPUCR_CODEC_ZERO;
	} else {
		k->codec = GPUCR_CODEC_NONE;
		k->offset = c->file_bytes;
		k->stored_len = len;
		k->xxh3 = XXH3_64bits(buf, len);
		err = gpucr_outfile_write(&w->out, buf, len, k->offset);
		if (err)
			return err;
		c->file_bytes += len;
	}
	c->num++;
	return 0;
}

int gpucr_pages_append(struct gpucr_pages_writer *w, const void *buf,
		       size_t len)
{
	const char *p = buf;
	int err = 0;

	while (len && !err) {
		size_t n = len < GPUCR_CHUNK_SIZE ? len : GPUCR_CHUNK_SIZE;

		err = append_chunk(w, p, n);
		p += n;
		len -= n;
	}
	return err;
}

int gpucr_pages_commit(struct gpucr_pages_writer *w, struct gpucr_chunks *ret)
{
	int err;

	if (gpucr_chunks_fault(&w->chunks)) {
		gpucr_pages_abort(w);
		return -EINVAL;
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
	gpucr_outfile_abort(&w->out);
	gpucr_chunks_clear(&w->chunks);
}

int gpucr_pages_open(struct gpucr_pages_reader *r, int dir, const char *name,
		     const struct gpucr_chunks *chunks)
{
	struct stat st;

	r->name = name;
	r->chunks = chunks;
	r->fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0 || fstat(r->fd, &st)) {
		int err = -errno;

		gpucr_err("%s: cannot be opened: %s (image-damaged)", name,
			  strerror(-err));
		gpucr_pages_close(r);
		return err;
	}
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == chunks->file_bytes)
		return 0;
	gpucr_err("%s: %lld bytes long, the manifest says %llu (image-damaged); restore another checkpoint",
		  name, (long long)st.st_size,
		  (unsigned long long)chunks->file_bytes);
	gpucr_pages_close(r);
	return -EBADMSG;
}

static int read_chunk(struct gpucr_pages_reader *r, size_t i, void *buf)
{
	const struct gpucr_chunk *k = &r->chunks->v[i];
	int err;

	if (k->codec == GPUCR_CODEC_ZERO) {
		memset(buf, 0, k->raw_len);
		return 0;
	}
	err = gpucr_pread_all(r->fd, buf, k->raw_len, k->offset);
	if (err) {
		gpucr_err("%s: chunk %zu at 0x%llx cannot be read: %s (io-error)",
			  r->name, i, (unsigned long long)k->offset,
			  strerror(-err));
		return err;
	}
	if (XXH3_64bits(buf, k->raw_len) == k->xxh3)
		return 0;
	gpucr_err("%s: chunk %zu at 0x%llx has a wrong checksum (chunk-checksum); restore another checkpoint",
		  r->name, i, (unsigned long long)k->offset);
	return -EBADMSG;
}

int gpucr_pages_read(struct gpucr_pages_reader *r, uint64_t pos, void *buf,
		     size_t len)
{
	size_t i = pos / r->chunks->chunk_size;
	char *p = buf;
	int err;

	if (pos % r->chunks->chunk_size)
		return -EINVAL;
	while (len) {
		if (i >= r->chunks->num || r->chunks->v[i].raw_len > len)
			return -EINVAL;
		err = read_chunk(r, i, p);
		if (err)
			return err;
		p += r->chunks->v[i].raw_len;
		len -= r->chunks->v[i].raw_len;
		i++;
	}
	return 0;
}

void gpucr_pages_close(struct gpucr_pages_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}
