/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chunks compressed with zstd, each for itself. One thread uses an object.
 *
 * Content that does not shrink by a tenth is not worth the time: after a trial
 * of some chunks the next ones are left as they are, until the next trial.
 */
#ifndef GPUCR_ZCHUNK_H
#define GPUCR_ZCHUNK_H

#include <stddef.h>
#include <stdint.h>

#define GPUCR_ZCHUNK_MAX_LEVEL	19

struct gpucr_zip;

/* For chunks of at most max bytes; name is for messages and outlives it. */
int gpucr_zip_open(const char *name, int level, size_t max,
		   struct gpucr_zip **ret);
/* Tells the log what it was good for. */
void gpucr_zip_close(struct gpucr_zip *z);
/*
 * Replaces the len bytes at buf by fewer, followed by zeros to the end of the
 * page. Returns how many; 0: they are as they were. len is whole pages.
 */
size_t gpucr_zip_pack(struct gpucr_zip *z, void *buf, size_t len);

/* Reads what was packed. NULL: no memory. */
struct gpucr_unzip *gpucr_unzip_open(size_t max);
void gpucr_unzip_close(struct gpucr_unzip *u);
/* Memory for what is stored of a chunk: whole pages, aligned for O_DIRECT. */
void *gpucr_unzip_input(struct gpucr_unzip *u);
/*
 * The first stored bytes of the input to exactly len bytes at buf. -EBADMSG
 * where they are not that; nothing is written past the end of buf.
 */
int gpucr_unzip_unpack(struct gpucr_unzip *u, size_t stored, void *buf,
		       size_t len);

#endif
