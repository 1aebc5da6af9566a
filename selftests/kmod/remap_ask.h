/* SPDX-License-Identifier: GPL-2.0-only */
/* Questions about offsets, as wrong as a test likes. */
#ifndef GPUCR_REMAP_ASK_H
#define GPUCR_REMAP_ASK_H

#include "raw.h"

/*
 * One remap-set, remap-resolve or remap-get; what is 0 or -1 is left out, and
 * what is ZERO is sent as 0.
 */
#define ZERO	UINT32_MAX

struct ask {
	uint8_t cmd;
	uint64_t id;
	int fd, holder;
	uint32_t image_pid, gpu;
	uint64_t old, size, new;
};

/* Returns a positive errno or 0. */
int ask(struct raw *r, struct raw_ans *a, const struct ask *k);
struct ask ask_of(uint8_t cmd, uint64_t id);
/* Entries of a task, 0: of all, in the answer; (size_t)-1: refused. */
size_t ask_entries(struct raw *r, struct raw_ans *a, uint64_t id,
		   uint32_t image_pid);
/* ZERO's meaning. */
uint64_t or_zero(uint64_t v);

#endif
