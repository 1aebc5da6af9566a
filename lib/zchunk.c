// SPDX-License-Identifier: GPL-2.0-only
#include "zchunk.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "clock.h"
#include "log.h"

#define PAGE		((size_t)4096)
#define TRIAL		16	/* chunks that decide */
#define SKIP		112	/* that are then left as they are */

struct gpucr_zip {
	const char *name;
	int level;
	ZSTD_CCtx *ctx;
	size_t max;
	uint8_t *out;
	/* The trial that is going on, or the pause after one. */
	unsigned int tried, skip;
	uint64_t trial_in, trial_out, trial_ns;
	bool told;
	/* All. */
	uint64_t in, out_bytes, skipped;
};

struct gpucr_unzip {
	ZSTD_DCtx *ctx;
	size_t max;
	void *in;
};

static size_t pages(size_t len)
{
	return (len + PAGE - 1) & ~(PAGE - 1);
}

int gpucr_zip_open(const char *name, int level, size_t max,
		   struct gpucr_zip **ret)
{
	struct gpucr_zip *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	z->name = name;
	z->level = level;
	z->max = max;
	z->ctx = ZSTD_createCCtx();
	z->out = malloc(max);
	if (!z->ctx || !z->out ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(z->ctx,
						ZSTD_c_compressionLevel,
						level))) {
		ZSTD_freeCCtx(z->ctx);
		free(z->out);
		free(z);
		return -ENOMEM;
	}
	*ret = z;
	return 0;
}

void gpucr_zip_close(struct gpucr_zip *z)
{
	if (!z)
		return;
	gpucr_info("%s: zstd:%d took %llu bytes to %llu, and left %llu alone",
		   z->name, z->level, (unsigned long long)z->in,
		   (unsigned long long)z->out_bytes,
		   (unsigned long long)z->skipped);
	ZSTD_freeCCtx(z->ctx);
	free(z->out);
	free(z);
}

/* After the last chunk of a trial: does it pay? */
static void judge(struct gpucr_zip *z)
{
	bool pays = z->trial_out < z->trial_in - z->trial_in / 10;
	uint64_t us = z->trial_ns / 1000 + 1;

	/* The first verdict is news, the later ones are many. */
	gpucr_log(z->told ? GPUCR_LOG_DEBUG : GPUCR_LOG_INFO,
		  "%s: zstd:%d took %llu KiB to %llu at %llu MB/s: %s", z->name,
		  z->level, (unsigned long long)z->trial_in >> 10,
		  (unsigned long long)z->trial_out >> 10,
		  (unsigned long long)(z->trial_in / us),
		  pays ? "it pays" :
			 "it does not pay, the next chunks are left alone");
	z->told = true;
	z->skip = pays ? 0 : SKIP;
	z->tried = 0;
	z->trial_in = z->trial_out = z->trial_ns = 0;
}

size_t gpucr_zip_pack(struct gpucr_zip *z, void *buf, size_t len)
{
	/* Less than a sixteenth saved is not worth the unpacking. */
	size_t room = (len - len / 16) & ~(PAGE - 1), n;
	uint64_t start;

	if (z->skip || len > z->max || !room) {
		z->skip -= z->skip > 0;
		z->skipped += len;
		return 0;
	}
	start = gpucr_now_ns();
	n = ZSTD_compress2(z->ctx, z->out, room, buf, len);
	if (ZSTD_isError(n))
		n = 0;
	z->trial_ns += gpucr_now_ns() - start;
	z->trial_in += len;
	z->trial_out += n ? pages(n) : len;
	if (++z->tried == TRIAL)
		judge(z);
	if (!n) {
		z->skipped += len;
		return 0;
	}
	memcpy(buf, z->out, n);
	memset((char *)buf + n, 0, pages(n) - n);
	z->in += len;
	z->out_bytes += pages(n);
	return n;
}

struct gpucr_unzip *gpucr_unzip_open(size_t max)
{
	struct gpucr_unzip *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->max = pages(max);
	u->ctx = ZSTD_createDCtx();
	u->in = aligned_alloc(PAGE, u->max);
	if (u->ctx && u->in)
		return u;
	gpucr_unzip_close(u);
	return NULL;
}

void gpucr_unzip_close(struct gpucr_unzip *u)
{
	if (!u)
		return;
	ZSTD_freeDCtx(u->ctx);
	free(u->in);
	free(u);
}

void *gpucr_unzip_input(struct gpucr_unzip *u)
{
	return u->in;
}

int gpucr_unzip_unpack(struct gpucr_unzip *u, size_t stored, void *buf,
		       size_t len)
{
	/* In one call nothing is allocated, whatever a frame says of itself. */
	if (stored > u->max ||
	    ZSTD_decompressDCtx(u->ctx, buf, len, u->in, stored) != len)
		return -EBADMSG;
	return 0;
}
