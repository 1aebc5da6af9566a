// SPDX-License-Identifier: GPL-2.0
/*
 * User memory on the GPU. When the kernel takes pages of it away, queues stop
 * until the worker has it again. The counter that decides this is KFD's,
 * with its trap: a RESUME that no RESTORE went before leaves it at one, and
 * the next invalidation stops nothing.
 */
#include <linux/sched/mm.h>
#include "kfdsim_kfd.h"

#define RESTORE_DELAY_MS	1

/*
 * Under evict_lock. Return: the queues were stopped here, so the worker has
 * to run.
 */
static bool userptr_evict(struct kfdsim_process *p)
{
	if (++p->evicted_bos != 1) {
		if (!p->userptr_stopped && !p->resume_evict) {
			atomic64_inc(&kfdsim_stats.corruption);
			kfdsim_misuse("corruption: pid %d: user memory left running queues\n",
				      p->pid);
		}
		return false;
	}
	p->userptr_stopped = true;
	kfdsim_evict_locked(p);
	return true;
}

/*
 * Runs under mmap_lock or in reclaim. Does not wait for the runners: they
 * reach user memory through its page tables, so nothing stale is written.
 */
static bool userptr_invalidate(struct mmu_interval_notifier *mni,
			       const struct mmu_notifier_range *range,
			       unsigned long seq)
{
	struct kfdsim_mem *mem =
		container_of(mni, struct kfdsim_mem, notifier);
	struct kfdsim_process *p = mem->pdd->process;
	bool work = false;

	spin_lock(&p->evict_lock);
	mmu_interval_set_seq(mni, seq);
	if (!p->block_notifiers && !p->dead)
		work = userptr_evict(p);
	spin_unlock(&p->evict_lock);
	if (work)
		schedule_delayed_work(&p->userptr_work,
				      msecs_to_jiffies(RESTORE_DELAY_MS));
	return true;
}

static const struct mmu_interval_notifier_ops userptr_ops = {
	.invalidate = userptr_invalidate,
};

/** kfdsim_userptr_register() - follow the user memory of a BO; process lock held */
int kfdsim_userptr_register(struct kfdsim_mem *mem)
{
	struct mm_struct *mm = mem->pdd->process->mm;
	int ret;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	ret = mmu_interval_notifier_insert(&mem->notifier, mm, mem->user_addr,
					   mem->size, &userptr_ops);
	mmput_async(mm);
	mem->registered = !ret;
	return ret;
}

/** kfdsim_userptr_unregister() - stop following it; may sleep */
void kfdsim_userptr_unregister(struct kfdsim_mem *mem)
{
	if (mem->registered)
		mmu_interval_notifier_remove(&mem->notifier);
	mem->registered = false;
}

/* Map what a RESTORE left for later. Process lock held. */
static void map_deferred(struct kfdsim_process *p)
{
	struct kfdsim_mem *mem;
	unsigned int i, on;
	int id;

	for (i = 0; i < p->n_pdds; i++) {
		idr_for_each_entry(&p->pdds[i]->mems, mem, id) {
			for_each_set_bit(on, mem->deferred, p->n_pdds) {
				clear_bit(on, mem->deferred);
				clear_bit(on, mem->mapped);
				if (kfdsim_mem_map(mem, p->pdds[on]))
					pr_err("kfdsim: pid %d: userptr 0x%llx not mapped again\n",
					       p->pid, mem->va);
			}
		}
	}
}

/* Get all user memory back and start the queues again. */
void kfdsim_userptr_work(struct work_struct *work)
{
	struct kfdsim_process *p =
		container_of(work, struct kfdsim_process, userptr_work.work);
	bool stopped, restored;

	mutex_lock(&p->lock);
	map_deferred(p);
	spin_lock(&p->evict_lock);
	stopped = p->userptr_stopped;
	restored = p->resume_evict && !p->block_notifiers;
	if (stopped || restored)
		p->evicted_bos = 0;
	p->userptr_stopped = false;
	if (restored)
		p->resume_evict = false;
	spin_unlock(&p->evict_lock);
	if (stopped)
		kfdsim_restore(p);
	if (restored)
		kfdsim_restore(p);
	mutex_unlock(&p->lock);
}

/**
 * kfdsim_userptr_resume() - RESUME's part; process lock held
 * @p: the restored process
 *
 * Return: 0, or -EINVAL where no RESTORE went before; the counter stays
 * raised then, as in KFD.
 */
int kfdsim_userptr_resume(struct kfdsim_process *p)
{
	bool blocked;

	spin_lock(&p->evict_lock);
	p->evicted_bos++;
	blocked = p->block_notifiers;
	p->block_notifiers = false;
	spin_unlock(&p->evict_lock);
	if (!blocked) {
		atomic64_inc(&kfdsim_stats.resume_stray);
		kfdsim_misuse("stray RESUME of pid %d\n", p->pid);
		return -EINVAL;
	}
	schedule_delayed_work(&p->userptr_work, 0);
	return 0;
}
