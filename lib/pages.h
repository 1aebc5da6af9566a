/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Page files: a stream of bytes cut into chunks, each with its checksum.
 * Chunks of zeros are not stored. The index is kept by the manifest.
 */
#ifndef GPUCR_PAGES_H
#define GPUCR_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fetch.h"
#include "imgfile.h"
#include "store.h"
#include "zchunk.h"

#define GPUCR_CHUNK_SIZE	(UINT32_C(2) << 20)
#define GPUCR_CHUNK_RECORD	32	/* bytes of an index record on disk */
#define GPUCR_PAGE_SIZE		4096

enum gpucr_codec {
	GPUCR_CODEC_NONE,
	GPUCR_CODEC_ZERO,
	GPUCR_CODEC_ZSTD,
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
	bool unchecked;		/* upstream's: there are no checksums */
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

/* Bytes that the chunks from pos to pos + len take of the page file. */
uint64_t gpucr_chunks_stored(const struct gpucr_chunks *c, uint64_t pos,
			     uint64_t len);
/* How many bytes from pos on, at most max, are zeros not stored, or are not. */
uint64_t gpucr_chunks_extent(const struct gpucr_chunks *c, uint64_t pos,
			     uint64_t max, bool *zero);

/* Writes the stream in order. Errors are logged. */
struct gpucr_pages_writer {
	struct gpucr_outfile out;
	struct gpucr_store *store;	/* NULL: each write is done at once */
	struct gpucr_zip *zip;		/* NULL: chunks are stored as they are */
	struct gpucr_chunks chunks;
	size_t room;
	bool plain;			/* zeros are stored too */
};

/* raw_bytes: how long the stream will be. */
int gpucr_pages_create(struct gpucr_pages_writer *w, int dir, const char *name,
		       uint64_t raw_bytes);
/*
 * The same through a streamer's pipe, which stays the caller's and is written
 * in order. Where *stop becomes other than 0, writes give up.
 */
int gpucr_pages_create_on(struct gpucr_pages_writer *w, int pipe,
			  const char *name, uint64_t raw_bytes,
			  const int *stop);
/* Have several writes in flight, with cfg as gpucr_store_open() wants it. */
int gpucr_pages_set_store(struct gpucr_pages_writer *w,
			  const struct gpucr_store_config *cfg);
/* Upstream's page file: its length, then the stream as it is. */
int gpucr_pages_set_plain(struct gpucr_pages_writer *w);
/* Compress what shrinks, with zstd at this level. */
int gpucr_pages_set_zstd(struct gpucr_pages_writer *w, int level);
/*
 * The next len bytes: a multiple of the chunk size, or the last. With a store
 * buf must not change before gpucr_pages_settle(). With compression it holds
 * something else afterwards.
 */
int gpucr_pages_append(struct gpucr_pages_writer *w, void *buf, size_t len);
/* Is any of that memory to be written from? */
bool gpucr_pages_needs(const struct gpucr_pages_writer *w, const void *buf,
		       size_t len);
/* Waits until the writer needs that memory no more; NULL: any memory. */
int gpucr_pages_settle(struct gpucr_pages_writer *w, const void *buf,
		       size_t len);
/* Durable and named; the index goes to *ret. On failure all is gone. */
int gpucr_pages_commit(struct gpucr_pages_writer *w, struct gpucr_chunks *ret);
void gpucr_pages_abort(struct gpucr_pages_writer *w);

/*
 * Reads any whole chunks; from a streamer all of them, once and in order.
 * Errors are logged.
 */
struct gpucr_pages_reader {
	int fd;
	bool pipe;			/* from a streamer */
	uint64_t pos;			/* of a pipe: of the next byte */
	const char *name;
	const struct gpucr_chunks *chunks;
	struct gpucr_unzip *unzip;	/* made for the first such chunk */
	struct gpucr_fetch *fetch;	/* the caller's; NULL: none in advance */
	struct gpucr_pages_ahead *ahead; /* by rising place in the stream */
	size_t num_ahead;
	size_t at;			/* chunk; where a read failed, the one */
};

/* chunks has passed gpucr_chunks_fault(); it and name outlive the reader. */
int gpucr_pages_open(struct gpucr_pages_reader *r, int dir, const char *name,
		     const struct gpucr_chunks *chunks);
/*
 * From now on gpucr_pages_begin() reads in advance. f may be other readers' too,
 * or NULL, and is closed before this reader: reads in flight use its file.
 */
void gpucr_pages_set_fetch(struct gpucr_pages_reader *r, struct gpucr_fetch *f);
/*
 * Begins what gpucr_pages_read() with the same arguments ends; in the same
 * order, and until then buf is the kernel's. What cannot be begun is read then.
 */
void gpucr_pages_begin(struct gpucr_pages_reader *r, uint64_t pos, void *buf,
		       size_t len);
/*
 * Is what was begun first there, or nothing begun? Waits a little, for what any
 * reader with the same fetch has begun.
 */
bool gpucr_pages_is_ready(struct gpucr_pages_reader *r, uint64_t wait_ns);
/* pos is the start of a chunk, pos + len the end of one. */
int gpucr_pages_read(struct gpucr_pages_reader *r, uint64_t pos, void *buf,
		     size_t len);
/* Instead of a read, where gpucr_chunks_extent() says that they are zeros. */
int gpucr_pages_pass(struct gpucr_pages_reader *r, uint64_t pos, size_t len);
void gpucr_pages_close(struct gpucr_pages_reader *r);

#endif
