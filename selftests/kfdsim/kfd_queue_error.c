// SPDX-License-Identifier: GPL-2.0
/*
 * What happens when a queue meets what it cannot execute: it stops for good,
 * and its process learns of it, from the queue if it listens there, else by
 * the event for hardware exceptions.
 */
#include <linux/uaccess.h>
#include "kfdsim_kfd.h"

/* KFD's exception codes; the payload has bit code - 1. */
#define EC_DISPATCH_CODE_INVALID	18
#define EC_PACKET_UNSUPPORTED		20

/* Head of the save area, where user space says how it wants to know. */
struct save_area_header {
	u32 wave_state[4];
	u32 debug_offset;
	u32 debug_size;
	u64 payload;
	u32 event;
	u32 reserved;
};

static_assert(sizeof(struct save_area_header) == 40);

/* Return: somebody was told. */
static bool report_payload(struct kfdsim_queue *q, int err)
{
	u32 code = err == -EOPNOTSUPP ? EC_DISPATCH_CODE_INVALID :
					EC_PACKET_UNSUPPORTED;
	struct save_area_header head;
	u64 __user *payload;
	u64 bits;

	if (kfdsim_queue_is_sdma(q) || !q->ctx_addr ||
	    !READ_ONCE(q->pdd->process->runtime_enabled))
		return false;
	if (copy_from_user(&head, u64_to_user_ptr(q->ctx_addr), sizeof(head)) ||
	    !head.payload || !head.event)
		return false;
	payload = u64_to_user_ptr(head.payload);
	if (get_user(bits, payload) || put_user(bits | BIT_ULL(code - 1), payload))
		return false;
	return !kfdsim_event_set(q->pdd->process, head.event);
}

static bool report_to_queue(struct kfdsim_queue *q, int err)
{
	bool told = report_payload(q, err);

	if (kfdsim_queue_is_aql(q))
		told |= kfdsim_aql_report(q, err);
	return told;
}

/**
 * kfdsim_queue_error() - stop a queue for good; by its runner in a batch
 * @q: the queue
 * @err: -errno: -EFAULT at the stream's fault_va, -EOPNOTSUPP for a dispatch
 */
void kfdsim_queue_error(struct kfdsim_queue *q, int err)
{
	u64 va = q->sdma.fault_va;

	pr_info("kfdsim: pid %d queue %u stopped: error %d at rptr 0x%llx, address 0x%llx\n",
		q->pdd->process->pid, q->qid, err, q->rptr,
		err == -EFAULT ? va : 0);
	WRITE_ONCE(q->error, -err);
	if (err == -EFAULT)
		kfdsim_event_memory_fault(q->pdd, va);
	else if (!report_to_queue(q, err))
		kfdsim_event_hw_exception(q->pdd);
}
