// SPDX-License-Identifier: GPL-2.0
/* Submission contexts, and how their submissions ended. */
#include <linux/capability.h>
#include <linux/slab.h>
#include <drm/drm_auth.h>
#include <drm/drm_file.h>
#include "kfdsim_drm.h"

static struct kfdsim_ctx *ctx_create(void)
{
	struct kfdsim_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	unsigned int i;

	if (!ctx)
		return NULL;
	kref_init(&ctx->ref);
	spin_lock_init(&ctx->lock);
	for (i = 0; i < KFDSIM_RINGS; i++) {
		ctx->ring[i].ctx = ctx;
		ctx->ring[i].next = 1;
		kfdsim_cs_init_ring(&ctx->ring[i]);
	}
	return ctx;
}

static void ctx_release(struct kref *ref)
{
	kfree(container_of(ref, struct kfdsim_ctx, ref));
}

/** kfdsim_ctx_get() - context by id, with a reference; NULL: none */
struct kfdsim_ctx *kfdsim_ctx_get(struct kfdsim_fpriv *fp, u32 id)
{
	struct kfdsim_ctx *ctx;

	xa_lock(&fp->ctxs);
	ctx = xa_load(&fp->ctxs, id);
	if (ctx)
		kref_get(&ctx->ref);
	xa_unlock(&fp->ctxs);
	return ctx;
}

void kfdsim_ctx_put(struct kfdsim_ctx *ctx)
{
	kref_put(&ctx->ref, ctx_release);
}

void kfdsim_ctx_release_all(struct kfdsim_fpriv *fp)
{
	struct kfdsim_ctx *ctx;
	unsigned long id;

	xa_for_each(&fp->ctxs, id, ctx)
		kfdsim_ctx_put(ctx);
	xa_destroy(&fp->ctxs);
}

int kfdsim_ctx_ring(const struct kfdsim_gpu *gpu, u32 ip_type, u32 instance,
		    u32 ring)
{
	if (instance)
		return -EINVAL;
	if (ip_type == AMDGPU_HW_IP_DMA && ring < KFDSIM_DMA_RINGS)
		return ring;
	if (ip_type == AMDGPU_HW_IP_COMPUTE && ring < KFDSIM_COMPUTE_RINGS)
		return KFDSIM_DMA_RINGS + ring;
	if (ip_type == AMDGPU_HW_IP_GFX && gpu->model->gfx_ring &&
	    ring < KFDSIM_GFX_RINGS)
		return KFDSIM_DMA_RINGS + KFDSIM_COMPUTE_RINGS + ring;
	return -EINVAL;
}

bool kfdsim_ctx_push(struct kfdsim_ring_state *r, struct kfdsim_cs *cs)
{
	bool room;

	spin_lock(&r->ctx->lock);
	room = r->next - r->done <= KFDSIM_FENCES;
	if (room) {
		cs->seq = r->next++;
		list_add_tail(&cs->node, &r->queue);
	}
	spin_unlock(&r->ctx->lock);
	return room;
}

struct kfdsim_cs *kfdsim_ctx_pop(struct kfdsim_ring_state *r)
{
	struct kfdsim_cs *cs;

	spin_lock(&r->ctx->lock);
	cs = list_first_entry_or_null(&r->queue, struct kfdsim_cs, node);
	if (cs)
		list_del(&cs->node);
	spin_unlock(&r->ctx->lock);
	return cs;
}

void kfdsim_ctx_done(struct kfdsim_ctx *ctx, u32 ring, u64 seq, int error)
{
	struct kfdsim_ring_state *r = &ctx->ring[ring];

	spin_lock(&ctx->lock);
	r->error[seq % KFDSIM_FENCES] = error;
	r->done = seq;
	if (error)
		ctx->guilty = true;
	spin_unlock(&ctx->lock);
}

u64 kfdsim_ctx_last(struct kfdsim_ctx *ctx, u32 ring)
{
	u64 last;

	spin_lock(&ctx->lock);
	last = ctx->ring[ring].next - 1;
	spin_unlock(&ctx->lock);
	return last;
}

int kfdsim_ctx_result(struct kfdsim_ctx *ctx, u32 ring, u64 seq)
{
	struct kfdsim_ring_state *r = &ctx->ring[ring];
	int ret;

	spin_lock(&ctx->lock);
	if (seq >= r->next)
		ret = -EINVAL;
	else if (seq > r->done)
		ret = KFDSIM_BUSY;
	else if (seq + KFDSIM_FENCES <= r->done)
		ret = 0;
	else
		ret = r->error[seq % KFDSIM_FENCES];
	spin_unlock(&ctx->lock);
	return ret;
}

