// SPDX-License-Identifier: GPL-2.0-only
/* Buffers and submissions, short enough for tests. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>
#include "gpu.h"

bool fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("# ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	return false;
}

/* First render node whose driver is amdgpu. */
static int open_node(void)
{
	char name[32];
	int i, fd;

	for (i = 128; i < 192; i++) {
		drmVersionPtr v;
		bool ours;

		snprintf(name, sizeof(name), "/dev/dri/renderD%d", i);
		fd = open(name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		v = drmGetVersion(fd);
		ours = v && !strcmp(v->name, "amdgpu");
		drmFreeVersion(v);
		if (ours)
			return fd;
		close(fd);
	}
	return -1;
}

bool gpu_new_ctx(struct gpu *g)
{
	int r;

	if (g->ctx)
		amdgpu_cs_ctx_free(g->ctx);
	g->ctx = NULL;
	r = amdgpu_cs_ctx_create(g->dev, &g->ctx);
	return r ? fail("cs_ctx_create: %d", r) : true;
}

bool gpu_open(struct gpu *g)
{
	uint32_t major, minor;
	int r;

	memset(g, 0, sizeof(*g));
	g->fd = open_node();
	if (g->fd < 0)
		return fail("no amdgpu render node");
	r = amdgpu_device_initialize(g->fd, &major, &minor, &g->dev);
	if (r)
		return fail("device_initialize: %d", r);
	if (!gpu_new_ctx(g))
		return false;
	g->ib = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, 256 * 1024);
	return g->ib;
}

void gpu_close(struct gpu *g)
{
	buf_free(g, g->ib);
	if (g->ctx)
		amdgpu_cs_ctx_free(g->ctx);
	if (g->dev)
		amdgpu_device_deinitialize(g->dev);
	close(g->fd);
}

static bool buf_map_gpu(struct gpu *g, struct buf *b)
{
	int r;

	r = amdgpu_va_range_alloc(g->dev, amdgpu_gpu_va_range_general, b->size,
				  2 * MIB, 0, &b->va, &b->va_handle, 0);
	if (r)
		return fail("va_range_alloc: %d", r);
	r = amdgpu_bo_va_op(b->bo, 0, b->size, b->va, 0, AMDGPU_VA_OP_MAP);
	return r ? fail("va_op: %d", r) : true;
}

struct buf *buf_new(struct gpu *g, uint32_t domain, uint64_t size)
{
	struct amdgpu_bo_alloc_request req = {
		.alloc_size = size,
		.phys_alignment = PAGE,
		.preferred_heap = domain,
	};
	struct buf *b = calloc(1, sizeof(*b));
	int r;

	b->size = size;
	r = amdgpu_bo_alloc(g->dev, &req, &b->bo);
	if (r) {
		fail("bo_alloc: %d", r);
		free(b);
		return NULL;
	}
	if (amdgpu_bo_cpu_map(b->bo, (void **)&b->cpu) || !buf_map_gpu(g, b)) {
		buf_free(g, b);
		return NULL;
	}
	return b;
}

struct buf *buf_user(struct gpu *g, uint64_t size)
{
	struct buf *b = calloc(1, sizeof(*b));
	int r;

	b->size = size;
	b->user = true;
	b->cpu = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	r = amdgpu_create_bo_from_user_mem(g->dev, b->cpu, size, &b->bo);
	if (r)
		fail("create_bo_from_user_mem: %d", r);
	if (r || !buf_map_gpu(g, b)) {
		buf_free(g, b);
		return NULL;
	}
	return b;
}

void buf_free(struct gpu *g, struct buf *b)
{
	(void)g;
	if (!b)
		return;
	if (b->va_handle) {
		amdgpu_bo_va_op(b->bo, 0, b->size, b->va, 0, AMDGPU_VA_OP_UNMAP);
		amdgpu_va_range_free(b->va_handle);
	}
	if (b->bo && b->cpu && !b->user)
		amdgpu_bo_cpu_unmap(b->bo);
	if (b->bo)
		amdgpu_bo_free(b->bo);
	if (b->user)
		munmap(b->cpu, b->size);
	free(b);
}

int gpu_run_on(struct gpu *g, uint32_t engine, uint32_t ring,
	       const uint32_t *dw, unsigned int n, bool *waited)
{
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = g->ib->va };
	struct amdgpu_cs_request req = {
		.ip_type = engine,
		.ring = ring,
		.number_of_ibs = 1,
		.ibs = &ib,
	};
	struct amdgpu_cs_fence f = {
		.context = g->ctx,
		.ip_type = engine,
		.ring = ring,
	};
	const uint32_t nop = engine == AMDGPU_HW_IP_DMA ? SDMA_NOP : PM4_NOP;
	uint32_t expired = 0;
	int r;

	memcpy(g->ib->cpu, dw, n * 4);
	for (; n & 7; n++)
		((uint32_t *)g->ib->cpu)[n] = nop;
	ib.size = n;
	if (waited)
		*waited = false;
	r = amdgpu_cs_submit(g->ctx, 0, &req, 1);
	if (r)
		return r;
	if (waited)
		*waited = true;
	f.fence = req.seq_no;
	r = amdgpu_cs_query_fence_status(&f, AMDGPU_TIMEOUT_INFINITE, 0, &expired);
	if (!r && !expired)
		r = -ETIME;
	return r;
}

int gpu_run(struct gpu *g, const uint32_t *dw, unsigned int n, bool *waited)
{
	return gpu_run_on(g, AMDGPU_HW_IP_DMA, 0, dw, n, waited);
}

int gpu_copy(struct gpu *g, uint64_t dst, uint64_t src, uint32_t count)
{
	uint32_t dw[] = {
		SDMA_COPY, count, 0, (uint32_t)src, (uint32_t)(src >> 32),
		(uint32_t)dst, (uint32_t)(dst >> 32),
	};

	return gpu_run(g, dw, 7, NULL);
}

uint64_t gpu_vram_used(struct gpu *g)
{
	uint64_t used = ~0ULL;

	amdgpu_query_info(g->dev, AMDGPU_INFO_VRAM_USAGE, sizeof(used), &used);
	return used;
}

static uint32_t pattern_at(size_t i, uint32_t seed)
{
	return (uint32_t)(i * 2654435761U) ^ seed;
}

void pattern_fill(void *p, size_t n, uint32_t seed)
{
	uint32_t *w = p;
	size_t i;

	for (i = 0; i < n / 4; i++)
		w[i] = pattern_at(i, seed);
}

long pattern_check(const void *p, size_t n, uint32_t seed)
{
	const uint32_t *w = p;
	size_t i;

	for (i = 0; i < n / 4; i++)
		if (w[i] != pattern_at(i, seed))
			return i * 4;
	return -1;
}

bool all_bytes(const void *p, size_t n, uint8_t value)
{
	const uint8_t *b = p;
	size_t i;

	for (i = 0; i < n; i++)
		if (b[i] != value)
			return false;
	return true;
}

int copy_for_ever(void)
{
	struct buf *a, *b;
	struct gpu g;

	if (!gpu_open(&g))
		return 1;
	a = buf_new(&g, AMDGPU_GEM_DOMAIN_VRAM, 32 * MIB);
	b = buf_user(&g, 32 * MIB);
	while (a && b && !gpu_copy(&g, b->va, a->va, 32 * MIB - 1))
		;
	return 1;
}
