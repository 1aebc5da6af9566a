// SPDX-License-Identifier: GPL-2.0
/*
 * Command submission: what is refused, what is waited for before, and the
 * fences. How packets are executed is in cs_run.c.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
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

/**
 * struct cs - one CS ioctl
 * @file: caller
 * @s: what it submits
 * @signals: syncobjs are to be told when it is over
 */
struct cs {
	struct drm_file *file;
	struct kfdsim_cs *s;
	bool signals;
};

static int check_ib(struct cs *cs, const struct kfdsim_cs_chunk *c)
{
	const struct drm_amdgpu_cs_chunk_ib *ib = c->data;
	int ring = kfdsim_ctx_ring(cs->s->fp->gpu, ib->ip_type, ib->ip_instance,
				   ib->ring);

	if (ring < 0)
		return ring;
	if (++cs->s->ibs > MAX_IBS || ib->ib_bytes / 4 > MAX_IB_DW || ib->va_start & 3)
		return -EINVAL;
	cs->s->ring = ring;
	return 0;
}

static int check_fence(struct cs *cs, const struct kfdsim_cs_chunk *c)
{
	const struct drm_amdgpu_cs_chunk_fence *f = c->data;
	struct drm_gem_object *obj;

	if (cs->s->uf_bo)
		return -EINVAL;
	obj = drm_gem_object_lookup(cs->file, f->handle);
	if (!obj)
		return -EINVAL;
	cs->s->uf_bo = gem_to_kfdsim_bo(obj);
	cs->s->uf_offset = f->offset;
	if (obj->size != PAGE_SIZE || f->offset > PAGE_SIZE - sizeof(u64) ||
	    cs->s->uf_bo->userptr)
		return -EINVAL;
	return 0;
}

static int check_chunk(struct cs *cs, const struct kfdsim_cs_chunk *c)
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
		if (size < sizeof(struct drm_amdgpu_bo_list_in) || cs->s->list)
			return -EINVAL;
		return kfdsim_bo_list_create(cs->file, c->data, &cs->s->list);
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

static int read_chunk(struct kfdsim_cs_chunk *c, u64 user)
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
	cs->s->chunks = kvcalloc(in->num_chunks, sizeof(*cs->s->chunks), GFP_KERNEL);
	if (!cs->s->chunks)
		return -ENOMEM;
	cs->s->nchunks = in->num_chunks;
	for (i = 0; i < in->num_chunks; i++) {
		if (get_user(at, user + i))
			return -EFAULT;
		ret = read_chunk(&cs->s->chunks[i], at);
		if (!ret)
			ret = check_chunk(cs, &cs->s->chunks[i]);
		if (ret)
			return ret;
	}
	return cs->s->ibs ? 0 : -EINVAL;
}

static int check_bo_list(struct cs *cs, u32 handle)
{
	unsigned int i;

	if (handle) {
		if (cs->s->list)
			return -EINVAL;
		cs->s->list = kfdsim_bo_list_get(cs->s->fp, handle);
		if (!cs->s->list)
			return -ENOENT;
	}
	for (i = 0; cs->s->list && i < cs->s->list->n; i++)
		if (cs->s->list->bo[i]->user_mm &&
		    cs->s->list->bo[i]->user_mm != current->mm)
			return -EPERM;
	return 0;
}

/* A fence by its number on a ring of a context, of which it gets a reference. */
static int fence_get(struct kfdsim_fpriv *fp, u32 ctx_id, u32 ip_type,
		     u32 instance, u32 ring, u64 seq, struct kfdsim_fence *f)
{
	int ret;

	f->ctx = kfdsim_ctx_get(fp, ctx_id);
	if (!f->ctx)
		return -EINVAL;
	ret = kfdsim_ctx_ring(fp->gpu, ip_type, instance, ring);
	if (ret < 0) {
		kfdsim_ctx_put(f->ctx);
		return ret;
	}
	f->ring = ret;
	f->seq = seq == ~0ULL ? kfdsim_ctx_last(f->ctx, f->ring) : seq;
	return 0;
}

