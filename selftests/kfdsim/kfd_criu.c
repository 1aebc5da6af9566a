// SPDX-License-Identifier: GPL-2.0
/*
 * CRIU_OP but RESTORE: PROCESS_INFO stops the queues and counts, CHECKPOINT
 * describes, UNPAUSE starts them again, RESUME lets a restored process run.
 */
#include <linux/fdtable.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm.h>
#include "kfdsim_kfd.h"
#include "kfdsim_criu.h"

/* Counts and sizes that PROCESS_INFO tells and CHECKPOINT demands. */
struct criu_counts {
	u32 devices;
	u32 bos;
	u32 objects;
	u64 priv_size;
};

/* BOs below the GPUVM base are KFD's own; 6.1 skips those at 0 too. */
static bool bo_counts(const struct kfdsim_mem *mem)
{
	if (!mem->va)
		return kfdsim_personality >= KFDSIM_6_12;
	return mem->va > KFDSIM_GPUVM_BASE;
}

static u32 queue_ctl_stack_size(const struct kfdsim_queue *q)
{
	return kfdsim_queue_is_sdma(q) ? 0 : q->ctl_stack_size;
}

static void criu_count(struct kfdsim_process *p, struct criu_counts *c)
{
	struct kfdsim_queue *q;
	struct kfdsim_mem *mem;
	u32 i, events, ranges;
	size_t range_size;
	int id;

	memset(c, 0, sizeof(*c));
	c->devices = p->n_pdds;
	c->priv_size = sizeof(struct kfdsim_criu_process) +
		       p->n_pdds * sizeof(struct kfdsim_criu_device);
	for (i = 0; i < p->n_pdds; i++) {
		idr_for_each_entry(&p->pdds[i]->mems, mem, id)
			c->bos += bo_counts(mem);
		list_for_each_entry(q, &p->pdds[i]->queues, node) {
			c->objects++;
			c->priv_size += sizeof(struct kfdsim_criu_queue) +
					kfdsim_queue_mqd_size(q->pdd, q->type) +
					queue_ctl_stack_size(q);
		}
	}
	events = kfdsim_events_count(p);
	ranges = kfdsim_svm_count(p, &range_size);
	c->objects += events + ranges;
	c->priv_size += (u64)c->bos * kfdsim_criu_bo_size() +
			(u64)events * sizeof(struct kfdsim_criu_event) +
			(u64)ranges * range_size;
}

/*
 * 6.1 and 7.2 evict at every call, while UNPAUSE restores once; the others
 * evict only what is not paused yet.
 */
static bool evicts_every_time(void)
{
	return kfdsim_personality == KFDSIM_6_1 ||
	       kfdsim_personality == KFDSIM_7_2;
}

static int criu_process_info(struct kfdsim_process *p,
			     struct kfd_ioctl_criu_args *args)
{
	struct criu_counts c;
	int ret = 0;

	mutex_lock(&p->lock);
	if (!p->n_pdds) {
		ret = -ENODEV;
		goto out_unlock;
	}
	if (!p->queues_paused || evicts_every_time()) {
		ret = kfdsim_evict(p);
		if (ret)
			goto out_unlock;
		p->queues_paused = true;
	}
	args->pid = task_pid_nr_ns(p->lead, task_active_pid_ns(p->lead));
	criu_count(p, &c);
	args->num_devices = c.devices;
	args->num_bos = c.bos;
	args->num_objects = c.objects;
	args->priv_data_size = c.priv_size;
	/* as though one BO were freed before CHECKPOINT counts */
	if (kfdsim_fault("criu-count")) {
		args->num_bos++;
		args->priv_data_size += kfdsim_criu_bo_size();
	}
out_unlock:
	mutex_unlock(&p->lock);
	return ret;
}

static int put_record(u64 dst, u64 *offset, const void *rec, size_t len)
{
	if (copy_to_user(u64_to_user_ptr(dst + *offset), rec, len))
		return -EFAULT;
	*offset += len;
	return 0;
}

