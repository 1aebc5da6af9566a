/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfdsim: what the files of the KFD side know of each other.
 *
 * Locks, outermost first:
 *   create_mutex (kfd_process.c)	one open at a time makes a process
 *   kfdsim_process.lock		as KFD's p->mutex: pdds, BOs, queues, the
 *					CRIU state; held over user copies, so
 *					mmap_lock nests inside
 *   kfdsim_process.event_mutex		events come and go, waiters start and end
 *   mmap_lock, kfdsim_vm.lock		inside all of the above
 *   kfdsim_gpu.place_lock		spinlock: where BOs are (place.c)
 *   users_lock (kfd_room.c)		spinlock: who has a BO mapped
 *   kfdsim_process.evict_lock		spinlock: eviction counts and the run
 *					state of every queue
 *   kfdsim_event.lock			spinlock: one event
 *   processes_lock (kfd_process.c)	spinlock: the table of processes
 *
 * Page faults, mmap() and MMU notifiers run under mmap_lock or worse, so they
 * take spinlocks only. A runner takes no sleeping lock of the process; whoever
 * waits for it to park may hold the process's lock.
 */
#ifndef KFDSIM_KFD_H
#define KFDSIM_KFD_H

#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/linux/kfd_ioctl.h>
#include "kfdsim.h"

/* mmap() offsets of /dev/kfd. */
#define KFDSIM_MMAP_TYPE_SHIFT		62
#define KFDSIM_MMAP_TYPE_MASK		(3ULL << KFDSIM_MMAP_TYPE_SHIFT)
#define KFDSIM_MMAP_TYPE_DOORBELL	(3ULL << KFDSIM_MMAP_TYPE_SHIFT)
#define KFDSIM_MMAP_TYPE_EVENTS		(2ULL << KFDSIM_MMAP_TYPE_SHIFT)
#define KFDSIM_MMAP_TYPE_MMIO		(0ULL << KFDSIM_MMAP_TYPE_SHIFT)
#define KFDSIM_MMAP_GPU_SHIFT		46
#define KFDSIM_MMAP_GPU(id)		((u64)((id) & 0xffff) << KFDSIM_MMAP_GPU_SHIFT)
#define KFDSIM_MMAP_GET_GPU(off)	(((off) >> KFDSIM_MMAP_GPU_SHIFT) & 0xffff)

#define KFDSIM_GPUVM_BASE		0x200000ULL
#define KFDSIM_GPUVM_LIMIT		0x7fffffffffffULL

#define KFDSIM_DOORBELLS		1024	/* of 8 bytes, per process and GPU */
#define KFDSIM_DOORBELL_BYTES		(KFDSIM_DOORBELLS * 8)
#define KFDSIM_DOORBELL_PAGES		(KFDSIM_DOORBELL_BYTES / PAGE_SIZE)
#define KFDSIM_MAX_QUEUES		1024	/* per process, all GPUs */
#define KFDSIM_MAX_QUEUES_GPU		127	/* per process and GPU */

#define KFDSIM_EVENT_BYTES		(KFD_SIGNAL_EVENT_LIMIT * 8)
#define KFDSIM_EVENT_PAGES		(KFDSIM_EVENT_BYTES / PAGE_SIZE)

#define KFDSIM_HANDLE(gpu_id, id)	(((u64)(gpu_id) << 32) + (u32)(id))
#define KFDSIM_HANDLE_GPU(h)		((u32)((h) >> 32))
#define KFDSIM_HANDLE_ID(h)		((u32)(h))

/* KFD's own queue types, which sysfs and the CRIU records show. */
enum kfdsim_queue_type {
	KFDSIM_QUEUE_COMPUTE = 0,
	KFDSIM_QUEUE_SDMA = 1,
	KFDSIM_QUEUE_SDMA_XGMI = 4,
};

#define KFDSIM_FORMAT_PM4	0
#define KFDSIM_FORMAT_AQL	1

#define KFDSIM_AQL_DW		16	/* of every packet */

struct kfdsim_process;

/**
 * struct kfdsim_mem - a buffer that KFD allocated or imported
 * @pdd: GPU and process that it belongs to
 * @bo: the memory, one reference; NULL for doorbells and MMIO
 * @va: GPU address
 * @size: bytes, whole pages
 * @flags: KFD_IOC_ALLOC_MEM_FLAGS_*
 * @mapped: bit n: mapped on pdd n of the process
 * @deferred: bit n: to be mapped there by RESUME (userptr after a restore)
 * @user: in kfdsim_bo.users while it is mapped anywhere (kfd_room.c)
 * @queue_refs: queues that use it
 * @user_addr: first address of a userptr
 * @notifier: invalidations of that user memory; valid if @registered
 * @imported: made from a dma-buf
 * @allowed: its pdd's DRM file may map it
 */
