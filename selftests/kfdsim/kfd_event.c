// SPDX-License-Identifier: GPL-2.0
/*
 * Events: signal events live in a page that the process sees, one 8-byte slot
 * each, all ones while unsignaled; others carry exception data. Waiters are
 * woken by interrupts of the queues and by SET_EVENT.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <uapi/drm/amdgpu_drm.h>
#include "kfdsim_kfd.h"
#include "kfdsim_criu.h"

#define SLOT_UNSIGNALED		(~0ULL)
#define FIRST_NONSIGNAL_ID	((INT_MAX >> 1) + 1)
#define MAX_WAIT		4096	/* events in one WAIT_EVENTS */
#define OLD_MAPPED		(256 * 8)

/**
 * struct kfdsim_event - one event
 * @rcu: frees it after readers of the idr
 * @id: also its slot, for signal events
 * @type: KFD_IOC_EVENT_*
 * @lock: protects all below
 * @auto_reset: a waiter consumes the signal
 * @signaled: set and not consumed
 * @age: how often it was set, from 1
 * @wq: waiters
 * @memory: data of a memory exception
 * @hw: data of a hardware exception
 */
struct kfdsim_event {
	struct rcu_head rcu;
	u32 id;
	u32 type;
	spinlock_t lock;	/* all below */
	bool auto_reset;
	bool signaled;
	u64 age;
	wait_queue_head_t wq;
	union {
		struct kfd_hsa_memory_exception_data memory;
		struct kfd_hsa_hw_exception_data hw;
	};
};

struct kfdsim_waiter {
	struct wait_queue_entry wait;
	struct kfdsim_event *event;	/* NULL: destroyed meanwhile */
	bool activated;
	bool want_age;
};

/* struct kfd_event_data of every kernel, as the newest sees it. */
struct kfdsim_event_data {
	union {
		struct kfd_hsa_memory_exception_data memory;
		struct kfd_hsa_hw_exception_data hw;
		u64 last_age;
	};
	u64 ext;
	u32 event_id;
	u32 pad;
};

static_assert(sizeof(struct kfdsim_event_data) == sizeof(struct kfd_event_data));

static bool event_is_signal(const struct kfdsim_event *ev)
{
	return ev->type == KFD_IOC_EVENT_SIGNAL ||
	       ev->type == KFD_IOC_EVENT_DEBUG_EVENT;
}

static u64 *event_slot(struct kfdsim_process *p, u32 id)
{
	const u32 per_page = PAGE_SIZE / 8;

	return (u64 *)page_address(p->event_pages[id / per_page]) +
	       id % per_page;
}

static void event_page_ready(struct kfdsim_process *p, size_t mapped)
{
	u32 id;

	for (id = 0; id < KFD_SIGNAL_EVENT_LIMIT; id++)
		WRITE_ONCE(*event_slot(p, id), SLOT_UNSIGNALED);
	p->event_mapped = mapped;
	/* whoever sees it ready sees the pages; pairs with the loads below */
	smp_store_release(&p->event_ready, true);
}

static int event_page_alloc(struct kfdsim_process *p)
{
	unsigned int i;

	p->event_own = alloc_pages(GFP_KERNEL | __GFP_ZERO,
				   get_order(KFDSIM_EVENT_BYTES));
	if (!p->event_own)
		return -ENOMEM;
	for (i = 0; i < KFDSIM_EVENT_PAGES; i++)
		p->event_pages[i] = p->event_own + i;
	/* the oldest user space expects 256 slots */
	event_page_ready(p, OLD_MAPPED);
	return 0;
}

/* Use a GTT buffer of the process as event page. Process lock held. */
static int event_page_from_bo(struct kfdsim_process *p, u64 handle)
{
	struct kfdsim_mem *mem = kfdsim_mem_lookup(p, handle);
	unsigned int i;
	int ret;

	if (p->event_ready)
		return -EINVAL;
	if (!mem || !mem->bo || mem->bo->userptr ||
	    mem->bo->domain != AMDGPU_GEM_DOMAIN_GTT ||
	    mem->size < KFDSIM_EVENT_BYTES)
		return -EINVAL;
	for (i = 0; i < KFDSIM_EVENT_PAGES; i++) {
		p->event_pages[i] = kfdsim_bo_page(mem->bo, i);
		if (!p->event_pages[i])
			return -ENOMEM;
	}
	/* the kernel writes to it */
	ret = kfdsim_place_pin(mem->bo);
	if (ret)
		return ret;
	kfdsim_bo_get(mem->bo);
	p->event_bo = mem->bo;
	p->event_handle = handle;
	event_page_ready(p, mem->size);
	return 0;
}

