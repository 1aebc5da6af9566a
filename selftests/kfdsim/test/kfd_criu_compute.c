// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute queues of the simulated KFD, stopped in mid-stream: a PM4 queue in
 * the middle of a copy in an indirect buffer and an AQL queue in a PM4 buffer
 * that waits go on at the same packet, in the same process and in another.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "../../ktap.h"
#include "kfd_pm4.h"

#define BIG	(64u << 20)
#define COPY	(BIG - PAGE)
#define MAX_BOS	16
#define RING	PAGE
#define STACK_BYTES_MAX 65536

/* Offsets in the private data of a queue. */
#define QUEUE_RECORD	120
#define QUEUE_CTL_STACK	108
#define QUEUE_MQD_SIZE	112
#define MQD_SIZE	2048
#define MQD_IB_DEPTH	40

/* All that a queue needs, and what its packets leave behind. */
struct load {
	struct gpu g;
	struct buf src, dst, mem;
	struct cqueue pm4, aql;
	uint32_t *words;	/* [0..3] PM4, [8] AQL waits for it, [9] AQL */
	struct signal *done;
};

struct image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket dev;
	struct kfd_criu_bo_bucket bo[MAX_BOS];
	uint8_t priv[16384 + 2 * STACK_BYTES_MAX];
	uint64_t content[MAX_BOS];	/* offset of it below */
	uint64_t used;
	struct load load;
	uint64_t bell[2];
	bool ok;
	uint8_t data[];
};

#define IMAGE_SIZE	(sizeof(struct image) + 3ull * BIG)

static struct image *img;

static void fill_load(struct load *l)
{
	struct stream ib = { .dw = l->words + 1024, .size = 1024 };
	uint64_t *src = l->src.ptr;
	size_t i;

	for (i = 0; i < BIG / 8; i++)
		src[i] = (i + 1) * 0x9e3779b97f4a7c15ull;
	signal_init(l->done, 1);
	memset(l->words, 0, 64);
	/* PM4: a buffer with a copy between two writes, and a write after it */
	pm4_write(&ib, &l->words[0], 1);
	pm4_copy(&ib, l->dst.ptr, l->src.ptr, COPY);
	pm4_write(&ib, &l->words[1], 2);
	pm4_ib(&l->pm4.s, ib.dw, (uint32_t)ib.put, false);
	pm4_write(&l->pm4.s, &l->words[2], 3);
	/* AQL: a buffer that waits for words[8] */
	ib = (struct stream){ .dw = l->words + 2048, .size = 1024 };
	pm4_nop(&ib, 3);
	pm4_wait(&ib, &l->words[8], 3, 1, ~0u);
	pm4_write(&ib, &l->words[9], 4);
	aql_pm4(&l->aql, ib.dw, (uint32_t)ib.put, l->done);
}

static bool load_make(struct load *l)
{
	if (!gpu_open(&l->g, true))
		return false;
	CHECK(buf_make(&l->g, &l->src, GTT, BIG), 0);
	CHECK(buf_make(&l->g, &l->dst, VRAM, BIG), 0);
	CHECK(buf_make(&l->g, &l->mem, GTT, 65536), 0);
	CHECK(cqueue_make(&l->g, &l->pm4, KFD_IOC_QUEUE_TYPE_COMPUTE, RING), 0);
	CHECK(cqueue_make(&l->g, &l->aql, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, RING), 0);
	l->done = l->mem.ptr;
	l->words = (uint32_t *)l->mem.ptr + 1024;
	fill_load(l);
	return true;
}

static bool stands(uint32_t qid, long progress)
{
	int evicted = 0;

	CHECK(queue_progress(getpid(), qid, &evicted, NULL), progress);
	CHECK(evicted, 1);
	sleep_ms(100);
	CHECK(queue_progress(getpid(), qid, NULL, NULL), progress);
	return true;
}

