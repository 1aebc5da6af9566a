/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads in flight where neither threads nor io_uring may be: a restoring task's
 * thread ids are those of its application. Kernel AIO has no thread of ours.
 * It is asynchronous for O_DIRECT only; else a read is done when it is begun.
 */
#ifndef GPUCR_FETCH_H
#define GPUCR_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GPUCR_FETCH_DEPTH	128

struct gpucr_fetch;

/*
 * NULL where the kernel has no AIO for us: read as usual. A read that takes
 * longer than the deadline is given up. Of several files at the same time one
 * is to do for all: the kernel takes tens of milliseconds to end one.
 */
struct gpucr_fetch *gpucr_fetch_open(unsigned int deadline_ms);
/* Waits for what is in flight, but for what a deadline has passed on. */
void gpucr_fetch_close(struct gpucr_fetch *f);

/* An id, or -errno: not begun (-EBUSY: too many). */
int gpucr_fetch_begin(struct gpucr_fetch *f, int fd, void *buf, size_t len,
		      uint64_t pos);
/* Would gpucr_fetch_end() return at once? Waits a little, for any read. */
bool gpucr_fetch_is_done(struct gpucr_fetch *f, int id, uint64_t wait_ns);
/*
 * How many bytes came, or -errno; -ETIMEDOUT where none have long after the
 * begin. Once an id.
 */
ssize_t gpucr_fetch_end(struct gpucr_fetch *f, int id);

#endif