void kfdsim_events_init(struct kfdsim_process *p)
{
	mutex_init(&p->event_mutex);
	idr_init(&p->events);
	/* id 0 is never given out */
	p->signal_events = 1;
}

static int signal_event_id(struct kfdsim_process *p, struct kfdsim_event *ev,
			   const u32 *restore_id)
{
	int ret, from = 1, to;

	if (!p->event_ready) {
		ret = event_page_alloc(p);
		if (ret)
			return ret;
	}
	if (p->signal_events == p->event_mapped / 8)
		return -ENOSPC;
	to = min_t(size_t, p->event_mapped / 8, KFD_SIGNAL_EVENT_LIMIT);
	if (restore_id) {
		if (!*restore_id || *restore_id >= KFD_SIGNAL_EVENT_LIMIT)
			return -EINVAL;
		from = *restore_id;
		to = from + 1;
	}
	ret = idr_alloc(&p->events, ev, from, to, GFP_KERNEL);
	if (ret < 0)
		return ret;
	WRITE_ONCE(*event_slot(p, ret), SLOT_UNSIGNALED);
	p->signal_events++;
	return ret;
}

/* Event mutex held. */
static int event_add(struct kfdsim_process *p, struct kfdsim_event *ev,
		     const u32 *restore_id)
{
	int id;

	spin_lock_init(&ev->lock);
	init_waitqueue_head(&ev->wq);
	ev->age = 1;
	if (event_is_signal(ev))
		id = signal_event_id(p, ev, restore_id);
	else if (restore_id)
		id = idr_alloc(&p->events, ev, *restore_id, *restore_id + 1,
			       GFP_KERNEL);
	else
		id = idr_alloc(&p->events, ev, FIRST_NONSIGNAL_ID, 0,
			       GFP_KERNEL);
	if (id < 0)
		return id;
	ev->id = id;
	return 0;
}

static void event_destroy(struct kfdsim_process *p, struct kfdsim_event *ev)
{
	struct kfdsim_waiter *w;

	spin_lock(&ev->lock);
	list_for_each_entry(w, &ev->wq.head, wait.entry)
		WRITE_ONCE(w->event, NULL);
	wake_up_all(&ev->wq);
	spin_unlock(&ev->lock);
	if (event_is_signal(ev))
		p->signal_events--;
	idr_remove(&p->events, ev->id);
	kfree_rcu(ev, rcu);
}

/** kfdsim_events_exit() - free all events and the page of a dying process */
void kfdsim_events_exit(struct kfdsim_process *p)
{
	struct kfdsim_event *ev;
	int id;

	mutex_lock(&p->event_mutex);
	idr_for_each_entry(&p->events, ev, id)
		event_destroy(p, ev);
	idr_destroy(&p->events);
	mutex_unlock(&p->event_mutex);
	if (p->event_bo) {
		kfdsim_place_unpin(p->event_bo);
		kfdsim_bo_put(p->event_bo);
	}
	if (p->event_own)
		__free_pages(p->event_own, get_order(KFDSIM_EVENT_BYTES));
	p->event_ready = false;
	p->event_bo = NULL;
	p->event_own = NULL;
}

/* Its lock held. */
static void event_set(struct kfdsim_event *ev)
{
	struct kfdsim_waiter *w;

	/* exact: waiters come and go under the event's lock */
	ev->signaled = !ev->auto_reset || !waitqueue_active(&ev->wq);
	ev->age++;
	list_for_each_entry(w, &ev->wq.head, wait.entry)
		WRITE_ONCE(w->activated, true);
	wake_up_all(&ev->wq);
}