struct kfdsim_mem {
	struct kfdsim_pdd *pdd;
	struct kfdsim_bo *bo;
	u64 va;
	u64 size;
	u32 flags;
	DECLARE_BITMAP(mapped, KFDSIM_MAX_GPUS);
	DECLARE_BITMAP(deferred, KFDSIM_MAX_GPUS);
	struct list_head user;
	unsigned int queue_refs;
	u64 user_addr;
	struct mmu_interval_notifier notifier;
	bool registered;
	bool imported;
	bool allowed;
};

/**
 * struct kfdsim_pdd - one GPU as one process has it
 * @user_gpu_id: the id that user space uses; differs from the GPU's after a
 *	restore on another GPU
 * @drm_file: render node lent by ACQUIRE_VM, one reference; NULL before
 * @vm: its address space, one reference; NULL before
 * @mems: buffers by handle
 * @evicted: eviction count; queues run at 0 (evict_lock)
 * @evicted_since: when it left 0 (evict_lock)
 * @evicted_ns: time spent evicted, counted when it ends (evict_lock)
 * @doorbells: the doorbell frame; fixed for the life of the process
 * @queues: in order of creation (process lock; evict_lock to change)
 */
struct kfdsim_pdd {
	struct kfdsim_process *process;
	struct kfdsim_gpu *gpu;
	unsigned int index;
	u32 user_gpu_id;
	struct file *drm_file;
	struct kfdsim_vm *vm;
	struct idr mems;
	unsigned int evicted;
	ktime_t evicted_since;
	u64 evicted_ns;
	struct page *doorbell_pages[KFDSIM_DOORBELL_PAGES];
	DECLARE_BITMAP(doorbell_map, KFDSIM_DOORBELLS);
	struct list_head queues;
	unsigned int num_queues;
	atomic64_t vram_usage;
	u64 tba, tma;
	u64 scratch_base;
	struct kobject *kobj_stats;
	struct kobj_attribute attr_vram, attr_sdma, attr_evicted, attr_cu;
	char name_vram[20], name_sdma[20];
};

/**
 * struct kfdsim_queue - a user queue and the thread that runs it
 * @rptr: bytes fetched so far, monotonic (runner; others while it is parked)
 * @wptr: last doorbell seen, as such bytes (the same)
 * @progress: packets retired (the same; read by anybody)
 * @error: 0, or why the queue stopped for good
 * @busy: the runner is inside a batch (evict_lock)
 * @active: has a ring and a share of the GPU (evict_lock)
 * @stop: to be destroyed (evict_lock)
 * @park: runner to others: no longer busy
 * @wake: others to the runner: look again
 */
struct kfdsim_queue {
	struct list_head node;
	struct kfdsim_pdd *pdd;
	u32 qid;
	u32 type;
	u32 format;
	u64 ring;
	u64 ring_size;
	u64 rptr_addr;
	u64 wptr_addr;
	u32 percent;
	u32 priority;
	u64 eop_addr;
	u32 eop_size;
	u64 ctx_addr;
	u32 ctx_size;
	u32 ctl_stack_size;
	u32 doorbell_id;
	u32 sdma_id;
	bool gws;
	struct kfdsim_mem *bufs[5];	/* held by queue_refs */

	u64 *doorbell;
	u64 rptr;
	u64 wptr;
	u64 progress;
	int error;
	struct kfdsim_sdma sdma;
	struct kfdsim_pm4 pm4;
	unsigned long deadline;
	u32 *buf;
	size_t buf_dw;
	bool busy;
	bool active;
	bool stop;
	bool kicked;
	wait_queue_head_t park;
	wait_queue_head_t wake;
	struct task_struct *runner;
	struct kobject *kobj;
	struct kobj_attribute attr_gpuid, attr_size, attr_type;
};

