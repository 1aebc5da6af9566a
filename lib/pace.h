/* SPDX-License-Identifier: GPL-2.0-only */
/* A limit in bytes per second, kept by all threads that share it. */
#ifndef GPUCR_PACE_H
#define GPUCR_PACE_H

#include <stdatomic.h>
#include <stdint.h>

struct gpucr_pace {
	uint64_t rate;			/* bytes per second; 0: no limit */
	_Atomic uint64_t free_ns;	/* when all that was taken is paid */
};

/*
 * Takes len bytes: returns when the limit allows them to have gone. Early,
 * when *stop is not 0; stop may be NULL.
 */
void gpucr_pace_take(struct gpucr_pace *p, uint64_t len, const int *stop);

#endif
