// SPDX-License-Identifier: GPL-2.0
/*
 * Executes AQL packets: barriers on HSA signals and the vendor packet that
 * calls a PM4 buffer. There is no shader for a dispatch.
 */
#include <linux/bitfield.h>
#include "kfdsim_kfd.h"

#define HDR_TYPE	GENMASK(7, 0)

enum {
	AQL_VENDOR = 0,
	AQL_INVALID = 1,	/* not written yet, or done with */
	AQL_DISPATCH = 2,
	AQL_BARRIER_AND = 3,
	AQL_BARRIER_OR = 5,
};

#define VENDOR_PM4_IB	1
#define DEPENDENCIES	5

/* The parts of an HSA signal that a packet processor knows. */
#define SIGNAL_VALUE	8
#define SIGNAL_MAILBOX	16
#define SIGNAL_EVENT	24

struct aql_barrier {
	u16 header;
	u16 reserved0;
	u32 reserved1;
	u64 signal[DEPENDENCIES];
	u64 reserved2;
	u64 completion;
};

struct aql_vendor {
	u16 header;
	u16 format;
	u32 ib[4];
	u32 remaining;
	u32 reserved[8];
	u64 completion;
};

union aql_packet {
	u16 header;
	struct aql_barrier barrier;
	struct aql_vendor vendor;
	u32 dw[KFDSIM_AQL_DW];
};

static_assert(sizeof(struct aql_barrier) == 64);
static_assert(sizeof(struct aql_vendor) == 64);
static_assert(sizeof(union aql_packet) == 64);

static int aql_read(struct kfdsim_queue *q, u64 va, void *buf, size_t len)
{
	return kfdsim_vm_rw(q->pdd->vm, va, buf, len, false, &q->sdma.fault_va);
}

/* Tell who waits for a signal by its event, if that is how it is waited for. */
static int signal_notify(struct kfdsim_queue *q, u64 signal)
{
	u64 mailbox, value;
	u32 event;
	int ret;

	ret = aql_read(q, signal + SIGNAL_MAILBOX, &mailbox, sizeof(mailbox));
	if (!ret)
		ret = aql_read(q, signal + SIGNAL_EVENT, &event, sizeof(event));
	if (ret || !mailbox)
		return ret;
	value = event;
	ret = kfdsim_sdma_put(&q->sdma, mailbox, &value, sizeof(value));
	if (!ret)
		kfdsim_event_interrupt(q->pdd->process, event);
	return ret;
}

static int signal_decrement(struct kfdsim_queue *q, u64 signal)
{
	int ret;

	if (!signal)
		return 0;
	ret = kfdsim_sdma_add64(&q->sdma, signal + SIGNAL_VALUE, -1);
	return ret ?: signal_notify(q, signal);
}

/* Or some bits into the value of a signal that reports errors. */
static int signal_report(struct kfdsim_queue *q, u64 signal, u64 bits)
{
	u64 value;
	int ret;

	ret = aql_read(q, signal + SIGNAL_VALUE, &value, sizeof(value));
	value |= bits;
	if (!ret)
		ret = kfdsim_sdma_put(&q->sdma, signal + SIGNAL_VALUE, &value,
				      sizeof(value));
	return ret ?: signal_notify(q, signal);
}

/*
 * The two kinds: all signals that are there at 0, or one of them. A packet
 * that names none waits for nothing.
 */
static int op_barrier(struct kfdsim_queue *q, const struct aql_barrier *b,
		      bool any)
{
	unsigned int i, named = 0, zero = 0;
	u64 value;
	int ret;

	for (i = 0; i < DEPENDENCIES; i++) {
		if (!b->signal[i])
			continue;
		ret = aql_read(q, b->signal[i] + SIGNAL_VALUE, &value,
			       sizeof(value));
		if (ret)
			return ret;
		named++;
		zero += !value;
	}
	if (any ? named && !zero : zero < named)
		return -EAGAIN;
	return 0;
}

static int op_vendor(struct kfdsim_queue *q, const struct aql_vendor *v)
{
	int ret;

	if (v->format != VENDOR_PM4_IB ||
	    FIELD_GET(GENMASK(15, 8), v->ib[0]) != KFDSIM_PM4_INDIRECT_BUFFER)
		return -EINVAL;
	ret = kfdsim_pm4_exec(&q->pm4, v->ib, ARRAY_SIZE(v->ib));
	if (ret == -ENODATA)
		return -EINVAL;
	return ret < 0 ? ret : 0;
}

/* Give the slot back to user space. */
static int slot_free(struct kfdsim_queue *q)
{
	u16 header = AQL_INVALID;
	u64 off = q->rptr & (q->ring_size - 1);

	return kfdsim_vm_rw(q->pdd->vm, q->ring + off, &header, sizeof(header),
			    true, &q->sdma.fault_va);
}

/**
 * kfdsim_aql_exec() - execute one packet
 * @q: its queue, whose rptr is there
 * @dw: the packet
 *
 * Return: its length in dwords; -EAGAIN: stopped, or it waits; -ENODATA:
 * nothing is there yet; -EOPNOTSUPP: a dispatch; -EINVAL: no such packet;
 * -EFAULT.
 */
int kfdsim_aql_exec(struct kfdsim_queue *q, const u32 *dw)
{
	const union aql_packet *pkt = (const void *)dw;
	u64 completion;
	int ret;

	switch (FIELD_GET(HDR_TYPE, pkt->header)) {
	case AQL_INVALID:
		return -ENODATA;
	case AQL_VENDOR:
		ret = op_vendor(q, &pkt->vendor);
		completion = pkt->vendor.completion;
		break;
	case AQL_BARRIER_AND:
	case AQL_BARRIER_OR:
		ret = op_barrier(q, &pkt->barrier,
				 FIELD_GET(HDR_TYPE, pkt->header) == AQL_BARRIER_OR);
		completion = pkt->barrier.completion;
		break;
	case AQL_DISPATCH:
		return -EOPNOTSUPP;
	default:	/* agent dispatch is for CPUs */
		return -EINVAL;
	}
	if (!ret)
		ret = slot_free(q);
	if (!ret)
		ret = signal_decrement(q, completion);
	if (ret)
		return ret;
	atomic64_inc(&q->pdd->gpu->aql_packets);
	return KFDSIM_AQL_DW;
}

/* How ROCr lays its queue out around the read index that KFD knows. */
#define AMD_QUEUE_READ_OFFSET	8	/* from it: its own offset in the queue */
#define AMD_QUEUE_READ_AT	128
#define AMD_QUEUE_INACTIVE	64	/* from it: the signal for errors */
/* What firmware writes there. */
#define INACTIVE_BAD_CODE	8
#define INACTIVE_BAD_PACKET	32

/**
 * kfdsim_aql_report() - tell the error signal of ROCr's queue
 * @q: an AQL queue; its process's address space is borrowed
 * @err: -errno
 *
 * Return: somebody was told.
 */
bool kfdsim_aql_report(struct kfdsim_queue *q, int err)
{
	u64 signal, code = INACTIVE_BAD_PACKET;
	u32 offset;

	if (err == -EOPNOTSUPP)
		code = INACTIVE_BAD_CODE;
	if (aql_read(q, q->rptr_addr + AMD_QUEUE_READ_OFFSET, &offset,
		     sizeof(offset)) || offset != AMD_QUEUE_READ_AT)
		return false;
	if (aql_read(q, q->rptr_addr + AMD_QUEUE_INACTIVE, &signal,
		     sizeof(signal)) || !signal)
		return false;
	return !signal_report(q, signal, code);
}
