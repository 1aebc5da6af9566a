// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that others need the memory of. A BO that is mapped on a GPU can
 * be evicted only when the queues of every process that mapped it stand, and
 * not for its own process, which needs all that it has. A worker gets what a
 * stopped process lost back to where it was, at the cost of others, and starts
 * it again; as KFD's, one process after the other.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include "kfdsim_kfd.h"

/* Before a process is started again, and before another try. */
#define RESTORE_MS	100

static DEFINE_SPINLOCK(users_lock);	/* every kfdsim_bo.users */
static struct workqueue_struct *restore_wq;

int kfdsim_room_init(void)
{
	restore_wq = alloc_ordered_workqueue("kfdsim_restore", 0);
	return restore_wq ? 0 : -ENOMEM;
}

void kfdsim_room_exit(void)
{
	destroy_workqueue(restore_wq);
}

/** kfdsim_room_add() - mapped on its first GPU; process lock held */
void kfdsim_room_add(struct kfdsim_mem *mem)
{
	if (!mem->bo)
		return;
	spin_lock(&users_lock);
	list_add_tail(&mem->user, &mem->bo->users);
	spin_unlock(&users_lock);
}

/** kfdsim_room_remove() - and no longer on any, or never was */
void kfdsim_room_remove(struct kfdsim_mem *mem)
{
	spin_lock(&users_lock);
	list_del_init(&mem->user);
	spin_unlock(&users_lock);
}

/** kfdsim_users_may_lose() - see kfdsim.h */
bool kfdsim_users_may_lose(struct kfdsim_bo *bo, const struct mm_struct *mm)
{
	struct kfdsim_mem *mem;
	bool may = true;

	spin_lock(&users_lock);
	list_for_each_entry(mem, &bo->users, user)
		if (mem->pdd->process->mm == mm)
			may = false;
	spin_unlock(&users_lock);
	return may;
}

/*
 * Mark a process as stopped. evict_lock held. Return: it was not; one that is
 * about to be started again will be looked at once more.
 */
static bool mark_stopped(struct kfdsim_process *p)
{
	p->room_again = p->room_stopped;
	if (p->room_stopped || p->dead)
		return false;
	p->room_stopped = true;
	kfdsim_evict_locked(p);
	return true;
}

/* The next user that runs, which may not from now on; with a reference. */
static struct kfdsim_process *user_to_stop(struct kfdsim_bo *bo)
{
	struct kfdsim_process *p, *found = NULL;
	struct kfdsim_mem *mem;

	spin_lock(&users_lock);
	list_for_each_entry(mem, &bo->users, user) {
		p = mem->pdd->process;
		if (!kref_get_unless_zero(&p->ref))
			continue;
		spin_lock(&p->evict_lock);
		if (mark_stopped(p))
			found = p;
		spin_unlock(&p->evict_lock);
		if (found)
			break;
		kfdsim_process_put(p);
	}
	spin_unlock(&users_lock);
	return found;
}

static bool stands(struct kfdsim_process *p)
{
	struct kfdsim_queue *q;
	bool busy = false;
	unsigned int i;

	spin_lock(&p->evict_lock);
	for (i = 0; i < p->n_pdds; i++)
		list_for_each_entry(q, &p->pdds[i]->queues, node)
			busy |= q->busy;
	spin_unlock(&p->evict_lock);
	return !busy;
}

/**
 * kfdsim_users_stop() - see kfdsim.h
 * @bo: about to be evicted
 *
 * Takes no process's lock: the caller may hold another's.
 */
int kfdsim_users_stop(struct kfdsim_bo *bo)
{
	struct kfdsim_process *p;
	int ret = 0;

	while (!ret && (p = user_to_stop(bo))) {
		while (!ret && !stands(p)) {
			usleep_range(100, 200);
			if (fatal_signal_pending(current))
				ret = -EINTR;
		}
		queue_delayed_work(restore_wq, &p->room_work,
				   msecs_to_jiffies(RESTORE_MS));
		kfdsim_process_put(p);
	}
	return ret;
}

static int get_all_back(struct kfdsim_process *p)
{
	struct kfdsim_mem *mem;
	unsigned int i;
	int id, ret;

	for (i = 0; i < p->n_pdds; i++) {
		idr_for_each_entry(&p->pdds[i]->mems, mem, id) {
			if (!mem->bo ||
			    bitmap_empty(mem->mapped, KFDSIM_MAX_GPUS))
				continue;
			ret = kfdsim_place_back(mem->bo, true, p->mm);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* Return: the process runs again. */
static bool start_again(struct kfdsim_process *p)
{
	bool again;

	spin_lock(&p->evict_lock);
	again = p->room_again && !p->dead;
	if (!again)
		p->room_stopped = false;
	spin_unlock(&p->evict_lock);
	if (!again)
		kfdsim_restore(p);
	return !again;
}

/** kfdsim_room_work() - get back what a stopped process has lost */
void kfdsim_room_work(struct work_struct *work)
{
	struct kfdsim_process *p =
		container_of(work, struct kfdsim_process, room_work.work);
	int ret = 0;

	mutex_lock(&p->lock);
	spin_lock(&p->evict_lock);
	p->room_again = false;
	spin_unlock(&p->evict_lock);
	if (!READ_ONCE(p->dead))
		ret = get_all_back(p);
	if (ret || !start_again(p))
		queue_delayed_work(restore_wq, &p->room_work,
				   msecs_to_jiffies(RESTORE_MS));
	mutex_unlock(&p->lock);
}
