// SPDX-License-Identifier: GPL-2.0
/*
 * One process: made by the first open of /dev/kfd in an address space, found
 * by it, gone when neither the address space nor an open file is left. When
 * the address space dies its queues go at once, its memory with the last
 * file, as in KFD.
 */
#include <linux/device_cgroup.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <drm/drm_ioctl.h>
#include "kfdsim_kfd.h"

static DEFINE_MUTEX(create_mutex);
static DEFINE_SPINLOCK(processes_lock);
static LIST_HEAD(processes);
static struct workqueue_struct *kfdsim_wq;

/* May the caller use this GPU? The rule of its render node's device cgroup. */
bool kfdsim_gpu_visible(struct kfdsim_gpu *gpu)
{
	return !devcgroup_check_permission(DEVCG_DEV_CHAR, DRM_MAJOR,
					   kfdsim_gpu_render_minor(gpu),
					   DEVCG_ACC_READ | DEVCG_ACC_WRITE);
}

/* Release of the last reference; sleeps, so it runs as work. */
static void process_release_work(struct work_struct *work)
{
	struct kfdsim_process *p =
		container_of(work, struct kfdsim_process, release_work);
	unsigned int i;

	cancel_delayed_work_sync(&p->userptr_work);
	cancel_delayed_work_sync(&p->room_work);
	mutex_lock(&p->lock);
	kfdsim_queues_destroy(p);
	kfdsim_events_exit(p);
	for (i = 0; i < p->n_pdds; i++)
		kfdsim_mem_free_all(p->pdds[i]);
	kfdsim_svm_exit(p);
	kfdsim_procfs_remove(p);
	mutex_unlock(&p->lock);

	spin_lock(&processes_lock);
	list_del(&p->node);
	spin_unlock(&processes_lock);

	for (i = 0; i < p->n_pdds; i++) {
		struct kfdsim_pdd *pdd = p->pdds[i];

		if (pdd->vm) {
			kfdsim_vm_put(pdd->vm);
			fput(pdd->drm_file);
			atomic64_dec(&kfdsim_stats.vms);
		}
		kfdsim_doorbells_free(pdd);
		idr_destroy(&pdd->mems);
		kfree(pdd);
	}
	mmu_notifier_unregister(&p->notifier, p->mm);
	fput(p->mapping);
	put_task_struct(p->lead);
	mmdrop(p->mm);
	kfree(p);
	atomic64_dec(&kfdsim_stats.processes);
}

static void process_kref_release(struct kref *ref)
{
	struct kfdsim_process *p = container_of(ref, struct kfdsim_process, ref);

	queue_work(kfdsim_wq, &p->release_work);
}

/** kfdsim_process_put() - drop a reference; any context */
void kfdsim_process_put(struct kfdsim_process *p)
{
	kref_put(&p->ref, process_kref_release);
}

/* The address space is gone: what runs on the GPU goes now. */
static void process_dequeue_work(struct work_struct *work)
{
	struct kfdsim_process *p =
		container_of(work, struct kfdsim_process, dequeue_work);

	mutex_lock(&p->lock);
	kfdsim_queues_destroy(p);
	kfdsim_procfs_remove(p);
	mutex_unlock(&p->lock);
	cancel_delayed_work_sync(&p->userptr_work);
	kfdsim_process_put(p);
}

/*
 * Called once per process, from whoever dropped the last user of the address
 * space: waits for nothing.
 */
static void process_lose_mm(struct kfdsim_process *p)
{
	if (test_and_set_bit(0, &p->torn))
		return;
	spin_lock(&processes_lock);
	p->dead = true;
	spin_unlock(&processes_lock);
	queue_work(kfdsim_wq, &p->dequeue_work);
}

static void process_mm_release(struct mmu_notifier *mn, struct mm_struct *mm)
{
	process_lose_mm(container_of(mn, struct kfdsim_process, notifier));
}

static const struct mmu_notifier_ops process_notifier_ops = {
	.release = process_mm_release,
};

static int pdd_create(struct kfdsim_process *p, struct kfdsim_gpu *gpu)
{
	struct kfdsim_pdd *pdd = kzalloc(sizeof(*pdd), GFP_KERNEL);
	int ret;

	if (!pdd)
		return -ENOMEM;
	pdd->process = p;
	pdd->gpu = gpu;
	pdd->index = p->n_pdds;
	pdd->user_gpu_id = gpu->gpu_id;
	idr_init(&pdd->mems);
	INIT_LIST_HEAD(&pdd->queues);
	ret = kfdsim_doorbells_alloc(pdd);
	if (ret) {
		kfree(pdd);
		return ret;
	}
	p->pdds[p->n_pdds++] = pdd;
	return 0;
}

