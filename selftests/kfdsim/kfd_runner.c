// SPDX-License-Identifier: GPL-2.0
/*
 * The thread behind a user queue: fetches packets from the ring and executes
 * them, as long as the queue may run. It borrows the address space of the
 * process for a few milliseconds at a time, so that a dying process waits for
 * it no longer than that.
 *
 * rptr and wptr are kept as bytes that only grow, whatever the kind of queue:
 * user space sees bytes (SDMA), a position in the ring in dwords (PM4), or the
 * number of the next packet (AQL).
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "kfdsim_kfd.h"

#define FETCH_DW	1024	/* dwords fetched at once */
#define BATCH_MS	4	/* address space borrowed for */
#define LINGER		20	/* looks at an idle doorbell before the zap */
#define LINGER_US	100
#define POLL_US		200

enum batch_end {
	BATCH_MORE,	/* there is more to do, or nobody knows */
	BATCH_POLL,	/* a packet waits for memory to change */
	BATCH_IDLE,	/* all done */
	BATCH_GONE,	/* it may not run, or the process is dying */
};

static bool runner_leave(const struct kfdsim_queue *q)
{
	return !kfdsim_queue_runnable(q) || time_after_eq(jiffies, q->deadline);
}

static bool sdma_stop(struct kfdsim_sdma *s)
{
	return runner_leave(s->priv);
}

static void sdma_trap(struct kfdsim_sdma *s, u32 int_ctx)
{
	struct kfdsim_queue *q = s->priv;

	kfdsim_event_interrupt(q->pdd->process, int_ctx);
}

/* Take over the doorbell. Return: there is something between rptr and wptr. */
static bool runner_ring(struct kfdsim_queue *q)
{
	u64 wptr = kfdsim_doorbell_to_wptr(q, READ_ONCE(*q->doorbell));

	if (wptr > q->wptr)
		q->wptr = wptr;
	return q->wptr / 4 > q->rptr / 4;
}

static int runner_read_ring(struct kfdsim_queue *q, size_t ndw)
{
	u64 off = q->rptr & (q->ring_size - 1);
	size_t len = ndw * 4;
	size_t first = min_t(u64, len, q->ring_size - off);
	u64 *fault = &q->sdma.fault_va;
	int ret;

	ret = kfdsim_vm_rw(q->pdd->vm, q->ring + off, q->buf, first, false, fault);
	if (!ret && len > first)
		ret = kfdsim_vm_rw(q->pdd->vm, q->ring, (void *)q->buf + first,
				   len - first, false, fault);
	return ret;
}

static int runner_write_rptr(struct kfdsim_queue *q)
{
	u64 value = q->rptr;
	size_t len = sizeof(value);

	if (kfdsim_queue_is_aql(q)) {
		value /= KFDSIM_AQL_DW * 4;
	} else if (!kfdsim_queue_is_sdma(q)) {
		value = (value & (q->ring_size - 1)) / 4;
		len = sizeof(u32);
	}
	return kfdsim_vm_rw(q->pdd->vm, q->rptr_addr, &value, len, true,
			    &q->sdma.fault_va);
}