static int checkpoint_devices(struct kfdsim_process *p, u64 devices, u64 priv,
			      u64 *offset)
{
	const struct kfdsim_criu_device rec = { 0 };
	u64 dev_offset = 0;
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < p->n_pdds; i++) {
		struct kfd_criu_device_bucket bucket = {
			.user_gpu_id = p->pdds[i]->user_gpu_id,
			.actual_gpu_id = p->pdds[i]->gpu->gpu_id,
		};

		ret = put_record(devices, &dev_offset, &bucket, sizeof(bucket));
		if (!ret)
			ret = put_record(priv, offset, &rec, sizeof(rec));
	}
	return ret;
}

static void queue_record(const struct kfdsim_queue *q,
			 struct kfdsim_criu_queue *rec)
{
	struct kfdsim_criu_mqd *mqd = (void *)(rec + 1);
	u64 *stack;
	u32 i;

	rec->object_type = KFDSIM_CRIU_QUEUE;
	rec->q_address = q->ring;
	rec->q_size = q->ring_size;
	rec->read_ptr_addr = q->rptr_addr;
	rec->write_ptr_addr = q->wptr_addr;
	/* In words on the BAR; ours would begin with the process's frame. */
	rec->doorbell_off = q->doorbell_id * 2;
	rec->eop_ring_buffer_address = q->eop_addr;
	rec->ctx_save_restore_area_address = q->ctx_addr;
	rec->gpu_id = q->pdd->user_gpu_id;
	rec->type = q->type;
	rec->format = q->format;
	rec->q_id = q->qid;
	rec->priority = q->priority;
	rec->q_percent = q->percent;
	rec->doorbell_id = q->doorbell_id;
	rec->gws = q->gws;
	rec->sdma_id = q->sdma_id;
	rec->eop_ring_buffer_size = q->eop_size;
	rec->ctx_save_restore_area_size = q->ctx_size;
	rec->ctl_stack_size = queue_ctl_stack_size(q);
	rec->mqd_size = kfdsim_queue_mqd_size(q->pdd, q->type);
	mqd->magic = KFDSIM_MQD_MAGIC;
	mqd->error = q->error;
	mqd->rptr = q->rptr;
	mqd->wptr = q->wptr;
	mqd->progress = q->progress;
	mqd->done = q->sdma.done;
	mqd->ib_depth = q->pm4.at.depth;
	memcpy(mqd->ib, q->pm4.at.ib, sizeof(mqd->ib));
	/* rung while it stood still: the doorbell page is not saved */
	mqd->wptr = max(q->wptr, kfdsim_doorbell_to_wptr(q, READ_ONCE(*q->doorbell)));
	stack = (void *)mqd + rec->mqd_size;
	for (i = 0; i < rec->ctl_stack_size / sizeof(*stack); i++)
		stack[i] = kfdsim_ctl_stack_word(mqd, i);
}

static int checkpoint_queue(const struct kfdsim_queue *q, u64 priv, u64 *offset)
{
	size_t len = sizeof(struct kfdsim_criu_queue) +
		     kfdsim_queue_mqd_size(q->pdd, q->type) +
		     queue_ctl_stack_size(q);
	struct kfdsim_criu_queue *rec = kvzalloc(len, GFP_KERNEL);
	int ret;

	if (!rec)
		return -ENOMEM;
	queue_record(q, rec);
	ret = put_record(priv, offset, rec, len);
	kvfree(rec);
	return ret;
}

