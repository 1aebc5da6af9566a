// SPDX-License-Identifier: GPL-2.0
/*
 * Executes PM4 packets as a compute pipe of gfx9 would, as far as that can be
 * done without shaders. Behind user queues, the PM4 buffers of AQL packets and
 * command submission; there also as a graphics ring, which draws nothing.
 */
#include <linux/bitfield.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include "kfdsim_drm.h"

/* Read of an indirect buffer at once; a packet may need more. */
#define WINDOW_DW	256

#define HDR_TYPE		GENMASK(31, 30)
#define HDR_COUNT		GENMASK(29, 16)
#define HDR_OP			GENMASK(15, 8)
#define COUNT_NONE		0x3fff	/* NOP: the header only */

enum {
	OP_NOP = 0x10,
	OP_DISPATCH_DIRECT = 0x15,
	OP_DISPATCH_INDIRECT = 0x16,
	OP_WRITE_DATA = 0x37,
	OP_WAIT_REG_MEM = 0x3c,
	OP_RELEASE_MEM = 0x49,
	OP_DMA_DATA = 0x50,
	OP_ACQUIRE_MEM = 0x58,
	OP_INCREMENT_CE_COUNTER = 0x84,
	OP_INCREMENT_DE_COUNTER = 0x85,
	OP_WAIT_ON_CE_COUNTER = 0x86,
	OP_SET_CE_DE_COUNTERS = 0x89,
};

#define WRITE_DST		GENMASK(11, 8)
#define WRITE_ONE_ADDR		BIT(16)
#define WRITE_DST_MEM_GRBM	1
#define WRITE_DST_L2		2
#define WRITE_DST_MEM		5

#define WAIT_FUNC		GENMASK(2, 0)
#define WAIT_SPACE		GENMASK(5, 4)
#define WAIT_OPERATION		GENMASK(7, 6)

#define IB_SIZE			GENMASK(19, 0)
#define IB_CHAIN		BIT(20)

#define RELEASE_DST		GENMASK(17, 16)
#define RELEASE_INT		GENMASK(26, 24)
#define RELEASE_DATA		GENMASK(31, 29)
#define RELEASE_DST_L2		1

enum {
	RELEASE_INT_NONE,
	RELEASE_INT_ONLY,
	RELEASE_INT_AFTER_WRITE,
	RELEASE_INT_CONFIRM,	/* waits for the write, and interrupts nobody */
};

enum {
	RELEASE_DATA_NONE,
	RELEASE_DATA_32,
	RELEASE_DATA_64,
	RELEASE_DATA_CLOCK,
};

#define DMA_DST			GENMASK(21, 20)
#define DMA_SRC			GENMASK(30, 29)
#define DMA_BYTES		GENMASK(25, 0)
#define DMA_ODD			GENMASK(29, 26)	/* registers, fixed addresses */
#define DMA_SEL_ADDR		0
#define DMA_SEL_DATA		2
#define DMA_SEL_ADDR_L2		3

static int run_ib(struct kfdsim_pm4 *p, unsigned int level);

static u64 addr_at(const u32 *dw)
{
	return dw[0] | (u64)dw[1] << 32;
}

static int op_write_data(struct kfdsim_pm4 *p, const u32 *dw, unsigned int len)
{
	u32 dst = FIELD_GET(WRITE_DST, dw[1]);
	u64 va = addr_at(dw + 2) & ~3ULL;
	unsigned int n = len - 4;

	if (len < 5 || (dst != WRITE_DST_MEM && dst != WRITE_DST_L2 &&
			dst != WRITE_DST_MEM_GRBM))
		return -EINVAL;
	if (dw[1] & WRITE_ONE_ADDR)	/* each at the same place: the last stays */
		return kfdsim_sdma_put(p->s, va, dw + len - 1, sizeof(u32));
	return kfdsim_sdma_put(p->s, va, dw + 4, n * sizeof(u32));
}

