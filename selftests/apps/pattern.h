/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pattern: every 64-bit word of every BO has a value of its own, and each
 * step rotates each BO, so that content depends on position, BO and step. What
 * a step writes is made from what was in the BO before: a word once lost stays
 * lost, and is found.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern {
	uint64_t *word;		/* the table, in ordinary memory */
	uint64_t words;
};

/* For BOs of up to size bytes, numbered 0 to bos - 1. -ENOMEM. */
int pattern_init(struct pattern *p, uint64_t size, uint64_t bos);
/* Bytes that the table has. */
uint64_t pattern_bytes(const struct pattern *p);
/* Bytes by which a BO of size bytes is rotated after step steps. */
uint64_t pattern_rotation(uint64_t size, uint64_t step);
/* Bytes by which each step rotates it. */
uint64_t pattern_stride(uint64_t size);
/*
 * Offset of the first wrong byte of BO number bo, or -1 where it holds the
 * pattern; *digest is carried on over its content.
 */
int64_t pattern_check(const struct pattern *p, const volatile void *mem, uint64_t size,
		      uint64_t bo, uint64_t rotation, uint64_t *digest);

#endif
