// SPDX-License-Identifier: GPL-2.0-only
#include "copyslot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <amdgpu_drm.h>

#include "clock.h"
#include "log.h"

#define PAGE		UINT64_C(4096)
#define HUGE_PAGE	((size_t)2 << 20)
/* SDMA linear copy: opcode 1, sub-opcode 0, seven words. */
#define COPY_LINEAR	1u
#define COPY_DW		7
/* SDMA constant fill: opcode 11, of bytes, as the kernel clears VRAM. */
#define CONST_FILL	11u
#define FILL_DW		5
/* Packets end on a multiple of eight words; a NOP is a zero word. */
#define IB_ALIGN_DW	8
#define MAX_PACKET	(UINT32_C(2) << 20)
/* Engines before gfx9 count 21 bits and stop short of 2 MiB. */
#define MAX_PACKET_OLD	(UINT32_C(1) << 20)
/* Number of the first time namespace in /proc, the same on every kernel. */
#define TIME_NS_INIT	0xeffffffau
/* Between looks at a fence that cannot be waited for. */
#define NAP_FIRST_NS	20000
#define NAP_LAST_NS	1000000
/* Zeros in one submission: what is waited for ends before long. */
#define MAX_ZEROS	(UINT64_C(64) << 20)

static int va_map(amdgpu_device_handle dev, struct gpucr_copy_map *m,
		  uint64_t size)
{
	int err;

	m->size = size;
	err = amdgpu_va_range_alloc(dev, amdgpu_gpu_va_range_general, size, 0,
				    0, &m->va, &m->va_handle, 0);
	if (err)
		return err;
	err = amdgpu_bo_va_op(m->bo, 0, size, m->va, 0, AMDGPU_VA_OP_MAP);
	if (err)
		amdgpu_va_range_free(m->va_handle);
	return err;
}

int gpucr_copy_map(struct gpucr_copy *c, const struct gpucr_copy_bo *bo,
		   struct gpucr_copy_map *ret)
{
	struct amdgpu_bo_import_result res = { 0 };
	int err;

	err = amdgpu_bo_import(c->dev, amdgpu_bo_handle_type_dma_buf_fd,
			       bo->dmabuf_fd, &res);
	if (err)
		return err;
	ret->bo = res.buf_handle;
	/* Else packets would run past its end. */
	err = res.alloc_size < bo->size ? -EOVERFLOW :
	      va_map(c->dev, ret, bo->size);
	if (err) {
		amdgpu_bo_free(ret->bo);
		ret->bo = NULL;
	}
	return err;
}

void gpucr_copy_unmap(struct gpucr_copy_map *m)
{
	if (!m->bo)
		return;
	amdgpu_bo_va_op(m->bo, 0, m->size, m->va, 0, AMDGPU_VA_OP_UNMAP);
	amdgpu_va_range_free(m->va_handle);
	amdgpu_bo_free(m->bo);
	m->bo = NULL;
}

void gpucr_copy_slot_reset(struct gpucr_copy_slot *s)
{
	s->len = 0;
	s->span = 0;
	s->zeros = 0;
	s->num_dw = 0;
	s->num_bos = 0;
	s->bos[s->num_bos++] = s->data.bo;
	s->bos[s->num_bos++] = s->ib.bo;
}

/* Pieces of one BO follow each other: the kernel need not see it twice. */
static int add_bo(struct gpucr_copy_slot *s, amdgpu_bo_handle bo)
{
	if (s->bos[s->num_bos - 1] == bo)
		return 0;
	if (s->num_bos == s->max_bos)
		return -ENOSPC;
	s->bos[s->num_bos++] = bo;
	return 0;
}

/* Room for a packet in the IB, or NULL. */
static uint32_t *add_packet(struct gpucr_copy_slot *s, size_t num_dw)
{
	uint32_t *dw = s->packets + s->num_dw;

	if (s->num_dw + num_dw + IB_ALIGN_DW > s->max_dw)
		return NULL;
	s->num_dw += num_dw;
	return dw;
}