static int checkpoint_queues(struct kfdsim_process *p, u64 priv, u64 *offset)
{
	struct kfdsim_queue *q;
	unsigned int i;
	int ret;

	for (i = 0; i < p->n_pdds; i++) {
		list_for_each_entry(q, &p->pdds[i]->queues, node) {
			ret = checkpoint_queue(q, priv, offset);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static void bo_record(const struct kfdsim_mem *mem, int id,
		      struct kfdsim_criu_bo *rec)
{
	const struct kfdsim_process *p = mem->pdd->process;
	unsigned int i, n = 0;

	memset(rec, 0, sizeof(*rec));
	rec->idr_handle = id;
	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		rec->user_addr = mem->user_addr;
	for_each_set_bit(i, mem->mapped, p->n_pdds)
		if (n < kfdsim_criu_bo_gpus())
			rec->mapped_gpuids[n++] = p->pdds[i]->user_gpu_id;
}

static int bo_bucket(const struct kfdsim_mem *mem,
		     struct kfd_criu_bo_bucket *bucket)
{
	u32 flags = mem->flags;
	int fd;

	memset(bucket, 0, sizeof(*bucket));
	bucket->addr = mem->va;
	bucket->size = mem->size;
	bucket->gpu_id = mem->pdd->user_gpu_id;
	bucket->alloc_flags = flags;
	bucket->offset = kfdsim_mem_offset(mem, mem->pdd->gpu->gpu_id);
	bucket->dmabuf_fd = KFD_INVALID_FD;
	if (!(flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT)))
		return 0;
	fd = kfdsim_bo_export_fd(mem->bo,
				 flags & KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE ?
				 DRM_RDWR : 0);
	if (fd < 0)
		return fd;
	bucket->dmabuf_fd = fd;
	return 0;
}

static int checkpoint_bo(const struct kfdsim_mem *mem, int id,
			 struct kfd_criu_bo_bucket *bucket, u64 priv, u64 *offset)
{
	struct kfdsim_criu_bo *rec = kmalloc(sizeof(*rec), GFP_KERNEL);
	int ret;

	if (!rec)
		return -ENOMEM;
	bo_record(mem, id, rec);
	ret = put_record(priv, offset, rec, kfdsim_criu_bo_size());
	kfree(rec);
	return ret ?: bo_bucket(mem, bucket);
}

/** kfdsim_criu_close_fds() - take back descriptors given to the caller */
void kfdsim_criu_close_fds(const struct kfd_criu_bo_bucket *buckets, u32 n)
{
	while (n--)
		if (buckets[n].dmabuf_fd != KFD_INVALID_FD)
			close_fd(buckets[n].dmabuf_fd);
}

/* Last of all, so that no descriptor is left behind by a later failure. */
static int checkpoint_bos(struct kfdsim_process *p, u32 num, u64 user, u64 priv,
			  u64 offset)
{
	struct kfd_criu_bo_bucket *buckets;
	struct kfdsim_mem *mem;
	u32 i, n = 0;
	int id, ret = 0;

	buckets = kvcalloc(max(num, 1U), sizeof(*buckets), GFP_KERNEL);
	if (!buckets)
		return -ENOMEM;
	for (i = 0; i < p->n_pdds; i++) {
		idr_for_each_entry(&p->pdds[i]->mems, mem, id) {
			if (!bo_counts(mem))
				continue;
			ret = checkpoint_bo(mem, id, &buckets[n], priv, &offset);
			if (ret)
				goto out;
			n++;
			if (!(n % 64))
				cond_resched();
		}
	}
	if (copy_to_user(u64_to_user_ptr(user), buckets,
			 n * sizeof(*buckets)))
		ret = -EFAULT;
out:
	if (ret)
		kfdsim_criu_close_fds(buckets, n);
	kvfree(buckets);
	return ret;
}

static int checkpoint_all(struct kfdsim_process *p,
			  struct kfd_ioctl_criu_args *args)
{
	const struct kfdsim_criu_process head = {
		.version = KFDSIM_CRIU_VERSION,
		.xnack_mode = p->xnack,
	};
	u64 priv = args->priv_data, offset = 0, bo_offset;
	int ret;

	ret = put_record(priv, &offset, &head, sizeof(head));
	if (!ret)
		ret = checkpoint_devices(p, args->devices, priv, &offset);
	if (ret)
		return ret;
	bo_offset = offset;
	offset += (u64)args->num_bos * kfdsim_criu_bo_size();
	ret = checkpoint_queues(p, priv, &offset);
	if (!ret)
		ret = kfdsim_events_checkpoint(p, priv, &offset);
	if (!ret)
		ret = kfdsim_svm_checkpoint(p, priv, &offset);
	if (ret)
		return ret;
	return checkpoint_bos(p, args->num_bos, args->bos, priv, bo_offset);
}

static int criu_checkpoint(struct kfdsim_process *p,
			   struct kfd_ioctl_criu_args *args)
{
	struct criu_counts c;
	int ret;

	if (!args->devices || !args->bos || !args->priv_data)
		return -EINVAL;
	mutex_lock(&p->lock);
	if (!p->n_pdds) {
		ret = -ENODEV;
		goto out_unlock;
	}
	criu_count(p, &c);
	if (!p->queues_paused || c.devices != args->num_devices ||
	    c.bos != args->num_bos || c.objects != args->num_objects ||
	    c.priv_size != args->priv_data_size) {
		ret = -EINVAL;
		goto out_unlock;
	}
	ret = checkpoint_all(p, args);
out_unlock:
	mutex_unlock(&p->lock);
	return ret;
}

static int criu_unpause(struct kfdsim_process *p)
{
	int ret = 0;

	mutex_lock(&p->lock);
	if (p->queues_paused) {
		kfdsim_restore(p);
		p->queues_paused = false;
	} else {
		ret = -EINVAL;
	}
	mutex_unlock(&p->lock);
	return ret;
}

/* By pid, whoever has a KFD file of its own; the target is not traced. */
static int criu_resume(struct kfd_ioctl_criu_args *args)
{
	struct kfdsim_process *target = NULL;
	struct pid *pid = find_get_pid(args->pid);
	int ret;

	if (pid)
		target = kfdsim_process_by_pid(pid);
	put_pid(pid);
	if (!target)
		return -ESRCH;
	mutex_lock(&target->lock);
	ret = kfdsim_svm_resume(target);
	if (ret) {
		pr_debug("kfdsim: ranges of pid %d: %d\n", target->pid, ret);
	} else if (target->has_info) {
		ret = kfdsim_userptr_resume(target);
	} else {
		/* the real driver follows a NULL pointer here */
		atomic64_inc(&kfdsim_stats.resume_null);
		kfdsim_misuse("RESUME of pid %d, which has no VM\n",
			      target->pid);
		ret = -EINVAL;
	}
	mutex_unlock(&target->lock);
	kfdsim_process_put(target);
	return ret;
}

KFDSIM_IOCTL(criu_op)
{
	static const char * const points[] = {
		[KFD_CRIU_OP_PROCESS_INFO] = "criu-process-info",
		[KFD_CRIU_OP_CHECKPOINT] = "criu-checkpoint",
		[KFD_CRIU_OP_UNPAUSE] = "criu-unpause",
		[KFD_CRIU_OP_RESTORE] = "criu-restore",
		[KFD_CRIU_OP_RESUME] = "criu-resume",
	};
	struct kfd_ioctl_criu_args *args = data;
	int ret;

	if (args->op >= ARRAY_SIZE(points))
		return -EINVAL;
	ret = kfdsim_fault(points[args->op]);
	if (ret)
		return ret;
	switch (args->op) {
	case KFD_CRIU_OP_PROCESS_INFO:
		return criu_process_info(p, args);
	case KFD_CRIU_OP_CHECKPOINT:
		return criu_checkpoint(p, args);
	case KFD_CRIU_OP_UNPAUSE:
		return criu_unpause(p);
	case KFD_CRIU_OP_RESTORE:
		return kfdsim_criu_restore(p, args);
	default:
		return criu_resume(args);
	}
}
