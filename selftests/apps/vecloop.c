// SPDX-License-Identifier: GPL-2.0-only
/*
 * vecloop: a program that keeps GPUs busy through libdrm_amdgpu and raw KFD
 * ioctls, and finds out when one byte of what they hold is wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "app.h"
#include "kfd.h"
#include "work.h"

#define RING_BYTES	(64u << 10)

static int wait_event(struct sdma *s, unsigned int ms)
{
	return kfd_wait(s->priv, s->event_id, ms);
}

/* The rings are in GTT and in user memory by turns: both must come back. */
static int make_queue(struct kfd *kfd, struct work *w, unsigned int i)
{
	struct work_queue *q = &w->queues[i];
	struct kfd_gpu *gpu = &kfd->gpus[q->gpu];
	struct kfd_bo ring, ptrs, scratch;
	int ret;

	ret = kfd_alloc(kfd, gpu, i % 2 ? APP_USERPTR : APP_GTT, RING_BYTES, &ring);
	if (!ret)
		ret = kfd_alloc(kfd, gpu, i % 2 ? APP_GTT : APP_USERPTR, 4096, &ptrs);
	if (!ret)
		ret = kfd_alloc(kfd, gpu, APP_VRAM, w->opt->size, &scratch);
	if (!ret)
		ret = kfd_event(kfd, &q->sdma.event_id, &q->sdma.slot);
	if (ret)
		return ret;
	memset(ring.mem, 0, ring.size);
	memset(ptrs.mem, 0, ptrs.size);
	ret = kfd_queue(kfd, gpu, &ring, &ptrs, &q->sdma.doorbell);
	if (ret)
		return ret;
	q->scratch = scratch.mem;
	q->sdma.ring = ring.mem;
	q->sdma.bytes = ring.size;
	q->sdma.wptr = (volatile uint64_t *)((char *)ptrs.mem + 64);
	q->sdma.fence = (volatile uint32_t *)((char *)ptrs.mem + 128);
	q->sdma.wait = wait_event;
	q->sdma.priv = kfd;
	return 0;
}

static int make_bufs(struct kfd *kfd, struct work *w, unsigned int gpu)
{
	struct kfd_bo source, bo;
	unsigned int i;
	int ret;

	for (i = 0; i < w->nbufs; i++) {
		struct work_buf *b = &w->bufs[i];

		if (b->gpu != gpu)
			continue;
		ret = kfd_alloc(kfd, &kfd->gpus[gpu], b->heap, b->size, &bo);
		if (ret)
			return ret;
		b->mem = bo.mem;
	}
	work_describe(w, gpu);
	ret = kfd_alloc(kfd, &kfd->gpus[gpu], APP_GTT, work_source_bytes(w), &source);
	if (!ret)
		ret = work_fill(w, gpu, source.mem);
	/* A hole among the handles: a restore must put each BO under its old one. */
	return ret ? ret : kfd_free(kfd, &source);
}

/* Not printed as constant: what it holds, nobody has said. */
static int make_idle(struct kfd *kfd, unsigned int gpu, uint64_t size)
{
	struct kfd_bo bo;
	int ret;

	if (!size)
		return 0;
	ret = kfd_alloc(kfd, &kfd->gpus[gpu], APP_VRAM, size, &bo);
	if (!ret)
		printf("bo gpu %u idle heap vram va %llx size %llu\n", gpu,
		       (unsigned long long)(uintptr_t)bo.mem,
		       (unsigned long long)bo.size);
	return ret;
}

static int make_zeros(struct kfd *kfd, unsigned int gpu, uint64_t size)
{
	struct kfd_bo bo;
	int ret;

	if (!size)
		return 0;
	ret = kfd_alloc(kfd, &kfd->gpus[gpu], APP_VRAM, size, &bo);
	if (ret)
		return ret;
	/* VRAM is mapped to be read. */
	ret = mprotect(bo.mem, bo.size, PROT_READ | PROT_WRITE);
	if (!ret)
		memset(bo.mem, 0, bo.size);
	if (!ret)
		ret = mprotect(bo.mem, bo.size, PROT_READ);
	if (ret) {
		app_err("mprotect: %s", strerror(errno));
		return -errno;
	}
	printf("bo gpu %u zeros heap vram va %llx size %llu\n", gpu,
	       (unsigned long long)(uintptr_t)bo.mem,
	       (unsigned long long)bo.size);
	return 0;
}

int main(int argc, char **argv)
{
	static struct kfd kfd;
	static struct work work;
	struct app_opt opt;
	unsigned int i;
	int ret;

	app_parse(&opt, argc, argv);
	app_start(&opt);
	ret = kfd_open(&kfd, opt.gpus);
	if (ret)
		return ret;
	if (opt.kfd_last && kfd_move_last(&kfd))
		return APP_FAILED;
	if (work_init(&work, &opt)) {
		app_err("out of memory");
		return APP_FAILED;
	}
	for (i = 0; i < work.nqueues; i++) {
		if (make_queue(&kfd, &work, i))
			return APP_FAILED;
	}
	for (i = 0; i < opt.gpus; i++) {
		if (make_bufs(&kfd, &work, i) ||
		    make_idle(&kfd, i, opt.idle_vram) ||
		    make_zeros(&kfd, i, opt.zero_vram))
			return APP_FAILED;
	}
	app_extras(&opt);
	return work_run(&work);
}