/* Start both, stop them when the copy has begun. */
static bool pause_amid(struct load *l, struct kfd_ioctl_criu_args *args)
{
	volatile uint64_t *dst = l->dst.ptr;
	uint64_t *src = l->src.ptr;
	size_t last = COPY / 8 - 1;

	cqueue_ring(&l->aql);
	while (queue_progress(getpid(), l->aql.id, NULL, NULL) < 1)
		sleep_ms(1);
	cqueue_ring(&l->pm4);
	while (dst[1] != src[1])
		;
	CHECK(criu_op(&l->g, KFD_CRIU_OP_PROCESS_INFO, args), 0);
	CHECK(dst[1] == src[1], 1);
	CHECK(dst[last] == 0xa5a5a5a5a5a5a5a5ull, 1);
	CHECK(l->words[0], 1);
	CHECK(l->words[1], 0);
	/* the packet before the copy; the one before the wait */
	return stands(l->pm4.id, 1) && stands(l->aql.id, 1);
}

/* What was behind the stop is not done again; the rest is done. */
static bool goes_on(struct load *l, int pid, uint32_t resume)
{
	uint64_t *dst = l->dst.ptr, *src = l->src.ptr;

	l->words[0] = 0x55;
	dst[1] = 0x66;
	CHECK(simple_op(&l->g, resume, pid), 0);
	CHECK(wait_value(&l->words[3], 5), 1);
	CHECK(l->words[0], 0x55);
	CHECK(l->words[1], 2);
	CHECK(l->words[2], 3);
	CHECK(dst[1], 0x66);
	CHECK(memcmp(dst + 2, src + 2, COPY - 16), 0);
	CHECK(dst[COPY / 8] == 0xa5a5a5a5a5a5a5a5ull, 1);
	CHECK(queue_progress_at(l->pm4.id, 6), 6);
	/* the other still waits */
	CHECK(l->words[9], 0);
	l->words[8] = 1;
	CHECK(signal_wait(l->done, 0), 1);
	CHECK(l->words[9], 4);
	CHECK(queue_progress_at(l->aql.id, 4), 4);
	return true;
}

/* Counters and doorbells go on from where they were. */
static bool rings_again(struct load *l)
{
	signal_init(l->done, 1);
	pm4_write(&l->pm4.s, &l->words[0], 77);
	cqueue_ring(&l->pm4);
	CHECK(wait_value(&l->words[0], 77), 1);
	aql_barrier(&l->aql, false, NULL, 0, l->done);
	cqueue_ring(&l->aql);
	CHECK(signal_wait(l->done, 0), 1);
	CHECK(wait_value(l->aql.ptrs.ptr, 2), 1);
	return true;
}

/* Rung while it stands. */
static void ring_late(struct load *l)
{
	pm4_write(&l->pm4.s, &l->words[3], 5);
	cqueue_ring(&l->pm4);
}

static bool pause_mid_stream(void)
{
	struct kfd_ioctl_criu_args args = { 0 };
	struct load l;

	if (!load_make(&l) || !pause_amid(&l, &args))
		return false;
	ring_late(&l);
	return goes_on(&l, 0, KFD_CRIU_OP_UNPAUSE) && rings_again(&l);
}

static bool save_image(struct gpu *g)
{
	uint32_t i;

	img->args.devices = (uintptr_t)&img->dev;
	img->args.bos = (uintptr_t)img->bo;
	img->args.priv_data = (uintptr_t)img->priv;
	CHECK(img->args.num_bos <= MAX_BOS, 1);
	CHECK(img->args.priv_data_size <= sizeof(img->priv), 1);
	CHECK(criu_op(g, KFD_CRIU_OP_CHECKPOINT, &img->args), 0);
	for (i = 0; i < img->args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bo = &img->bo[i];

		if (bo->alloc_flags & USERPTR)
			continue;
		img->content[i] = img->used;
		memcpy(img->data + img->used, (void *)(uintptr_t)bo->addr, bo->size);
		img->used += bo->size;
	}
	return true;
}

static bool dump(void)
{
	struct load *l = &img->load;

	if (!load_make(l) || !pause_amid(l, &img->args))
		return false;
	ring_late(l);
	img->bell[0] = (uint64_t)((char *)l->pm4.doorbell - (char *)l->pm4.doorbells);
	img->bell[1] = (uint64_t)((char *)l->aql.doorbell - (char *)l->aql.doorbells);
	img->ok = save_image(&l->g);
	return img->ok;
}

