// SPDX-License-Identifier: GPL-2.0
/*
 * Command submission. The packets run inside the ioctl, in the caller's
 * address space; as with hardware, a submission that goes wrong is accepted,
 * and WAIT_CS tells.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_file.h>
#include <drm/drm_syncobj.h>
#include "kfdsim_drm.h"

#define MAX_CHUNKS	1024
#define MAX_CHUNK_DW	65536
#define MAX_IBS		49
#define MAX_IB_DW	0xfffff
#define MAX_FENCES	65536
/* As amdgpu's lockup timeouts: for an SDMA packet that waits, for a compute IB. */
#define LOCKUP		(10 * HZ)
#define LOCKUP_COMPUTE	(60 * HZ)

struct cs_chunk {
	u32 id;
	u32 dw;
	void *data;
};

/**
 * struct cs - one CS ioctl
 * @file: caller
 * @fp: the same
 * @ctx: with a reference
 * @list: BOs named, with a reference; may be NULL
 * @chunks: read from user space
 * @nchunks: how many, some of which may not be read yet
 * @ibs: IB chunks seen
 * @ring: of the last of them, by kfdsim_ctx_ring()
 * @uf_bo: where the number of the submission is to be written; may be NULL
 * @uf_offset: and at which byte
 * @ahead: see struct kfdsim_pm4
 * @signals: others than its own fence are to be told that it is over
 * @ready: when its copies are over, as their rate wants
 */
struct cs {
	struct drm_file *file;
	struct kfdsim_fpriv *fp;
	struct kfdsim_ctx *ctx;
	struct kfdsim_bo_list *list;
	struct cs_chunk *chunks;
	u32 nchunks;
	unsigned int ibs;
	u32 ring;
	struct kfdsim_bo *uf_bo;
	u32 uf_offset;
	u32 ahead;
	bool signals;
	u64 ready;
};

static int check_ib(struct cs *cs, const struct cs_chunk *c)
{
	const struct drm_amdgpu_cs_chunk_ib *ib = c->data;
	int ring = kfdsim_ctx_ring(cs->fp->gpu, ib->ip_type, ib->ip_instance,
				   ib->ring);

	if (ring < 0)
		return ring;
	if (++cs->ibs > MAX_IBS || ib->ib_bytes / 4 > MAX_IB_DW || ib->va_start & 3)
		return -EINVAL;
	cs->ring = ring;
	return 0;
}

static int check_fence(struct cs *cs, const struct cs_chunk *c)
{
	const struct drm_amdgpu_cs_chunk_fence *f = c->data;
	struct drm_gem_object *obj;

	if (cs->uf_bo)
		return -EINVAL;
	obj = drm_gem_object_lookup(cs->file, f->handle);
	if (!obj)
		return -EINVAL;
	cs->uf_bo = gem_to_kfdsim_bo(obj);
	cs->uf_offset = f->offset;
	cs->signals = true;
	if (obj->size != PAGE_SIZE || f->offset > PAGE_SIZE - sizeof(u64) ||
	    cs->uf_bo->userptr)
		return -EINVAL;
	return 0;
}

static int check_chunk(struct cs *cs, const struct cs_chunk *c)
{
	size_t size = c->dw * sizeof(u32);

	switch (c->id) {
	case AMDGPU_CHUNK_ID_IB:
		return size < sizeof(struct drm_amdgpu_cs_chunk_ib) ?
			-EINVAL : check_ib(cs, c);
	case AMDGPU_CHUNK_ID_FENCE:
		return size < sizeof(struct drm_amdgpu_cs_chunk_fence) ?
			-EINVAL : check_fence(cs, c);
	case AMDGPU_CHUNK_ID_BO_HANDLES:
		if (size < sizeof(struct drm_amdgpu_bo_list_in) || cs->list)
			return -EINVAL;
		return kfdsim_bo_list_create(cs->file, c->data, &cs->list);
	case AMDGPU_CHUNK_ID_DEPENDENCIES:
	case AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES:
	case AMDGPU_CHUNK_ID_SYNCOBJ_IN:
	case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT:
		return 0;
	case AMDGPU_CHUNK_ID_SYNCOBJ_OUT:
	case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL:
		cs->signals = true;
		return 0;
	}
	return -EINVAL;
}

