// SPDX-License-Identifier: GPL-2.0
/*
 * User queues as objects: ids, SDMA engine slots, the buffers that they hold,
 * create, update, destroy. kfd_runner.c runs them.
 */
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfdsim_kfd.h"

#define MAX_SDMA_IDS	128	/* engines x queues of one kind and GPU */
#define MAX_CU_MASK	1024

/* SDMA queue slots in use, by all processes. */
static DEFINE_SPINLOCK(sdma_lock);
static DECLARE_BITMAP(sdma_ids[KFDSIM_MAX_GPUS][2], MAX_SDMA_IDS);

static unsigned int sdma_slots(const struct kfdsim_queue *q)
{
	const struct kfdsim_model *m = q->pdd->gpu->model;
	unsigned int engines = q->type == KFDSIM_QUEUE_SDMA_XGMI ?
			       m->num_sdma_xgmi_engines : m->num_sdma_engines;

	return min_t(unsigned int, MAX_SDMA_IDS,
		     engines * m->num_sdma_queues_per_engine);
}

static unsigned long *sdma_map(const struct kfdsim_queue *q)
{
	return sdma_ids[q->pdd->gpu->index][q->type == KFDSIM_QUEUE_SDMA_XGMI];
}

static int sdma_assign(struct kfdsim_queue *q, bool restore)
{
	unsigned int slots = sdma_slots(q);
	unsigned long id;
	int ret = 0;

	if (!kfdsim_queue_is_sdma(q))
		return 0;
	spin_lock(&sdma_lock);
	if (restore) {
		id = q->sdma_id;
		if (id >= slots)
			ret = -EINVAL;
		else if (test_bit(id, sdma_map(q)))
			ret = -EBUSY;
	} else {
		id = find_first_zero_bit(sdma_map(q), slots);
		if (id >= slots)
			ret = -ENOMEM;
	}
	if (!ret)
		__set_bit(id, sdma_map(q));
	spin_unlock(&sdma_lock);
	if (!ret)
		q->sdma_id = id;
	return ret;
}

static void sdma_release(struct kfdsim_queue *q)
{
	if (!kfdsim_queue_is_sdma(q))
		return;
	spin_lock(&sdma_lock);
	__clear_bit(q->sdma_id, sdma_map(q));
	spin_unlock(&sdma_lock);
}

/** kfdsim_queue_mqd_size() - of a queue type; 0 where there is no such type */
u32 kfdsim_queue_mqd_size(const struct kfdsim_pdd *pdd, u32 type)
{
	switch (type) {
	case KFDSIM_QUEUE_COMPUTE:
		return pdd->gpu->model->cp_mqd_size;
	case KFDSIM_QUEUE_SDMA:
	case KFDSIM_QUEUE_SDMA_XGMI:
		return pdd->gpu->model->sdma_mqd_size;
	default:
		return 0;
	}
}

static bool queue_wants_to_run(const struct kfdsim_queue *q)
{
	return q->ring && q->ring_size && q->percent;
}

static void buffers_release(struct kfdsim_queue *q)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(q->bufs); i++) {
		if (q->bufs[i])
			q->bufs[i]->queue_refs--;
		q->bufs[i] = NULL;
	}
}

static int buffer_acquire(struct kfdsim_queue *q, unsigned int slot, u64 va,
			  u64 size)
{
	struct kfdsim_mem *mem = kfdsim_mem_at(q->pdd, va, size);

	if (!mem)
		return -EINVAL;
	mem->queue_refs++;
	q->bufs[slot] = mem;
	return 0;
}

static int save_area_acquire(struct kfdsim_queue *q)
{
	const struct kfdsim_model *m = q->pdd->gpu->model;

	if (q->ctl_stack_size != kfdsim_ctl_stack_size(m) ||
	    q->ctx_size < kfdsim_cwsr_size(m))
		return -EINVAL;
	return buffer_acquire(q, 4, q->ctx_addr, kfdsim_cwsr_total(m));
}

/*
 * From 6.12 on the buffers of a queue must be mapped, each in a mapping of
 * its own of just that size, and cannot go away before the queue.
 */
static int buffers_acquire(struct kfdsim_queue *q)
{
	int ret;

	if (kfdsim_personality < KFDSIM_6_12)
		return 0;
	ret = buffer_acquire(q, 0, q->wptr_addr, PAGE_SIZE);
	if (!ret)
		ret = buffer_acquire(q, 1, q->rptr_addr, PAGE_SIZE);
	if (!ret)
		ret = buffer_acquire(q, 2, q->ring, q->ring_size);
	if (ret || kfdsim_queue_is_sdma(q))
		goto out;
	if (q->eop_addr)
		ret = buffer_acquire(q, 3, q->eop_addr, q->eop_size);
	if (!ret)
		ret = save_area_acquire(q);
out:
	if (ret)
		buffers_release(q);
	return ret;
}