static int op_wait(struct kfdsim_pm4 *p, const u32 *dw, unsigned int len)
{
	u32 value;
	int ret;

	/* registers are not modelled, and nothing is written before the wait */
	if (len != 7 || FIELD_GET(WAIT_SPACE, dw[1]) != 1 ||
	    FIELD_GET(WAIT_OPERATION, dw[1]))
		return -EINVAL;
	ret = kfdsim_vm_rw(p->s->vm, addr_at(dw + 2) & ~3ULL, &value,
			   sizeof(value), false, &p->s->fault_va);
	if (ret)
		return ret;
	if (!kfdsim_sdma_holds(FIELD_GET(WAIT_FUNC, dw[1]), value & dw[5], dw[4]))
		return -EAGAIN;
	return 0;
}

static int release_data(struct kfdsim_pm4 *p, const u32 *dw)
{
	u64 va = addr_at(dw + 3), value = addr_at(dw + 5);

	switch (FIELD_GET(RELEASE_DATA, dw[2])) {
	case RELEASE_DATA_NONE:
		return 0;
	case RELEASE_DATA_32:
		return kfdsim_sdma_put(p->s, va & ~3ULL, &value, sizeof(u32));
	case RELEASE_DATA_CLOCK:
		value = kfdsim_gpu_clock();
		fallthrough;
	case RELEASE_DATA_64:
		return kfdsim_sdma_put(p->s, va & ~7ULL, &value, sizeof(value));
	}
	return -EINVAL;
}

static int op_release(struct kfdsim_pm4 *p, const u32 *dw, unsigned int len)
{
	u32 interrupt = FIELD_GET(RELEASE_INT, dw[2]);
	int ret;

	if (len != 8 || FIELD_GET(RELEASE_DST, dw[2]) > RELEASE_DST_L2 ||
	    interrupt > RELEASE_INT_CONFIRM)
		return -EINVAL;
	ret = release_data(p, dw);
	if (ret)
		return ret;
	if ((interrupt == RELEASE_INT_ONLY || interrupt == RELEASE_INT_AFTER_WRITE) &&
	    p->s->trap)
		p->s->trap(p->s, dw[7]);
	return 0;
}

static int op_dma(struct kfdsim_pm4 *p, const u32 *dw, unsigned int len)
{
	u32 dst = FIELD_GET(DMA_DST, dw[1]), src = FIELD_GET(DMA_SRC, dw[1]);
	u32 bytes = FIELD_GET(DMA_BYTES, dw[6]);

	if (len != 7 || dw[6] & DMA_ODD ||
	    (dst != DMA_SEL_ADDR && dst != DMA_SEL_ADDR_L2))
		return -EINVAL;
	switch (src) {
	case DMA_SEL_ADDR:
	case DMA_SEL_ADDR_L2:
		return kfdsim_sdma_copy(p->s, addr_at(dw + 2), addr_at(dw + 4),
					bytes);
	case DMA_SEL_DATA:
		return kfdsim_sdma_fill(p->s, addr_at(dw + 4), bytes, dw[2]);
	}
	return -EINVAL;
}

/*
 * The constant engine of a graphics ring and its draw engine wait for each
 * other by two counters. Here the buffers of the former run first.
 */
static int op_counter(struct kfdsim_pm4 *p, const u32 *dw, unsigned int len)
{
	if (!p->ahead || len != 2)
		return -EINVAL;
	switch (FIELD_GET(HDR_OP, dw[0])) {
	case OP_SET_CE_DE_COUNTERS:
		*p->ahead = 0;
		break;
	case OP_INCREMENT_CE_COUNTER:
		++*p->ahead;
		break;
	case OP_INCREMENT_DE_COUNTER:
		if (*p->ahead)
			--*p->ahead;
		break;
	case OP_WAIT_ON_CE_COUNTER:
		return *p->ahead ? 0 : -EAGAIN;
	}
	return 0;
}

