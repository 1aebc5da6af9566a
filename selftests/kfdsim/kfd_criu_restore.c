// SPDX-License-Identifier: GPL-2.0
/*
 * CRIU_OP RESTORE: the calling process gets devices, buffers, queues and
 * events as the private data say; RESUME makes its SVM ranges. As in KFD
 * nothing is undone on an error: the caller is expected to die.
 */
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm.h>
#include "kfdsim_kfd.h"
#include "kfdsim_criu.h"

/* Private data being consumed. */
struct priv_reader {
	u64 base;
	u64 offset;
	u64 size;
};

static int get_record(struct priv_reader *r, void *rec, size_t len)
{
	if (r->size < len || r->offset > r->size - len)
		return -EINVAL;
	if (copy_from_user(rec, u64_to_user_ptr(r->base + r->offset), len))
		return -EFAULT;
	r->offset += len;
	return 0;
}

static int restore_process(struct kfdsim_process *p, struct priv_reader *r)
{
	struct kfdsim_criu_process rec;
	int ret = get_record(r, &rec, sizeof(rec));

	if (ret)
		return ret;
	if (rec.version != KFDSIM_CRIU_VERSION)
		return -EINVAL;
	if (rec.xnack_mode)
		return -EPERM;
	return 0;
}

static int restore_device(struct kfdsim_process *p,
			  const struct kfd_criu_device_bucket *bucket)
{
	struct kfdsim_gpu *gpu = kfdsim_gpu_by_id(bucket->actual_gpu_id);
	struct kfdsim_pdd *pdd = gpu ? kfdsim_pdd_by_gpu(p, gpu) : NULL;
	struct file *file;

	if (!bucket->user_gpu_id || !pdd || pdd->drm_file)
		return -EINVAL;
	pdd->user_gpu_id = bucket->user_gpu_id;
	file = fget(bucket->drm_fd);
	if (!file)
		return -EINVAL;
	if (kfdsim_pdd_acquire_vm(pdd, file)) {
		fput(file);
		return -EINVAL;
	}
	return 0;
}

static int restore_devices(struct kfdsim_process *p,
			   struct kfd_ioctl_criu_args *args,
			   struct priv_reader *r)
{
	struct kfd_criu_device_bucket bucket;
	struct kfdsim_criu_device rec;
	u32 i;
	int ret;

	if (args->num_devices != p->n_pdds)
		return -EINVAL;
	for (i = 0; i < args->num_devices; i++) {
		if (copy_from_user(&bucket,
				   u64_to_user_ptr(args->devices +
						   i * sizeof(bucket)),
				   sizeof(bucket)))
			return -EFAULT;
		ret = get_record(r, &rec, sizeof(rec));
		if (!ret)
			ret = restore_device(p, &bucket);
		if (ret)
			return ret;
	}
	return 0;
}

static int map_restored(struct kfdsim_mem *mem, const struct kfdsim_criu_bo *rec)
{
	struct kfdsim_process *p = mem->pdd->process;
	struct kfdsim_pdd *peer;
	unsigned int i;
	int ret;

	for (i = 0; i < p->n_pdds && i < kfdsim_criu_bo_gpus(); i++) {
		if (!rec->mapped_gpuids[i])
			break;
		peer = kfdsim_pdd_by_user_id(p, rec->mapped_gpuids[i]);
		if (!peer || !peer->vm)
			return -EINVAL;
		if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
			/* its pages are not there yet: RESUME's worker maps */
			set_bit(peer->index, mem->mapped);
			set_bit(peer->index, mem->deferred);
			continue;
		}
		ret = kfdsim_mem_map(mem, peer);
		if (ret)
			return ret;
	}
	return 0;
}

static int restore_bo(struct kfdsim_process *p, struct kfd_criu_bo_bucket *bucket,
		      const struct kfdsim_criu_bo *rec)
{
	struct kfdsim_pdd *pdd = kfdsim_pdd_by_user_id(p, bucket->gpu_id);
	struct kfdsim_mem *mem;
	int ret;

	if (!pdd)
		return -ENODEV;
	if (!pdd->vm || rec->idr_handle > INT_MAX)
		return -EINVAL;
	mem = kfdsim_mem_create(pdd, bucket->addr, bucket->size,
				bucket->alloc_flags, rec->user_addr);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	if (idr_alloc(&pdd->mems, mem, rec->idr_handle, rec->idr_handle + 1,
		      GFP_KERNEL) < 0) {
		kfdsim_mem_destroy(mem);
		return -ENOMEM;
	}
	if (!(mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR))
		bucket->restored_offset =
			kfdsim_mem_offset(mem, pdd->gpu->gpu_id);
	ret = map_restored(mem, rec);
	if (ret || !(mem->flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
				   KFD_IOC_ALLOC_MEM_FLAGS_GTT)))
		return ret;
	ret = kfdsim_bo_export_fd(mem->bo, DRM_RDWR);
	if (ret < 0)
		return ret;
	bucket->dmabuf_fd = ret;
	return 0;
}