static int queue_ids(struct kfdsim_queue *q, bool restore)
{
	struct kfdsim_process *p = q->pdd->process;
	u32 doorbell = q->doorbell_id;
	int ret;

	if (q->pdd->num_queues >= KFDSIM_MAX_QUEUES_GPU)
		return -ENOSPC;
	if (!restore)
		q->qid = find_first_zero_bit(p->qids, KFDSIM_MAX_QUEUES);
	if (q->qid >= KFDSIM_MAX_QUEUES)
		return -ENOMEM;
	if (__test_and_set_bit(q->qid, p->qids))
		return -ENOSPC;
	ret = sdma_assign(q, restore);
	if (ret)
		goto err_qid;
	ret = kfdsim_doorbell_assign(q, restore ? &doorbell : NULL);
	if (ret)
		goto err_sdma;
	return 0;

err_sdma:
	sdma_release(q);
err_qid:
	__clear_bit(q->qid, p->qids);
	return ret;
}

static void queue_put_ids(struct kfdsim_queue *q)
{
	kfdsim_doorbell_release(q);
	sdma_release(q);
	__clear_bit(q->qid, q->pdd->process->qids);
}

static void queue_set_state(struct kfdsim_queue *q,
			    const struct kfdsim_queue_state *s)
{
	if (s) {
		q->rptr = s->rptr;
		q->wptr = s->wptr;
		q->progress = s->progress;
		q->error = s->error;
		q->sdma.done = s->done;
		q->pm4.at = s->at;
	}
	WRITE_ONCE(*q->doorbell, kfdsim_wptr_to_doorbell(q, q->wptr));
}

/**
 * kfdsim_queue_create() - make a queue and start its runner
 * @pdd: with a VM; process lock held
 * @want: what to make; qid, doorbell_id and sdma_id count with @restore only
 * @restore: state to go on from, or NULL
 *
 * Return: the queue, or an error pointer.
 */
struct kfdsim_queue *kfdsim_queue_create(struct kfdsim_pdd *pdd,
					 const struct kfdsim_queue *want,
					 const struct kfdsim_queue_state *restore)
{
	struct kfdsim_queue *q = kmemdup(want, sizeof(*want), GFP_KERNEL);
	int ret;

	if (!q)
		return ERR_PTR(-ENOMEM);
	q->pdd = pdd;
	init_waitqueue_head(&q->park);
	init_waitqueue_head(&q->wake);
	ret = buffers_acquire(q);
	if (ret)
		goto err_free;
	ret = queue_ids(q, restore);
	if (ret)
		goto err_buffers;
	queue_set_state(q, restore);
	q->active = queue_wants_to_run(q);
	ret = kfdsim_runner_start(q);
	if (ret)
		goto err_ids;
	spin_lock(&pdd->process->evict_lock);
	list_add_tail(&q->node, &pdd->queues);
	spin_unlock(&pdd->process->evict_lock);
	pdd->num_queues++;
	kfdsim_procfs_add_queue(q);
	atomic64_inc(&kfdsim_stats.queues);
	kfdsim_queue_kick(q);
	return q;

err_ids:
	queue_put_ids(q);
err_buffers:
	buffers_release(q);
err_free:
	kfree(q);
	return ERR_PTR(ret);
}

/** kfdsim_queue_destroy() - stop and free a queue; process lock held */
void kfdsim_queue_destroy(struct kfdsim_queue *q)
{
	struct kfdsim_process *p = q->pdd->process;

	spin_lock(&p->evict_lock);
	q->stop = true;
	list_del(&q->node);
	spin_unlock(&p->evict_lock);
	q->pdd->num_queues--;
	kfdsim_runner_stop(q);
	kfdsim_procfs_remove_queue(q);
	queue_put_ids(q);
	buffers_release(q);
	kfree(q);
	atomic64_dec(&kfdsim_stats.queues);
}

/** kfdsim_queues_destroy() - all of a process; process lock held */
void kfdsim_queues_destroy(struct kfdsim_process *p)
{
	struct kfdsim_queue *q, *next;
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		list_for_each_entry_safe(q, next, &p->pdds[i]->queues, node)
			kfdsim_queue_destroy(q);
}

static struct kfdsim_queue *queue_lookup(struct kfdsim_process *p, u32 qid)
{
	struct kfdsim_queue *q;
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		list_for_each_entry(q, &p->pdds[i]->queues, node)
			if (q->qid == qid)
				return q;
	return NULL;
}

