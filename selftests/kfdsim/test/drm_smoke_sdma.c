// SPDX-License-Identifier: GPL-2.0-only
/* Submission and packets. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <xf86drm.h>
#include "gpu.h"

#define LO(a)	((uint32_t)(a))
#define HI(a)	((uint32_t)((uint64_t)(a) >> 32))

static bool test_copy(struct gpu *g)
{
	const uint64_t size = 4 * MIB;
	struct buf *v = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, size);
	struct buf *t = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, size);
	struct buf *u = buf_user(g, size);
	bool ok;

	CHECK(v && t && u);
	pattern_fill(u->cpu, size, 1);
	CHECK(!gpu_copy(g, v->va, u->va, size - 1));
	CHECK(pattern_check(v->cpu, size, 1) == -1);
	CHECK(!gpu_copy(g, t->va, v->va, size - 1));
	memset(u->cpu, 0, size);
	CHECK(!gpu_copy(g, u->va, t->va, size - 1));
	if (g->canary)
		u->cpu[size / 2] ^= 1;
	ok = pattern_check(u->cpu, size, 1) == -1;
	buf_free(g, u);
	buf_free(g, t);
	buf_free(g, v);
	CHECK(ok);
	return true;
}

/* Neither end on a page, nor even on a word. */
static bool test_copy_odd(struct gpu *g)
{
	const uint64_t size = 64 * PAGE, at = 4099, to = 777, n = 50001;
	struct buf *v = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, size);
	struct buf *u = buf_user(g, size);

	CHECK(v && u);
	pattern_fill(u->cpu, size, 2);
	memset(v->cpu, 0xee, size);
	CHECK(!gpu_copy(g, v->va + to, u->va + at, n - 1));
	CHECK(!memcmp(v->cpu + to, u->cpu + at, n));
	CHECK(all_bytes(v->cpu, to, 0xee));
	CHECK(all_bytes(v->cpu + to + n, size - to - n, 0xee));
	buf_free(g, u);
	buf_free(g, v);
	return true;
}

/* Reading memory that nobody has written gives poison, and makes no pages. */
static bool test_copy_untouched(struct gpu *g)
{
	struct buf *v = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, MIB);
	struct buf *u = buf_user(g, MIB);

	CHECK(v && u);
	CHECK(!gpu_copy(g, u->va, v->va, MIB - 1));
	CHECK(all_bytes(u->cpu, MIB, POISON));
	buf_free(g, u);
	buf_free(g, v);
	return true;
}

static bool test_packets(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	uint64_t a, at[2] = { 0, 0 };
	uint32_t *w;

	CHECK(b);
	a = b->va;
	w = (uint32_t *)b->cpu;
	memset(b->cpu, 0, PAGE);
	w[16] = 40;
	uint32_t dw[] = {
		SDMA_WRITE, LO(a), HI(a), 1, 0x11111111, 0x22222222,
		SDMA_FENCE, LO(a + 8), HI(a + 8), 0x33333333,
		SDMA_FILL_DW, LO(a + 32), HI(a + 32), 0x44444444, 15,
		SDMA_ADD64, LO(a + 64), HI(a + 64), 2, 0, 0, 0, 0,
		SDMA_POLL_EQ, LO(a + 64), HI(a + 64), 42, 0xffffffff, 0xfff0004,
		SDMA_TIMESTAMP, LO(a + 128), HI(a + 128),
		1U << 16, 0xffffffff,		/* NOP that skips one dword */
		SDMA_TIMESTAMP, LO(a + 136), HI(a + 136),
	};
	CHECK(!gpu_run(g, dw, sizeof(dw) / 4, NULL));
	CHECK(w[0] == 0x11111111 && w[1] == 0x22222222 && w[2] == 0x33333333);
	CHECK(all_bytes(w + 8, 16, 0x44) && w[12] == 0 && w[7] == 0);
	CHECK(w[16] == 42 && w[17] == 0);
	memcpy(at, b->cpu + 128, sizeof(at));
	CHECK(at[0] && at[1] >= at[0]);
	buf_free(g, b);
	return true;
}

static void *set_later(void *word)
{
	struct timespec nap = { 0, 50 * 1000 * 1000 };

	nanosleep(&nap, NULL);
	__atomic_store_n((uint32_t *)word, 7, __ATOMIC_SEQ_CST);
	return NULL;
}

