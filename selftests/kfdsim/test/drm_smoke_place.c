// SPDX-License-Identifier: GPL-2.0-only
/* The simulated GPU's VRAM when it is full: who goes, who comes back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xf86drm.h>
#include "gpu.h"

/* VRAM in so many buffers, of which GTT can take a few. */
#define PARTS	8
#define MANY	512

static int raw_create(struct gpu *g, uint64_t size, uint64_t domain,
		      uint32_t *handle)
{
	union drm_amdgpu_gem_create c = { .in = { size, PAGE, domain, 0 } };

	*handle = 0;
	if (drmIoctl(g->fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &c))
		return -errno;
	*handle = c.out.handle;
	return 0;
}

static bool close_all(struct gpu *g, const uint32_t *h, unsigned int n)
{
	while (n--)
		CHECK(!drmCloseBufferHandle(g->fd, h[n]));
	return true;
}

static uint64_t number(struct gpu *g, unsigned int query)
{
	uint64_t v = ~0ULL;

	amdgpu_query_info(g->dev, query, sizeof(v), &v);
	return v;
}

static uint64_t gtt_used(struct gpu *g)
{
	return number(g, AMDGPU_INFO_GTT_USAGE);
}

static uint64_t evictions(struct gpu *g)
{
	return number(g, AMDGPU_INFO_NUM_EVICTIONS);
}

static uint64_t bytes_moved(struct gpu *g)
{
	return number(g, AMDGPU_INFO_NUM_BYTES_MOVED);
}

/* 6.1 counts new buffers too. */
static bool counts_new(void)
{
	FILE *f = fopen("/sys/module/kfdsim/parameters/personality", "re");
	char name[16] = "";

	if (f) {
		if (!fgets(name, sizeof(name), f))
			name[0] = 0;
		fclose(f);
	}
	return !strcmp(name, "6.1\n");
}

/* A submission that does nothing, but names a buffer. */
static int use(struct gpu *g, struct buf *b)
{
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = g->ib->va, .size = 8 };
	struct amdgpu_cs_request req = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.number_of_ibs = 1,
		.ibs = &ib,
	};
	int r;

	memset(g->ib->cpu, 0, 8 * 4);
	r = amdgpu_bo_list_create(g->dev, 1, &b->bo, NULL, &req.resources);
	if (r)
		return r;
	r = amdgpu_cs_submit(g->ctx, 0, &req, 1);
	amdgpu_bo_list_destroy(req.resources);
	return r;
}

static uint64_t part_size(struct gpu *g)
{
	struct drm_amdgpu_info_vram_gtt v = { 0 };

	amdgpu_query_info(g->dev, AMDGPU_INFO_VRAM_GTT, sizeof(v), &v);
	return (v.vram_size - gpu_vram_used(g)) / PARTS & ~(uint64_t)(PAGE - 1);
}

/*
 * The oldest of two that hold data and six more goes when a ninth comes; a
 * submission that names it has the second go, which a submission has back when
 * there is room, but no sooner, as what may be moved for it is used up.
 */
static bool full_vram(struct gpu *g, struct buf *first, struct buf *second,
		      uint32_t *h, unsigned int *n)
{
	uint64_t gtt = gtt_used(g), size = first->size, vram, moved, gone;

	pattern_fill(first->cpu, MIB, 5);
	pattern_fill(second->cpu, MIB, 6);
	for (; *n < PARTS - 2; ++*n)
		CHECK(!raw_create(g, size, AMDGPU_GEM_DOMAIN_VRAM, &h[*n]));
	CHECK(gtt_used(g) == gtt);
	vram = gpu_vram_used(g);
	moved = bytes_moved(g);
	gone = evictions(g);
	CHECK(!raw_create(g, size, AMDGPU_GEM_DOMAIN_VRAM, &h[*n]));
	++*n;
	CHECK(gpu_vram_used(g) == vram && gtt_used(g) == gtt + size);
	CHECK(evictions(g) == gone + 1);
	CHECK(bytes_moved(g) == moved + (counts_new() ? 2 : 1) * size);
	CHECK(pattern_check(first->cpu, MIB, 5) == -1);
	CHECK(!use(g, first));
	CHECK(gpu_vram_used(g) == vram && gtt_used(g) == gtt + size);
	CHECK(evictions(g) == gone + 2);
	CHECK(!use(g, second));
	CHECK(evictions(g) == gone + 2 && gtt_used(g) == gtt + size);
	CHECK(!drmCloseBufferHandle(g->fd, h[--*n]));
	CHECK(!use(g, second));
	CHECK(evictions(g) == gone + 2 && gtt_used(g) == gtt);
	CHECK(gpu_vram_used(g) == vram);
	CHECK(!gpu_copy(g, second->va + MIB, first->va, MIB - 1));
	CHECK(pattern_check(second->cpu, MIB, 6) == -1);
	CHECK(pattern_check(second->cpu + MIB, MIB, 5) == -1);
	return true;
}