/* ioctl limits that create and update share. */
static int check_ring(u64 addr, u32 *size, u32 percent, u32 priority)
{
	if ((percent & 0xff) > KFD_MAX_QUEUE_PERCENTAGE ||
	    priority > KFD_MAX_QUEUE_PRIORITY)
		return -EINVAL;
	if (addr && !access_ok((void __user *)addr, sizeof(u64)))
		return -EFAULT;
	if (*size && !is_power_of_2(*size))
		return -EINVAL;
	*size = max_t(u32, *size, KFD_MIN_QUEUE_RING_SIZE);
	return 0;
}

static int check_addresses(const struct kfd_ioctl_create_queue_args *args)
{
	const u64 addr[] = {
		args->read_pointer_address, args->write_pointer_address,
		args->eop_buffer_address, args->ctx_save_restore_address,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(addr); i++)
		if (!access_ok((void __user *)addr[i], sizeof(u32)))
			return -EFAULT;
	return 0;
}

static int queue_from_args(struct kfdsim_queue *q,
			   struct kfd_ioctl_create_queue_args *args)
{
	int ret = check_ring(args->ring_base_address, &args->ring_size,
			     args->queue_percentage, args->queue_priority);

	if (!ret)
		ret = check_addresses(args);
	if (ret)
		return ret;
	switch (args->queue_type) {
	case KFD_IOC_QUEUE_TYPE_COMPUTE_AQL:
		q->format = KFDSIM_FORMAT_AQL;
		fallthrough;
	case KFD_IOC_QUEUE_TYPE_COMPUTE:
		q->type = KFDSIM_QUEUE_COMPUTE;
		break;
	case KFD_IOC_QUEUE_TYPE_SDMA:
		q->type = KFDSIM_QUEUE_SDMA;
		break;
#ifdef KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID
	case KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID:
		if (kfdsim_personality < KFDSIM_6_12)
			return -EINVAL;
		q->type = KFDSIM_QUEUE_SDMA;
		break;
#endif
	case KFD_IOC_QUEUE_TYPE_SDMA_XGMI:
		q->type = KFDSIM_QUEUE_SDMA_XGMI;
		break;
	default:
		return -EINVAL;
	}
	q->ring = args->ring_base_address;
	q->ring_size = args->ring_size;
	q->rptr_addr = args->read_pointer_address;
	q->wptr_addr = args->write_pointer_address;
	q->percent = args->queue_percentage & 0xff;
	q->priority = args->queue_priority;
	q->eop_addr = args->eop_buffer_address;
	q->eop_size = args->eop_buffer_size;
	q->ctx_addr = args->ctx_save_restore_address;
	q->ctx_size = args->ctx_save_restore_size;
	q->ctl_stack_size = args->ctl_stack_size;
	return 0;
}

/* A queue for one engine is, for us, one of the kind that this engine is. */
static int choose_engine(struct kfdsim_queue *q, const struct kfdsim_model *m,
			 const struct kfd_ioctl_create_queue_args *args)
{
#ifdef KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID
	if (args->queue_type != KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID)
		return 0;
	if (args->sdma_engine_id >= m->num_sdma_engines + m->num_sdma_xgmi_engines)
		return -EINVAL;
	if (args->sdma_engine_id >= m->num_sdma_engines)
		q->type = KFDSIM_QUEUE_SDMA_XGMI;
#endif
	return 0;
}

KFDSIM_IOCTL(create_queue)
{
	struct kfd_ioctl_create_queue_args *args = data;
	struct kfdsim_queue *want, *q;
	struct kfdsim_pdd *pdd;
	int ret;

	ret = kfdsim_fault("create-queue");
	if (ret)
		return ret;
	want = kzalloc(sizeof(*want), GFP_KERNEL);
	if (!want)
		return -ENOMEM;
	ret = queue_from_args(want, args);
	if (ret)
		goto out_free;
	mutex_lock(&p->lock);
	pdd = kfdsim_pdd_bound(p, args->gpu_id, &ret);
	if (!pdd) {
		ret = ret == -ENODEV ? -ESRCH : ret;
		goto out_unlock;
	}
	ret = choose_engine(want, pdd->gpu->model, args);
	if (ret)
		goto out_unlock;
	q = kfdsim_queue_create(pdd, want, NULL);
	if (IS_ERR(q)) {
		ret = PTR_ERR(q);
		goto out_unlock;
	}
	args->queue_id = q->qid;
	args->doorbell_offset = KFDSIM_MMAP_TYPE_DOORBELL |
				KFDSIM_MMAP_GPU(args->gpu_id) |
				q->doorbell_id * 8;
out_unlock:
	mutex_unlock(&p->lock);
out_free:
	kfree(want);
	return ret;
}