static void event_interrupt_one(struct kfdsim_process *p, u32 id)
{
	struct kfdsim_event *ev = idr_find(&p->events, id);

	if (!ev || !event_is_signal(ev))
		return;
	WRITE_ONCE(*event_slot(p, id), SLOT_UNSIGNALED);
	spin_lock(&ev->lock);
	event_set(ev);
	spin_unlock(&ev->lock);
}

/**
 * kfdsim_event_interrupt() - what a TRAP packet does
 * @p: process of the queue
 * @id: its context id: the event, if its slot is signaled; otherwise all
 *	events whose slot is
 */
void kfdsim_event_interrupt(struct kfdsim_process *p, u32 id)
{
	struct kfdsim_event *ev;
	int i;

	/* pairs with event_page_ready() */
	if (!smp_load_acquire(&p->event_ready))
		return;
	rcu_read_lock();
	if (id && id < KFD_SIGNAL_EVENT_LIMIT &&
	    READ_ONCE(*event_slot(p, id)) != SLOT_UNSIGNALED &&
	    idr_find(&p->events, id)) {
		event_interrupt_one(p, id);
	} else {
		idr_for_each_entry(&p->events, ev, i) {
			if (i >= KFD_SIGNAL_EVENT_LIMIT)
				break;
			if (READ_ONCE(*event_slot(p, i)) != SLOT_UNSIGNALED)
				event_interrupt_one(p, i);
		}
	}
	rcu_read_unlock();
}

static void signal_all_of_type(struct kfdsim_process *p, u32 type,
			       const void *data, size_t len)
{
	struct kfdsim_event *ev;
	int id = FIRST_NONSIGNAL_ID;

	rcu_read_lock();
	idr_for_each_entry_continue(&p->events, ev, id) {
		if (ev->type != type)
			continue;
		spin_lock(&ev->lock);
		memcpy(&ev->memory, data, len);
		event_set(ev);
		spin_unlock(&ev->lock);
	}
	rcu_read_unlock();
}

/** kfdsim_event_memory_fault() - a queue touched an address that is not mapped */
void kfdsim_event_memory_fault(struct kfdsim_pdd *pdd, u64 va)
{
	struct kfd_hsa_memory_exception_data data = {
		.failure = { 1 },	/* not present */
		.va = va & PAGE_MASK,
		.gpu_id = pdd->user_gpu_id,
	};

	signal_all_of_type(pdd->process, KFD_IOC_EVENT_MEMORY, &data,
			   sizeof(data));
}

/** kfdsim_event_hw_exception() - a queue holds something that cannot run */
void kfdsim_event_hw_exception(struct kfdsim_pdd *pdd)
{
	struct kfd_hsa_hw_exception_data data = {
		.reset_type = KFD_HW_EXCEPTION_PER_ENGINE_RESET,
		.reset_cause = KFD_HW_EXCEPTION_GPU_HANG,
		.gpu_id = pdd->user_gpu_id,
	};

	signal_all_of_type(pdd->process, KFD_IOC_EVENT_HW_EXCEPTION, &data,
			   sizeof(data));
}

KFDSIM_IOCTL(create_event)
{
	struct kfd_ioctl_create_event_args *args = data;
	struct kfdsim_event *ev;
	int ret;

	if (args->event_page_offset) {
		mutex_lock(&p->lock);
		mutex_lock(&p->event_mutex);
		ret = event_page_from_bo(p, args->event_page_offset);
		mutex_unlock(&p->event_mutex);
		mutex_unlock(&p->lock);
		if (ret)
			return ret;
	}
	ev = kzalloc(sizeof(*ev), GFP_KERNEL);
	if (!ev)
		return -ENOMEM;
	ev->type = args->event_type;
	ev->auto_reset = args->auto_reset;
	args->event_page_offset = 0;
	mutex_lock(&p->event_mutex);
	ret = event_add(p, ev, NULL);
	if (!ret) {
		args->event_id = ev->id;
		args->event_trigger_data = ev->id;
		if (event_is_signal(ev)) {
			args->event_page_offset = KFDSIM_MMAP_TYPE_EVENTS;
			args->event_slot_index = ev->id;
		}
	} else {
		kfree(ev);
	}
	mutex_unlock(&p->event_mutex);
	return ret;
}

