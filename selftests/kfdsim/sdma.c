// SPDX-License-Identifier: GPL-2.0
/*
 * Executes SDMA packets as the engines of gfx9 (SDMA 4) would. Behind both
 * user queues and command submission.
 */
#include <linux/bitfield.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include "kfdsim_drm.h"

static bool strict_count;
module_param(strict_count, bool, 0644);
MODULE_PARM_DESC(strict_count, "fault on a copy that ends one byte past a page");

/* The owner of a stream is asked to stop at least this often. */
#define STOP_BYTES	(64 * 1024)

enum {
	OP_NOP = 0,
	OP_COPY = 1,
	OP_WRITE = 2,
	OP_FENCE = 5,
	OP_TRAP = 6,
	OP_POLL_REGMEM = 8,
	OP_ATOMIC = 10,
	OP_CONST_FILL = 11,
	OP_TIMESTAMP = 13,
};

#define HDR_OP			GENMASK(7, 0)
#define HDR_SUB_OP		GENMASK(15, 8)
#define HDR_NOP_COUNT		GENMASK(29, 16)
#define HDR_COPY_BROADCAST	BIT(27)
#define HDR_POLL_FUNC		GENMASK(30, 28)
#define HDR_POLL_MEM		BIT(31)
#define HDR_ATOMIC_OP		GENMASK(31, 25)
#define HDR_FILL_SIZE		GENMASK(31, 30)
#define COPY_COUNT		GENMASK(29, 0)
#define FILL_COUNT		GENMASK(29, 0)
#define WRITE_COUNT		GENMASK(19, 0)
#define TRAP_CONTEXT		GENMASK(27, 0)

#define ATOMIC_ADD64		47
#define TIMESTAMP_GET		1
#define TIMESTAMP_GET_GLOBAL	2

static u64 addr_at(const u32 *dw)
{
	return dw[0] | (u64)dw[1] << 32;
}

static int fault_at(struct kfdsim_sdma *s, u64 va)
{
	s->fault_va = va;
	return -EFAULT;
}

/** kfdsim_sdma_put() - write a few bytes */
int kfdsim_sdma_put(struct kfdsim_sdma *s, u64 va, const void *buf, size_t len)
{
	/* buf is only read */
	int ret = kfdsim_vm_rw(s->vm, va, (void *)buf, len, true, &s->fault_va);

	if (!ret)
		atomic64_add(len, s->bytes);
	return ret;
}

/* What PRT source pages give. */
static int fill_zero(struct kfdsim_seg *dst, u64 len)
{
	return kfdsim_bo_fill(dst->bo, dst->off, len, 0);
}

/* Copy the first part of src to dst that one mapping each covers. */
static ssize_t copy_some(struct kfdsim_sdma *s, u64 src, u64 dst, u64 len)
{
	struct kfdsim_seg from, to;
	int ret;

	ret = kfdsim_vm_seg(s->vm, src, len, false, &from);
	if (ret)
		return fault_at(s, src);
	ret = kfdsim_vm_seg(s->vm, dst, from.len, true, &to);
	if (ret) {
		kfdsim_seg_put(&from);
		return fault_at(s, dst);
	}
	if (to.bo && from.bo)
		ret = kfdsim_bo_copy(to.bo, to.off, from.bo, from.off, to.len);
	else if (to.bo)
		ret = fill_zero(&to, to.len);
	if (ret == -EFAULT)
		s->fault_va = from.bo && from.bo->userptr ? src : dst;
	kfdsim_seg_put(&to);
	kfdsim_seg_put(&from);
	return ret ? ret : to.len;
}

/*
 * Copy until s->done is at end; it is at start when src and dst are at their
 * first bytes.
 */
static int copy_until(struct kfdsim_sdma *s, u64 src, u64 dst, u64 start, u64 end)
{
	while (s->done < end) {
		u64 at = s->done - start;
		ssize_t n;

		if (s->stop && s->stop(s))
			return -EAGAIN;
		n = copy_some(s, src + at, dst + at,
			      min_t(u64, end - s->done, STOP_BYTES));
		if (n < 0)
			return n;
		s->done += n;
		atomic64_add(n, s->bytes);
		kfdsim_rate_wait(s->gpu, n);
		cond_resched();
	}
	return 0;
}

/** kfdsim_sdma_copy() - all of one packet; go on after -EAGAIN */
int kfdsim_sdma_copy(struct kfdsim_sdma *s, u64 src, u64 dst, u64 len)
{
	return copy_until(s, src, dst, 0, len);
}

/*
 * One destination. A client that writes the length where length - 1 belongs
 * copies one byte too many; that byte may fall off the end of its buffer.
 */
