// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies that have a rate: the ioctl does not take their time, the fence does,
 * as with an engine of its own. Times are at least what the rate wants; how
 * much more it is depends on the machine, and nothing here asks.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "gpu.h"

#define LO(a)	((uint32_t)(a))
#define HI(a)	((uint32_t)((uint64_t)(a) >> 32))
#define RATE	"/sys/module/kfdsim/parameters/copy_mbps"
#define SIZE	(256 * 1024)
#define ONE	0.262	/* seconds for SIZE at 1 MB/s, rounded down */
#define FENCES	32	/* busy ones that a ring may have */

/* Submissions of one context to one ring, each a copy of SIZE bytes. */
struct ring {
	struct gpu *g;
	amdgpu_context_handle ctx;
	struct buf *src, *dst, *ib;
	uint64_t first;
	double start;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static bool set_rate(unsigned int mbps)
{
	FILE *f = fopen(RATE, "we");
	bool ok = f && fprintf(f, "%u\n", mbps) > 0;

	return f && !fclose(f) && ok;
}

static bool ring_open(struct gpu *g, struct ring *r)
{
	r->g = g;
	r->src = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, SIZE);
	r->dst = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, SIZE);
	r->ib = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	CHECK(r->src && r->dst && r->ib);
	CHECK(!amdgpu_cs_ctx_create(g->dev, &r->ctx));
	const uint32_t dw[8] = {
		SDMA_COPY, SIZE - 1, 0, LO(r->src->va), HI(r->src->va),
		LO(r->dst->va), HI(r->dst->va), SDMA_NOP,
	};
	memcpy(r->ib->cpu, dw, sizeof(dw));
	pattern_fill(r->src->cpu, SIZE, 11);
	memset(r->dst->cpu, 0, SIZE);
	CHECK(set_rate(1));
	r->start = now();
	return true;
}

static bool ring_close(struct ring *r)
{
	CHECK(set_rate(0));
	CHECK(!amdgpu_cs_ctx_free(r->ctx));
	buf_free(r->g, r->src);
	buf_free(r->g, r->dst);
	buf_free(r->g, r->ib);
	return true;
}

static int submit(struct ring *r, struct buf *user_fence,
		  struct amdgpu_cs_fence *f)
{
	struct amdgpu_cs_ib_info ib = {
		.ib_mc_address = r->ib->va, .size = 8,
	};
	struct amdgpu_cs_request req = {
		.ip_type = AMDGPU_HW_IP_DMA, .number_of_ibs = 1, .ibs = &ib,
	};
	int ret;

	if (user_fence)
		req.fence_info.handle = user_fence->bo;
	ret = amdgpu_cs_submit(r->ctx, 0, &req, 1);
	*f = (struct amdgpu_cs_fence){
		.context = r->ctx, .ip_type = AMDGPU_HW_IP_DMA,
		.fence = req.seq_no,
	};
	return ret;
}

static bool test_busy(struct gpu *g)
{
	struct amdgpu_cs_fence f;
	uint32_t done = 7;
	struct ring r;

	CHECK(ring_open(g, &r));
	CHECK(!submit(&r, NULL, &f));
	CHECK(!amdgpu_cs_query_fence_status(&f, 0, 0, &done) && !done);
	CHECK(!amdgpu_cs_query_fence_status(&f, 1000000, 0, &done) && !done);
	CHECK(!amdgpu_cs_wait_fences(&f, 1, true, 1000000, &done, NULL) && !done);
	CHECK(!amdgpu_cs_query_fence_status(&f, AMDGPU_TIMEOUT_INFINITE, 0, &done));
	CHECK(done && now() - r.start >= ONE);
	CHECK(!amdgpu_cs_query_fence_status(&f, 0, 0, &done) && done);
	CHECK(pattern_check(r.dst->cpu, SIZE, 11) < 0);
	return ring_close(&r);
}

/* One engine: the second is over after the first, and both after both. */
static bool test_in_turn(struct gpu *g)
{
	struct amdgpu_cs_fence f[2];
	uint32_t done, first = 7;
	struct ring r;

	CHECK(ring_open(g, &r));
	CHECK(!submit(&r, NULL, &f[1]) && !submit(&r, NULL, &f[0]));
	CHECK(!amdgpu_cs_wait_fences(f, 2, false, AMDGPU_TIMEOUT_INFINITE, &done,
				     &first));
	CHECK(done && first == 1 && now() - r.start >= ONE);
	CHECK(!amdgpu_cs_wait_fences(f, 2, true, AMDGPU_TIMEOUT_INFINITE, &done,
				     NULL));
	CHECK(done && now() - r.start >= 2 * ONE);
	return ring_close(&r);
}

static bool told_within(const volatile uint64_t *value, uint64_t want, double seconds)
{
	struct timespec nap = { 0, 1000000 };
	double end = now() + seconds;

	while (*value != want && now() < end)
		nanosleep(&nap, NULL);
	return *value == want;
}

/* What else is told of the end is told when it is the end. */
static bool test_told(struct gpu *g)
{
	struct buf *uf = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	struct amdgpu_cs_fence f;
	uint32_t syncobj;
	struct ring r;

	CHECK(uf && ring_open(g, &r));
	memset(uf->cpu, 0, PAGE);
	CHECK(!submit(&r, uf, &f));
	CHECK(told_within((uint64_t *)uf->cpu, f.fence, 30));
	CHECK(now() - r.start >= ONE);
	CHECK(!submit(&r, NULL, &f));
	CHECK(!amdgpu_cs_fence_to_handle(g->dev, &f,
					 AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ,
					 &syncobj));
	CHECK(!amdgpu_cs_syncobj_wait(g->dev, &syncobj, 1, 0, 0, NULL));
	CHECK(now() - r.start >= 2 * ONE);
	CHECK(!amdgpu_cs_destroy_syncobj(g->dev, syncobj));
	buf_free(g, uf);
	return ring_close(&r);
}

/* One more than may be busy has to wait for the first. */
static bool test_full(struct gpu *g)
{
	struct amdgpu_cs_fence f, last;
	uint32_t done = 7;
	struct ring r;
	int i;

	CHECK(ring_open(g, &r));
	CHECK(!submit(&r, NULL, &f));
	for (i = 0; i < FENCES; i++)
		CHECK(!submit(&r, NULL, &last));
	CHECK(now() - r.start >= ONE);
	CHECK(!amdgpu_cs_query_fence_status(&f, 0, 0, &done) && done);
	CHECK(!amdgpu_cs_query_fence_status(&last, 0, 0, &done) && !done);
	return ring_close(&r);
}

const struct test rate_tests[] = {
	{ "rate-busy", test_busy },
	{ "rate-in-turn", test_in_turn },
	{ "rate-told", test_told },
	{ "rate-full", test_full },
	{ NULL, NULL },
};