/**
 * struct kfdsim_process - what KFD keeps of one address space
 * @ref: one per open file, one while the address space lives, one per lookup
 * @mm: identity and user memory; mm_count held
 * @lead: thread group leader that opened first
 * @dead: the address space is gone (set once, under processes_lock)
 * @mapping: private file whose address space all /dev/kfd mappings of this
 *	process are in, so that doorbells can be zapped for it alone
 * @queues_paused: between PROCESS_INFO and UNPAUSE
 * @has_info: some GPU VM was acquired (KFD's kgd_process_info exists)
 * @evicted_bos: userptr evictions not yet undone (evict_lock)
 * @userptr_stopped: they really stopped the queues (evict_lock)
 * @block_notifiers: between RESTORE and RESUME (evict_lock)
 * @resume_evict: RESTORE evicted the queues, RESUME's worker undoes it
 * @svm_ranges: see kfd_svm.c; as the next two by the process lock
 * @svm_saved: records that RESTORE kept for RESUME
 * @svm_bo: what their mappings map; NULL before the first
 * @room_stopped: others needed its memory, @room_work undoes it (evict_lock)
 * @room_again: and once more since (evict_lock)
 */
struct kfdsim_process {
	struct kref ref;
	struct list_head node;
	struct mm_struct *mm;
	struct task_struct *lead;
	pid_t pid;
	struct mmu_notifier notifier;
	bool dead;
	unsigned long torn;
	struct work_struct dequeue_work;
	struct work_struct release_work;
	struct file *mapping;

	struct mutex lock;		/* see the top of this file */
	unsigned int n_pdds;
	struct kfdsim_pdd *pdds[KFDSIM_MAX_GPUS];
	DECLARE_BITMAP(qids, KFDSIM_MAX_QUEUES);
	u32 xnack;
	bool runtime_enabled;
	bool queues_paused;
	bool has_info;

	spinlock_t evict_lock;		/* see the top of this file */
	unsigned int evicted_bos;
	bool userptr_stopped;
	bool block_notifiers;
	bool resume_evict;
	struct delayed_work userptr_work;
	struct list_head svm_ranges;
	struct list_head svm_saved;
	struct kfdsim_bo *svm_bo;
	bool room_stopped;
	bool room_again;
	struct delayed_work room_work;

	struct mutex event_mutex;	/* see the top of this file */
	struct idr events;
	unsigned int signal_events;
	struct page *event_pages[KFDSIM_EVENT_PAGES];
	struct page *event_own;		/* allocated by us, not a BO's */
	struct kfdsim_bo *event_bo;
	u64 event_handle;
	size_t event_mapped;
	bool event_ready;

	struct kobject *kobj;
	struct kobject *kobj_queues;
	struct kobj_attribute attr_pasid;
};

/* Counters for debugfs "stats". debugfs.c */
struct kfdsim_stats {
	atomic64_t resume_stray;
	atomic64_t resume_null;
	atomic64_t corruption;
	atomic64_t bos;
	atomic64_t vms;
	atomic64_t processes;
	atomic64_t files;
	atomic64_t queues;
};

extern struct kfdsim_stats kfdsim_stats;

__printf(1, 2) void kfdsim_misuse(const char *fmt, ...);

/* kfd_main.c */
extern const struct file_operations kfdsim_kfd_fops;
struct kobject *kfdsim_kfd_kobj(void);

/* kfd_process.c */
int kfdsim_processes_init(void);
void kfdsim_processes_exit(void);
struct kfdsim_process *kfdsim_process_open(void);
struct kfdsim_process *kfdsim_process_by_mm(struct mm_struct *mm);
struct kfdsim_process *kfdsim_process_by_pid(struct pid *pid);
struct kfdsim_process *kfdsim_process_next(struct kfdsim_process *prev);
void kfdsim_process_put(struct kfdsim_process *p);
struct kfdsim_pdd *kfdsim_pdd_by_user_id(struct kfdsim_process *p, u32 gpu_id);
struct kfdsim_pdd *kfdsim_pdd_by_gpu(struct kfdsim_process *p,
				     struct kfdsim_gpu *gpu);
struct kfdsim_pdd *kfdsim_pdd_bound(struct kfdsim_process *p, u32 gpu_id,
				    int *err);
int kfdsim_pdd_acquire_vm(struct kfdsim_pdd *pdd, struct file *drm_file);
bool kfdsim_gpu_visible(struct kfdsim_gpu *gpu);

/* No process of KFD's exists, and none comes, between these. */
int kfdsim_processes_hold(void);
void kfdsim_processes_unhold(void);

/* kfd_hotplug.c */
void kfdsim_hotplug_init(struct dentry *root);

/* kfd_memory.c and kfd_userptr.c */
struct kfdsim_mem *kfdsim_mem_create(struct kfdsim_pdd *pdd, u64 va, u64 size,
				     u32 flags, u64 user_addr);
