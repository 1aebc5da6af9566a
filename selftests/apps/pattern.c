// SPDX-License-Identifier: GPL-2.0-only
/* See pattern.h. BO number b at rotation r holds word[b + (i + r) mod n] at word i. */
#include "pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Odd, and one more than a page's words: content moves against pages too. */
#define STRIDE_WORDS	513

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

int pattern_init(struct pattern *p, uint64_t size, uint64_t bos)
{
	uint64_t i;

	p->words = size / 8 + bos;
	p->word = malloc(p->words * 8);
	if (!p->word)
		return -ENOMEM;
	for (i = 0; i < p->words; i++)
		p->word[i] = mix(i);
	return 0;
}

uint64_t pattern_bytes(const struct pattern *p)
{
	return p->words * 8;
}

uint64_t pattern_stride(uint64_t size)
{
	return STRIDE_WORDS % (size / 8) * 8;
}

uint64_t pattern_rotation(uint64_t size, uint64_t step)
{
	/* The remainder first: steps may be many. */
	return step % (size / 8) * STRIDE_WORDS % (size / 8) * 8;
}

static int64_t check_run(const uint64_t *want, const uint64_t *have, uint64_t words,
			 uint64_t *digest)
{
	uint64_t h = *digest, i, wrong;

	for (i = 0; i < words; i++) {
		wrong = have[i] ^ want[i];
		if (wrong)
			return i * 8 + __builtin_ctzll(wrong) / 8;
		h = (h ^ want[i]) * 0x100000001b3;
	}
	*digest = h ^ h >> 29;
	return -1;
}

int64_t pattern_check(const struct pattern *p, const volatile void *mem, uint64_t size,
		      uint64_t bo, uint64_t rotation, uint64_t *digest)
{
	/* Nobody writes it while we look: the step's fence has been seen. */
	const uint64_t *have = (const uint64_t *)mem;
	const uint64_t *want = p->word + bo;
	uint64_t head = (size - rotation) / 8;
	int64_t at;

	at = check_run(want + rotation / 8, have, head, digest);
	if (at < 0 && rotation) {
		at = check_run(want, have + head, rotation / 8, digest);
		if (at >= 0)
			at += head * 8;
	}
	return at;
}
