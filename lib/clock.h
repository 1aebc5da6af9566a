/* SPDX-License-Identifier: GPL-2.0-only */
/* Time that only goes on; in a restored task it may be another than CRIU's. */
#ifndef GPUCR_CLOCK_H
#define GPUCR_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t gpucr_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline uint64_t gpucr_now_ms(void)
{
	return gpucr_now_ns() / 1000000;
}

#endif
