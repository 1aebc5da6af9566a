// SPDX-License-Identifier: GPL-2.0
/* Device mappings of a task, translated to BOs and KFD's kinds. */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <drm/drm_device.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>

#include <uapi/linux/gpucr.h>

#include "drmfile.h"
#include "kfdfile.h"
#include "snapshot.h"
#include "task.h"
#include "vma.h"

/* How long a busy memory map may hold up the caller, who holds genl's lock. */
#define GPUCR_MMAP_TRIES	100
#define GPUCR_MMAP_STEP_MS	10

/* KFD's mmap offsets: bits 63:62 are the type, 61:46 a GPU id. */
#define GPUCR_KFD_TYPE(pgoff)	(((u64)(pgoff) << PAGE_SHIFT) >> 62)
#define GPUCR_KFD_GPU(pgoff)	((((u64)(pgoff) << PAGE_SHIFT) >> 46) & 0xffff)

static void gpucr_vma_fill_kfd(struct gpucr_vma *v)
{
	static const u32 kinds[] = {
		GPUCR_VMA_KIND_MMIO,
		GPUCR_VMA_KIND_RESERVED,
		GPUCR_VMA_KIND_EVENTS,
		GPUCR_VMA_KIND_DOORBELL,
	};

	v->kind = kinds[GPUCR_KFD_TYPE(v->pgoff)];
	if (v->kind != GPUCR_VMA_KIND_EVENTS)
		v->gpu_id = GPUCR_KFD_GPU(v->pgoff);
}

static void gpucr_vma_fill_bo(struct gpucr_vma *v, u32 kind,
			      const struct drm_gem_object *obj, u64 delta)
{
	v->kind = kind;
	v->share_id = gpucr_share_id(obj);
	v->bo_size = obj->size;
	v->bo_delta = delta;
}

static void gpucr_vma_fill_drm(struct gpucr_vma *v, struct drm_device *dev)
{
	struct drm_gem_object *obj;
	u64 delta;

	if (!gpucr_drm_supported(dev))
		return;
	/* The mapping keeps its BO alive, and a BO keeps its offset. */
	obj = gpucr_bo_at(dev, v->pgoff, &delta);
	if (!obj)
		return;
	gpucr_vma_fill_bo(v, GPUCR_VMA_KIND_BO, obj, delta);
	drm_gem_object_put(obj);
}

static void gpucr_vma_fill_dmabuf(struct gpucr_vma *v,
				  struct drm_gem_object *obj)
{
	unsigned long start = drm_vma_node_start(&obj->vma_node);

	v->major = 0;
	v->minor = 0;
	/* GEM adds the node's start to the offset when it maps. */
	if (v->pgoff < start)
		return;
	gpucr_vma_fill_bo(v, GPUCR_VMA_KIND_DMA_BUF, obj,
			  (v->pgoff - start) << PAGE_SHIFT);
}

static bool gpucr_vma_wanted(struct vm_area_struct *vma, struct file *only)
{
	struct file *file = vma->vm_file;

	if (only)
		return file == only;
	return file && (gpucr_drm_file(file) || gpucr_kfd_file(file) ||
			gpucr_dmabuf_object(file));
}

static u32 gpucr_vma_flags(unsigned long vm_flags)
{
	u32 flags = 0;

	if (vm_flags & VM_READ)
		flags |= GPUCR_VMA_FLAGS_READ;
	if (vm_flags & VM_WRITE)
		flags |= GPUCR_VMA_FLAGS_WRITE;
	if (vm_flags & VM_EXEC)
		flags |= GPUCR_VMA_FLAGS_EXEC;
	if (vm_flags & VM_SHARED)
		flags |= GPUCR_VMA_FLAGS_SHARED;
	return flags;
}

static void gpucr_vma_fill(struct gpucr_vma *v, struct vm_area_struct *vma)
{
	struct file *file = vma->vm_file;
	struct drm_file *df = gpucr_drm_file(file);
	struct drm_gem_object *obj = gpucr_dmabuf_object(file);

	v->start = vma->vm_start;
	v->end = vma->vm_end;
	v->pgoff = vma->vm_pgoff;
	v->flags = gpucr_vma_flags(vma->vm_flags);
	v->kind = GPUCR_VMA_KIND_UNKNOWN;
	v->major = imajor(file_inode(file));
	v->minor = iminor(file_inode(file));
	if (df)
		gpucr_vma_fill_drm(v, df->minor->dev);
	else if (obj)
		gpucr_vma_fill_dmabuf(v, obj);
	else
		gpucr_vma_fill_kfd(v);
}