static int put_copy(struct gpucr_copy *c, struct gpucr_copy_slot *s,
		    uint64_t from, uint64_t to, uint32_t len)
{
	uint32_t *dw = add_packet(s, COPY_DW);

	if (!dw)
		return -ENOSPC;
	dw[0] = COPY_LINEAR;
	dw[1] = len - c->count_minus_one;
	dw[2] = 0;
	dw[3] = (uint32_t)from;
	dw[4] = from >> 32;
	dw[5] = (uint32_t)to;
	dw[6] = to >> 32;
	return 0;
}

static int put_zeros(struct gpucr_copy *c, struct gpucr_copy_slot *s,
		     uint64_t to, uint32_t len)
{
	uint32_t *dw = add_packet(s, FILL_DW);

	if (!dw)
		return -ENOSPC;
	dw[0] = CONST_FILL;
	dw[1] = (uint32_t)to;
	dw[2] = to >> 32;
	dw[3] = 0;
	dw[4] = len - c->count_minus_one;
	return 0;
}

int gpucr_copy_slot_add(struct gpucr_copy *c, struct gpucr_copy_slot *s,
			const struct gpucr_copy_map *m, uint64_t offset,
			uint64_t len, bool to_gpu)
{
	int err = add_bo(s, m->bo);

	while (len && !err) {
		uint32_t n = len < c->max_packet ? len : c->max_packet;
		uint64_t bo_va = m->va + offset, mem_va = s->data.va + s->len;

		err = put_copy(c, s, to_gpu ? mem_va : bo_va,
			       to_gpu ? bo_va : mem_va, n);
		s->len += n;
		s->span += n;
		offset += n;
		len -= n;
	}
	return err;
}

int gpucr_copy_slot_zero(struct gpucr_copy *c, struct gpucr_copy_slot *s,
			 const struct gpucr_copy_map *m, uint64_t offset,
			 uint64_t len)
{
	int err = add_bo(s, m->bo);

	while (len && !err) {
		uint32_t n = len < c->max_packet ? len : c->max_packet;

		err = put_zeros(c, s, m->va + offset, n);
		s->zeros++;
		s->span += n;
		offset += n;
		len -= n;
	}
	return err;
}

uint64_t gpucr_copy_slot_room(const struct gpucr_copy *c,
			      const struct gpucr_copy_slot *s, bool zero)
{
	uint64_t packets, bytes;

	if (!zero)
		return c->cfg.slot_size - s->len;
	packets = (s->max_zeros - s->zeros) * (uint64_t)c->max_packet;
	bytes = MAX_ZEROS - (s->span - s->len);
	return packets < bytes ? packets : bytes;
}

void gpucr_copy_note(struct gpucr_copy *c, uint32_t bo, uint64_t offset)
{
	if (c->failed)
		return;
	c->failed = true;
	c->place = (struct gpucr_copy_place){
		.gpu_id = c->cfg.gpu_id, .bo = bo, .offset = offset,
	};
}

static int slot_failed(struct gpucr_copy *c, const struct gpucr_copy_slot *s,
		       const char *what, int err)
{
	gpucr_err("GPU 0x%04x, SDMA from BO %u at 0x%llx, %llu bytes: %s: %s (copy-failed)",
		  c->cfg.gpu_id, s->first_bo,
		  (unsigned long long)s->first_offset,
		  (unsigned long long)s->span, what, strerror(-err));
	gpucr_copy_note(c, s->first_bo, s->first_offset);
	return err;
}

int gpucr_copy_slot_submit(struct gpucr_copy *c, struct gpucr_copy_slot *s)
{
	struct amdgpu_cs_ib_info ib = { 0 };
	struct amdgpu_cs_request rq = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.number_of_ibs = 1,
		.ibs = &ib,
	};
	int err;

	while (s->num_dw % IB_ALIGN_DW)
		s->packets[s->num_dw++] = 0;
	ib.ib_mc_address = s->ib.va;
	ib.size = s->num_dw;
	err = amdgpu_bo_list_create(c->dev, s->num_bos, s->bos, NULL,
				    &rq.resources);
	if (err)
		return slot_failed(c, s, "no BO list", err);
	err = amdgpu_cs_submit(c->ctx, 0, &rq, 1);
	/* The submission holds what it needs. */
	amdgpu_bo_list_destroy(rq.resources);
	if (err)
		return slot_failed(c, s, "it cannot be submitted", err);
	s->fence = (struct amdgpu_cs_fence){
		.context = c->ctx,
		.ip_type = AMDGPU_HW_IP_DMA,
		.fence = rq.seq_no,
	};
	s->busy = true;
	return 0;
}