void kfdsim_mem_destroy(struct kfdsim_mem *mem);
int kfdsim_mem_map(struct kfdsim_mem *mem, struct kfdsim_pdd *on);
struct kfdsim_mem *kfdsim_mem_lookup(struct kfdsim_process *p, u64 handle);
struct kfdsim_mem *kfdsim_mem_at(struct kfdsim_pdd *on, u64 va, u64 size);
void kfdsim_mem_free_all(struct kfdsim_pdd *pdd);
u64 kfdsim_mem_offset(const struct kfdsim_mem *mem, u32 gpu_id);
int kfdsim_userptr_register(struct kfdsim_mem *mem);
void kfdsim_userptr_unregister(struct kfdsim_mem *mem);
void kfdsim_userptr_work(struct work_struct *work);
int kfdsim_userptr_resume(struct kfdsim_process *p);

/* kfd_room.c */
int kfdsim_room_init(void);
void kfdsim_room_exit(void);
void kfdsim_room_add(struct kfdsim_mem *mem);
void kfdsim_room_remove(struct kfdsim_mem *mem);
void kfdsim_room_work(struct work_struct *work);

/* kfd_svm.c */
bool kfdsim_svm_on(void);
void kfdsim_svm_init(struct kfdsim_process *p);
void kfdsim_svm_exit(struct kfdsim_process *p);
u32 kfdsim_svm_count(struct kfdsim_process *p, size_t *size);
int kfdsim_svm_checkpoint(struct kfdsim_process *p, u64 dst, u64 *offset);
int kfdsim_svm_restore(struct kfdsim_process *p, u64 src, u64 *offset, u64 max);
int kfdsim_svm_resume(struct kfdsim_process *p);

/* kfd_queue.c */
struct kfdsim_queue_state {
	u64 rptr;
	u64 wptr;
	u64 progress;
	u64 done;
	int error;
	struct kfdsim_pm4_at at;
};

struct kfdsim_queue *kfdsim_queue_create(struct kfdsim_pdd *pdd,
					 const struct kfdsim_queue *want,
					 const struct kfdsim_queue_state *restore);
void kfdsim_queue_destroy(struct kfdsim_queue *q);
void kfdsim_queues_destroy(struct kfdsim_process *p);
u32 kfdsim_queue_mqd_size(const struct kfdsim_pdd *pdd, u32 type);

static inline bool kfdsim_queue_is_sdma(const struct kfdsim_queue *q)
{
	return q->type != KFDSIM_QUEUE_COMPUTE;
}

static inline bool kfdsim_queue_is_aql(const struct kfdsim_queue *q)
{
	return !kfdsim_queue_is_sdma(q) && q->format == KFDSIM_FORMAT_AQL;
}

/*
 * wptr in bytes for a doorbell. SDMA rings bytes and PM4 dwords; AQL the number
 * of the last packet, or of the one after it, which is not valid yet.
 */
static inline u64 kfdsim_doorbell_to_wptr(const struct kfdsim_queue *q, u64 value)
{
	if (kfdsim_queue_is_sdma(q))
		return value;
	if (kfdsim_queue_is_aql(q))
		return (value + 1) * KFDSIM_AQL_DW * 4;
	return value * 4;
}

static inline u64 kfdsim_wptr_to_doorbell(const struct kfdsim_queue *q, u64 wptr)
{
	if (kfdsim_queue_is_sdma(q))
		return wptr;
	if (kfdsim_queue_is_aql(q))
		return wptr / (KFDSIM_AQL_DW * 4) - 1;
	return wptr / 4;
}

/* kfd_aql.c */
int kfdsim_aql_exec(struct kfdsim_queue *q, const u32 *dw);
bool kfdsim_aql_report(struct kfdsim_queue *q, int err);

/* kfd_queue_error.c */
void kfdsim_queue_error(struct kfdsim_queue *q, int err);

/* kfd_evict.c */
int kfdsim_evict(struct kfdsim_process *p);
void kfdsim_evict_locked(struct kfdsim_process *p);
void kfdsim_restore(struct kfdsim_process *p);
void kfdsim_queue_kick(struct kfdsim_queue *q);
void kfdsim_queue_park(struct kfdsim_queue *q);
bool kfdsim_queue_runnable(const struct kfdsim_queue *q);

/* kfd_runner.c */
int kfdsim_runner_start(struct kfdsim_queue *q);
void kfdsim_runner_stop(struct kfdsim_queue *q);