KFDSIM_IOCTL(destroy_event)
{
	struct kfd_ioctl_destroy_event_args *args = data;
	struct kfdsim_event *ev;

	mutex_lock(&p->event_mutex);
	ev = idr_find(&p->events, args->event_id);
	if (ev)
		event_destroy(p, ev);
	mutex_unlock(&p->event_mutex);
	return ev ? 0 : -EINVAL;
}

static int event_change(struct kfdsim_process *p, u32 id, bool set)
{
	struct kfdsim_event *ev;
	int ret = -EINVAL;

	rcu_read_lock();
	ev = idr_find(&p->events, id);
	if (ev && ev->type == KFD_IOC_EVENT_SIGNAL) {
		spin_lock(&ev->lock);
		if (set)
			event_set(ev);
		else
			ev->signaled = false;
		spin_unlock(&ev->lock);
		ret = 0;
	}
	rcu_read_unlock();
	return ret;
}

/** kfdsim_event_set() - signal one event, as SET_EVENT does; -EINVAL: none */
int kfdsim_event_set(struct kfdsim_process *p, u32 id)
{
	return event_change(p, id, true);
}

KFDSIM_IOCTL(set_event)
{
	struct kfd_ioctl_set_event_args *args = data;

	return kfdsim_event_set(p, args->event_id);
}

KFDSIM_IOCTL(reset_event)
{
	struct kfd_ioctl_reset_event_args *args = data;

	return event_change(p, args->event_id, false);
}

/* Event mutex held. */
static int waiter_start(struct kfdsim_process *p, struct kfdsim_waiter *w,
			const struct kfdsim_event_data *want)
{
	struct kfdsim_event *ev = idr_find(&p->events, want->event_id);

	if (!ev)
		return -EINVAL;
	init_wait(&w->wait);
	spin_lock(&ev->lock);
	w->event = ev;
	w->activated = ev->signaled;
	ev->signaled = ev->signaled && !ev->auto_reset;
	if (kfdsim_personality >= KFDSIM_6_12 &&
	    ev->type == KFD_IOC_EVENT_SIGNAL && want->last_age) {
		w->want_age = true;
		if (ev->age != want->last_age)
			w->activated = true;
	}
	if (!w->activated)
		add_wait_queue(&ev->wq, &w->wait);
	spin_unlock(&ev->lock);
	return 0;
}

static u32 waiters_test(const struct kfdsim_waiter *w, u32 n, bool all)
{
	u32 i, done = 0;

	for (i = 0; i < n; i++) {
		if (!READ_ONCE(w[i].event))
			return KFD_IOC_WAIT_RESULT_FAIL;
		done += READ_ONCE(w[i].activated);
	}
	if (all ? done == n : done > 0)
		return KFD_IOC_WAIT_RESULT_COMPLETE;
	return KFD_IOC_WAIT_RESULT_TIMEOUT;
}

/* Event mutex held. */
static int waiters_copy(const struct kfdsim_waiter *w, u32 n,
			struct kfdsim_event_data __user *user)
{
	u32 i;

	for (i = 0; i < n; i++) {
		const struct kfdsim_event *ev = w[i].event;
		size_t len = 0;

		if (!ev)
			return -EINVAL;
		if (!w[i].activated)
			continue;
		if (ev->type == KFD_IOC_EVENT_MEMORY)
			len = sizeof(ev->memory);
		else if (ev->type == KFD_IOC_EVENT_HW_EXCEPTION)
			len = sizeof(ev->hw);
		if (len && copy_to_user(&user[i], &ev->memory, len))
			return -EFAULT;
		if (w[i].want_age && put_user(ev->age, &user[i].last_age))
			return -EFAULT;
	}
	return 0;
}

/* Event mutex held. */
static void waiters_end(struct kfdsim_waiter *w, u32 n, bool undo)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct kfdsim_event *ev = w[i].event;

		if (!ev)
			continue;
		spin_lock(&ev->lock);
		remove_wait_queue(&ev->wq, &w[i].wait);
		if (undo && w[i].activated && ev->auto_reset)
			event_set(ev);
		spin_unlock(&ev->lock);
	}
}