/*
 * To amdgpu a timeout is a point in time of its own clock, to which libdrm adds
 * ours. CRIU restores tasks in a time namespace, whose clock goes on where the
 * image's stopped: a wait would end at once there, or hours too late.
 */
static bool has_own_clock(void)
{
	struct stat st;

	return stat("/proc/self/ns/time", &st) || st.st_ino != TIME_NS_INIT;
}

/* Without a wait, whatever the clocks say. */
static int fence_look(struct gpucr_copy_slot *s, uint32_t *expired)
{
	const uint64_t past = 0;

	return amdgpu_cs_query_fence_status(&s->fence, past,
					    AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE,
					    expired);
}

static int fence_poll(struct gpucr_copy_slot *s, uint64_t ns, uint32_t *expired)
{
	uint64_t end = gpucr_now_ns() + ns;
	struct timespec nap = { .tv_nsec = NAP_FIRST_NS };

	for (;;) {
		int err = fence_look(s, expired);

		if (err || *expired || gpucr_now_ns() >= end)
			return err;
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < NAP_LAST_NS)
			nap.tv_nsec *= 2;
	}
}

bool gpucr_copy_slot_is_done(struct gpucr_copy_slot *s)
{
	uint32_t expired = 0;

	return !s->busy || fence_look(s, &expired) || expired;
}

int gpucr_copy_slot_wait(struct gpucr_copy *c, struct gpucr_copy_slot *s)
{
	/* An engine that hangs is waited for once, not once for each slot. */
	uint64_t ns = c->hangs ? 0 : c->cfg.deadline_ms * 1000000ULL;
	uint32_t expired = 0;
	int err;

	if (!s->busy)
		return 0;
	s->busy = false;
	err = c->own_clock ? fence_poll(s, ns, &expired) :
			     amdgpu_cs_query_fence_status(&s->fence, ns, 0,
							  &expired);
	if (!err && expired)
		return 0;
	c->stuck = true;
	if (err)
		return slot_failed(c, s, "it failed", err);
	if (c->hangs)
		return -ETIMEDOUT;
	c->hangs = true;
	gpucr_err("GPU 0x%04x, SDMA from BO %u at 0x%llx, %llu bytes: not done after %u ms (copy-timeout); the engine hangs or is very busy",
		  c->cfg.gpu_id, s->first_bo,
		  (unsigned long long)s->first_offset,
		  (unsigned long long)s->span, c->cfg.deadline_ms);
	gpucr_copy_note(c, s->first_bo, s->first_offset);
	return -ETIMEDOUT;
}

/*
 * Memory on huge pages, where the kernel has them: storage then gets it in
 * a few long pieces, not page by page, and does more with it.
 */
