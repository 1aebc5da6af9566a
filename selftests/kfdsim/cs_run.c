// SPDX-License-Identifier: GPL-2.0
/*
 * Submissions being executed: those of one context to one ring one after the
 * other, by a worker in the address space of whoever made them. As with
 * hardware, one that goes wrong was accepted, and its fence tells.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "kfdsim_drm.h"

/* As amdgpu's lockup timeouts: for an SDMA packet that waits, for a compute IB. */
#define LOCKUP		(10 * HZ)
#define LOCKUP_COMPUTE	(60 * HZ)

static struct workqueue_struct *cs_workers;
/* Woken whenever a submission is over. */
static DECLARE_WAIT_QUEUE_HEAD(cs_over);

/**
 * struct exec - one IB being executed
 * @s: its stream
 * @cs: whose it is
 * @deadline: when patience ends
 */
struct exec {
	struct kfdsim_sdma s;
	struct kfdsim_cs *cs;
	unsigned long deadline;
};

/* The file is closed, or the process has ended: its memory lives by us alone. */
static bool is_deserted(const struct kfdsim_cs *cs)
{
	return READ_ONCE(cs->fp->closing) ||
	       !atomic_read(&cs->lead->signal->live);
}

static bool sdma_stop(struct kfdsim_sdma *s)
{
	return is_deserted(container_of(s, struct exec, s)->cs);
}

/* Buffers may call each other for ever. */
static bool pm4_stop(struct kfdsim_sdma *s)
{
	const struct exec *e = container_of(s, struct exec, s);

	return is_deserted(e->cs) || time_after(jiffies, e->deadline);
}