static long timeout_to_jiffies(u32 ms)
{
	if (!ms)
		return 0;
	if (ms == U32_MAX)
		return MAX_SCHEDULE_TIMEOUT;
	return msecs_to_jiffies(min_t(u32, ms, INT_MAX)) + 1;
}

/* Sleep until the condition holds. Return: 0, -EINTR or -ERESTARTSYS. */
static int waiters_sleep(const struct kfdsim_waiter *w, u32 n,
			 struct kfd_ioctl_wait_events_args *args, u32 *result)
{
	long left = timeout_to_jiffies(args->timeout);
	int ret = 0;

	for (;;) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		if (signal_pending(current)) {
			ret = -ERESTARTSYS;
			if (args->timeout && args->timeout != U32_MAX)
				args->timeout = jiffies_to_msecs(max(0L, left - 1));
			break;
		}
		set_current_state(TASK_INTERRUPTIBLE);
		*result = waiters_test(w, n, args->wait_for_all);
		if (*result != KFD_IOC_WAIT_RESULT_TIMEOUT || left <= 0)
			break;
		left = schedule_timeout(left);
	}
	__set_current_state(TASK_RUNNING);
	return ret;
}

static int waiters_start(struct kfdsim_process *p, struct kfdsim_waiter *w,
			 u32 n, struct kfdsim_event_data __user *user)
{
	struct kfdsim_event_data want;
	int ret;
	u32 i;

	for (i = 0; i < n; i++) {
		if (copy_from_user(&want, &user[i], sizeof(want)))
			return -EFAULT;
		ret = waiter_start(p, &w[i], &want);
		if (ret)
			return ret;
	}
	return 0;
}

KFDSIM_IOCTL(wait_events)
{
	struct kfd_ioctl_wait_events_args *args = data;
	struct kfdsim_event_data __user *user = u64_to_user_ptr(args->events_ptr);
	u32 n = args->num_events, result = KFD_IOC_WAIT_RESULT_FAIL;
	struct kfdsim_waiter *w;
	int ret;

	if (n > MAX_WAIT)
		return -ENOMEM;
	w = kvcalloc(max(n, 1U), sizeof(*w), GFP_KERNEL);
	if (!w)
		return -ENOMEM;
	mutex_lock(&p->event_mutex);
	ret = waiters_start(p, w, n, user);
	if (ret)
		goto out_waiters;
	result = waiters_test(w, n, args->wait_for_all);
	if (result == KFD_IOC_WAIT_RESULT_TIMEOUT) {
		mutex_unlock(&p->event_mutex);
		ret = waiters_sleep(w, n, args, &result);
		mutex_lock(&p->event_mutex);
	}
	if (!ret && result == KFD_IOC_WAIT_RESULT_COMPLETE)
		ret = waiters_copy(w, n, user);
out_waiters:
	waiters_end(w, n, ret == -ERESTARTSYS);
	mutex_unlock(&p->event_mutex);
	kvfree(w);
	if (ret)
		result = KFD_IOC_WAIT_RESULT_FAIL;
	else if (result == KFD_IOC_WAIT_RESULT_FAIL)
		ret = -EIO;
	args->wait_result = result;
	return ret;
}

/** kfdsim_events_mmap() - map the event page; under mmap_lock */
int kfdsim_events_mmap(struct kfdsim_process *p, struct vm_area_struct *vma)
{
	size_t len = vma->vm_end - vma->vm_start;
	int ret;

	if (len > KFDSIM_EVENT_BYTES)
		return -EINVAL;
	/* event_own never changes then; pairs with event_page_ready() */
	if (!smp_load_acquire(&p->event_ready) || !p->event_own)
		return -EINVAL;
	kfdsim_vma_set(vma, VM_IO | VM_DONTCOPY | VM_DONTEXPAND | VM_NORESERVE |
		       VM_DONTDUMP | VM_PFNMAP);
	ret = remap_pfn_range(vma, vma->vm_start, page_to_pfn(p->event_own),
			      len, vma->vm_page_prot);
	if (!ret)
		p->event_mapped = len;
	return ret;
}