static void process_free_unborn(struct kfdsim_process *p)
{
	while (p->n_pdds) {
		struct kfdsim_pdd *pdd = p->pdds[--p->n_pdds];

		kfdsim_doorbells_free(pdd);
		idr_destroy(&pdd->mems);
		kfree(pdd);
	}
	kfdsim_events_exit(p);
	kfree(p);
}

static struct kfdsim_process *process_alloc(void)
{
	struct kfdsim_process *p = kzalloc(sizeof(*p), GFP_KERNEL);
	unsigned int i;
	int ret;

	if (!p)
		return ERR_PTR(-ENOMEM);
	kref_init(&p->ref);
	mutex_init(&p->lock);
	spin_lock_init(&p->evict_lock);
	kfdsim_events_init(p);
	kfdsim_svm_init(p);
	INIT_WORK(&p->dequeue_work, process_dequeue_work);
	INIT_WORK(&p->release_work, process_release_work);
	INIT_DELAYED_WORK(&p->userptr_work, kfdsim_userptr_work);
	INIT_DELAYED_WORK(&p->room_work, kfdsim_room_work);
	p->notifier.ops = &process_notifier_ops;
	for (i = 0; i < kfdsim_num_gpus; i++) {
		if (!kfdsim_gpus[i] || !kfdsim_gpu_visible(kfdsim_gpus[i]))
			continue;
		ret = pdd_create(p, kfdsim_gpus[i]);
		if (ret) {
			process_free_unborn(p);
			return ERR_PTR(ret);
		}
	}
	return p;
}

static struct kfdsim_process *process_create(void)
{
	struct kfdsim_process *p;
	int ret;

	/* a predecessor of this pid may still be in sysfs */
	flush_workqueue(kfdsim_wq);
	p = process_alloc();
	if (IS_ERR(p))
		return p;
	p->mapping = shmem_file_setup("kfdsim", 0, KFDSIM_NO_VMA_FLAGS);
	if (IS_ERR(p->mapping)) {
		ret = PTR_ERR(p->mapping);
		goto err_alloc;
	}
	p->mm = current->mm;
	mmgrab(p->mm);
	ret = mmu_notifier_register(&p->notifier, p->mm);
	if (ret)
		goto err_mm;
	p->lead = get_task_struct(current->group_leader);
	p->pid = task_pid_nr(p->lead);
	kref_get(&p->ref);	/* the address space's */
	atomic64_inc(&kfdsim_stats.processes);
	kfdsim_procfs_add(p);
	spin_lock(&processes_lock);
	list_add_tail(&p->node, &processes);
	spin_unlock(&processes_lock);
	return p;

err_mm:
	mmdrop(p->mm);
	fput(p->mapping);
err_alloc:
	process_free_unborn(p);
	return ERR_PTR(ret);
}

/**
 * kfdsim_process_open() - the caller's process, made where there is none
 *
 * Return: it with a reference for the file being opened, or an error pointer.
 */
struct kfdsim_process *kfdsim_process_open(void)
{
	struct kfdsim_process *p;

	if (!current->mm || current->group_leader->mm != current->mm)
		return ERR_PTR(-EINVAL);
	if (!kfdsim_num_gpus && kfdsim_personality >= KFDSIM_7_2)
		return ERR_PTR(-EINVAL);
	mutex_lock(&create_mutex);
	p = kfdsim_process_by_mm(current->mm);
	if (!p)
		p = process_create();
	mutex_unlock(&create_mutex);
	return p;
}

/**
 * kfdsim_processes_hold() - keep KFD from being opened, if nobody has it open
 *
 * Return: 0, or -EBUSY. Undone by kfdsim_processes_unhold().
 */
int kfdsim_processes_hold(void)
{
	mutex_lock(&create_mutex);
	flush_workqueue(kfdsim_wq);
	if (!atomic64_read(&kfdsim_stats.processes))
		return 0;
	mutex_unlock(&create_mutex);
	return -EBUSY;
}

void kfdsim_processes_unhold(void)
{
	mutex_unlock(&create_mutex);
}

/**
 * kfdsim_process_by_mm() - process of a living address space
 * @mm: compared only
 *
 * Takes a spinlock only. Return: it with a reference, or NULL.
 */
struct kfdsim_process *kfdsim_process_by_mm(struct mm_struct *mm)
{
	struct kfdsim_process *p;

