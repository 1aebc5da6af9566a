// SPDX-License-Identifier: GPL-2.0-only
/* Submission to compute rings: PM4 packets without shaders. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "gpu.h"

#define LO(a)	((uint32_t)(a))
#define HI(a)	((uint32_t)((uint64_t)(a) >> 32))
#define PM4(op, dwords)	(3u << 30 | ((dwords) - 2) << 16 | (op) << 8)
#define WRITE(va, value) PM4(0x37, 5), 5 << 8 | 1 << 20, LO(va), HI(va), (value)
#define RINGS	8

static int run(struct gpu *g, uint32_t ring, const uint32_t *dw, unsigned int n)
{
	return gpu_run_on(g, AMDGPU_HW_IP_COMPUTE, ring, dw, n, NULL);
}

static bool test_rings(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	struct drm_amdgpu_info_hw_ip ip;
	uint32_t ring;

	CHECK(b);
	memset(b->cpu, 0, PAGE);
	CHECK(!amdgpu_query_hw_ip_info(g->dev, AMDGPU_HW_IP_COMPUTE, 0, &ip));
	CHECK(ip.available_rings == (1 << RINGS) - 1);
	CHECK(!amdgpu_query_hw_ip_info(g->dev, AMDGPU_HW_IP_GFX, 0, &ip));
	CHECK(!ip.available_rings);
	for (ring = 0; ring < RINGS; ring++) {
		const uint32_t dw[] = { WRITE(b->va + ring * 4, ring + 1) };

		CHECK(!run(g, ring, dw, 5));
		CHECK(((uint32_t *)b->cpu)[ring] == ring + 1);
	}
	CHECK(run(g, RINGS, &ring, 1) == -EINVAL);
	buf_free(g, b);
	return true;
}

/* What CP DMA tests do: fill, and copy between all kinds of memory. */
static bool test_dma(struct gpu *g)
{
	struct buf *v = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, MIB);
	struct buf *u = buf_user(g, MIB);
	uint32_t fill[7], copy[7], i;

	CHECK(v && u);
	memcpy(fill, (uint32_t[]){ PM4(0x50, 7), 1u << 31 | 2u << 29, 0xdeadbeaf,
				   0, LO(v->va), HI(v->va), MIB / 2 }, sizeof(fill));
	memcpy(copy, (uint32_t[]){ PM4(0x50, 7), 1u << 31, LO(v->va), HI(v->va),
				   LO(u->va), HI(u->va), MIB }, sizeof(copy));
	CHECK(!run(g, 0, fill, 7));
	CHECK(!run(g, 1, copy, 7));
	for (i = 0; i < MIB / 8; i++)
		CHECK(((uint32_t *)u->cpu)[i] == 0xdeadbeaf);
	CHECK(all_bytes(u->cpu + MIB / 2, MIB / 2, POISON));
	pattern_fill(u->cpu, MIB, 3);
	memcpy(copy, (uint32_t[]){ PM4(0x50, 7), 1u << 31, LO(u->va), HI(u->va),
				   LO(v->va), HI(v->va), MIB }, sizeof(copy));
	CHECK(!run(g, 0, copy, 7));
	CHECK(pattern_check(v->cpu, MIB, 3) == -1);
	buf_free(g, u);
	buf_free(g, v);
	return true;
}

static void *write_late(void *arg)
{
	const struct timespec t = { .tv_nsec = 100000000 };

	nanosleep(&t, NULL);
	*(volatile uint32_t *)arg = 5;
	return NULL;
}

/* A wait that another thread ends, in a buffer called by the first. */
static bool test_wait(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	const uint64_t inner = b->va + 1024;
	const uint32_t called[] = {
		PM4(0x3c, 7), 3 | 1 << 4, LO(b->va), HI(b->va), 5, ~0u, 4,
		WRITE(b->va + 4, 6),
	};
	const uint32_t dw[] = {
		PM4(0x3f, 4), LO(inner), HI(inner), 12 | 1 << 23,
		WRITE(b->va + 8, 7),
	};
	pthread_t thread;
	int ret;

	memset(b->cpu, 0, PAGE);
	memcpy(b->cpu + 1024, called, sizeof(called));
	CHECK(!pthread_create(&thread, NULL, write_late, b->cpu));
	ret = run(g, 2, dw, 9);
	pthread_join(thread, NULL);
	CHECK(!ret);
	CHECK(((uint32_t *)b->cpu)[1] == 6);
	CHECK(((uint32_t *)b->cpu)[2] == 7);
	buf_free(g, b);
	return true;
}

/* Accepted, and told by the wait; the context is lost. */
static bool bad(struct gpu *g, const uint32_t *dw, unsigned int n, int error)
{
	const uint32_t nop = 0xffff1002;
	bool waited;

	CHECK(gpu_run_on(g, AMDGPU_HW_IP_COMPUTE, 0, dw, n, &waited) == error);
	CHECK(waited);
	CHECK(run(g, 0, &nop, 1) == -ECANCELED);
	return gpu_new_ctx(g);
}

static bool test_errors(struct gpu *g)
{
	static const uint32_t dispatch[] = { PM4(0x15, 5), 1, 1, 1, 1 };
	static const uint32_t unknown[] = { PM4(0xf2, 3), 0, 0 };
	static const uint32_t cut[] = { PM4(0x37, 5000), 5 << 8, 0, 0 };
	static const uint32_t nowhere[] = { WRITE(0xdeadbee0, 1) };

	return bad(g, dispatch, 5, -EOPNOTSUPP) && bad(g, unknown, 3, -EINVAL) &&
	       bad(g, cut, 4, -EINVAL) && bad(g, nowhere, 5, -EFAULT);
}

const struct test compute_tests[] = {
	{ "compute-rings", test_rings },
	{ "compute-dma", test_dma },
	{ "compute-wait", test_wait },
	{ "compute-errors", test_errors },
	{ NULL, NULL },
};