/* How the other one ends does not matter, but it must have been made. */
static int wait_dep(struct kfdsim_fpriv *fp,
		    const struct drm_amdgpu_cs_chunk_dep *d)
{
	struct kfdsim_fence f;
	u32 first;
	int ret;

	ret = fence_get(fp, d->ctx_id, d->ip_type, d->ip_instance, d->ring,
			d->handle, &f);
	if (ret)
		return ret;
	if (f.seq > kfdsim_ctx_last(f.ctx, f.ring))
		ret = -EINVAL;
	else if (kfdsim_fences_wait(&f, 1, true, U64_MAX, &first) == -ERESTARTSYS)
		ret = -ERESTARTSYS;
	kfdsim_ctx_put(f.ctx);
	return ret;
}

static int wait_chunk(struct cs *cs, const struct kfdsim_cs_chunk *c)
{
	const struct drm_amdgpu_cs_chunk_syncobj *tl = c->data;
	const struct drm_amdgpu_cs_chunk_dep *dep = c->data;
	const struct drm_amdgpu_cs_chunk_sem *sem = c->data;
	size_t i, size = c->dw * sizeof(u32);
	int ret = 0;

	switch (c->id) {
	case AMDGPU_CHUNK_ID_DEPENDENCIES:
	case AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES:
		for (i = 0; i < size / sizeof(*dep) && !ret; i++)
			ret = wait_dep(cs->s->fp, &dep[i]);
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

static int signal_chunk(struct cs *cs, const struct kfdsim_cs_chunk *c)
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
		      int (*fn)(struct cs *cs, const struct kfdsim_cs_chunk *c))
{
	u32 i;
	int ret;

	for (i = 0; i < cs->s->nchunks; i++) {
		ret = fn(cs, &cs->s->chunks[i]);
		if (ret)
			return ret;
	}
	return 0;
}

/* Only what is named comes back; the rest is used where it is. */
static int use_bos(struct cs *cs)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; cs->s->list && i < cs->s->list->n && !ret; i++)
		ret = kfdsim_place_use(cs->s->list->bo[i]);
	return ret;
}

/* Everything that can be refused, and the waits. */
static int cs_prepare(struct cs *cs, const struct drm_amdgpu_cs_in *in)
{
	int ret;

	if (READ_ONCE(cs->s->ctx->guilty))
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
	return ret;
}

/* A syncobj gets a fence that has signalled: the ioctl takes that long then. */
static int signal_when_over(struct cs *cs)
{
	struct kfdsim_fence f = {
		.ctx = cs->s->ctx, .ring = cs->s->ring, .seq = cs->s->seq,
	};
	u32 first;
	int ret;

	ret = kfdsim_fences_wait(&f, 1, true, U64_MAX, &first);
	/* it was accepted, and cannot be made once more */
	if (ret == -ERESTARTSYS)
		return -EINTR;
	return for_chunks(cs, signal_chunk);
}

static struct kfdsim_cs *cs_create(struct kfdsim_fpriv *fp, u32 ctx_id)
{
	struct kfdsim_ctx *ctx = kfdsim_ctx_get(fp, ctx_id);
	struct kfdsim_cs *s;

	if (!ctx)
		return ERR_PTR(-EINVAL);
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s) {
		kfdsim_ctx_put(ctx);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&s->ref);
	s->fp = fp;
	s->ctx = ctx;
	s->mm = current->mm;
	mmgrab(s->mm);
	s->lead = get_task_struct(current->group_leader);
	return s;
}

KFDSIM_IOCTL(kfdsim_cs_ioctl)
{
	union drm_amdgpu_cs *args = data;
	struct cs cs = { .file = file };
	int ret;

	cs.s = cs_create(file->driver_priv, args->in.ctx_id);
	if (IS_ERR(cs.s))
		return PTR_ERR(cs.s);
	ret = cs_prepare(&cs, &args->in);
	if (!ret)
		ret = kfdsim_cs_start(cs.s);
	if (!ret) {
		memset(args, 0, sizeof(*args));
		args->out.handle = cs.s->seq;
	}
	if (!ret && cs.signals)
		ret = signal_when_over(&cs);
	kfdsim_cs_put(cs.s);
	return ret;
}