/* A packet waits, or was stopped. Return: 0 try again; -EINTR; -ETIME. */
static int exec_again(const struct exec *e)
{
	if (is_deserted(e->cs))
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
		if (is_deserted(e->cs))
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

static int run_ib(struct kfdsim_cs *cs, const struct drm_amdgpu_cs_chunk_ib *ib)
{
	bool pm4 = ib->ip_type != AMDGPU_HW_IP_DMA;
	bool gfx = ib->ip_type == AMDGPU_HW_IP_GFX;
	struct kfdsim_fpriv *fp = cs->fp;
	struct exec e = {
		.s.vm = fp->vm,
		.s.gpu = fp->gpu,
		.s.bytes = pm4 ? &fp->gpu->pm4_bytes : &fp->gpu->sdma_bytes,
		.s.stop = pm4 ? pm4_stop : sdma_stop,
		.cs = cs,
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

static int run_ibs(struct kfdsim_cs *cs)
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

/* In the address space of whoever made it, unless that is gone. */
static int run_as_caller(struct kfdsim_cs *cs)
{
	int ret;

	if (READ_ONCE(cs->ctx->guilty))
		return -ECANCELED;
	if (!mmget_not_zero(cs->mm))
		return -EINTR;
	kthread_use_mm(cs->mm);
	ret = run_ibs(cs);
	kthread_unuse_mm(cs->mm);
	/* this may be the last user: never tear an address space down here */
	mmput_async(cs->mm);
	return ret;
}

static void cs_release(struct kref *ref)
{
	struct kfdsim_cs *cs = container_of(ref, struct kfdsim_cs, ref);
	u32 i;

	for (i = 0; i < cs->nchunks; i++)
		kvfree(cs->chunks[i].data);
	kvfree(cs->chunks);
	if (cs->list)
		kfdsim_bo_list_put(cs->list);
	if (cs->uf_bo)
		kfdsim_bo_put(cs->uf_bo);
	kfdsim_ctx_put(cs->ctx);
	put_task_struct(cs->lead);
	mmdrop(cs->mm);
	kfree(cs);
}

void kfdsim_cs_put(struct kfdsim_cs *cs)
{
	kref_put(&cs->ref, cs_release);
}

/* The file may go as soon as it has no submission in flight: that comes last. */
static void count_busy(struct kfdsim_cs *cs, int by)
{
	unsigned int i;

	for (i = 0; cs->list && i < cs->list->n; i++)
		atomic_add(by, &cs->list->bo[i]->busy);
	if (!cs->list)
		atomic_add(by, &cs->fp->unlisted);
	atomic_add(by, &cs->fp->inflight);
}

static void cs_finish(struct kfdsim_cs *cs, int error)
{
	if (cs->uf_bo)
		kfdsim_bo_rw(cs->uf_bo, cs->uf_offset, &cs->seq, sizeof(cs->seq),
			     true);
	kfdsim_ctx_done(cs->ctx, cs->ring, cs->seq, error);
	count_busy(cs, -1);
	wake_up_all(&cs_over);
	kfdsim_cs_put(cs);
}

static void ring_work(struct work_struct *work)
{
	struct kfdsim_ring_state *r = container_of(work, struct kfdsim_ring_state,
						   work);
	struct kfdsim_ctx *ctx = r->ctx;
	struct kfdsim_cs *cs;

	while ((cs = kfdsim_ctx_pop(r)))
		cs_finish(cs, run_as_caller(cs));
	kfdsim_ctx_put(ctx);
}

void kfdsim_cs_init_ring(struct kfdsim_ring_state *r)
{
	INIT_LIST_HEAD(&r->queue);
	INIT_WORK(&r->work, ring_work);
}

/* false: the ring is full. A worker has a reference of its own. */
static bool cs_start(struct kfdsim_cs *cs)
{
	struct kfdsim_ring_state *r = &cs->ctx->ring[cs->ring];
	struct kfdsim_ctx *ctx = cs->ctx;

	if (!kfdsim_ctx_push(r, cs))
		return false;
	kref_get(&ctx->ref);
	if (!queue_work(cs_workers, &r->work))
		kfdsim_ctx_put(ctx);
	return true;
}

int kfdsim_cs_start(struct kfdsim_cs *cs)
{
	struct kfdsim_ctx *ctx = cs->ctx;
	int ret;

	/* the worker's, and what it must not outlive */
	kref_get(&cs->ref);
	kref_get(&ctx->ref);
	count_busy(cs, 1);
	ret = wait_event_interruptible(cs_over, cs_start(cs));
	if (ret) {
		count_busy(cs, -1);
		wake_up_all(&cs_over);
		kfdsim_cs_put(cs);
	}
	kfdsim_ctx_put(ctx);
	return ret;
}

/* As amdgpu takes its timeouts, which are points in time. */
static long jiffies_until(u64 ns)
{
	u64 now = ktime_get_ns();

	if (ns > S64_MAX)
		return MAX_SCHEDULE_TIMEOUT;
	if (ns <= now)
		return 0;
	return min_t(u64, nsecs_to_jiffies64(ns - now) + 1,
		     MAX_SCHEDULE_TIMEOUT - 1);
}

static bool fences_over(struct kfdsim_fence *f, u32 n, bool all, u32 *first,
			int *error)
{
	u32 i;

	*error = 0;
	for (i = 0; i < n; i++) {
		int ret = kfdsim_ctx_result(f[i].ctx, f[i].ring, f[i].seq);

		if (ret == KFDSIM_BUSY && all)
			return false;
		if (ret == KFDSIM_BUSY)
			continue;
		*first = i;
		*error = ret;
		if (!all || ret)
			return true;
	}
	return all || !n;
}

int kfdsim_fences_wait(struct kfdsim_fence *f, u32 n, bool all, u64 timeout_ns,
		       u32 *first)
{
	int error;
	long left;

	left = wait_event_interruptible_timeout(cs_over,
						fences_over(f, n, all, first,
							    &error),
						jiffies_until(timeout_ns));
	if (left <= 0)
		return left ?: KFDSIM_BUSY;
	return error;
}

static bool bo_idle(struct kfdsim_fpriv *fp, struct kfdsim_bo *bo)
{
	return bo ? !atomic_read(&bo->busy) && !atomic_read(&fp->unlisted) :
		    !atomic_read(&fp->inflight);
}

int kfdsim_cs_wait_bo(struct kfdsim_fpriv *fp, struct kfdsim_bo *bo,
		      u64 timeout_ns)
{
	long left = wait_event_killable_timeout(cs_over, bo_idle(fp, bo),
						jiffies_until(timeout_ns));

	return left < 0 ? left : left ? 0 : KFDSIM_BUSY;
}

void kfdsim_cs_close(struct kfdsim_fpriv *fp)
{
	WRITE_ONCE(fp->closing, true);
	wait_event(cs_over, !atomic_read(&fp->inflight));
}

int kfdsim_cs_init(void)
{
	cs_workers = alloc_workqueue("kfdsim", WQ_UNBOUND, 0);
	return cs_workers ? 0 : -ENOMEM;
}

void kfdsim_cs_exit(void)
{
	destroy_workqueue(cs_workers);
}
