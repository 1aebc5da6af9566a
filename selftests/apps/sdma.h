/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A user queue of SDMA packets (gfx9), however it was created. Addresses are
 * the same for CPU and GPU.
 */
#ifndef SDMA_H
#define SDMA_H

#include <stdint.h>

struct sdma {
	uint32_t *ring;
	uint64_t bytes;			/* of the ring, a power of two */
	volatile uint64_t *wptr;	/* written by us, bytes, never wraps */
	volatile uint64_t *doorbell;
	volatile uint32_t *fence;	/* written by the GPU: sequence number */
	volatile uint64_t *slot;	/* event's mailbox, written by the GPU */
	uint32_t event_id;
	/* Wait for the event. 1: signaled, 0: ms have passed, or -errno. */
	int (*wait)(struct sdma *s, unsigned int ms);
	void *priv;			/* for wait */

	uint64_t pos;			/* bytes written into the ring, ever */
	uint64_t done;			/* of them executed, as far as we know */
	uint32_t seq;			/* last fence asked for */
	uint64_t copied;		/* bytes of all copies asked for */
};

/* Queue a copy. Waits where the ring is full. Returns 0 or -errno. */
int sdma_copy(struct sdma *s, volatile void *dst, const volatile void *src, uint64_t len);
/* Queue fence, event and doorbell. Returns 0 or -errno. */
int sdma_kick(struct sdma *s);
/* Wait until all that was kicked has been executed. -ETIMEDOUT: never was. */
int sdma_wait(struct sdma *s);

#endif