/*
 * The fault point "fence-never": wait until the timeout, an absolute time, for
 * what does not come.
 * Return: 0, the wait goes on as usual; KFDSIM_BUSY, timed out; -ERESTARTSYS.
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
	return KFDSIM_BUSY;
}

static int wait_for(struct kfdsim_fence *f, u32 n, bool all, u64 timeout_ns,
		    u32 *first)
{
	int ret = fence_never(timeout_ns);

	return ret ?: kfdsim_fences_wait(f, n, all, timeout_ns, first);
}

KFDSIM_IOCTL(kfdsim_wait_cs_ioctl)
{
	union drm_amdgpu_wait_cs *args = data;
	struct kfdsim_fence f;
	u32 first;
	int ret;

	ret = fence_get(file->driver_priv, args->in.ctx_id, args->in.ip_type,
			args->in.ip_instance, args->in.ring, args->in.handle, &f);
	if (ret)
		return ret;
	ret = wait_for(&f, 1, true, args->in.timeout, &first);
	kfdsim_ctx_put(f.ctx);
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.status = ret;		/* 1: still busy */
	return 0;
}

static void fences_put(struct kfdsim_fence *f, u32 n)
{
	while (n--)
		kfdsim_ctx_put(f[n].ctx);
	kvfree(f);
}

static int fences_get(struct kfdsim_fpriv *fp,
		      const struct drm_amdgpu_fence __user *user, u32 n,
		      struct kfdsim_fence **ret)
{
	struct kfdsim_fence *f = kvcalloc(n + 1, sizeof(*f), GFP_KERNEL);
	struct drm_amdgpu_fence one;
	int err = 0;
	u32 i;

	if (!f)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		err = copy_from_user(&one, user + i, sizeof(one)) ? -EFAULT :
		      fence_get(fp, one.ctx_id, one.ip_type, one.ip_instance,
				one.ring, one.seq_no, &f[i]);
		if (err) {
			fences_put(f, i);
			return err;
		}
	}
	*ret = f;
	return 0;
}

KFDSIM_IOCTL(kfdsim_wait_fences_ioctl)
{
	union drm_amdgpu_wait_fences *args = data;
	u32 first = 0, n = args->in.fence_count;
	struct kfdsim_fence *f;
	int ret;

	/* none to wait for: before 7.2 that is an error for "any" only */
	if (n > MAX_FENCES ||
	    (!n && (!args->in.wait_all || kfdsim_personality >= KFDSIM_7_2)))
		return -EINVAL;
	ret = fences_get(file->driver_priv, u64_to_user_ptr(args->in.fences), n, &f);
	if (ret)
		return ret;
	if (n)
		ret = wait_for(f, n, args->in.wait_all, args->in.timeout_ns, &first);
	fences_put(f, n);
	if (ret < 0)
		return ret;
	if (ret || args->in.wait_all)
		first = 0;
	memset(args, 0, sizeof(*args));
	args->out.status = !ret;	/* 1: signalled */
	args->out.first_signaled = first;
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
 * syncobj gets a fence that has signalled, so one that is busy is waited for.
 */
KFDSIM_IOCTL(kfdsim_fence_to_handle_ioctl)
{
	union drm_amdgpu_fence_to_handle *args = data;
	const struct drm_amdgpu_fence *in = &args->in.fence;
	u32 first, what = args->in.what;
	struct kfdsim_fence f;
	int ret;

	ret = fence_get(file->driver_priv, in->ctx_id, in->ip_type,
			in->ip_instance, in->ring, in->seq_no, &f);
	if (ret)
		return ret;
	ret = kfdsim_fences_wait(&f, 1, true, U64_MAX, &first);
	kfdsim_ctx_put(f.ctx);
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