static int copy_to(struct kfdsim_sdma *s, u64 src, u64 dst, u64 start, u64 len)
{
	bool overrun = len > PAGE_SIZE && len % PAGE_SIZE == 1;
	int ret;

	if (!overrun)
		return copy_until(s, src, dst, start, start + len);
	if (READ_ONCE(strict_count)) {
		atomic64_inc(&s->gpu->count_overruns);
		return fault_at(s, dst + len - 1);
	}
	ret = copy_until(s, src, dst, start, start + len - 1);
	if (ret)
		return ret;
	ret = copy_until(s, src, dst, start, start + len);
	if (ret == -EAGAIN)
		return ret;
	atomic64_inc(&s->gpu->count_overruns);
	if (ret == -EFAULT) {
		s->done = start + len;
		ret = 0;
	}
	return ret;
}

static int op_copy(struct kfdsim_sdma *s, const u32 *dw)
{
	u64 len = FIELD_GET(COPY_COUNT, dw[1]) + 1ULL;
	int ret = 0;

	if (!s->asked && !s->done) {
		s->asked = true;
		s->partial = kfdsim_fault("copy-partial");
	}
	if (s->partial) {
		ret = copy_until(s, addr_at(dw + 3), addr_at(dw + 5), 0, len / 2);
		return ret ?: s->partial;
	}
	if (s->done < len)
		ret = copy_to(s, addr_at(dw + 3), addr_at(dw + 5), 0, len);
	if (!ret && dw[0] & HDR_COPY_BROADCAST)
		ret = copy_to(s, addr_at(dw + 3), addr_at(dw + 7), len, len);
	return ret;
}

static int op_write(struct kfdsim_sdma *s, const u32 *dw)
{
	size_t n = FIELD_GET(WRITE_COUNT, dw[3]) + 1;

	return kfdsim_sdma_put(s, addr_at(dw + 1), dw + 4, n * sizeof(u32));
}

static int op_fence(struct kfdsim_sdma *s, const u32 *dw)
{
	return kfdsim_sdma_put(s, addr_at(dw + 1) & ~3ULL, dw + 3, sizeof(u32));
}

/** kfdsim_sdma_holds() - is that what a packet waits for? */
bool kfdsim_sdma_holds(u32 func, u32 value, u32 ref)
{
	switch (func) {
	case 0: return true;
	case 1: return value < ref;
	case 2: return value <= ref;
	case 3: return value == ref;
	case 4: return value != ref;
	case 5: return value >= ref;
	case 6: return value > ref;
	default: return true;
	}
}

static int op_poll(struct kfdsim_sdma *s, const u32 *dw)
{
	u32 value;
	int ret;

	/* Registers: only the HDP flush is of use to clients, and needs nothing. */
	if (!(dw[0] & HDR_POLL_MEM))
		return 0;
	ret = kfdsim_vm_rw(s->vm, addr_at(dw + 1) & ~3ULL, &value, sizeof(value),
			   false, &s->fault_va);
	if (ret)
		return ret;
	if (!kfdsim_sdma_holds(FIELD_GET(HDR_POLL_FUNC, dw[0]), value & dw[4], dw[3]))
		return -EAGAIN;
	return 0;
}

/** kfdsim_sdma_add64() - add to a 64-bit word, atomically against CPUs */
int kfdsim_sdma_add64(struct kfdsim_sdma *s, u64 va, u64 value)
{
	struct kfdsim_seg seg;
	int ret;

	if (!IS_ALIGNED(va, sizeof(u64)) ||
	    kfdsim_vm_seg(s->vm, va, sizeof(u64), true, &seg))
		return fault_at(s, va);
	ret = seg.bo ? kfdsim_bo_add64(seg.bo, seg.off, value) : 0;
	kfdsim_seg_put(&seg);
	if (ret == -EFAULT)
		s->fault_va = va;
	if (!ret)
		atomic64_add(sizeof(u64), s->bytes);
	return ret;
}

static int op_atomic(struct kfdsim_sdma *s, const u32 *dw)
{
	if (FIELD_GET(HDR_ATOMIC_OP, dw[0]) != ATOMIC_ADD64)
		return -EINVAL;
	return kfdsim_sdma_add64(s, addr_at(dw + 1), addr_at(dw + 3));
}

static ssize_t fill_some(struct kfdsim_sdma *s, u64 dst, u64 len, u32 pattern)
{
	struct kfdsim_seg to;
	int ret = 0;

	if (kfdsim_vm_seg(s->vm, dst, len, true, &to))
		return fault_at(s, dst);
	if (to.bo)
		ret = kfdsim_bo_fill(to.bo, to.off, to.len, pattern);
	kfdsim_seg_put(&to);
	if (ret == -EFAULT)
		s->fault_va = dst;
	return ret ? ret : to.len;
}