static bool test_poll_waits(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	pthread_t t;

	CHECK(b);
	memset(b->cpu, 0, PAGE);
	uint32_t dw[] = {
		SDMA_POLL_EQ, LO(b->va), HI(b->va), 7, 0xffffffff, 0xfff0004,
		SDMA_FENCE, LO(b->va + 4), HI(b->va + 4), 1,
	};
	CHECK(!pthread_create(&t, NULL, set_later, b->cpu));
	CHECK(!gpu_run(g, dw, sizeof(dw) / 4, NULL));
	pthread_join(t, NULL);
	CHECK(((uint32_t *)b->cpu)[1] == 1);
	buf_free(g, b);
	return true;
}

static bool test_broadcast(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 96 * PAGE);
	uint64_t n = 32 * PAGE, d1 = b->va + n, d2 = b->va + 2 * n;

	pattern_fill(b->cpu, n, 3);
	uint32_t dw[] = {
		SDMA_COPY | 1U << 27, n - 1, 0, LO(b->va), HI(b->va),
		LO(d1), HI(d1), LO(d2), HI(d2),
	};
	CHECK(!gpu_run(g, dw, 9, NULL));
	CHECK(!memcmp(b->cpu + n, b->cpu, n));
	CHECK(!memcmp(b->cpu + 2 * n, b->cpu, n));
	buf_free(g, b);
	return true;
}

/* The submission goes through, the wait tells, the context is done for. */
static bool bad_packets(struct gpu *g, const uint32_t *dw, unsigned int n, int error)
{
	bool waited;
	int r = gpu_run(g, dw, n, &waited);

	if (r != error || !waited)
		return fail("got %d, waited %d", r, waited);
	CHECK(gpu_run(g, dw, n, &waited) == -ECANCELED && !waited);
	return gpu_new_ctx(g);
}

static bool test_bad_packet(struct gpu *g)
{
	const uint32_t unknown[] = { 0x00000077 };
	const uint32_t tiled[] = { SDMA_COPY | 1 << 8, 0, 0, 0, 0, 0, 0 };
	const uint32_t cut[] = { SDMA_NOP, SDMA_NOP, SDMA_NOP, SDMA_NOP, SDMA_NOP,
				 SDMA_NOP, SDMA_NOP, SDMA_COPY };

	CHECK(bad_packets(g, unknown, 1, -EINVAL));
	CHECK(bad_packets(g, tiled, 7, -EINVAL));
	CHECK(bad_packets(g, cut, 8, -EINVAL));
	return true;
}

static bool test_fault(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 2 * PAGE);
	uint64_t none = b->va + 256 * MIB, ro = b->va + 128 * MIB;
	const uint32_t out[] = {
		SDMA_COPY, PAGE - 1, 0, LO(b->va), HI(b->va), LO(none), HI(none),
	};
	const uint32_t in[] = {
		SDMA_COPY, PAGE - 1, 0, LO(none), HI(none), LO(b->va), HI(b->va),
	};
	const uint32_t wr[] = { SDMA_FENCE, LO(ro), HI(ro), 1 };

	CHECK(bad_packets(g, out, 7, -EFAULT));
	CHECK(bad_packets(g, in, 7, -EFAULT));
	CHECK(!amdgpu_bo_va_op_raw(g->dev, b->bo, 0, PAGE, ro,
				   AMDGPU_VM_PAGE_READABLE, AMDGPU_VA_OP_MAP));
	CHECK(!gpu_copy(g, b->va + PAGE, ro, PAGE - 1));
	CHECK(bad_packets(g, wr, 4, -EFAULT));
	/* Both mappings go with the BO. */
	buf_free(g, b);
	return true;
}

/* Unmapped user memory is a fault, not a copy of something else. */
static bool test_userptr_gone(struct gpu *g)
{
	struct buf *u = buf_user(g, 2 * PAGE);
	struct buf *v = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 2 * PAGE);

	CHECK(u && v);
	uint32_t dw[] = {
		SDMA_COPY, 2 * PAGE - 1, 0, LO(u->va), HI(u->va), LO(v->va), HI(v->va),
	};
	CHECK(!gpu_run(g, dw, 7, NULL));
	munmap(u->cpu + PAGE, PAGE);
	CHECK(bad_packets(g, dw, 7, -EFAULT));
	buf_free(g, u);
	buf_free(g, v);
	return true;
}

