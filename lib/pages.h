/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Page files: a stream of bytes cut into chunks, each with its checksum.
 * Chunks of zeros are not stored. The index is kept by the manifest.
 */
#ifndef GPUCR_PAGES_H
#define GPUCR_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "imgfile.h"

#define GPUCR_CHUNK_SIZE	(UINT32_C(2) << 20)
#define GPUCR_CHUNK_RECORD	32	/* bytes of an index record on disk */
#define GPUCR_PAGE_SIZE		4096

enum gpucr_codec {
	GPUCR_CODEC_NONE,
	GPUCR_CODEC_ZERO,
};

struct gpucr_chunk {
	uint64_t offset;	/* in the page file */
	uint32_t raw_len;
	uint32_t stored_len;
	uint32_t codec;
	uint64_t xxh3;		/* of the raw bytes; 0 where codec is zero */
};

struct gpucr_chunks {
	uint64_t raw_bytes;	/* of the stream */
	uint64_t file_bytes;	/* of the page file */
	uint32_t chunk_size;	/* every chunk but the last has it */
	struct gpucr_chunk *v;
	size_t num;
};

void gpucr_chunks_clear(struct gpucr_chunks *c);
/* Index records to disk format and back. *ret is free()d. */
int gpucr_chunks_pack(const struct gpucr_chunks *c, uint8_t **ret,
		      size_t *len);
int gpucr_chunks_unpack(struct gpucr_chunks *c, const uint8_t *records,
			size_t len);
/* NULL, or what is wrong with the index. */
const char *gpucr_chunks_fault(const struct gpucr_chunks *c);

/* Writes the stream in order. Errors are logged. */
struct gpucr_pages_writer {
	struct gpucr_outfile out;
	struct gpucr_chunks chunks;
	size_t room;
};

/* raw_bytes: how long the stream will be. */
int gpucr_pages_create(struct gpucr_pages_writer *w, int dir, const char *name,
		       uint64_t raw_bytes);
/* The next len bytes: a multiple of the chunk size, or the last. */
int gpucr_pages_append(struct gpucr_pages_writer *w, const void *buf,
		       size_t len);
/* Durable and named; the index goes to *ret. On failure all is gone. */
int gpucr_pages_commit(struct gpucr_pages_writer *w, struct gpucr_chunks *ret);
void gpucr_pages_abort(struct gpucr_pages_writer *w);

/* Reads any whole chunks. Errors are logged. */
struct gpucr_pages_reader {
	int fd;
	const char *name;
	const struct gpucr_chunks *chunks;
};

/* chunks has passed gpucr_chunks_fault(); it and name outlive the reader. */
int gpucr_pages_open(struct gpucr_pages_reader *r, int dir, const char *name,
		     const struct gpucr_chunks *chunks);
/* pos is the start of a chunk, pos + len the end of one. */
int gpucr_pages_read(struct gpucr_pages_reader *r, uint64_t pos, void *buf,
		     size_t len);
void gpucr_pages_close(struct gpucr_pages_reader *r);

#endif