static int read_chunk(struct cs_chunk *c, u64 user)
{
	struct drm_amdgpu_cs_chunk head;
	size_t size;

	if (copy_from_user(&head, u64_to_user_ptr(user), sizeof(head)))
		return -EFAULT;
	if (head.length_dw > MAX_CHUNK_DW)
		return -EINVAL;
	size = head.length_dw * sizeof(u32);
	c->id = head.chunk_id;
	c->dw = head.length_dw;
	c->data = kvzalloc(max_t(size_t, size, sizeof(u64)), GFP_KERNEL);
	if (!c->data)
		return -ENOMEM;
	if (copy_from_user(c->data, u64_to_user_ptr(head.chunk_data), size))
		return -EFAULT;
	return 0;
}

static int read_chunks(struct cs *cs, const struct drm_amdgpu_cs_in *in)
{
	const u64 __user *user = u64_to_user_ptr(in->chunks);
	u64 at;
	u32 i;
	int ret;

	if (!in->num_chunks || in->num_chunks > MAX_CHUNKS)
		return -EINVAL;
	cs->chunks = kvcalloc(in->num_chunks, sizeof(*cs->chunks), GFP_KERNEL);
	if (!cs->chunks)
		return -ENOMEM;
	cs->nchunks = in->num_chunks;
	for (i = 0; i < in->num_chunks; i++) {
		if (get_user(at, user + i))
			return -EFAULT;
		ret = read_chunk(&cs->chunks[i], at);
		if (!ret)
			ret = check_chunk(cs, &cs->chunks[i]);
		if (ret)
			return ret;
	}
	return cs->ibs ? 0 : -EINVAL;
}

static int check_bo_list(struct cs *cs, u32 handle)
{
	unsigned int i;

	if (handle) {
		if (cs->list)
			return -EINVAL;
		cs->list = kfdsim_bo_list_get(cs->fp, handle);
		if (!cs->list)
			return -ENOENT;
	}
	for (i = 0; cs->list && i < cs->list->n; i++)
		if (cs->list->bo[i]->user_mm &&
		    cs->list->bo[i]->user_mm != current->mm)
			return -EPERM;
	return 0;
}

/**
 * struct exec - one IB being executed
 * @s: its stream
 * @deadline: when patience ends
 */
struct exec {
	struct kfdsim_sdma s;
	unsigned long deadline;
};

static bool sdma_stop(struct kfdsim_sdma *s)
{
	return fatal_signal_pending(current);
}

/* Buffers may call each other for ever. */
static bool pm4_stop(struct kfdsim_sdma *s)
{
	const struct exec *e = container_of(s, struct exec, s);

	return fatal_signal_pending(current) || time_after(jiffies, e->deadline);
}

/* A packet waits, or was stopped. Return: 0 try again; -EINTR; -ETIME. */
static int exec_again(const struct exec *e)
{
	if (fatal_signal_pending(current))
		return -EINTR;
	if (time_after(jiffies, e->deadline))
		return -ETIME;
	usleep_range(100, 200);
	return 0;
}