/* COUNT is length - 1; a client that writes the length copies a byte more. */
static bool test_count_overrun(struct gpu *g)
{
	struct buf *a = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 4 * PAGE);
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 4 * PAGE);

	CHECK(a && b);
	pattern_fill(a->cpu, 4 * PAGE, 4);
	memset(b->cpu, 0, 4 * PAGE);
	/* Past the end of both: dropped. */
	CHECK(!gpu_copy(g, b->va, a->va, 4 * PAGE));
	CHECK(pattern_check(b->cpu, 4 * PAGE, 4) == -1);
	/* Within: written, as hardware would. */
	memset(b->cpu, 0, 4 * PAGE);
	CHECK(!gpu_copy(g, b->va, a->va, PAGE));
	CHECK(!memcmp(b->cpu, a->cpu, PAGE + 1) && b->cpu[PAGE + 1] == 0);
	buf_free(g, a);
	buf_free(g, b);
	return true;
}

static bool set_strict(bool on)
{
	FILE *f = fopen("/sys/module/kfdsim/parameters/strict_count", "w");
	bool ok = f && fprintf(f, "%d", on) > 0;

	return f && !fclose(f) && ok;
}

/* In strict mode such a client is caught. */
static bool test_count_strict(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 4 * PAGE);
	const uint64_t to = b->va + PAGE;
	const uint32_t dw[] = {
		SDMA_COPY, PAGE, 0, LO(b->va), HI(b->va), LO(to), HI(to),
	};
	bool caught, good;

	CHECK(set_strict(true));
	caught = bad_packets(g, dw, 7, -EFAULT);
	good = !gpu_copy(g, to, b->va, PAGE - 1);
	CHECK(set_strict(false));
	CHECK(caught && good);
	buf_free(g, b);
	return true;
}

static bool test_other_engines(struct gpu *g)
{
	static const uint32_t types[] = { AMDGPU_HW_IP_GFX, AMDGPU_HW_IP_VCE, 77 };
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = g->ib->va, .size = 8 };
	struct amdgpu_cs_request req = { .number_of_ibs = 1, .ibs = &ib };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		req.ip_type = types[i];
		CHECK(amdgpu_cs_submit(g->ctx, 0, &req, 1) == -EINVAL);
	}
	req.ip_type = AMDGPU_HW_IP_DMA;
	req.ring = 2;
	CHECK(amdgpu_cs_submit(g->ctx, 0, &req, 1) == -EINVAL);
	return true;
}

static bool test_bo_list(struct gpu *g)
{
	struct buf *u = buf_user(g, PAGE);
	amdgpu_bo_handle bos[] = { g->ib->bo, u->bo };
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = g->ib->va, .size = 8 };
	struct amdgpu_cs_request req = {
		.ip_type = AMDGPU_HW_IP_DMA, .number_of_ibs = 1, .ibs = &ib,
	};
	union drm_amdgpu_bo_list raw = { .in = {
		.operation = AMDGPU_BO_LIST_OP_UPDATE, .list_handle = 4711,
		.bo_info_size = sizeof(struct drm_amdgpu_bo_list_entry),
	} };

	memset(g->ib->cpu, 0, 32);
	CHECK(!amdgpu_bo_list_create(g->dev, 2, bos, NULL, &req.resources));
	CHECK(!amdgpu_cs_submit(g->ctx, 0, &req, 1));
	CHECK(!amdgpu_bo_list_update(req.resources, 1, bos, NULL));
	CHECK(!amdgpu_cs_submit(g->ctx, 0, &req, 1));
	CHECK(!amdgpu_bo_list_destroy(req.resources));
	CHECK(drmIoctl(g->fd, DRM_IOCTL_AMDGPU_BO_LIST, &raw) && errno == ENOENT);
	buf_free(g, u);
	return true;
}

static bool test_fences(struct gpu *g)
{
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = g->ib->va, .size = 8 };
	struct buf *uf = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	struct amdgpu_cs_request req = {
		.ip_type = AMDGPU_HW_IP_DMA, .number_of_ibs = 1, .ibs = &ib,
		.fence_info = { .handle = uf->bo, .offset = 2 },
	};
	struct amdgpu_cs_fence f = {
		.context = g->ctx, .ip_type = AMDGPU_HW_IP_DMA,
	};
	uint32_t done = 0, syncobj;

	memset(g->ib->cpu, 0, 32);
	memset(uf->cpu, 0, PAGE);
	CHECK(!amdgpu_cs_submit(g->ctx, 0, &req, 1));
	f.fence = req.seq_no;
	CHECK(!amdgpu_cs_wait_fences(&f, 1, true, AMDGPU_TIMEOUT_INFINITE, &done,
				     NULL) && done);
	CHECK(((uint64_t *)uf->cpu)[2] == req.seq_no);
	CHECK(!amdgpu_cs_fence_to_handle(g->dev, &f,
					 AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ, &syncobj));
	CHECK(!amdgpu_cs_syncobj_wait(g->dev, &syncobj, 1, 0, 0, NULL));
	CHECK(!amdgpu_cs_destroy_syncobj(g->dev, syncobj));
	f.fence = req.seq_no + 1;
	CHECK(amdgpu_cs_query_fence_status(&f, 0, 0, &done) == -EINVAL);
	buf_free(g, uf);
	return true;
}