/** kfdsim_sdma_fill() - all of one packet; go on after -EAGAIN */
int kfdsim_sdma_fill(struct kfdsim_sdma *s, u64 dst, u64 len, u32 pattern)
{
	while (s->done < len) {
		ssize_t n;

		if (s->stop && s->stop(s))
			return -EAGAIN;
		n = fill_some(s, dst + s->done,
			      min_t(u64, len - s->done, STOP_BYTES), pattern);
		if (n < 0)
			return n;
		s->done += n;
		atomic64_add(n, s->bytes);
		kfdsim_rate_wait(s->gpu, n);
		cond_resched();
	}
	return 0;
}

static int op_fill(struct kfdsim_sdma *s, const u32 *dw)
{
	u64 len = FIELD_GET(FILL_COUNT, dw[4]) + 1ULL;
	u64 dst = addr_at(dw + 1);
	u32 pattern = dw[3];

	switch (FIELD_GET(HDR_FILL_SIZE, dw[0])) {
	case 0:
		pattern = (pattern & 0xff) * 0x01010101U;
		break;
	case 1:
		pattern = (pattern & 0xffff) * 0x00010001U;
		break;
	case 2:	/* whole dwords, of which the count may name the last byte or the first */
		len = ((len - 1) | 3) + 1;
		break;
	default:
		return -EINVAL;
	}
	return kfdsim_sdma_fill(s, dst, len, pattern);
}

static int op_timestamp(struct kfdsim_sdma *s, const u32 *dw)
{
	u64 now = kfdsim_gpu_clock();

	return kfdsim_sdma_put(s, addr_at(dw + 1) & ~7ULL, &now, sizeof(now));
}

/* Length in dwords by header, 0: no such packet. WRITE needs dw[3] for its own. */
static unsigned int packet_len(u32 hdr)
{
	u32 sub = FIELD_GET(HDR_SUB_OP, hdr);

	switch (FIELD_GET(HDR_OP, hdr)) {
	case OP_NOP:
		return sub ? 0 : 1 + FIELD_GET(HDR_NOP_COUNT, hdr);
	case OP_COPY:
		return sub ? 0 : hdr & HDR_COPY_BROADCAST ? 9 : 7;
	case OP_WRITE:
		return sub ? 0 : 4;
	case OP_FENCE:
		return sub ? 0 : 4;
	case OP_TRAP:
		return sub ? 0 : 2;
	case OP_POLL_REGMEM:
		return sub ? 0 : 6;
	case OP_ATOMIC:
		return sub ? 0 : 8;
	case OP_CONST_FILL:
		return sub ? 0 : 5;
	case OP_TIMESTAMP:
		return sub == TIMESTAMP_GET || sub == TIMESTAMP_GET_GLOBAL ? 3 : 0;
	}
	return 0;
}

static int execute(struct kfdsim_sdma *s, const u32 *dw)
{
	switch (FIELD_GET(HDR_OP, dw[0])) {
	case OP_COPY:
		return op_copy(s, dw);
	case OP_WRITE:
		return op_write(s, dw);
	case OP_FENCE:
		return op_fence(s, dw);
	case OP_TRAP:
		if (s->trap)
			s->trap(s, FIELD_GET(TRAP_CONTEXT, dw[1]));
		return 0;
	case OP_POLL_REGMEM:
		return op_poll(s, dw);
	case OP_ATOMIC:
		return op_atomic(s, dw);
	case OP_CONST_FILL:
		return op_fill(s, dw);
	case OP_TIMESTAMP:
		return op_timestamp(s, dw);
	}
	return 0;	/* NOP */
}

/** kfdsim_sdma_exec() - execute one packet; see kfdsim.h */
int kfdsim_sdma_exec(struct kfdsim_sdma *s, const u32 *dw, unsigned int ndw)
{
	unsigned int len;
	int ret;

	if (!ndw)
		return -ENODATA;
	len = packet_len(dw[0]);
	if (!len)
		return -EINVAL;
	if (len > ndw)
		return -ENODATA;
	if (FIELD_GET(HDR_OP, dw[0]) == OP_WRITE) {
		len += FIELD_GET(WRITE_COUNT, dw[3]) + 1;
		if (len > ndw)
			return -ENODATA;
	}
	ret = execute(s, dw);
	if (ret == -EAGAIN)
		return ret;
	s->done = 0;
	s->asked = false;
	if (ret)
		return ret;
	atomic64_inc(&s->gpu->sdma_packets);
	return len;
}