/* User memory of the save areas must be there before the GPU's BOs are. */
static int do_restore(struct gpu *g)
{
	struct kfd_ioctl_criu_args args = img->args;
	uint32_t i;

	for (i = 0; i < args.num_bos; i++)
		if (img->bo[i].alloc_flags & USERPTR &&
		    mmap((void *)(uintptr_t)img->bo[i].addr, img->bo[i].size,
			 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
			 MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
			return -errno;
	if (!gpu_open(g, false))
		return -ENODEV;
	img->dev.drm_fd = (uint32_t)g->drm;
	return criu_op(g, KFD_CRIU_OP_RESTORE, &args);
}

static bool fill_bos(struct gpu *g)
{
	uint32_t i;
	void *p;

	for (i = 0; i < img->args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bo = &img->bo[i];
		void *at = (void *)(uintptr_t)bo->addr;

		if (bo->alloc_flags & USERPTR)
			continue;
		p = mmap(at, bo->size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED_NOREPLACE, g->drm,
			 (off_t)bo->restored_offset);
		CHECK(p == at, 1);
		/* nothing survived */
		CHECK(*(uint8_t *)p, bo->alloc_flags & GTT ? 0 : 0xa5);
		memcpy(p, img->data + img->content[i], bo->size);
		close((int)bo->dmabuf_fd);
	}
	return true;
}

static bool restore_and_run(void)
{
	struct load *l = &img->load;
	uint64_t base;

	CHECK(do_restore(&l->g), 0);
	if (!fill_bos(&l->g) || !stands(l->pm4.id, 1) || !stands(l->aql.id, 1))
		return false;
	if (!goes_on(l, getpid(), KFD_CRIU_OP_RESUME))
		return false;
	base = 3ull << 62 | (uint64_t)l->g.id << 46;
	CHECK(cqueue_map_doorbell(&l->g, &l->pm4, base | img->bell[0]), 0);
	CHECK(cqueue_map_doorbell(&l->g, &l->aql, base | img->bell[1]), 0);
	return rings_again(l);
}

/* One byte of the first queue's record spoiled: RESTORE says no. */
static uint8_t *spoiled;

static bool restore_refused(void)
{
	struct gpu g;

	*spoiled ^= 1;
	CHECK(do_restore(&g), -EINVAL);
	return true;
}

static bool refuses(uint32_t at)
{
	uint32_t bo_size = personality_is("6.1") ? 80 : 272;
	bool ok;

	spoiled = img->priv + 16 + img->args.num_bos * bo_size + at;
	ok = in_child(restore_refused);
	*spoiled ^= 1;
	if (!ok)
		printf("# at %u\n", at);
	return ok;
}

static bool mismatches(void)
{
	if (!img->ok)
		return false;
	return refuses(QUEUE_MQD_SIZE) && refuses(QUEUE_CTL_STACK + 1) &&
	       refuses(QUEUE_RECORD) && refuses(QUEUE_RECORD + MQD_IB_DEPTH + 1) &&
	       refuses(QUEUE_RECORD + MQD_SIZE) &&
	       refuses(QUEUE_RECORD + MQD_SIZE + 0x7000);
}

static bool checkpoint(void)
{
	unsigned int i;

	if (!in_child(dump) || !img->ok)
		return false;
	for (i = 0; i < 200 && stat_value("bos"); i++)
		sleep_ms(10);
	CHECK(stat_value("bos"), 0);
	return true;
}

int main(void)
{
	img = mmap(NULL, IMAGE_SIZE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (img == MAP_FAILED)
		return 1;
	ktap_plan(4);
	ktap_ok(in_child(pause_mid_stream), "pause_mid_stream");
	ktap_ok(checkpoint(), "checkpoint");
	ktap_ok(mismatches(), "mismatches");
	ktap_ok(img->ok && in_child(restore_and_run), "restore_and_run");
	return ktap_exit();
}