static int restore_bo_list(struct kfdsim_process *p,
			   struct kfd_criu_bo_bucket *buckets, u32 num,
			   struct priv_reader *r)
{
	struct kfdsim_criu_bo *rec = kzalloc(sizeof(*rec), GFP_KERNEL);
	int ret = 0;
	u32 i;

	if (!rec)
		return -ENOMEM;
	for (i = 0; i < num; i++)
		buckets[i].dmabuf_fd = KFD_INVALID_FD;
	for (i = 0; !ret && i < num; i++) {
		ret = get_record(r, rec, kfdsim_criu_bo_size());
		if (!ret)
			ret = restore_bo(p, &buckets[i], rec);
		if (!(i % 64))
			cond_resched();
	}
	kfree(rec);
	return ret;
}

static int restore_bos(struct kfdsim_process *p,
		       struct kfd_ioctl_criu_args *args, struct priv_reader *r)
{
	struct kfd_criu_bo_bucket *buckets;
	size_t len = args->num_bos * sizeof(*buckets);
	int ret;

	if (r->offset + (u64)args->num_bos * kfdsim_criu_bo_size() > r->size)
		return -EINVAL;
	spin_lock(&p->evict_lock);
	p->block_notifiers = true;
	p->resume_evict = true;
	spin_unlock(&p->evict_lock);
	if (!args->num_bos)
		return 0;
	buckets = kvmalloc(len, GFP_KERNEL | __GFP_NOWARN);
	if (!buckets)
		return -ENOMEM;
	if (copy_from_user(buckets, u64_to_user_ptr(args->bos), len)) {
		ret = -EFAULT;
		goto out_free;
	}
	ret = restore_bo_list(p, buckets, args->num_bos, r);
	if (!ret && copy_to_user(u64_to_user_ptr(args->bos), buckets, len))
		ret = -EFAULT;
	if (ret)
		kfdsim_criu_close_fds(buckets, args->num_bos);
out_free:
	kvfree(buckets);
	return ret;
}

static void queue_from_record(struct kfdsim_queue *q,
			      const struct kfdsim_criu_queue *rec)
{
	q->qid = rec->q_id;
	q->type = rec->type;
	q->format = rec->format;
	q->ring = rec->q_address;
	q->ring_size = rec->q_size;
	q->rptr_addr = rec->read_ptr_addr;
	q->wptr_addr = rec->write_ptr_addr;
	q->percent = rec->q_percent;
	q->priority = rec->priority;
	q->eop_addr = rec->eop_ring_buffer_address;
	q->eop_size = rec->eop_ring_buffer_size;
	q->ctx_addr = rec->ctx_save_restore_area_address;
	q->ctx_size = rec->ctx_save_restore_area_size;
	q->ctl_stack_size = rec->ctl_stack_size;
	q->doorbell_id = rec->doorbell_id;
	q->sdma_id = rec->sdma_id;
	q->gws = rec->gws;
}

static bool mqd_valid(const struct kfdsim_criu_queue *rec,
		      const struct kfdsim_criu_mqd *mqd)
{
	u32 i;

	if (mqd->magic != KFDSIM_MQD_MAGIC || mqd->error < 0 ||
	    mqd->rptr > mqd->wptr || mqd->ib_depth > KFDSIM_PM4_IBS)
		return false;
	if (mqd->ib_depth && rec->type != KFDSIM_QUEUE_COMPUTE)
		return false;
	for (i = 0; i < mqd->ib_depth; i++)
		if (mqd->ib[i].pos > mqd->ib[i].dw || mqd->ib[i].va & 3)
			return false;
	return true;
}

