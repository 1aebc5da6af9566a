// SPDX-License-Identifier: GPL-2.0-only
/* See work.h. */
#include "work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_SIZE	(64u << 10)
/* Constant small buffers are checked in turn, all of them in so many steps. */
#define SMALL_ROUND	16

static unsigned int heaps_of(const struct app_opt *opt)
{
	return __builtin_popcount(opt->heaps);
}

/* Per heap the rotating ones and a constant one, then the small ones. */
static unsigned int bufs_per_gpu(const struct app_opt *opt)
{
	return heaps_of(opt) * (opt->bos + 1) + opt->small_bos;
}

static void plan(struct work_buf *b, const struct app_opt *opt)
{
	unsigned int heaps = opt->heaps, nth = b->index / (opt->bos + 1);

	if (nth >= heaps_of(opt)) {
		b->size = SMALL_SIZE;
		b->constant = true;
		b->heap = APP_VRAM;
		return;
	}
	b->size = opt->size;
	b->constant = b->index % (opt->bos + 1) == opt->bos;
	while (nth--)
		heaps &= heaps - 1;
	b->heap = heaps & -heaps;
}

int work_init(struct work *w, const struct app_opt *opt)
{
	unsigned int per_gpu = bufs_per_gpu(opt), i;
	uint64_t all = (uint64_t)per_gpu * opt->gpus;

	w->opt = opt;
	w->nbufs = all;
	w->nqueues = opt->queues * opt->gpus;
	w->bufs = calloc(w->nbufs, sizeof(*w->bufs));
	w->queues = calloc(w->nqueues, sizeof(*w->queues));
	if (!w->bufs || !w->queues ||
	    pattern_init(&w->pattern, opt->size > SMALL_SIZE ? opt->size : SMALL_SIZE,
			 all * opt->procs))
		return -ENOMEM;
	for (i = 0; i < w->nqueues; i++)
		w->queues[i].gpu = i / opt->queues;
	for (i = 0; i < w->nbufs; i++) {
		struct work_buf *b = &w->bufs[i];

		b->gpu = i / per_gpu;
		b->index = i % per_gpu;
		b->number = all * opt->proc + i;
		b->queue = &w->queues[b->gpu * opt->queues + b->index % opt->queues];
		plan(b, opt);
	}
	return 0;
}

void work_describe(const struct work *w, unsigned int gpu)
{
	static const char * const names[] = {
		[APP_VRAM] = "vram", [APP_GTT] = "gtt", [APP_USERPTR] = "userptr",
		[APP_SVM] = "svm",
	};
	unsigned int i;

	for (i = 0; i < w->nbufs; i++) {
		const struct work_buf *b = &w->bufs[i];

		if (b->gpu != gpu || b->index >= bufs_per_gpu(w->opt) - w->opt->small_bos)
			continue;
		printf("bo gpu %u bo %u heap %s va %llx size %llu %s\n", b->gpu, b->index,
		       names[b->heap], (unsigned long long)(uintptr_t)b->mem,
		       (unsigned long long)b->size, b->constant ? "constant" : "rotating");
	}
}

uint64_t work_source_bytes(const struct work *w)
{
	return (pattern_bytes(&w->pattern) + 4095) & ~4095ULL;
}

static int finish(struct work *w, unsigned int gpu, bool all)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < w->nqueues && !ret; i++) {
		if (all || w->queues[i].gpu == gpu)
			ret = sdma_kick(&w->queues[i].sdma);
	}
	for (i = 0; i < w->nqueues && !ret; i++) {
		if (!all && w->queues[i].gpu != gpu)
			continue;
		ret = sdma_wait(&w->queues[i].sdma);
		if (ret)
			app_err("queue %u of gpu %u: fence %u, expected %u: %s",
				i % w->opt->queues, w->queues[i].gpu,
				*w->queues[i].sdma.fence, w->queues[i].sdma.seq,
				strerror(-ret));
	}
	return ret;
}

int work_fill(struct work *w, unsigned int gpu, volatile void *source)
{
	unsigned int i;
	int ret = 0;

	memcpy((void *)source, w->pattern.word, pattern_bytes(&w->pattern));
	for (i = 0; i < w->nbufs && !ret; i++) {
		struct work_buf *b = &w->bufs[i];

		if (b->gpu == gpu)
			ret = sdma_copy(&b->queue->sdma, b->mem,
					(volatile uint64_t *)source + b->number, b->size);
	}
	return ret ? ret : finish(w, gpu, false);
}

/* Out to the queue's scratch and back, moved by the stride. */
static int rotate(struct work_buf *b)
{
	volatile char *scratch = b->queue->scratch, *mem = b->mem;
	uint64_t by = pattern_stride(b->size);
	int ret;

	ret = sdma_copy(&b->queue->sdma, scratch, mem, b->size);
	if (!ret)
		ret = sdma_copy(&b->queue->sdma, mem, scratch + by, b->size - by);
	if (!ret && by)
		ret = sdma_copy(&b->queue->sdma, mem + b->size - by, scratch, by);
	return ret;
}

static bool due(const struct work_buf *b, uint64_t step)
{
	return b->size != SMALL_SIZE || !b->constant ||
	       b->index % SMALL_ROUND == step % SMALL_ROUND;
}

static int check(struct work *w, uint64_t step, uint64_t *digest)
{
	unsigned int i;
	int64_t at;

	for (i = 0; i < w->nbufs; i++) {
		const struct work_buf *b = &w->bufs[i];
		uint64_t own = 0;

		if (!due(b, step))
			continue;
		at = pattern_check(&w->pattern, b->mem, b->size, b->number,
				   b->constant ? 0 : pattern_rotation(b->size, step), &own);
		if (at >= 0) {
			printf("mismatch gpu %u bo %u offset %lld\n", b->gpu, b->index,
			       (long long)at);
			return -EILSEQ;
		}
		*digest = (*digest ^ own) * 0x100000001b3;
		if (w->opt->digest)
			printf("bo gpu %u bo %u digest %016llx\n", b->gpu, b->index,
			       (unsigned long long)own);
	}
	return 0;
}

static int do_step(struct work *w, uint64_t step)
{
	uint64_t digest = step;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < w->nbufs && !ret; i++) {
		if (!w->bufs[i].constant)
			ret = rotate(&w->bufs[i]);
	}
	if (!ret)
		ret = finish(w, 0, true);
	if (!ret)
		ret = check(w, step, &digest);
	if (!ret)
		app_step(step, digest);
	return ret;
}

int work_run(struct work *w)
{
	const struct app_opt *opt = w->opt;
	uint64_t step;
	int ret;

	for (step = 1; !opt->steps || step <= opt->steps; step++) {
		if (do_step(w, step))
			return APP_FAILED;
		if (step == 1)
			app_ready(opt);
		ret = app_children(opt, false);
		if (ret)
			return ret;
		app_sleep(opt->delay_ms);
	}
	return app_children(opt, true);
}