static int run_sdma(struct exec *e, const u32 *dw, u32 ndw)
{
	u32 i = 0;
	int n;

	while (i < ndw) {
		n = kfdsim_sdma_exec(&e->s, dw + i, ndw - i);
		if (n == -EAGAIN)
			n = exec_again(e);
		if (n == -ENODATA)
			return -EINVAL;
		if (n < 0)
			return n;
		if (n)
			e->deadline = jiffies + LOCKUP;
		i += n;
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

static int run_sdma_ib(struct exec *e, u64 va, size_t size)
{
	u32 *dw = kvmalloc(size, GFP_KERNEL);
	int ret;

	if (!dw)
		return -ENOMEM;
	ret = kfdsim_vm_rw(e->s.vm, va, dw, size, false, &e->s.fault_va);
	if (!ret)
		ret = run_sdma(e, dw, size / 4);
	kvfree(dw);
	return ret;
}

/* ahead: NULL on a compute ring */
static int run_pm4_ib(struct exec *e, u64 va, size_t size, u32 *ahead)
{
	struct kfdsim_pm4 p = { .s = &e->s, .ahead = ahead };
	int ret;

	do {
		ret = kfdsim_pm4_run(&p, va, size / 4);
		if (ret == -EAGAIN)
			ret = exec_again(e) ?: -EAGAIN;
	} while (ret == -EAGAIN);
	kfdsim_pm4_release(&p);
	return ret;
}

static int run_ib(struct cs *cs, const struct drm_amdgpu_cs_chunk_ib *ib)
{
	bool pm4 = ib->ip_type != AMDGPU_HW_IP_DMA;
	bool gfx = ib->ip_type == AMDGPU_HW_IP_GFX;
	struct kfdsim_fpriv *fp = cs->fp;
	struct exec e = {
		.s.vm = fp->vm,
		.s.gpu = fp->gpu,
		.s.bytes = pm4 ? &fp->gpu->pm4_bytes : &fp->gpu->sdma_bytes,
		/* A syncobj and a user fence are told as the ioctl returns. */
		.s.ready = cs->signals ? NULL : &cs->ready,
		.s.stop = pm4 ? pm4_stop : sdma_stop,
		.deadline = jiffies + (pm4 ? LOCKUP_COMPUTE : LOCKUP),
	};
	size_t size = ib->ib_bytes & ~3U;
	int ret;

	if (!size)
		return 0;
	ret = pm4 ? run_pm4_ib(&e, ib->va_start, size, gfx ? &cs->ahead : NULL) :
		    run_sdma_ib(&e, ib->va_start, size);
	if (ret == -EFAULT)
		atomic64_set(&fp->fault_va, e.s.fault_va);
	return ret;
}

static int run_ibs(struct cs *cs)
{
	u32 i;
	int ret;

	for (i = 0; i < cs->nchunks; i++) {
		if (cs->chunks[i].id != AMDGPU_CHUNK_ID_IB)
			continue;
		ret = run_ib(cs, cs->chunks[i].data);
		if (ret)
			return ret;
	}
	return 0;
}

static int wait_chunk(struct cs *cs, const struct cs_chunk *c)
{
	const struct drm_amdgpu_cs_chunk_syncobj *tl = c->data;
	const struct drm_amdgpu_cs_chunk_dep *dep = c->data;
	const struct drm_amdgpu_cs_chunk_sem *sem = c->data;
	size_t i, size = c->dw * sizeof(u32);
	struct kfdsim_ctx *ctx;
	int ret = 0;

	switch (c->id) {
	case AMDGPU_CHUNK_ID_DEPENDENCIES:
	case AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES:
		for (i = 0; i < size / sizeof(*dep) && !ret; i++) {
			ctx = kfdsim_ctx_get(cs->fp, dep[i].ctx_id);
			if (!ctx)
				return -EINVAL;
			kfdsim_ctx_put(ctx);
			ret = kfdsim_ctx_ring(cs->fp->gpu, dep[i].ip_type,
					      dep[i].ip_instance, dep[i].ring);
			ret = min(ret, 0);
		}
		break;
	case AMDGPU_CHUNK_ID_SYNCOBJ_IN:
		for (i = 0; i < size / sizeof(*sem) && !ret; i++)
			ret = kfdsim_syncobj_wait(cs->file, sem[i].handle, 0, 0);
		break;
	case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT:
		for (i = 0; i < size / sizeof(*tl) && !ret; i++)
			ret = kfdsim_syncobj_wait(cs->file, tl[i].handle,
						  tl[i].point, tl[i].flags);
		break;
	}
	return ret;
}

static int signal_chunk(struct cs *cs, const struct cs_chunk *c)
{
	const struct drm_amdgpu_cs_chunk_syncobj *tl = c->data;
	const struct drm_amdgpu_cs_chunk_sem *sem = c->data;
	size_t i, size = c->dw * sizeof(u32);
	int ret = 0;

	if (c->id == AMDGPU_CHUNK_ID_SYNCOBJ_OUT)
		for (i = 0; i < size / sizeof(*sem) && !ret; i++)
			ret = kfdsim_syncobj_signal(cs->file, sem[i].handle, 0);
	if (c->id == AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL)
		for (i = 0; i < size / sizeof(*tl) && !ret; i++)
			ret = kfdsim_syncobj_signal(cs->file, tl[i].handle,
						    tl[i].point);
	return ret;
}

static int for_chunks(struct cs *cs,
		      int (*fn)(struct cs *cs, const struct cs_chunk *c))
{
	u32 i;
	int ret;

	for (i = 0; i < cs->nchunks; i++) {
		ret = fn(cs, &cs->chunks[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static void cs_release(struct cs *cs)
{
	u32 i;

	for (i = 0; i < cs->nchunks; i++)
		kvfree(cs->chunks[i].data);
	kvfree(cs->chunks);
	if (cs->list)
		kfdsim_bo_list_put(cs->list);
	if (cs->uf_bo)
		kfdsim_bo_put(cs->uf_bo);
	kfdsim_ctx_put(cs->ctx);
}

/* Only what is named comes back; the rest is used where it is. */
static int use_bos(struct cs *cs)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; cs->list && i < cs->list->n && !ret; i++)
		ret = kfdsim_place_use(cs->list->bo[i]);
	return ret;
}

/*
 * Wait until the time ready, but not longer than until timeout_ns.
 * Return: 0, it is over; 1, timed out; -ERESTARTSYS.
 */
static int wait_ready(u64 ready, u64 timeout_ns)
{
	ktime_t until = ns_to_ktime(min(ready, timeout_ns));

	while (ktime_get_ns() < ready) {
		if (ktime_get_ns() >= timeout_ns)
			return 1;
		if (signal_pending(current))
			return -ERESTARTSYS;
		set_current_state(TASK_INTERRUPTIBLE);
		schedule_hrtimeout(&until, HRTIMER_MODE_ABS);
	}
	return 0;
}

/* Everything that can be refused, and the waits. */
static int cs_prepare(struct cs *cs, const struct drm_amdgpu_cs_in *in)
{
	int ret;

	if (READ_ONCE(cs->ctx->guilty))
		return -ECANCELED;
	ret = kfdsim_fault("cs-submit");
	if (!ret)
		ret = read_chunks(cs, in);
	if (!ret)
		ret = check_bo_list(cs, in->bo_list_handle);
	if (!ret)
		ret = use_bos(cs);
	if (!ret)
		ret = for_chunks(cs, wait_chunk);
	if (!ret)
		ret = wait_ready(kfdsim_ctx_room(cs->ctx, cs->ring), U64_MAX);
	return ret;
}

static int cs_run(struct cs *cs, union drm_amdgpu_cs *args)
{
	int error = run_ibs(cs);
	u64 seq = kfdsim_ctx_done(cs->ctx, cs->ring, error, cs->ready);

	if (cs->uf_bo)
		kfdsim_bo_rw(cs->uf_bo, cs->uf_offset, &seq, sizeof(seq), true);
	memset(args, 0, sizeof(*args));
	args->out.handle = seq;
	return for_chunks(cs, signal_chunk);
}

KFDSIM_IOCTL(kfdsim_cs_ioctl)
{
	union drm_amdgpu_cs *args = data;
	struct cs cs = {
		.file = file,
		.fp = file->driver_priv,
	};
	int ret;

	cs.ctx = kfdsim_ctx_get(cs.fp, args->in.ctx_id);
	if (!cs.ctx)
		return -EINVAL;
	ret = cs_prepare(&cs, &args->in);
	if (!ret)
		ret = cs_run(&cs, args);
	cs_release(&cs);
	return ret;
}

/* How a submission ended, and in *ready when its fence signals. */
static int fence_result(struct kfdsim_fpriv *fp,
			const struct drm_amdgpu_fence *f, u64 *ready)
{
	struct kfdsim_ctx *ctx = kfdsim_ctx_get(fp, f->ctx_id);
	int ret;

	if (!ctx)
		return -EINVAL;
	ret = kfdsim_ctx_ring(fp->gpu, f->ip_type, f->ip_instance, f->ring);
	if (ret >= 0)
		ret = kfdsim_ctx_result(ctx, ret, f->seq_no, ready);
	kfdsim_ctx_put(ctx);
	return ret;
}

/*
 * The fault point "fence-never": wait until the timeout, an absolute time, for
 * what does not come.
 * Return: 0, the wait goes on as usual; 1, timed out; -ERESTARTSYS.
 */
static int fence_never(u64 timeout_ns)
{
	if (!kfdsim_fault("fence-never"))
		return 0;
	while (timeout_ns > LLONG_MAX || ktime_get_ns() < timeout_ns) {
		schedule_timeout_interruptible(HZ / 50);
		if (signal_pending(current))
			return -ERESTARTSYS;
	}
	return 1;
}

KFDSIM_IOCTL(kfdsim_wait_cs_ioctl)
{
	union drm_amdgpu_wait_cs *args = data;
	struct drm_amdgpu_fence f = {
		.ctx_id = args->in.ctx_id,
		.ip_type = args->in.ip_type,
		.ip_instance = args->in.ip_instance,
		.ring = args->in.ring,
		.seq_no = args->in.handle,
	};
	u64 ready;
	int ret;

	ret = fence_result(file->driver_priv, &f, &ready);
	if (!ret)
		ret = fence_never(args->in.timeout);
	if (!ret)
		ret = wait_ready(ready, args->in.timeout);
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.status = ret;		/* 1: still busy */
	return 0;
}

/*
 * When n fences have signalled, or one has, and which that is.
 * Return: 0, or how one of them failed.
 */
static int fences_ready(struct kfdsim_fpriv *fp,
			const struct drm_amdgpu_fence __user *user, u32 n,
			bool all, u64 *ready, u32 *first)
{
	struct drm_amdgpu_fence f;
	u64 one;
	u32 i;
	int ret;

	*ready = 0;
	*first = 0;
	for (i = 0; i < n; i++) {
		if (copy_from_user(&f, user + i, sizeof(f)))
			return -EFAULT;
		ret = fence_result(fp, &f, &one);
		if (ret)
			return ret;
		if (all) {
			*ready = max(*ready, one);
		} else if (!i || one < *ready) {
			*ready = one;
			*first = i;
		}
		if (!all && one <= ktime_get_ns())
			break;
	}
	return 0;
}

KFDSIM_IOCTL(kfdsim_wait_fences_ioctl)
{
	union drm_amdgpu_wait_fences *args = data;
	const struct drm_amdgpu_fence __user *user =
		u64_to_user_ptr(args->in.fences);
	u32 first, n = args->in.fence_count;
	u64 ready;
	int ret;

	/* none to wait for: before 7.2 that is an error for "any" only */
	if (n > MAX_FENCES ||
	    (!n && (!args->in.wait_all || kfdsim_personality >= KFDSIM_7_2)))
		return -EINVAL;
	ret = fences_ready(file->driver_priv, user, n, args->in.wait_all,
			   &ready, &first);
	if (!ret && n)
		ret = fence_never(args->in.timeout_ns);
	if (!ret)
		ret = wait_ready(ready, args->in.timeout_ns);
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.status = !ret;	/* 1: signalled */
	args->out.first_signaled = ret ? 0 : first;
	return 0;
}

static int fence_to_syncobj(struct drm_file *file, bool as_fd, u32 *out)
{
	struct dma_fence *fence = dma_fence_get_stub();
	struct drm_syncobj *obj;
	int ret;

	ret = drm_syncobj_create(&obj, 0, fence);
	dma_fence_put(fence);
	if (ret)
		return ret;
	if (as_fd)
		ret = drm_syncobj_get_fd(obj, (int *)out);
	else
		ret = drm_syncobj_get_handle(file, obj, out);
	drm_syncobj_put(obj);
	return ret;
}

/*
 * Sync files are not given: they would outlive the module's DRM device. A
 * syncobj holds a fence that has signalled, so one that is busy is waited for.
 */
KFDSIM_IOCTL(kfdsim_fence_to_handle_ioctl)
{
	union drm_amdgpu_fence_to_handle *args = data;
	u32 what = args->in.what;
	u64 ready;
	int ret;

	ret = fence_result(file->driver_priv, &args->in.fence, &ready);
	if (!ret)
		ret = wait_ready(ready, U64_MAX);
	if (ret)
		return ret;
	switch (what) {
	case AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ:
	case AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ_FD:
		return fence_to_syncobj(file,
					what == AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ_FD,
					&args->out.handle);
	}
	return -EINVAL;
}