/* Call the buffer of a packet at level, or go on in it after a stop. */
static int op_ib(struct kfdsim_pm4 *p, unsigned int level, const u32 *dw,
		 unsigned int len)
{
	const struct kfdsim_pm4_ib to = {
		.va = addr_at(dw + 1),
		.dw = FIELD_GET(IB_SIZE, dw[3]),
	};
	int ret;

	if (len != 4 || to.va & 3)
		return -EINVAL;
	if (dw[3] & IB_CHAIN) {
		/* a ring has nothing to leave */
		if (!level)
			return -EINVAL;
		p->at.ib[level - 1] = to;
		p->chained = true;
		return 0;
	}
	if (level >= KFDSIM_PM4_IBS)
		return -EINVAL;
	if (p->at.depth <= level) {
		p->at.ib[level] = to;
		p->at.depth = level + 1;
	}
	ret = run_ib(p, level);
	if (!ret)
		p->at.depth = level;
	return ret;
}

static int execute(struct kfdsim_pm4 *p, unsigned int level, const u32 *dw,
		   unsigned int len)
{
	switch (FIELD_GET(HDR_OP, dw[0])) {
	case OP_NOP:
		return 0;
	case OP_WRITE_DATA:
		return op_write_data(p, dw, len);
	case OP_WAIT_REG_MEM:
		return op_wait(p, dw, len);
	case KFDSIM_PM4_INDIRECT_BUFFER:
		return op_ib(p, level, dw, len);
	case OP_RELEASE_MEM:
		return op_release(p, dw, len);
	case OP_DMA_DATA:
		return op_dma(p, dw, len);
	case OP_ACQUIRE_MEM:
		/* no caches: only its length, of gfx9 or of gfx10 and later */
		return len == 7 || len == 8 ? 0 : -EINVAL;
	case OP_INCREMENT_CE_COUNTER:
	case OP_INCREMENT_DE_COUNTER:
	case OP_WAIT_ON_CE_COUNTER:
	case OP_SET_CE_DE_COUNTERS:
		return op_counter(p, dw, len);
	}
	return -EINVAL;
}

static int packet_known(u32 hdr)
{
	switch (FIELD_GET(HDR_OP, hdr)) {
	case OP_NOP:
	case OP_WRITE_DATA:
	case OP_WAIT_REG_MEM:
	case KFDSIM_PM4_INDIRECT_BUFFER:
	case OP_RELEASE_MEM:
	case OP_DMA_DATA:
	case OP_ACQUIRE_MEM:
	case OP_INCREMENT_CE_COUNTER:
	case OP_INCREMENT_DE_COUNTER:
	case OP_WAIT_ON_CE_COUNTER:
	case OP_SET_CE_DE_COUNTERS:
		return 0;
	case OP_DISPATCH_DIRECT:
	case OP_DISPATCH_INDIRECT:
		return -EOPNOTSUPP;
	}
	return -EINVAL;
}

static unsigned int packet_len(u32 hdr)
{
	u32 count = FIELD_GET(HDR_COUNT, hdr);

	if (FIELD_GET(HDR_OP, hdr) == OP_NOP && count == COUNT_NONE)
		return 1;
	return count + 2;
}

/* level: how many indirect buffers the packet is in. */
static int exec_packet(struct kfdsim_pm4 *p, unsigned int level, const u32 *dw,
		       unsigned int ndw)
{
	unsigned int len = 1;
	int ret;

	if (!ndw)
		return -ENODATA;
	switch (FIELD_GET(HDR_TYPE, dw[0])) {
	case 2:		/* filler */
		break;
	case 3:
		ret = packet_known(dw[0]);
		if (ret)
			return ret;
		len = packet_len(dw[0]);
		if (len > ndw)
			return -ENODATA;
		ret = execute(p, level, dw, len);
		if (ret == -EAGAIN)
			return ret;
		p->s->done = 0;
		if (ret)
			return ret;
		break;
	default:	/* register writes */
		return -EINVAL;
	}
	atomic64_inc(&p->s->gpu->pm4_packets);
	return len;
}