static bool test_oldest_goes(struct gpu *g)
{
	uint64_t size = part_size(g), before = gpu_vram_used(g);
	struct buf *first = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, size);
	struct buf *second = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, size);
	uint32_t h[PARTS];
	unsigned int n = 0;
	bool ok;

	CHECK(size > 2 * MIB && first && second);
	ok = full_vram(g, first, second, h, &n);
	ok = close_all(g, h, n) && ok;
	buf_free(g, first);
	buf_free(g, second);
	CHECK(ok);
	CHECK(gpu_vram_used(g) == before);
	return true;
}

/* Of two the older one was used last: the other goes. */
static bool test_used_stays(struct gpu *g)
{
	uint64_t size = part_size(g), gtt = gtt_used(g), moved;
	struct buf *first = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, size);
	struct buf *second = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, size);
	uint32_t h[PARTS];
	unsigned int n;
	bool ok;

	CHECK(first && second && !use(g, first));
	for (n = 0; n < PARTS - 1; n++)
		CHECK(!raw_create(g, size, AMDGPU_GEM_DOMAIN_VRAM, &h[n]));
	CHECK(gtt_used(g) == gtt + size);
	CHECK(!drmCloseBufferHandle(g->fd, h[--n]));
	/* Now there is room: whichever has gone comes back when it is named. */
	moved = bytes_moved(g);
	CHECK(!use(g, first));
	ok = bytes_moved(g) == moved && gtt_used(g) == gtt + size;
	CHECK(!use(g, second));
	ok = ok && bytes_moved(g) == moved + size && gtt_used(g) == gtt;
	CHECK(close_all(g, h, n));
	buf_free(g, first);
	buf_free(g, second);
	return ok;
}

/* Nothing but an alternative: it takes GTT before it drives others out. */
static bool test_alternative(struct gpu *g)
{
	uint64_t size = part_size(g), gtt = gtt_used(g), gone = evictions(g);
	uint32_t h[PARTS + 1];
	unsigned int n;

	for (n = 0; n < PARTS; n++)
		CHECK(!raw_create(g, size, AMDGPU_GEM_DOMAIN_VRAM |
				  AMDGPU_GEM_DOMAIN_GTT, &h[n]));
	CHECK(gtt_used(g) == gtt);
	CHECK(!raw_create(g, size, AMDGPU_GEM_DOMAIN_VRAM |
			  AMDGPU_GEM_DOMAIN_GTT, &h[n]));
	CHECK(gtt_used(g) == gtt + size && evictions(g) == gone);
	return close_all(g, h, n + 1);
}

/*
 * VRAM, then GTT, then as much again; then there is no more. The buffer that
 * commands are in had to go too, and comes back when it is named.
 */
static bool test_all_full(struct gpu *g)
{
	uint64_t size = part_size(g), vram = gpu_vram_used(g), gtt = gtt_used(g);
	struct drm_amdgpu_info_vram_gtt v;
	unsigned int n = 0, fit;
	uint32_t h[MANY];
	int r = 0;

	CHECK(!amdgpu_query_info(g->dev, AMDGPU_INFO_VRAM_GTT, sizeof(v), &v));
	/* a part of each of these may be left over */
	fit = (v.vram_size - vram + 2 * v.gtt_size - gtt) / size;
	while (n < MANY && !(r = raw_create(g, size, AMDGPU_GEM_DOMAIN_VRAM, &h[n])))
		n++;
	CHECK(n < MANY && r == -ENOMEM);
	CHECK(n <= fit && n + 3 >= fit);
	CHECK(raw_create(g, size, AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_GTT,
			 &h[n]) == -ENOMEM);
	CHECK(close_all(g, h, n));
	CHECK(gpu_vram_used(g) == vram && gtt_used(g) == gtt - g->ib->size);
	CHECK(!use(g, g->ib));
	CHECK(gtt_used(g) == gtt);
	return true;
}

const struct test place_tests[] = {
	{ "oldest-goes", test_oldest_goes },
	{ "used-stays", test_used_stays },
	{ "vram-or-gtt", test_alternative },
	{ "all-full", test_all_full },
	{ NULL, NULL },
};