/* A packet longer than the buffer. */
static int runner_grow(struct kfdsim_queue *q, size_t avail_dw)
{
	size_t want = min_t(size_t, avail_dw, q->buf_dw * 4);
	u32 *buf;

	if (want <= q->buf_dw)
		return -ENODATA;
	buf = kvmalloc_array(want, 4, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	kvfree(q->buf);
	q->buf = buf;
	q->buf_dw = want;
	return 0;
}

/* Bytes from rptr that may hold packets, or an error. */
static s64 runner_avail(const struct kfdsim_queue *q)
{
	u64 avail = q->wptr - q->rptr;

	if (kfdsim_queue_is_aql(q))	/* rung for what is not there yet */
		return min(avail, q->ring_size);
	return avail > q->ring_size ? -EOVERFLOW : (s64)avail;
}

static int runner_exec(struct kfdsim_queue *q, const u32 *dw, unsigned int ndw)
{
	int ret;

	if (kfdsim_queue_is_sdma(q))
		return kfdsim_sdma_exec(&q->sdma, dw, ndw);
	if (!kfdsim_queue_is_aql(q))
		return kfdsim_pm4_exec(&q->pm4, dw, ndw);
	ret = ndw < KFDSIM_AQL_DW ? -ENODATA : kfdsim_aql_exec(q, dw);
	/* others are behind it: who took its number will fill it */
	if (ret == -ENODATA && q->wptr - q->rptr > KFDSIM_AQL_DW * 4)
		ret = -EAGAIN;
	return ret;
}

/*
 * Fetch once and execute. Return: 0 go on; -EAGAIN leave, or a packet waits;
 * -ENODATA the last packet is incomplete; another: queue error.
 */
static int runner_step(struct kfdsim_queue *q)
{
	s64 avail = runner_avail(q);
	size_t ndw, pos = 0;
	int ret;

	if (avail < 0)
		return avail;
	ndw = min_t(size_t, avail / 4, q->buf_dw);
	ret = runner_read_ring(q, ndw);
	while (!ret && pos < ndw) {
		ret = runner_exec(q, q->buf + pos, ndw - pos);
		if (ret <= 0)
			break;
		pos += ret;
		WRITE_ONCE(q->rptr, q->rptr + ret * 4);
		WRITE_ONCE(q->progress, q->progress + 1);
		ret = runner_leave(q) ? -EAGAIN : 0;
	}
	if (ret == -ENODATA && pos)
		ret = 0;
	else if (ret == -ENODATA && !kfdsim_queue_is_aql(q))
		ret = runner_grow(q, avail / 4);
	return ret;
}

static enum batch_end runner_packets(struct kfdsim_queue *q)
{
	u64 start = q->rptr;
	int ret = 0;

	q->sdma.vm = q->pdd->vm;
	while (!ret && runner_ring(q)) {
		ret = runner_step(q);
		if (!ret && runner_leave(q))
			ret = -EAGAIN;
	}
	if (q->rptr != start) {
		int err = runner_write_rptr(q);

		ret = err ?: ret;
	}
	if (!ret || ret == -ENODATA)
		return BATCH_IDLE;
	if (ret == -EAGAIN)
		return runner_leave(q) ? BATCH_MORE : BATCH_POLL;
	kfdsim_queue_error(q, ret);
	return BATCH_IDLE;
}

static enum batch_end runner_batch(struct kfdsim_queue *q)
{
	struct mm_struct *mm = q->pdd->process->mm;
	enum batch_end end;

	if (!mmget_not_zero(mm))
		return BATCH_GONE;
	kthread_use_mm(mm);
	q->deadline = jiffies + msecs_to_jiffies(BATCH_MS);
	end = runner_packets(q);
	kthread_unuse_mm(mm);
	/* this may be the last user: never tear an address space down here */
	mmput_async(mm);
	return end;
}

static bool runner_begin(struct kfdsim_queue *q)
{
	struct kfdsim_process *p = q->pdd->process;
	bool run;

	spin_lock(&p->evict_lock);
	run = kfdsim_queue_runnable(q);
	q->busy = run;
	spin_unlock(&p->evict_lock);
	return run;
}

static void runner_end(struct kfdsim_queue *q)
{
	struct kfdsim_process *p = q->pdd->process;

	spin_lock(&p->evict_lock);
	q->busy = false;
	spin_unlock(&p->evict_lock);
	wake_up_all(&q->park);
}

/* Look again without reading or changing what belongs to a batch. */
static bool runner_has_work(const struct kfdsim_queue *q)
{
	return kfdsim_queue_runnable(q) &&
	       kfdsim_doorbell_to_wptr(q, READ_ONCE(*q->doorbell)) > q->wptr;
}

static void runner_sleep(struct kfdsim_queue *q)
{
	wait_event_idle(q->wake, READ_ONCE(q->kicked) || kthread_should_stop());
}

/* Sleep until there may be something to do. */
static void runner_idle(struct kfdsim_queue *q)
{
	unsigned int i;

	if (kfdsim_queue_runnable(q)) {
		for (i = 0; i < LINGER; i++) {
			if (runner_has_work(q) || kthread_should_stop())
				return;
			usleep_range(LINGER_US, 2 * LINGER_US);
		}
		kfdsim_doorbells_zap(q->pdd);
		if (runner_has_work(q))
			return;
	}
	runner_sleep(q);
}

static int runner_main(void *data)
{
	struct kfdsim_queue *q = data;

	while (!kthread_should_stop()) {
		enum batch_end end = BATCH_GONE;

		WRITE_ONCE(q->kicked, false);
		smp_mb();	/* what was changed before a kick is seen below */
		if (runner_begin(q)) {
			end = runner_batch(q);
			runner_end(q);
		}
		if (end == BATCH_GONE)
			runner_sleep(q);
		else if (end == BATCH_IDLE)
			runner_idle(q);
		else if (end == BATCH_POLL)
			usleep_range(POLL_US, 2 * POLL_US);
		else
			cond_resched();
	}
	return 0;
}

/** kfdsim_runner_start() - start the thread of a queue */
int kfdsim_runner_start(struct kfdsim_queue *q)
{
	q->sdma.gpu = q->pdd->gpu;
	q->sdma.trap = sdma_trap;
	q->sdma.stop = sdma_stop;
	q->sdma.priv = q;
	q->sdma.bytes = kfdsim_queue_is_sdma(q) ? &q->pdd->gpu->sdma_bytes :
						  &q->pdd->gpu->pm4_bytes;
	q->pm4.s = &q->sdma;
	q->pm4.progress = &q->progress;
	q->buf_dw = FETCH_DW;
	q->buf = kvmalloc_array(q->buf_dw, 4, GFP_KERNEL);
	if (!q->buf)
		return -ENOMEM;
	q->runner = kthread_run(runner_main, q, "kfdsim/%d.%u",
				q->pdd->process->pid, q->qid);
	if (IS_ERR(q->runner)) {
		kvfree(q->buf);
		return PTR_ERR(q->runner);
	}
	return 0;
}

/** kfdsim_runner_stop() - end it; the queue has been marked to stop */
void kfdsim_runner_stop(struct kfdsim_queue *q)
{
	kthread_stop(q->runner);
	kfdsim_pm4_release(&q->pm4);
	kvfree(q->buf);
}