static void *huge_memory(size_t size)
{
	size_t lead, room = size + HUGE_PAGE;
	char *all, *mem;

	all = mmap(NULL, room, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	lead = -(uintptr_t)all & (HUGE_PAGE - 1);
	mem = all + lead;
	if (lead)
		munmap(all, lead);
	munmap(mem + size, HUGE_PAGE - lead);
	madvise(mem, size, MADV_HUGEPAGE);
	return mem;
}

static int slot_memory(struct gpucr_copy *c, struct gpucr_copy_slot *s)
{
	int err;

	s->mem = huge_memory(c->cfg.slot_size);
	if (!s->mem)
		return -ENOMEM;
	/* A fork must not make the pages copy-on-write under the engine. */
	madvise(s->mem, c->cfg.slot_size, MADV_DONTFORK);
	err = amdgpu_create_bo_from_user_mem(c->dev, s->mem, c->cfg.slot_size,
					     &s->data.bo);
	if (err)
		return err;
	err = va_map(c->dev, &s->data, c->cfg.slot_size);
	if (err) {
		amdgpu_bo_free(s->data.bo);
		s->data.bo = NULL;
	}
	return err;
}

static int slot_ib(struct gpucr_copy *c, struct gpucr_copy_slot *s)
{
	struct amdgpu_bo_alloc_request rq = {
		.phys_alignment = PAGE,
		.preferred_heap = AMDGPU_GEM_DOMAIN_GTT,
	};
	void *cpu;
	int err;

	/* At worst every page is a BO of its own; and as many zeros. */
	s->max_zeros = c->cfg.slot_size / PAGE;
	s->max_bos = 2 * s->max_zeros + 2;
	s->max_dw = s->max_zeros * (COPY_DW + FILL_DW) + IB_ALIGN_DW;
	rq.alloc_size = (s->max_dw * sizeof(uint32_t) + PAGE - 1) & ~(PAGE - 1);
	s->bos = calloc(s->max_bos, sizeof(*s->bos));
	if (!s->bos)
		return -ENOMEM;
	err = amdgpu_bo_alloc(c->dev, &rq, &s->ib.bo);
	if (err)
		return err;
	err = va_map(c->dev, &s->ib, rq.alloc_size);
	if (err) {
		amdgpu_bo_free(s->ib.bo);
		s->ib.bo = NULL;
		return err;
	}
	err = amdgpu_bo_cpu_map(s->ib.bo, &cpu);
	if (!err)
		s->packets = cpu;
	return err;
}

static void slot_free(struct gpucr_copy *c, struct gpucr_copy_slot *s)
{
	if (s->packets)
		amdgpu_bo_cpu_unmap(s->ib.bo);
	gpucr_copy_unmap(&s->ib);
	gpucr_copy_unmap(&s->data);
	free(s->bos);
	/* A hanging engine may still write there. */
	if (s->mem && !c->stuck)
		munmap(s->mem, c->cfg.slot_size);
}

static int open_device(struct gpucr_copy *c)
{
	struct amdgpu_gpu_info info;
	uint32_t major, minor;
	int err;

	err = amdgpu_device_initialize(c->cfg.drm_fd, &major, &minor, &c->dev);
	if (err)
		return err;
	err = amdgpu_query_gpu_info(c->dev, &info);
	if (!err)
		err = amdgpu_cs_ctx_create(c->dev, &c->ctx);
	if (err) {
		amdgpu_device_deinitialize(c->dev);
		return err;
	}
	c->own_clock = has_own_clock();
	c->count_minus_one = info.family_id >= AMDGPU_FAMILY_AI;
	c->max_packet = c->count_minus_one ? MAX_PACKET : MAX_PACKET_OLD;
	return 0;
}

int gpucr_copy_open(const struct gpucr_copy_config *cfg,
		    struct gpucr_copy **ret)
{
	struct gpucr_copy *c;
	unsigned int i;
	int err = -ENOMEM;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->cfg = *cfg;
	c->slots = calloc(cfg->slots, sizeof(*c->slots));
	if (!c->slots)
		goto err_free;
	err = open_device(c);
	if (err)
		goto err_slots;
	for (i = 0; i < cfg->slots && !err; i++) {
		err = slot_memory(c, &c->slots[i]);
		if (!err)
			err = slot_ib(c, &c->slots[i]);
	}
	if (err) {
		gpucr_err("GPU 0x%04x: no buffers for SDMA, %u x %zu bytes: %s (copy-failed)",
			  cfg->gpu_id, cfg->slots, cfg->slot_size,
			  strerror(-err));
		gpucr_copy_close(c);
		return err;
	}
	*ret = c;
	return 0;

err_slots:
	free(c->slots);
err_free:
	free(c);
	gpucr_err("GPU 0x%04x cannot be used for copies: %s (copy-failed)",
		  cfg->gpu_id, strerror(-err));
	return err;
}

void gpucr_copy_close(struct gpucr_copy *c)
{
	unsigned int i;

	if (!c)
		return;
	for (i = 0; i < c->cfg.slots; i++)
		slot_free(c, &c->slots[i]);
	amdgpu_cs_ctx_free(c->ctx);
	amdgpu_device_deinitialize(c->dev);
	free(c->slots);
	free(c);
}