/** kfdsim_events_count() - how many there are */
u32 kfdsim_events_count(struct kfdsim_process *p)
{
	struct kfdsim_event *ev;
	u32 n = 0;
	int id;

	mutex_lock(&p->event_mutex);
	idr_for_each_entry(&p->events, ev, id)
		n++;
	mutex_unlock(&p->event_mutex);
	return n;
}

static void event_record(struct kfdsim_event *ev, struct kfdsim_criu_event *rec)
{
	rec->object_type = KFDSIM_CRIU_EVENT;
	rec->event_id = ev->id;
	rec->auto_reset = ev->auto_reset;
	rec->type = ev->type;
	rec->signaled = ev->signaled;
	if (ev->type == KFD_IOC_EVENT_MEMORY)
		rec->memory = ev->memory;
	else if (ev->type == KFD_IOC_EVENT_HW_EXCEPTION)
		rec->hw = ev->hw;
}

/**
 * kfdsim_events_checkpoint() - write a record per event; process lock held
 * @p: whose events
 * @dst: user address of the private data
 * @offset: where in it, advanced
 */
int kfdsim_events_checkpoint(struct kfdsim_process *p, u64 dst, u64 *offset)
{
	struct kfdsim_event *ev;
	bool first = true;
	int id, ret = 0;

	mutex_lock(&p->event_mutex);
	idr_for_each_entry(&p->events, ev, id) {
		struct kfdsim_criu_event rec = { 0 };

		spin_lock(&ev->lock);
		event_record(ev, &rec);
		spin_unlock(&ev->lock);
		if (first && p->event_ready)
			rec.user_handle = p->event_handle;
		first = false;
		if (copy_to_user(u64_to_user_ptr(dst + *offset), &rec, sizeof(rec))) {
			ret = -EFAULT;
			break;
		}
		*offset += sizeof(rec);
	}
	mutex_unlock(&p->event_mutex);
	return ret;
}

static int event_from_record(struct kfdsim_process *p,
			     const struct kfdsim_criu_event *rec)
{
	struct kfdsim_event *ev;
	int ret;

	ev = kzalloc(sizeof(*ev), GFP_KERNEL);
	if (!ev)
		return -ENOMEM;
	ev->type = rec->type;
	ev->auto_reset = rec->auto_reset;
	ev->signaled = rec->signaled;
	switch (rec->type) {
	case KFD_IOC_EVENT_MEMORY:
		ev->memory = rec->memory;
		break;
	case KFD_IOC_EVENT_HW_EXCEPTION:
		ev->hw = rec->hw;
		break;
	case KFD_IOC_EVENT_SIGNAL:
	case KFD_IOC_EVENT_DEBUG_EVENT:
		break;
	default:
		kfree(ev);
		return -EINVAL;
	}
	mutex_lock(&p->event_mutex);
	ret = event_add(p, ev, &rec->event_id);
	mutex_unlock(&p->event_mutex);
	if (ret)
		kfree(ev);
	return ret;
}

/**
 * kfdsim_event_restore() - make an event from its record; process lock held
 * @p: the process being restored
 * @src: user address of the private data
 * @offset: where in it, advanced
 * @max: its size
 */
int kfdsim_event_restore(struct kfdsim_process *p, u64 src, u64 *offset, u64 max)
{
	struct kfdsim_criu_event rec;
	int ret;

	if (*offset + sizeof(rec) > max)
		return -EINVAL;
	if (copy_from_user(&rec, u64_to_user_ptr(src + *offset), sizeof(rec)))
		return -EFAULT;
	*offset += sizeof(rec);
	if (rec.event_id > INT_MAX)
		return -EINVAL;
	if (rec.user_handle) {
		mutex_lock(&p->event_mutex);
		ret = event_page_from_bo(p, rec.user_handle);
		mutex_unlock(&p->event_mutex);
		if (ret)
			return ret;
	}
	return event_from_record(p, &rec);
}