static bool arm_fault(const char *line)
{
	FILE *f = fopen("/sys/kernel/debug/kfdsim/fault", "w");
	bool ok = f && fprintf(f, "%s\n", line) > 0;

	return f && !fclose(f) && ok;
}

/* What a client with a bound on its waits must survive. */
static bool test_faults(struct gpu *g)
{
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = g->ib->va, .size = 8 };
	struct amdgpu_cs_request req = {
		.ip_type = AMDGPU_HW_IP_DMA, .number_of_ibs = 1, .ibs = &ib,
	};
	struct amdgpu_cs_fence f = { .context = g->ctx, .ip_type = AMDGPU_HW_IP_DMA };
	struct timespec before, after;
	uint32_t done = 7;
	double waited;
	int r;

	memset(g->ib->cpu, 0, 32);
	CHECK(!amdgpu_cs_submit(g->ctx, 0, &req, 1));
	f.fence = req.seq_no;
	CHECK(arm_fault("point=fence-never errno=110"));
	clock_gettime(CLOCK_MONOTONIC, &before);
	r = amdgpu_cs_query_fence_status(&f, 300000000, 0, &done);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK(arm_fault("clear"));
	waited = after.tv_sec - before.tv_sec + (after.tv_nsec - before.tv_nsec) / 1e9;
	CHECK(!r && !done && waited >= 0.3);
	CHECK(!amdgpu_cs_query_fence_status(&f, AMDGPU_TIMEOUT_INFINITE, 0, &done) &&
	      done);
	CHECK(arm_fault("point=cs-submit errno=12"));
	CHECK(amdgpu_cs_submit(g->ctx, 0, &req, 1) == -ENOMEM);
	CHECK(arm_fault("clear"));
	return true;
}

/* A hole in a mapping faults, its rest goes on where it was. */
static bool test_va_clear(struct gpu *g)
{
	const uint64_t flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 8 * PAGE);
	struct buf *o = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 8 * PAGE);

	CHECK(b && o);
	pattern_fill(b->cpu, 8 * PAGE, 6);
	CHECK(!amdgpu_bo_va_op_raw(g->dev, NULL, 0, 2 * PAGE, b->va + 3 * PAGE, 0,
				   AMDGPU_VA_OP_CLEAR));
	const uint32_t hole[] = {
		SDMA_COPY, 8 * PAGE - 1, 0, LO(b->va), HI(b->va), LO(o->va), HI(o->va),
	};
	CHECK(bad_packets(g, hole, 7, -EFAULT));
	CHECK(!gpu_copy(g, o->va, b->va, 3 * PAGE - 1));
	CHECK(!gpu_copy(g, o->va + 5 * PAGE, b->va + 5 * PAGE, 3 * PAGE - 1));
	CHECK(!memcmp(o->cpu, b->cpu, 3 * PAGE));
	CHECK(!memcmp(o->cpu + 5 * PAGE, b->cpu + 5 * PAGE, 3 * PAGE));
	CHECK(!amdgpu_bo_va_op_raw(g->dev, o->bo, 0, 8 * PAGE, b->va, flags,
				   AMDGPU_VA_OP_REPLACE));
	memset(o->cpu, 0, 8 * PAGE);
	uint32_t fence[] = { SDMA_FENCE, LO(b->va + PAGE), HI(b->va + PAGE), 9 };
	CHECK(!gpu_run(g, fence, 4, NULL));
	CHECK(*(uint32_t *)(o->cpu + PAGE) == 9);
	buf_free(g, b);
	buf_free(g, o);
	return true;
}

const struct test sdma_tests[] = {
	{ "copy", test_copy },
	{ "copy-odd", test_copy_odd },
	{ "copy-untouched", test_copy_untouched },
	{ "packets", test_packets },
	{ "poll-waits", test_poll_waits },
	{ "broadcast", test_broadcast },
	{ "bad-packet", test_bad_packet },
	{ "fault", test_fault },
	{ "userptr-gone", test_userptr_gone },
	{ "count-overrun", test_count_overrun },
	{ "count-strict", test_count_strict },
	{ "other-engines", test_other_engines },
	{ "bo-list", test_bo_list },
	{ "fences", test_fences },
	{ "faults", test_faults },
	{ "va-clear", test_va_clear },
	{ NULL, NULL },
};