	spin_lock(&processes_lock);
	list_for_each_entry(p, &processes, node) {
		if (p->mm == mm && !p->dead && kref_get_unless_zero(&p->ref)) {
			spin_unlock(&processes_lock);
			return p;
		}
	}
	spin_unlock(&processes_lock);
	return NULL;
}

/** kfdsim_process_by_pid() - the same by pid; the task need not be a leader */
struct kfdsim_process *kfdsim_process_by_pid(struct pid *pid)
{
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);
	struct kfdsim_process *p = NULL;
	struct mm_struct *mm;

	if (!task)
		return NULL;
	mm = get_task_mm(task);
	if (mm) {
		p = kfdsim_process_by_mm(mm);
		mmput(mm);
	}
	put_task_struct(task);
	return p;
}

/**
 * kfdsim_process_next() - walk all processes, dead ones included
 * @prev: where the walk is, its reference is dropped; NULL to start
 *
 * Return: the next with a reference, or NULL at the end.
 */
struct kfdsim_process *kfdsim_process_next(struct kfdsim_process *prev)
{
	struct list_head *pos;
	struct kfdsim_process *next = NULL;

	spin_lock(&processes_lock);
	for (pos = prev ? prev->node.next : processes.next; pos != &processes;
	     pos = pos->next) {
		struct kfdsim_process *p =
			list_entry(pos, struct kfdsim_process, node);

		if (kref_get_unless_zero(&p->ref)) {
			next = p;
			break;
		}
	}
	spin_unlock(&processes_lock);
	if (prev)
		kfdsim_process_put(prev);
	return next;
}

/** kfdsim_pdd_by_user_id() - by the id that user space uses; process lock held */
struct kfdsim_pdd *kfdsim_pdd_by_user_id(struct kfdsim_process *p, u32 gpu_id)
{
	unsigned int i;

	for (i = 0; gpu_id && i < p->n_pdds; i++)
		if (p->pdds[i]->user_gpu_id == gpu_id)
			return p->pdds[i];
	return NULL;
}

/** kfdsim_pdd_by_gpu() - by GPU; needs no lock */
struct kfdsim_pdd *kfdsim_pdd_by_gpu(struct kfdsim_process *p,
				     struct kfdsim_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->gpu == gpu)
			return p->pdds[i];
	return NULL;
}

/**
 * kfdsim_pdd_bound() - by user id, with a GPU address space; process lock held
 * @p: the process
 * @gpu_id: its user id
 * @err: where NULL is returned: -EINVAL no such GPU, -ENODEV no VM yet
 */
struct kfdsim_pdd *kfdsim_pdd_bound(struct kfdsim_process *p, u32 gpu_id,
				    int *err)
{
	struct kfdsim_pdd *pdd = kfdsim_pdd_by_user_id(p, gpu_id);

	if (!pdd) {
		*err = -EINVAL;
		return NULL;
	}
	if (!pdd->vm) {
		*err = -ENODEV;
		return NULL;
	}
	return pdd;
}

/**
 * kfdsim_pdd_acquire_vm() - lend the VM of a render node file to KFD
 * @pdd: which GPU of which process
 * @drm_file: on success its reference passes to the pdd
 *
 * Process lock held, no VM yet. Return: 0, or -EINVAL where the file is not of
 * this GPU.
 */
int kfdsim_pdd_acquire_vm(struct kfdsim_pdd *pdd, struct file *drm_file)
{
	struct kfdsim_vm *vm = kfdsim_vm_from_file(drm_file);

	if (!vm)
		return -EINVAL;
	if (vm->gpu != pdd->gpu) {
		kfdsim_vm_put(vm);
		return -EINVAL;
	}
	pdd->vm = vm;
	pdd->drm_file = drm_file;
	pdd->process->has_info = true;
	atomic64_inc(&kfdsim_stats.vms);
	return 0;
}

int kfdsim_processes_init(void)
{
	int ret = kfdsim_room_init();

	if (ret)
		return ret;
	kfdsim_wq = alloc_workqueue("kfdsim", WQ_UNBOUND, 0);
	if (kfdsim_wq)
		return 0;
	kfdsim_room_exit();
	return -ENOMEM;
}

/* No file is open any more; address spaces may still be known. */
void kfdsim_processes_exit(void)
{
	struct kfdsim_process *p = NULL;

	while ((p = kfdsim_process_next(p)))
		process_lose_mm(p);
	destroy_workqueue(kfdsim_wq);
	kfdsim_room_exit();
}
