// SPDX-License-Identifier: GPL-2.0-only
/* See sdma.h. */
#include "sdma.h"

#include <errno.h>

#define OP_NOP		0
#define OP_COPY		1
#define OP_FENCE	5
#define OP_TRAP		6

#define COPY_DWORDS	7
#define KICK_DWORDS	(4 + 4 + 2)
/* gfx9's COUNT has 22 bits; a round figure below. */
#define COPY_MAX	(1u << 20)

/* One wait on the event, and how many may pass without progress: a minute. */
#define WAIT_MS		500
#define WAIT_TRIES	120

static uint32_t lo(const volatile void *p)
{
	return (uint32_t)(uintptr_t)p;
}

static uint32_t hi(const volatile void *p)
{
	return (uint32_t)((uintptr_t)p >> 32);
}

static void put(struct sdma *s, uint32_t dw)
{
	s->ring[s->pos % s->bytes / 4] = dw;
	s->pos += 4;
}

/*
 * Room for a packet in one piece, and for a kick behind it. Half of the ring
 * is never in use, so that what the GPU may still read is never overwritten.
 */
static int reserve(struct sdma *s, unsigned int dwords)
{
	uint64_t want = (dwords + KICK_DWORDS) * 4;
	uint64_t tail = s->bytes - s->pos % s->bytes;
	int ret;

	if (tail < want) {
		/* One NOP over the rest: its count is of the dwords behind its first. */
		put(s, OP_NOP | (uint32_t)(tail / 4 - 1) << 16);
		s->pos += tail - 4;
	}
	if (s->pos + want - s->done <= s->bytes / 2)
		return 0;
	ret = sdma_kick(s);
	return ret ? ret : sdma_wait(s);
}

static int copy_one(struct sdma *s, uint64_t dst, uint64_t src, uint32_t len)
{
	int ret = reserve(s, COPY_DWORDS);

	if (ret)
		return ret;
	put(s, OP_COPY);
	put(s, len - 1);
	put(s, 0);
	put(s, (uint32_t)src);
	put(s, src >> 32);
	put(s, (uint32_t)dst);
	put(s, dst >> 32);
	s->copied += len;
	return 0;
}

int sdma_copy(struct sdma *s, volatile void *dst, const volatile void *src, uint64_t len)
{
	uint64_t at;
	int ret;

	for (at = 0; at < len; at += COPY_MAX) {
		ret = copy_one(s, (uintptr_t)dst + at, (uintptr_t)src + at,
			       len - at < COPY_MAX ? len - at : COPY_MAX);
		if (ret)
			return ret;
	}
	return 0;
}

/* reserve() has left room for it; never called without one before, or with an empty ring. */
int sdma_kick(struct sdma *s)
{
	uint64_t tail = s->bytes - s->pos % s->bytes;

	if (tail < KICK_DWORDS * 4) {
		put(s, OP_NOP | (uint32_t)(tail / 4 - 1) << 16);
		s->pos += tail - 4;
	}
	s->seq++;
	put(s, OP_FENCE);
	put(s, lo(s->fence));
	put(s, hi(s->fence));
	put(s, s->seq);
	/* The mailbox first: KFD ignores an event whose slot is empty. */
	put(s, OP_FENCE);
	put(s, lo(s->slot));
	put(s, hi(s->slot));
	put(s, s->event_id);
	put(s, OP_TRAP);
	put(s, s->event_id);
	__atomic_store_n(s->wptr, s->pos, __ATOMIC_RELEASE);
	__sync_synchronize();
	*s->doorbell = s->pos;
	return 0;
}

/* At least one wait on the event, or it would be found signaled for ever after. */
int sdma_wait(struct sdma *s)
{
	unsigned int tries = 0;
	int ret;

	for (;;) {
		ret = s->wait(s, WAIT_MS);
		if (ret < 0 && ret != -EINTR)
			return ret;
		if (__atomic_load_n(s->fence, __ATOMIC_ACQUIRE) == s->seq)
			break;
		/* Counted, not timed: a clock may jump over a restore. */
		if (ret != -EINTR && ++tries == WAIT_TRIES)
			return -ETIMEDOUT;
	}
	s->done = s->pos;
	return 0;
}