KFDSIM_IOCTL(destroy_queue)
{
	struct kfd_ioctl_destroy_queue_args *args = data;
	struct kfdsim_queue *q;

	mutex_lock(&p->lock);
	q = queue_lookup(p, args->queue_id);
	if (q)
		kfdsim_queue_destroy(q);
	mutex_unlock(&p->lock);
	return q ? 0 : -EINVAL;
}

static void queue_set_active(struct kfdsim_queue *q, bool active)
{
	spin_lock(&q->pdd->process->evict_lock);
	q->active = active;
	spin_unlock(&q->pdd->process->evict_lock);
}

/* Move a queue to another ring of its choice, or none. */
static int queue_change_ring(struct kfdsim_queue *q, u64 ring, u64 size)
{
	struct kfdsim_mem *mem = NULL;

	if (kfdsim_personality >= KFDSIM_6_12 && ring && size) {
		mem = kfdsim_mem_at(q->pdd, ring, size);
		if (!mem)
			return -EFAULT;
	}
	queue_set_active(q, false);
	kfdsim_queue_park(q);
	if (mem) {
		mem->queue_refs++;
		if (q->bufs[2])
			q->bufs[2]->queue_refs--;
		q->bufs[2] = mem;
	}
	q->ring = ring;
	q->ring_size = size;
	return 0;
}

KFDSIM_IOCTL(update_queue)
{
	struct kfd_ioctl_update_queue_args *args = data;
	struct kfdsim_queue *q;
	int ret = check_ring(args->ring_base_address, &args->ring_size,
			     args->queue_percentage, 0);

	if (ret)
		return ret;
	mutex_lock(&p->lock);
	q = queue_lookup(p, args->queue_id);
	if (!q) {
		ret = -EFAULT;
		goto out_unlock;
	}
	ret = queue_change_ring(q, args->ring_base_address, args->ring_size);
	if (ret)
		goto out_unlock;
	q->percent = args->queue_percentage & 0xff;
	q->priority = args->queue_priority;
	queue_set_active(q, queue_wants_to_run(q));
	kfdsim_queue_kick(q);
out_unlock:
	mutex_unlock(&p->lock);
	return ret;
}

KFDSIM_IOCTL(set_cu_mask)
{
	struct kfd_ioctl_set_cu_mask_args *args = data;
	u32 mask[MAX_CU_MASK / 32];
	u32 n = min_t(u32, args->num_cu_mask, MAX_CU_MASK) / 32;
	struct kfdsim_queue *q;

	if (!args->num_cu_mask || args->num_cu_mask % 32)
		return -EINVAL;
	/* no shader runs here: only the request is checked */
	if (copy_from_user(mask, u64_to_user_ptr(args->cu_mask_ptr),
			   n * sizeof(u32)))
		return -EFAULT;
	mutex_lock(&p->lock);
	q = queue_lookup(p, args->queue_id);
	mutex_unlock(&p->lock);
	return q ? 0 : -EFAULT;
}

KFDSIM_IOCTL(get_queue_wave_state)
{
	struct kfd_ioctl_get_queue_wave_state_args *args = data;
	struct kfdsim_queue *q;
	int ret = 0;

	mutex_lock(&p->lock);
	q = queue_lookup(p, args->queue_id);
	if (!q)
		ret = -EFAULT;
	else if (kfdsim_queue_is_sdma(q) || q->active)
		ret = -EINVAL;
	mutex_unlock(&p->lock);
	args->ctl_stack_used_size = 0;
	args->save_area_used_size = 0;
	return ret;
}

static bool gws_taken(const struct kfdsim_pdd *pdd)
{
	const struct kfdsim_queue *q;

	list_for_each_entry(q, &pdd->queues, node)
		if (q->gws)
			return true;
	return false;
}

/*
 * One queue of a process and GPU may have it, of whatever kind, and has all of
 * it. Giving it back for a queue that is not the one has KFD follow a NULL
 * pointer; here that is refused.
 */
KFDSIM_IOCTL(alloc_queue_gws)
{
	struct kfd_ioctl_alloc_queue_gws_args *args = data;
	struct kfdsim_queue *q;
	int ret = 0;

	mutex_lock(&p->lock);
	q = queue_lookup(p, args->queue_id);
	if (!q)
		ret = -EINVAL;
	else if (!q->pdd->gpu->model->num_gws)
		ret = -ENODEV;
	else if (args->num_gws && gws_taken(q->pdd))
		ret = -EBUSY;
	else if (!args->num_gws && !q->gws)
		ret = -EINVAL;
	else
		q->gws = args->num_gws;
	mutex_unlock(&p->lock);
	args->first_gws = 0;
	return ret;
}