/* Count, allocate and fill under one hold of the lock: one moment's truth. */
static struct gpucr_snapshot *gpucr_vma_collect(struct mm_struct *mm,
						struct file *only,
						struct netlink_ext_ack *ack)
{
	struct gpucr_snapshot *snap;
	struct vm_area_struct *vma;
	u32 n = 0;

	VMA_ITERATOR(count, mm, 0);
	VMA_ITERATOR(fill, mm, 0);

	for_each_vma(count, vma)
		n += gpucr_vma_wanted(vma, only);
	if (n > GPUCR_MAX_OBJECTS) {
		NL_SET_ERR_MSG(ack, "the task has too many device mappings");
		return ERR_PTR(-E2BIG);
	}
	snap = gpucr_snapshot_alloc(n, sizeof(struct gpucr_vma));
	if (!snap)
		return ERR_PTR(-ENOMEM);
	for_each_vma(fill, vma)
		if (gpucr_vma_wanted(vma, only))
			gpucr_vma_fill(gpucr_snapshot_add(snap), vma);
	return snap;
}

/* Bounded, since a task can keep its map locked for as long as it likes. */
static int gpucr_vma_lock(struct mm_struct *mm, struct netlink_ext_ack *ack)
{
	int i;

	for (i = 0; i < GPUCR_MMAP_TRIES; i++) {
		if (mmap_read_trylock(mm))
			return 0;
		if (fatal_signal_pending(current))
			return -EINTR;
		msleep(GPUCR_MMAP_STEP_MS);
	}
	NL_SET_ERR_MSG(ack, "the task's memory map is busy; ask again");
	return -EAGAIN;
}

static struct gpucr_snapshot *gpucr_vma_of_task(struct task_struct *task,
						struct file *only,
						struct netlink_ext_ack *ack)
{
	struct gpucr_snapshot *snap;
	struct mm_struct *mm;
	int err;

	mm = get_task_mm(task);
	if (!mm) {
		NL_SET_ERR_MSG(ack, "the task has no memory any more");
		return ERR_PTR(-ESRCH);
	}
	err = gpucr_vma_lock(mm, ack);
	if (err) {
		snap = ERR_PTR(err);
		goto out_mm;
	}
	snap = gpucr_vma_collect(mm, only, ack);
	mmap_read_unlock(mm);
out_mm:
	/* The last user tears the map down: not here, under genl's lock. */
	mmput_async(mm);
	return snap;
}

static int gpucr_vma_check_file(struct file *file, struct netlink_ext_ack *ack)
{
	struct drm_file *df = gpucr_drm_file(file);

	if (df && !gpucr_drm_supported(df->minor->dev)) {
		NL_SET_ERR_MSG(ack,
			       "the DRM driver is not amdgpu, vgem or virtio_gpu");
		return -EOPNOTSUPP;
	}
	if (!df && !gpucr_kfd_file(file) && !gpucr_dmabuf_object(file)) {
		NL_SET_ERR_MSG(ack,
			       "the descriptor is neither a DRM node nor KFD nor a GEM dma-buf");
		return -EINVAL;
	}
	return 0;
}

/**
 * gpucr_vma_snapshot() - device mappings of a task
 * @tgid: thread group of the task
 * @only: tell mappings of this very open file, referenced by the caller; the
 *	holder of the file has passed the checks that give one. NULL: all of
 *	them, and the caller must be the task or trace it
 * @ack: told why not
 *
 * Holds no memory map, file or object when it returns. May sleep.
 *
 * Return: a snapshot of struct gpucr_vma by address, or an error pointer.
 */
struct gpucr_snapshot *gpucr_vma_snapshot(struct pid *tgid, struct file *only,
					  struct netlink_ext_ack *ack)
{
	struct gpucr_snapshot *snap;
	struct task_struct *task;
	int err;

	err = only ? gpucr_vma_check_file(only, ack) : 0;
	if (err)
		return ERR_PTR(err);
	task = get_pid_task(tgid, PIDTYPE_TGID);
	if (!task) {
		NL_SET_ERR_MSG(ack, "the task has died");
		return ERR_PTR(-ESRCH);
	}
	err = gpucr_task_lock_exec(task, ack);
	if (err)
		goto err_task;
	err = only ? 0 : gpucr_task_check_mine(tgid, ack);
	if (err)
		goto err_exec;
	snap = gpucr_vma_of_task(task, only, ack);
	gpucr_task_unlock_exec(task);
	put_task_struct(task);
	return snap;

err_exec:
	gpucr_task_unlock_exec(task);
err_task:
	put_task_struct(task);
	return ERR_PTR(err);
}