/* kfd_doorbell.c */
int kfdsim_kfd_mmap(struct file *filp, struct vm_area_struct *vma);
int kfdsim_doorbells_alloc(struct kfdsim_pdd *pdd);
void kfdsim_doorbells_free(struct kfdsim_pdd *pdd);
int kfdsim_doorbell_assign(struct kfdsim_queue *q, const u32 *restore_id);
void kfdsim_doorbell_release(struct kfdsim_queue *q);
void kfdsim_doorbells_zap(struct kfdsim_pdd *pdd);
struct kfdsim_bo *kfdsim_doorbells_bo(struct kfdsim_pdd *pdd);
void kfdsim_doorbells_bo_forget(struct kfdsim_bo *bo);
int kfdsim_mmio_init(void);
void kfdsim_mmio_exit(void);

/* kfd_event.c */
void kfdsim_events_init(struct kfdsim_process *p);
void kfdsim_events_exit(struct kfdsim_process *p);
void kfdsim_event_interrupt(struct kfdsim_process *p, u32 id);
int kfdsim_event_set(struct kfdsim_process *p, u32 id);
void kfdsim_event_memory_fault(struct kfdsim_pdd *pdd, u64 va);
void kfdsim_event_hw_exception(struct kfdsim_pdd *pdd);
int kfdsim_events_mmap(struct kfdsim_process *p, struct vm_area_struct *vma);
u32 kfdsim_events_count(struct kfdsim_process *p);
int kfdsim_events_checkpoint(struct kfdsim_process *p, u64 dst, u64 *offset);
int kfdsim_event_restore(struct kfdsim_process *p, u64 src, u64 *offset, u64 max);

/* kfd_criu.c, kfd_criu_restore.c */
int kfdsim_criu_restore(struct kfdsim_process *p, struct kfd_ioctl_criu_args *args);

/*
 * ioctl handlers: data is the copied argument, in front of which is written
 * how long the caller says that it is.
 */
static inline u64 kfdsim_arg_size(const void *data)
{
	return ((const u64 *)data)[-1];
}

#define KFDSIM_IOCTL(name) \
	int kfdsim_ioctl_##name(struct kfdsim_process *p, void *data)
KFDSIM_IOCTL(get_version);
KFDSIM_IOCTL(create_queue);
KFDSIM_IOCTL(destroy_queue);
KFDSIM_IOCTL(update_queue);
KFDSIM_IOCTL(set_cu_mask);
KFDSIM_IOCTL(get_queue_wave_state);
KFDSIM_IOCTL(alloc_queue_gws);
KFDSIM_IOCTL(set_memory_policy);
KFDSIM_IOCTL(get_clock_counters);
KFDSIM_IOCTL(get_process_apertures);
KFDSIM_IOCTL(get_process_apertures_new);
KFDSIM_IOCTL(create_event);
KFDSIM_IOCTL(destroy_event);
KFDSIM_IOCTL(set_event);
KFDSIM_IOCTL(reset_event);
KFDSIM_IOCTL(wait_events);
KFDSIM_IOCTL(dbg);
KFDSIM_IOCTL(set_scratch_backing_va);
KFDSIM_IOCTL(get_tile_config);
KFDSIM_IOCTL(set_trap_handler);
KFDSIM_IOCTL(acquire_vm);
KFDSIM_IOCTL(alloc_memory);
KFDSIM_IOCTL(free_memory);
KFDSIM_IOCTL(map_memory);
KFDSIM_IOCTL(unmap_memory);
KFDSIM_IOCTL(get_dmabuf_info);
KFDSIM_IOCTL(import_dmabuf);
KFDSIM_IOCTL(export_dmabuf);
KFDSIM_IOCTL(smi_events);
KFDSIM_IOCTL(svm);
KFDSIM_IOCTL(set_xnack_mode);
KFDSIM_IOCTL(criu_op);
KFDSIM_IOCTL(available_memory);
KFDSIM_IOCTL(runtime_enable);

/* kfd_topology.c */
int kfdsim_topology_init(struct kobject *parent);
void kfdsim_topology_exit(void);
int kfdsim_topology_rebuild(struct kobject *parent);
unsigned int kfdsim_topology_nodes(void);

/* kfd_procfs.c */
int kfdsim_procfs_init(struct kobject *parent);
void kfdsim_procfs_exit(void);
void kfdsim_procfs_add(struct kfdsim_process *p);
void kfdsim_procfs_remove(struct kfdsim_process *p);
void kfdsim_procfs_add_queue(struct kfdsim_queue *q);
void kfdsim_procfs_remove_queue(struct kfdsim_queue *q);

/* fault.c */
ssize_t kfdsim_fault_write(char *line);
struct seq_file;
void kfdsim_fault_show(struct seq_file *m);
void kfdsim_fault_exit(void);

#endif
