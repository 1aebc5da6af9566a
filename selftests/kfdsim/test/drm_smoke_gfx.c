// SPDX-License-Identifier: GPL-2.0-only
/*
 * A graphics ring, which only some of the models have: PM4 on memory, and two
 * engines with counters. "drm_smoke gfx"; red on a model without such a ring.
 */
#include <errno.h>
#include <string.h>
#include "gpu.h"

#define LO(a)	((uint32_t)(a))
#define HI(a)	((uint32_t)((uint64_t)(a) >> 32))
#define PM4(op, dwords)	(3u << 30 | ((dwords) - 2) << 16 | (op) << 8)
#define WRITE(va, value) PM4(0x37, 5), 5 << 8 | 1 << 20, LO(va), HI(va), (value)
#define CE_ADD		PM4(0x84, 2), 1
#define CE_WAIT		PM4(0x86, 2), 1
#define CE_ZERO		PM4(0x89, 2), 0

static int run(struct gpu *g, const uint32_t *dw, unsigned int n)
{
	return gpu_run_on(g, AMDGPU_HW_IP_GFX, 0, dw, n, NULL);
}

static bool test_ring(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	struct drm_amdgpu_info_hw_ip ip;
	uint32_t write[] = { WRITE(b->va, 0xabcd) };

	CHECK(!amdgpu_query_hw_ip_info(g->dev, AMDGPU_HW_IP_GFX, 0, &ip));
	CHECK(ip.available_rings == 1);
	memset(b->cpu, 0, PAGE);
	CHECK(!run(g, write, 5));
	CHECK(*(uint32_t *)b->cpu == 0xabcd);
	CHECK(gpu_run_on(g, AMDGPU_HW_IP_GFX, 1, write, 5, NULL) == -EINVAL);
	buf_free(g, b);
	return true;
}

/* Two buffers of one submission, the first of the constant engine. */
static int run_two(struct gpu *g, const uint32_t *ce, unsigned int nce,
		   const uint32_t *de, unsigned int nde)
{
	struct amdgpu_cs_ib_info ib[2] = {
		{ .ib_mc_address = g->ib->va, .size = nce,
		  .flags = AMDGPU_IB_FLAG_CE },
		{ .ib_mc_address = g->ib->va + PAGE, .size = nde },
	};
	struct amdgpu_cs_request req = {
		.ip_type = AMDGPU_HW_IP_GFX, .number_of_ibs = 2, .ibs = ib,
	};
	struct amdgpu_cs_fence f = {
		.context = g->ctx, .ip_type = AMDGPU_HW_IP_GFX,
	};
	uint32_t expired;
	int r;

	memcpy(g->ib->cpu, ce, nce * 4);
	memcpy(g->ib->cpu + PAGE, de, nde * 4);
	r = amdgpu_cs_submit(g->ctx, 0, &req, 1);
	if (r)
		return r;
	f.fence = req.seq_no;
	return amdgpu_cs_query_fence_status(&f, AMDGPU_TIMEOUT_INFINITE, 0,
					    &expired);
}

static bool test_counters(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	const uint32_t ce[] = { CE_ZERO, CE_ADD };
	const uint32_t de[] = { CE_WAIT, WRITE(b->va, 7) };

	memset(b->cpu, 0, PAGE);
	CHECK(!run_two(g, ce, 4, de, 7));
	CHECK(*(uint32_t *)b->cpu == 7);
	/* a compute ring has no such engine */
	CHECK(gpu_run_on(g, AMDGPU_HW_IP_COMPUTE, 0, ce, 4, NULL) == -EINVAL);
	CHECK(gpu_new_ctx(g));
	buf_free(g, b);
	return true;
}

/* Draws are as little ignored as dispatches. */
static bool test_draw(struct gpu *g)
{
	static const uint32_t draw[] = { PM4(0x2d, 3), 3, 2 };
	static const uint32_t dispatch[] = { PM4(0x15, 5), 1, 1, 1, 1 };

	CHECK(run(g, draw, 3) == -EINVAL);
	CHECK(gpu_new_ctx(g));
	CHECK(run(g, dispatch, 5) == -EOPNOTSUPP);
	return gpu_new_ctx(g);
}

const struct test gfx_tests[] = {
	{ "gfx-ring", test_ring },
	{ "gfx-counters", test_counters },
	{ "gfx-draws-nothing", test_draw },
	{ NULL, NULL },
};