static bool priority_valid(s32 prio)
{
	switch (prio) {
	case AMDGPU_CTX_PRIORITY_VERY_LOW:
	case AMDGPU_CTX_PRIORITY_LOW:
	case AMDGPU_CTX_PRIORITY_NORMAL:
	case AMDGPU_CTX_PRIORITY_HIGH:
	case AMDGPU_CTX_PRIORITY_VERY_HIGH:
		return true;
	}
	return false;
}

static int ctx_alloc(struct kfdsim_fpriv *fp, struct drm_file *file, s32 prio,
		     union drm_amdgpu_ctx *args)
{
	struct kfdsim_ctx *ctx;
	u32 id;
	int ret;

	/* Garbage means normal, as old clients leave it uninitialised. */
	if (priority_valid(prio) && prio > AMDGPU_CTX_PRIORITY_NORMAL &&
	    !capable(CAP_SYS_NICE) && !drm_is_current_master(file))
		return -EACCES;
	ctx = ctx_create();
	if (!ctx)
		return -ENOMEM;
	ret = xa_alloc(&fp->ctxs, &id, ctx, xa_limit_31b, GFP_KERNEL);
	if (ret) {
		kfdsim_ctx_put(ctx);
		return ret;
	}
	args->out.alloc.ctx_id = id;
	return 0;
}

static int ctx_free(struct kfdsim_fpriv *fp, u32 id)
{
	struct kfdsim_ctx *ctx = xa_erase(&fp->ctxs, id);

	if (!ctx)
		return -EINVAL;
	kfdsim_ctx_put(ctx);
	return 0;
}

static int ctx_query(struct kfdsim_fpriv *fp, u32 id, bool second,
		     union drm_amdgpu_ctx_out *out)
{
	struct kfdsim_ctx *ctx = kfdsim_ctx_get(fp, id);

	if (!ctx)
		return -EINVAL;
	out->state.flags = 0;
	out->state.hangs = 0;
	if (second) {
		spin_lock(&ctx->lock);
		if (ctx->guilty)
			out->state.flags |= AMDGPU_CTX_QUERY2_FLAGS_GUILTY;
		spin_unlock(&ctx->lock);
	} else {
		out->state.reset_status = AMDGPU_CTX_NO_RESET;
	}
	kfdsim_ctx_put(ctx);
	return 0;
}

static int ctx_pstate(struct kfdsim_fpriv *fp, u32 id, const u32 *set, u32 *get)
{
	struct kfdsim_ctx *ctx = kfdsim_ctx_get(fp, id);

	if (!ctx)
		return -EINVAL;
	spin_lock(&ctx->lock);
	if (set)
		ctx->pstate = *set;
	if (get)
		*get = ctx->pstate;
	spin_unlock(&ctx->lock);
	kfdsim_ctx_put(ctx);
	return 0;
}

KFDSIM_IOCTL(kfdsim_ctx_ioctl)
{
	struct kfdsim_fpriv *fp = file->driver_priv;
	union drm_amdgpu_ctx *args = data;
	u32 id = args->in.ctx_id, flags = args->in.flags;

	if (args->in.op == AMDGPU_CTX_OP_SET_STABLE_PSTATE) {
		if (flags > AMDGPU_CTX_STABLE_PSTATE_PEAK)
			return -EINVAL;
		return ctx_pstate(fp, id, &flags, NULL);
	}
	if (flags)
		return -EINVAL;
	switch (args->in.op) {
	case AMDGPU_CTX_OP_ALLOC_CTX:
		return ctx_alloc(fp, file, args->in.priority, args);
	case AMDGPU_CTX_OP_FREE_CTX:
		return ctx_free(fp, id);
	case AMDGPU_CTX_OP_QUERY_STATE:
		return ctx_query(fp, id, false, &args->out);
	case AMDGPU_CTX_OP_QUERY_STATE2:
		return ctx_query(fp, id, true, &args->out);
	case AMDGPU_CTX_OP_GET_STABLE_PSTATE:
		return ctx_pstate(fp, id, NULL, &args->out.pstate.flags);
	}
	return -EINVAL;
}
