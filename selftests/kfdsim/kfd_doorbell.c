// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbells, and mmap() of /dev/kfd in general. A doorbell frame is plain
 * memory of the process. Nothing polls it while its queues are idle: the
 * mapping is taken away then, and the next write faults and wakes them.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include "kfdsim_kfd.h"

/* SDMA doorbells: a block per engine, two halves of the frame by queue. */
#define SDMA_FIRST	0xf0
#define SDMA_STRIDE	10
#define MIRROR		512
#define SDMA_ENGINES	16	/* what is kept free for them */

#define MMAP_FLAGS	(VM_IO | VM_DONTCOPY | VM_DONTEXPAND | VM_NORESERVE | \
			 VM_DONTDUMP | VM_PFNMAP)

static struct page *mmio_page;

int kfdsim_mmio_init(void)
{
	mmio_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	return mmio_page ? 0 : -ENOMEM;
}

void kfdsim_mmio_exit(void)
{
	__free_page(mmio_page);
}

/** kfdsim_doorbells_free() - undo kfdsim_doorbells_alloc(), also half of it */
void kfdsim_doorbells_free(struct kfdsim_pdd *pdd)
{
	unsigned int i;

	for (i = 0; i < KFDSIM_DOORBELL_PAGES; i++)
		if (pdd->doorbell_pages[i])
			__free_page(pdd->doorbell_pages[i]);
}

/** kfdsim_doorbells_alloc() - the doorbell frame of a new pdd */
int kfdsim_doorbells_alloc(struct kfdsim_pdd *pdd)
{
	unsigned int i;

	for (i = 0; i < KFDSIM_DOORBELL_PAGES; i++) {
		pdd->doorbell_pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!pdd->doorbell_pages[i]) {
			kfdsim_doorbells_free(pdd);
			return -ENOMEM;
		}
	}
	bitmap_set(pdd->doorbell_map, SDMA_FIRST, SDMA_ENGINES * SDMA_STRIDE);
	bitmap_set(pdd->doorbell_map, SDMA_FIRST + MIRROR,
		   SDMA_ENGINES * SDMA_STRIDE);
	return 0;
}

/* kfd_priv of doorbell BOs, which may outlive their pdd. Outside evict_lock. */
static DEFINE_SPINLOCK(bo_lock);

static void kick_all(struct kfdsim_pdd *pdd)
{
	struct kfdsim_queue *q;

	spin_lock(&pdd->process->evict_lock);
	list_for_each_entry(q, &pdd->queues, node)
		kfdsim_queue_kick(q);
	spin_unlock(&pdd->process->evict_lock);
}

/* A GPU rings. */
static void doorbells_written(struct kfdsim_bo *bo)
{
	spin_lock(&bo_lock);
	if (bo->kfd_priv)
		kick_all(bo->kfd_priv);
	spin_unlock(&bo_lock);
}

/**
 * kfdsim_doorbells_bo() - the doorbell frame as a BO, so that GPUs can ring
 * @pdd: whose
 *
 * Undone by kfdsim_doorbells_bo_forget() and a put. Return: it, or an ERR_PTR.
 */
struct kfdsim_bo *kfdsim_doorbells_bo(struct kfdsim_pdd *pdd)
{
	struct kfdsim_bo *bo =
		kfdsim_bo_create_borrowed(pdd->gpu, pdd->doorbell_pages,
					  KFDSIM_DOORBELL_PAGES);

	if (!IS_ERR(bo)) {
		bo->kfd_priv = pdd;
		bo->written = doorbells_written;
	}
	return bo;
}

/** kfdsim_doorbells_bo_forget() - the BO may live on, but rings no more */
void kfdsim_doorbells_bo_forget(struct kfdsim_bo *bo)
{
	spin_lock(&bo_lock);
	bo->kfd_priv = NULL;
	spin_unlock(&bo_lock);
}

static u32 sdma_doorbell(const struct kfdsim_queue *q)
{
	const struct kfdsim_model *m = q->pdd->gpu->model;
	bool xgmi = q->type == KFDSIM_QUEUE_SDMA_XGMI;
	u32 engines = xgmi ? m->num_sdma_xgmi_engines : m->num_sdma_engines;
	u32 engine = q->sdma_id % engines;
	u32 queue = q->sdma_id / engines;

	if (xgmi)
		engine += m->num_sdma_engines;
	return SDMA_FIRST + engine * SDMA_STRIDE + (queue & 1) * MIRROR +
	       (queue >> 1);
}

/**
 * kfdsim_doorbell_assign() - give a queue its doorbell; process lock held
 * @q: with pdd, type and, for SDMA, sdma_id set
 * @restore_id: the one that it must be, or NULL
 *
 * SDMA doorbells follow from the engine, as on the real ones.
 */
