/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads in flight where neither threads nor io_uring may be: a restoring task's
 * thread ids are those of its application. Kernel AIO has no thread of ours.
 * It is asynchronous for O_DIRECT only; else a read is done when it is begun.
 */
#ifndef GPUCR_FETCH_H
#define GPUCR_FETCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GPUCR_FETCH_DEPTH	64

struct gpucr_fetch;

/* NULL where the kernel has no AIO for us: read as usual. */
struct gpucr_fetch *gpucr_fetch_open(void);
/* Waits for what is in flight, but for what a deadline has passed on. */
void gpucr_fetch_close(struct gpucr_fetch *f);

/* An id, or -errno: not begun (-EBUSY: too many). */
int gpucr_fetch_begin(struct gpucr_fetch *f, int fd, void *buf, size_t len,
		      uint64_t pos);
/* How many bytes came, or -errno; -ETIMEDOUT after deadline_ms. Once an id. */
ssize_t gpucr_fetch_end(struct gpucr_fetch *f, int id,
			unsigned int deadline_ms);

#endif