/* Is the control stack the one that was saved with this MQD? */
static int check_ctl_stack(const struct priv_reader *r,
			   const struct kfdsim_criu_queue *rec,
			   const struct kfdsim_criu_mqd *mqd)
{
	const u64 __user *user = u64_to_user_ptr(r->base + r->offset +
						 rec->mqd_size);
	u32 i;
	u64 word;

	for (i = 0; i < rec->ctl_stack_size / sizeof(word); i++) {
		if (get_user(word, user + i))
			return -EFAULT;
		if (word != kfdsim_ctl_stack_word(mqd, i))
			return -EINVAL;
	}
	return 0;
}

static int queue_make(struct kfdsim_pdd *pdd, const struct kfdsim_criu_queue *rec,
		      const struct kfdsim_criu_mqd *mqd)
{
	struct kfdsim_queue_state state = {
		.rptr = mqd->rptr,
		.wptr = mqd->wptr,
		.progress = mqd->progress,
		.done = mqd->done,
		.error = mqd->error,
		.at.depth = mqd->ib_depth,
	};
	struct kfdsim_queue *want, *q;

	if (!mqd_valid(rec, mqd))
		return -EINVAL;
	memcpy(state.at.ib, mqd->ib, sizeof(state.at.ib));
	if (rec->q_size && !is_power_of_2(rec->q_size))
		return -EINVAL;
	want = kzalloc(sizeof(*want), GFP_KERNEL);
	if (!want)
		return -ENOMEM;
	queue_from_record(want, rec);
	q = kfdsim_queue_create(pdd, want, &state);
	kfree(want);
	return PTR_ERR_OR_ZERO(q);
}

static int restore_queue(struct kfdsim_process *p, struct priv_reader *r)
{
	struct kfdsim_criu_queue rec;
	struct kfdsim_pdd *pdd;
	struct kfdsim_criu_mqd mqd;
	u64 extra;
	int ret = get_record(r, &rec, sizeof(rec));

	if (ret)
		return ret;
	pdd = kfdsim_pdd_by_user_id(p, rec.gpu_id);
	if (!pdd || !pdd->vm)
		return -EINVAL;
	if (!rec.mqd_size ||
	    rec.mqd_size != kfdsim_queue_mqd_size(pdd, rec.type))
		return -EINVAL;
	extra = (u64)rec.mqd_size + rec.ctl_stack_size;
	if (extra > r->size - r->offset)
		return -EINVAL;
	if (copy_from_user(&mqd, u64_to_user_ptr(r->base + r->offset),
			   sizeof(mqd)))
		return -EFAULT;
	ret = check_ctl_stack(r, &rec, &mqd);
	if (ret)
		return ret;
	r->offset += extra;
	return queue_make(pdd, &rec, &mqd);
}

static int restore_object(struct kfdsim_process *p, struct priv_reader *r)
{
	u32 type;
	int ret = get_record(r, &type, sizeof(type));

	if (ret)
		return ret;
	r->offset -= sizeof(type);
	switch (type) {
	case KFDSIM_CRIU_QUEUE:
		return restore_queue(p, r);
	case KFDSIM_CRIU_EVENT:
		return kfdsim_event_restore(p, r->base, &r->offset, r->size);
	case KFDSIM_CRIU_SVM:
		return kfdsim_svm_restore(p, r->base, &r->offset, r->size);
	default:
		return -EINVAL;
	}
}

static int restore_all(struct kfdsim_process *p, struct kfd_ioctl_criu_args *args)
{
	struct priv_reader r = {
		.base = args->priv_data,
		.size = args->priv_data_size,
	};
	int ret;
	u32 i;

	ret = restore_process(p, &r);
	if (!ret)
		ret = restore_devices(p, args, &r);
	if (!ret)
		ret = restore_bos(p, args, &r);
	for (i = 0; !ret && i < args->num_objects; i++)
		ret = restore_object(p, &r);
	if (!ret && r.offset != r.size)
		ret = -EINVAL;
	return ret;
}

/**
 * kfdsim_criu_restore() - CRIU_OP RESTORE
 * @p: the calling process, fresh
 * @args: of the ioctl
 *
 * Queues stay evicted until RESUME's worker has run.
 */
int kfdsim_criu_restore(struct kfdsim_process *p, struct kfd_ioctl_criu_args *args)
{
	int ret;

	if ((args->num_bos && !args->bos) || !args->devices || !args->priv_data ||
	    !args->priv_data_size || !args->num_devices)
		return -EINVAL;
	mutex_lock(&p->lock);
	/* a tracer may come after its target's end */
	ret = READ_ONCE(p->dead) ? -ESRCH : kfdsim_evict(p);
	if (!ret)
		ret = restore_all(p, args);
	mutex_unlock(&p->lock);
	return ret;
}
