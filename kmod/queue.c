// SPDX-License-Identifier: GPL-2.0
/*
 * Queues of a checkpoint: read from the private data that KFD left in the
 * caller's memory, right after it did, and kept with the session.
 *
 * Private data may be large (MQDs and control stacks), so that only the heads
 * of the records are copied. Between two copies the caller may change what is
 * there: each copied record is bounded by itself, and believed in nothing.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <gpucr_kfdpriv.h>

#include "fault.h"
#include "queue.h"
#include "session.h"
#include "snapshot.h"

static int gpucr_queue_fetch(const struct gpucr_kfdpriv *p, u64 offset,
			     void *to, u64 len)
{
	const void __user *from;

	if (fatal_signal_pending(current))
		return -EINTR;
	cond_resched();
	from = (const void __user *)((uintptr_t)p->data + offset);
	return copy_from_user(to, from, len) ? -EFAULT : 0;
}

static void gpucr_queue_fill(struct gpucr_queue *q,
			     const struct gpucr_kfdpriv_queue *from)
{
	q->ring = from->q_address;
	q->ring_size = from->q_size;
	q->read_pointer = from->read_ptr_addr;
	q->write_pointer = from->write_ptr_addr;
	q->doorbell = from->doorbell_off;
	q->eop = from->eop_ring_buffer_address;
	q->ctx_save = from->ctx_save_restore_area_address;
	q->queue_id = from->q_id;
	q->gpu_id = from->gpu_id;
	q->type = from->q_type;
	q->format = from->format;
	q->doorbell_id = from->doorbell_id;
	q->priority = from->priority;
	q->percent = from->q_percent;
	q->sdma_id = from->sdma_id;
	q->gws = from->gws;
	q->eop_size = from->eop_ring_buffer_size;
	q->ctx_save_size = from->ctx_save_restore_area_size;
	q->mqd_size = from->mqd_size;
	q->ctl_stack_size = from->ctl_stack_size;
}

/*
 * Walks all objects; fills where there is something to fill, which may then
 * be short of room.
 * Return: how many queues there are, or a negative errno.
 */
static int gpucr_queue_walk(const struct gpucr_kfdpriv *p,
			    struct gpucr_queues *to, u32 room)
{
	struct gpucr_kfdpriv_object o = {};
	struct gpucr_kfdpriv_queue q;
	u32 n = 0;
	int ret;

	while ((ret = gpucr_kfdpriv_next(p, &o)) > 0) {
		if (o.type != GPUCR_KFDPRIV_QUEUE)
			continue;
		if (n >= room)
			return -E2BIG;
		n++;
		if (!to)
			continue;
		ret = gpucr_kfdpriv_queue(p, &o, &q);
		if (ret)
			return ret;
		gpucr_queue_fill(&to->queues[to->num++], &q);
	}
	return ret ?: n;
}

static struct gpucr_queues *gpucr_queue_read(struct gpucr_kfdpriv *p)
{
	struct gpucr_queues *queues;
	int ret;

	ret = gpucr_fault(GPUCR_FAULT_QUEUE_KEEP) ?: gpucr_kfdpriv_open(p, 0);
	if (ret)
		return ERR_PTR(ret);
	ret = gpucr_queue_walk(p, NULL, GPUCR_MAX_QUEUES);
	if (ret < 0)
		return ERR_PTR(ret);
	queues = kvzalloc(struct_size(queues, queues, ret), GFP_KERNEL_ACCOUNT);
	if (!queues)
		return ERR_PTR(-ENOMEM);
	ret = gpucr_queue_walk(p, queues, ret);
	if (ret >= 0)
		return queues;
	kvfree(queues);
	return ERR_PTR(ret);
}

static void gpucr_queue_complain(int err, struct netlink_ext_ack *ack)
{
	if (err == -EPROTO)
		NL_SET_ERR_MSG(ack,
			       "queues are not kept: private data of an unknown version");
	else if (err == -ENODATA)
		NL_SET_ERR_MSG(ack,
			       "queues are not kept: two sizes of a BO record fit");
	else if (err == -E2BIG)
		NL_SET_ERR_MSG(ack, "queues are not kept: there are too many");
	else
		NL_SET_ERR_MSG(ack,
			       "queues are not kept: private data cannot be read");
}

/**
 * gpucr_queues_keep() - keep the queues of a checkpoint that has succeeded
 * @s: the session
 * @priv: address of the private data in the caller's memory, which has been
 *	found to lie in user space
 * @counts: what is there, as KFD has agreed to
 * @ack: told why not
 *
 * What was kept before is gone, whatever comes of it. Copies from the caller's
 * memory: may sleep for as long as that takes.
 *
 * Return: how many, or a negative errno.
 */
int gpucr_queues_keep(struct gpucr_session *s, u64 priv,
		      const struct gpucr_counts *counts,
		      struct netlink_ext_ack *ack)
{
	struct gpucr_kfdpriv p = {
		.data = (const u8 *)(uintptr_t)priv,
		.fetch = gpucr_queue_fetch,
		.size = counts->priv_size,
		.num_devices = counts->num_devices,
		.num_bos = counts->num_bos,
		.num_objects = counts->num_objects,
	};
	struct gpucr_queues *queues = gpucr_queue_read(&p), *kept = NULL;
	int ret;

	if (IS_ERR(queues)) {
		ret = PTR_ERR(queues);
		gpucr_queue_complain(ret, ack);
	} else {
		ret = queues->num;
		kept = queues;
	}
	mutex_lock(&s->data);
	swap(s->queues, kept);
	mutex_unlock(&s->data);
	kvfree(kept);
	return ret;
}

/**
 * gpucr_queue_snapshot() - the queues that are kept of a session
 * @s: the session
 * @ack: told why not
 *
 * Return: a snapshot of struct gpucr_queue, or an error pointer: -EINVAL,
 * -ENODATA, -ENOMEM.
 */
struct gpucr_snapshot *gpucr_queue_snapshot(struct gpucr_session *s,
					    struct netlink_ext_ack *ack)
{
	struct gpucr_snapshot *snap = ERR_PTR(-ENODATA);
	u32 i;

	if (s->direction != GPUCR_DIRECTION_CHECKPOINT) {
		NL_SET_ERR_MSG(ack, "the session is for a restore");
		return ERR_PTR(-EINVAL);
	}
	mutex_lock(&s->data);
	if (!s->queues) {
		NL_SET_ERR_MSG(ack, "no queues of a checkpoint are kept");
		goto out_unlock;
	}
	snap = gpucr_snapshot_alloc(s->queues->num, sizeof(struct gpucr_queue));
	if (!snap)
		snap = ERR_PTR(-ENOMEM);
	for (i = 0; !IS_ERR(snap) && i < s->queues->num; i++)
		memcpy(gpucr_snapshot_add(snap), &s->queues->queues[i],
		       sizeof(struct gpucr_queue));
out_unlock:
	mutex_unlock(&s->data);
	return snap;
}
