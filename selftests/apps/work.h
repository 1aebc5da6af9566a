/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The work of the GPU programs: buffers that hold the pattern, queues that
 * rotate it, and the check after each step. Who allocated what is not known
 * here.
 */
#ifndef WORK_H
#define WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "app.h"
#include "pattern.h"
#include "sdma.h"

struct work_queue {
	struct sdma sdma;
	unsigned int gpu;
	volatile void *scratch;	/* VRAM, size of a rotating buffer */
};

struct work_buf {
	volatile void *mem;	/* what the CPU reads; also the GPU's address */
	uint64_t size;
	uint64_t number;	/* of the pattern; unique */
	unsigned int gpu;
	unsigned int index;	/* in its GPU */
	enum app_heap heap;
	bool constant;
	struct work_queue *queue;
};

struct work {
	const struct app_opt *opt;
	struct pattern pattern;
	struct work_buf *bufs;
	unsigned int nbufs;
	struct work_queue *queues;
	unsigned int nqueues;
};

/*
 * Plan buffers and queues; the caller then gives each buffer its memory, each
 * queue its ring. -ENOMEM.
 */
int work_init(struct work *w, const struct app_opt *opt);
/* Print the buffers, but for the many small ones. */
void work_describe(const struct work *w, unsigned int gpu);
/* Bytes of the pattern's table, which the source of work_fill() must hold. */
uint64_t work_source_bytes(const struct work *w);
/* Fill a GPU's buffers by SDMA from source, memory that it can read. */
int work_fill(struct work *w, unsigned int gpu, volatile void *source);
/* All steps. Returns an APP_* exit code. */
int work_run(struct work *w);

#endif