/* The next packet does not fit: make the window wider. */
static int window_grow(struct kfdsim_pm4 *p, unsigned int level)
{
	u32 *buf;

	if (p->window_dw[level] >= COUNT_NONE + 2)
		return -EINVAL;
	buf = kvmalloc_array(COUNT_NONE + 2, sizeof(u32), GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	kvfree(p->window[level]);
	p->window[level] = buf;
	p->window_dw[level] = COUNT_NONE + 2;
	return 0;
}

/* Return: dwords of the buffer that are in the window now, or an error. */
static int window_read(struct kfdsim_pm4 *p, unsigned int level)
{
	const struct kfdsim_pm4_ib *ib = &p->at.ib[level];
	u32 n;
	int ret;

	if (!p->window[level]) {
		p->window[level] = kvmalloc_array(WINDOW_DW, sizeof(u32),
						  GFP_KERNEL);
		if (!p->window[level])
			return -ENOMEM;
		p->window_dw[level] = WINDOW_DW;
	}
	n = min_t(u32, ib->dw - ib->pos, p->window_dw[level]);
	ret = kfdsim_vm_rw(p->s->vm, ib->va + ib->pos * 4ULL, p->window[level],
			   n * sizeof(u32), false, &p->s->fault_va);
	return ret ?: (int)n;
}

/* Execute what the window holds. Return: 0 or an error. */
static int run_window(struct kfdsim_pm4 *p, unsigned int level)
{
	struct kfdsim_pm4_ib *ib = &p->at.ib[level];
	int n = window_read(p, level), pos = 0, ret;

	if (n < 0)
		return n;
	while (pos < n) {
		ret = exec_packet(p, level + 1, p->window[level] + pos, n - pos);
		if (ret == -ENODATA && !pos)
			return n == ib->dw - ib->pos ? -EINVAL :
						       window_grow(p, level);
		if (ret == -ENODATA)
			return 0;
		if (ret < 0)
			return ret;
		if (p->progress)
			WRITE_ONCE(*p->progress, *p->progress + 1);
		if (p->chained) {
			p->chained = false;
			return 0;
		}
		pos += ret;
		ib->pos += ret;
		if (p->s->stop && p->s->stop(p->s))
			return -EAGAIN;
	}
	return 0;
}

/* From where the buffer at level stands to its end. */
static int run_ib(struct kfdsim_pm4 *p, unsigned int level)
{
	while (p->at.ib[level].pos < p->at.ib[level].dw) {
		int ret = run_window(p, level);

		if (ret)
			return ret;
		if (p->s->stop && p->s->stop(p->s))
			return -EAGAIN;
		cond_resched();
	}
	return 0;
}

/** kfdsim_pm4_exec() - execute one packet of a ring; see kfdsim.h */
int kfdsim_pm4_exec(struct kfdsim_pm4 *p, const u32 *dw, unsigned int ndw)
{
	return exec_packet(p, 0, dw, ndw);
}

/** kfdsim_pm4_run() - execute an indirect buffer; see kfdsim.h */
int kfdsim_pm4_run(struct kfdsim_pm4 *p, u64 va, u32 ndw)
{
	int ret;

	if (!p->at.depth) {
		p->at.ib[0] = (struct kfdsim_pm4_ib) { .va = va, .dw = ndw };
		p->at.depth = 1;
	}
	ret = run_ib(p, 0);
	if (!ret)
		p->at.depth = 0;
	return ret;
}

/** kfdsim_pm4_release() - free what a stream has allocated */
void kfdsim_pm4_release(struct kfdsim_pm4 *p)
{
	unsigned int i;

	for (i = 0; i < KFDSIM_PM4_IBS; i++) {
		kvfree(p->window[i]);
		p->window[i] = NULL;
	}
}
