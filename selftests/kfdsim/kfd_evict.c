// SPDX-License-Identifier: GPL-2.0
/*
 * Eviction: a count per GPU of a process; queues run while it is 0. Its users
 * are the CRIU operations, userptr invalidation, and others' need of memory.
 */
#include <linux/kthread.h>
#include "kfdsim_kfd.h"

/** kfdsim_queue_runnable() - may it run now? evict_lock held, or just a hint */
bool kfdsim_queue_runnable(const struct kfdsim_queue *q)
{
	return !READ_ONCE(q->stop) && READ_ONCE(q->active) &&
	       !READ_ONCE(q->error) && !READ_ONCE(q->pdd->evicted) &&
	       !READ_ONCE(q->pdd->process->dead);
}

/** kfdsim_queue_kick() - make the runner look at its doorbell; any context */
void kfdsim_queue_kick(struct kfdsim_queue *q)
{
	WRITE_ONCE(q->kicked, true);
	wake_up(&q->wake);
}

static bool queue_parked(struct kfdsim_queue *q)
{
	bool parked;

	spin_lock(&q->pdd->process->evict_lock);
	parked = !q->busy;
	spin_unlock(&q->pdd->process->evict_lock);
	return parked;
}

/*
 * Wait until the runner has left its batch. The caller has made the queue not
 * runnable before.
 */
void kfdsim_queue_park(struct kfdsim_queue *q)
{
	wait_event(q->park, queue_parked(q));
}

/** kfdsim_evict_locked() - count one eviction; evict_lock held */
void kfdsim_evict_locked(struct kfdsim_process *p)
{
	unsigned int i;

	lockdep_assert_held(&p->evict_lock);
	for (i = 0; i < p->n_pdds; i++)
		if (!p->pdds[i]->evicted++)
			p->pdds[i]->evicted_since = ktime_get();
}

static void restore_count(struct kfdsim_process *p)
{
	unsigned int i;

	lockdep_assert_held(&p->evict_lock);
	for (i = 0; i < p->n_pdds; i++) {
		struct kfdsim_pdd *pdd = p->pdds[i];
		struct kfdsim_queue *q;

		if (!pdd->evicted || --pdd->evicted)
			continue;
		pdd->evicted_ns += ktime_to_ns(ktime_sub(ktime_get(),
							 pdd->evicted_since));
		list_for_each_entry(q, &pdd->queues, node)
			kfdsim_queue_kick(q);
	}
}

/**
 * kfdsim_evict() - stop all queues and wait until they stand
 * @p: whose
 *
 * Process lock held. Return: 0; -EINTR when killed while waiting, nothing is
 * evicted then.
 */
int kfdsim_evict(struct kfdsim_process *p)
{
	struct kfdsim_queue *q;
	unsigned int i;

	spin_lock(&p->evict_lock);
	kfdsim_evict_locked(p);
	spin_unlock(&p->evict_lock);
	for (i = 0; i < p->n_pdds; i++) {
		list_for_each_entry(q, &p->pdds[i]->queues, node) {
			if (wait_event_killable(q->park, queue_parked(q))) {
				kfdsim_restore(p);
				return -EINTR;
			}
		}
	}
	return 0;
}

/** kfdsim_restore() - undo one eviction; any context */
void kfdsim_restore(struct kfdsim_process *p)
{
	spin_lock(&p->evict_lock);
	restore_count(p);
	spin_unlock(&p->evict_lock);
}