int kfdsim_doorbell_assign(struct kfdsim_queue *q, const u32 *restore_id)
{
	struct kfdsim_pdd *pdd = q->pdd;
	unsigned long id;

	if (kfdsim_queue_is_sdma(q)) {
		id = sdma_doorbell(q);
		if (restore_id && *restore_id != id)
			return -EINVAL;
	} else if (restore_id) {
		id = *restore_id;
		if (id >= KFDSIM_DOORBELLS ||
		    __test_and_set_bit(id, pdd->doorbell_map))
			return -EINVAL;
	} else {
		id = find_first_zero_bit(pdd->doorbell_map, KFDSIM_DOORBELLS);
		if (id >= KFDSIM_DOORBELLS)
			return -EBUSY;
		__set_bit(id, pdd->doorbell_map);
	}
	q->doorbell_id = id;
	q->doorbell = (u64 *)page_address(pdd->doorbell_pages[id * 8 / PAGE_SIZE]) +
		      id % (PAGE_SIZE / 8);
	return 0;
}

void kfdsim_doorbell_release(struct kfdsim_queue *q)
{
	if (!kfdsim_queue_is_sdma(q))
		__clear_bit(q->doorbell_id, q->pdd->doorbell_map);
}

/* mmap() goes by user id from 7.3 on, by the GPU's own id before. */
static struct kfdsim_pdd *pdd_of_offset(struct kfdsim_process *p, u64 off)
{
	u32 id = KFDSIM_MMAP_GET_GPU(off);
	struct kfdsim_gpu *gpu;

	if (kfdsim_personality >= KFDSIM_7_3)
		return kfdsim_pdd_by_user_id(p, id);
	gpu = id ? kfdsim_gpu_by_id(id) : NULL;
	return gpu ? kfdsim_pdd_by_gpu(p, gpu) : NULL;
}

/**
 * kfdsim_doorbells_zap() - take the doorbell mappings of a pdd away
 * @pdd: whose
 *
 * May sleep. The next access faults, which wakes the runners. Restored
 * processes may use either id in the offset, so both are zapped.
 */
void kfdsim_doorbells_zap(struct kfdsim_pdd *pdd)
{
	struct address_space *mapping = pdd->process->mapping->f_mapping;
	u32 ids[] = { pdd->gpu->gpu_id, pdd->user_gpu_id };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		unmap_mapping_range(mapping,
				    KFDSIM_MMAP_TYPE_DOORBELL |
				    KFDSIM_MMAP_GPU(ids[i]),
				    KFDSIM_DOORBELL_BYTES, 1);
}

static vm_fault_t doorbell_fault(struct vm_fault *vmf)
{
	struct kfdsim_pdd *pdd = vmf->vma->vm_private_data;
	unsigned long n = vmf->pgoff & (KFDSIM_DOORBELL_PAGES - 1);
	vm_fault_t ret;

	ret = vmf_insert_pfn(vmf->vma, vmf->address,
			     page_to_pfn(pdd->doorbell_pages[n]));
	kick_all(pdd);
	return ret;
}

static const struct vm_operations_struct doorbell_vm_ops = {
	.fault = doorbell_fault,
};

static int doorbell_mmap(struct kfdsim_pdd *pdd, struct vm_area_struct *vma)
{
	if (vma->vm_end - vma->vm_start != KFDSIM_DOORBELL_BYTES ||
	    vma->vm_pgoff & (KFDSIM_DOORBELL_PAGES - 1))
		return -EINVAL;
	/* a private copy would never ring */
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	kfdsim_vma_set(vma, MMAP_FLAGS);
	vma->vm_private_data = pdd;
	vma->vm_ops = &doorbell_vm_ops;
	return 0;
}

static int mmio_mmap(struct vm_area_struct *vma)
{
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	kfdsim_vma_set(vma, MMAP_FLAGS);
	return remap_pfn_range(vma, vma->vm_start, page_to_pfn(mmio_page),
			       PAGE_SIZE, vma->vm_page_prot);
}

/*
 * mmap() of /dev/kfd; under mmap_lock, so the process lock is out of reach.
 * Up to 6.12 the real one gives a caller that is not the file's owner its own
 * doorbells, which nobody can want; here that is refused, as from 7.2 on.
 */
int kfdsim_kfd_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct kfdsim_process *p = filp->private_data;
	u64 off = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct kfdsim_pdd *pdd;

	if (p->mm != current->mm)
		return -EBADF;
	pdd = pdd_of_offset(p, off);
	switch (off & KFDSIM_MMAP_TYPE_MASK) {
	case KFDSIM_MMAP_TYPE_DOORBELL:
		return pdd ? doorbell_mmap(pdd, vma) : -ENODEV;
	case KFDSIM_MMAP_TYPE_EVENTS:
		if (kfdsim_personality >= KFDSIM_7_3)
			return -EINVAL;
		return kfdsim_events_mmap(p, vma);
	case KFDSIM_MMAP_TYPE_MMIO:
		return pdd ? mmio_mmap(vma) : -ENODEV;
	default:
		return -EINVAL;
	}
}
