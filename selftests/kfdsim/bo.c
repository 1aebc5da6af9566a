// SPDX-License-Identifier: GPL-2.0
/*
 * Buffer objects. Their pages come into being when first touched, full of
 * KFDSIM_POISON (VRAM) or 0 (GTT), and are poisoned before the kernel gets
 * them back.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/xxhash.h>
#include <drm/drm_vma_manager.h>
#include "kfdsim_drm.h"

/* Pages that one CPU fault maps, for speed. */
#define FAULT_BATCH	16

static void *poison;
static atomic_t live;

int kfdsim_bo_init(void)
{
	poison = (void *)__get_free_page(GFP_KERNEL);
	if (!poison)
		return -ENOMEM;
	memset(poison, KFDSIM_POISON, PAGE_SIZE);
	return 0;
}

void kfdsim_bo_exit(void)
{
	WARN(atomic_read(&live), "kfdsim: %d BOs left\n", atomic_read(&live));
	free_page((unsigned long)poison);
}

/**
 * kfdsim_bo_fresh_page() - a page as those that nobody has written
 * @bo: of such a BO
 *
 * amdgpu clears system memory for its users; what it gives of VRAM is not for
 * anybody to rely on, and nothing may be restored by survival.
 */
const void *kfdsim_bo_fresh_page(const struct kfdsim_bo *bo)
{
	return bo->domain == AMDGPU_GEM_DOMAIN_VRAM ? poison :
	       page_address(ZERO_PAGE(0));
}

static void bo_free(struct drm_gem_object *obj)
{
	struct kfdsim_bo *bo = gem_to_kfdsim_bo(obj);
	struct page *page;
	unsigned long i;

	xa_for_each(&bo->pages, i, page) {
		void *va;

		if (bo->borrowed) {
			put_page(page);
			continue;
		}
		va = kmap_local_page(page);
		kfdsim_fill_poison(va);
		kunmap_local(va);
		__free_page(page);
		cond_resched();
	}
	xa_destroy(&bo->pages);
	kfdsim_place_drop(bo);
	if (bo->user_mm)
		mmdrop(bo->user_mm);
	drm_gem_object_release(obj);
	mutex_destroy(&bo_to_kfdsim_gem(bo)->lock);
	kfree(bo_to_kfdsim_gem(bo));
	atomic_dec(&live);
}

/* Has no place yet, and no mmap offset. */
static struct kfdsim_bo *bo_alloc(struct kfdsim_gpu *gpu, u64 size, u32 domain,
				  u64 gem_flags)
{
	struct kfdsim_gem *gem = kzalloc(sizeof(*gem), GFP_KERNEL);

	if (!gem)
		return NULL;
	mutex_init(&gem->lock);
	xa_init(&gem->bo.pages);
	gem->bo.gpu = gpu;
	gem->bo.domain = domain;
	gem->bo.preferred = domain;
	INIT_LIST_HEAD(&gem->bo.lru);
	INIT_LIST_HEAD(&gem->bo.users);
	gem->bo.gem_flags = gem_flags;
	gem->bo.base.funcs = &kfdsim_gem_funcs;
	drm_gem_private_object_init(&gpu->drm, &gem->bo.base, size);
	return &gem->bo;
}

static void bo_discard(struct kfdsim_bo *bo)
{
	drm_gem_object_release(&bo->base);
	kfree(bo_to_kfdsim_gem(bo));
}

/**
 * kfdsim_bo_create() - make a VRAM or GTT BO
 * @gpu: whose
 * @size: bytes, rounded up to pages
 * @domain: AMDGPU_GEM_DOMAIN_VRAM, _GTT or both; or _GDS, _GWS or _OA
 * @gem_flags: AMDGPU_GEM_CREATE_*
 *
 * Others may be evicted for it. Return: the BO with one reference, or an ERR_PTR.
 */
struct kfdsim_bo *kfdsim_bo_create(struct kfdsim_gpu *gpu, u64 size, u32 domain,
				   u64 gem_flags)
{
	struct kfdsim_bo *bo;
	int ret;

	ret = kfdsim_fault("bo-create");
	if (ret)
		return ERR_PTR(ret);
	if (!size)
		return ERR_PTR(-EINVAL);
	if (size > LLONG_MAX - PAGE_SIZE)
		return ERR_PTR(-ENOMEM);
	size = PAGE_ALIGN(size);
	bo = bo_alloc(gpu, size, domain, gem_flags);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	ret = domain & KFDSIM_ON_CHIP ? 0 : kfdsim_place_new(bo, domain);
	if (ret)
		goto err_discard;
	ret = drm_gem_create_mmap_offset(&bo->base);
	if (ret)
		goto err_drop;
	atomic_inc(&live);
	return bo;

err_drop:
	kfdsim_place_drop(bo);
err_discard:
	bo_discard(bo);
	return ERR_PTR(ret);
}

/**
 * kfdsim_bo_create_userptr() - make a BO of user memory of current
 * @gpu: whose
 * @addr: first address, page aligned
 * @size: bytes, rounded up to pages
 *
 * The memory is looked at only when the GPU touches it.
 * Return: the BO with one reference, or an ERR_PTR.
 */
struct kfdsim_bo *kfdsim_bo_create_userptr(struct kfdsim_gpu *gpu,
					   unsigned long addr, u64 size)
{
	struct kfdsim_bo *bo;
	int ret;

	if (!current->mm || !size || offset_in_page(addr))
		return ERR_PTR(-EINVAL);
	if (size > TASK_SIZE_MAX || addr > TASK_SIZE_MAX - size)
		return ERR_PTR(-EINVAL);
	bo = bo_alloc(gpu, PAGE_ALIGN(size), AMDGPU_GEM_DOMAIN_CPU, 0);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	ret = drm_gem_create_mmap_offset(&bo->base);
	if (ret) {
		bo_discard(bo);
		return ERR_PTR(ret);
	}
	bo->userptr = true;
	bo->user_addr = addr;
	bo->user_mm = current->mm;
	mmgrab(bo->user_mm);
	atomic_inc(&live);
	return bo;
}

/**
 * kfdsim_bo_create_svm() - make a BO of all memory of an address space
 * @gpu: whose
 * @mm: the address space
 *
 * Return: the BO with one reference, or an ERR_PTR.
 */
struct kfdsim_bo *kfdsim_bo_create_svm(struct kfdsim_gpu *gpu,
				       struct mm_struct *mm)
{
	struct kfdsim_bo *bo = bo_alloc(gpu, TASK_SIZE_MAX,
					AMDGPU_GEM_DOMAIN_CPU, 0);

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->userptr = true;
	bo->user_mm = mm;
	mmgrab(mm);
	atomic_inc(&live);
	return bo;
}

/**
 * kfdsim_bo_create_borrowed() - make a BO of pages that exist already
 * @gpu: whose
 * @pages: of which it takes references
 * @n: how many
 *
 * Return: the BO with one reference, or an ERR_PTR.
 */
struct kfdsim_bo *kfdsim_bo_create_borrowed(struct kfdsim_gpu *gpu,
					    struct page **pages, unsigned int n)
{
	struct kfdsim_bo *bo;
	unsigned int i;
	int ret;

	bo = bo_alloc(gpu, n * PAGE_SIZE, AMDGPU_GEM_DOMAIN_CPU, 0);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->borrowed = true;
	atomic_inc(&live);
	for (i = 0; i < n; i++) {
		ret = xa_err(xa_store(&bo->pages, i, pages[i], GFP_KERNEL));
		if (ret) {
			kfdsim_bo_put(bo);
			return ERR_PTR(ret);
		}
		get_page(pages[i]);
	}
	return bo;
}

u64 kfdsim_bo_mmap_offset(struct kfdsim_bo *bo)
{
	return drm_vma_node_offset_addr(&bo->base.vma_node);
}

int kfdsim_bo_allow(struct kfdsim_bo *bo, struct drm_file *file)
{
	return drm_vma_node_allow(&bo->base.vma_node, file);
}

void kfdsim_bo_revoke(struct kfdsim_bo *bo, struct drm_file *file)
{
	drm_vma_node_revoke(&bo->base.vma_node, file);
}

/**
 * kfdsim_bo_peek() - page of a BO, if somebody touched it
 * @bo: the BO
 * @pgoff: page within it
 *
 * Return: a page that lives as long as the caller's reference of bo; NULL: it
 * would read as kfdsim_bo_fresh_page().
 */
struct page *kfdsim_bo_peek(struct kfdsim_bo *bo, pgoff_t pgoff)
{
	return xa_load(&bo->pages, pgoff);
}

/**
 * kfdsim_bo_page() - page of a BO, made when absent
 * @bo: the BO
 * @pgoff: page within it
 *
 * May sleep. Return: as kfdsim_bo_peek(); NULL: out of memory, or no such page.
 */
struct page *kfdsim_bo_page(struct kfdsim_bo *bo, pgoff_t pgoff)
{
	struct page *page = xa_load(&bo->pages, pgoff);
	struct page *old;
	void *va;

	if (page)
		return page;
	if (bo->userptr || bo->domain & KFDSIM_ON_CHIP ||
	    pgoff >= bo->base.size >> PAGE_SHIFT)
		return NULL;
	page = alloc_page(GFP_HIGHUSER | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!page)
		return NULL;
	va = kmap_local_page(page);
	kfdsim_copy_words(va, kfdsim_bo_fresh_page(bo), PAGE_SIZE);
	kunmap_local(va);
	old = xa_cmpxchg(&bo->pages, pgoff, NULL, page, GFP_KERNEL);
	if (!old)
		return page;
	__free_page(page);
	return xa_is_err(old) ? NULL : old;
}

static vm_fault_t bo_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct drm_gem_object *obj = vma->vm_private_data;
	struct kfdsim_bo *bo = gem_to_kfdsim_bo(obj);
	pgoff_t pgoff = vmf->pgoff - drm_vma_node_start(&obj->vma_node);
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long end = min(addr + FAULT_BATCH * PAGE_SIZE, vma->vm_end);
	vm_fault_t ret = VM_FAULT_SIGBUS;
	struct page *page;

	if (pgoff >= obj->size >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	page = kfdsim_bo_page(bo, pgoff);
	/* Not VM_FAULT_OOM, on which the fault is tried again for ever. */
	if (!page)
		return VM_FAULT_SIGBUS;
	ret = vmf_insert_pfn(vma, addr, page_to_pfn(page));
	while (ret == VM_FAULT_NOPAGE && (addr += PAGE_SIZE) < end) {
		page = kfdsim_bo_page(bo, ++pgoff);
		if (!page ||
		    vmf_insert_pfn(vma, addr, page_to_pfn(page)) != VM_FAULT_NOPAGE)
			break;
	}
	return ret;
}

/* What ptrace() and /proc/PID/mem use, as get_user_pages() refuses VM_PFNMAP. */
static int bo_access(struct vm_area_struct *vma, unsigned long addr, void *buf,
		     int len, int write)
{
	struct drm_gem_object *obj = vma->vm_private_data;
	u64 off = addr - vma->vm_start;
	int ret;

	off += (u64)(vma->vm_pgoff - drm_vma_node_start(&obj->vma_node)) << PAGE_SHIFT;
	if (len < 1 || off >= obj->size || len > obj->size - off)
		return -EIO;
	ret = kfdsim_bo_rw(gem_to_kfdsim_bo(obj), off, buf, len, write);
	return ret ? ret : len;
}

static const struct vm_operations_struct bo_vm_ops = {
	.fault = bo_fault,
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
	.access = bo_access,
};

static int bo_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct kfdsim_bo *bo = gem_to_kfdsim_bo(obj);
	pgoff_t pgoff = vma->vm_pgoff - drm_vma_node_start(&obj->vma_node);

	if (bo->userptr || bo->borrowed ||
	    bo->gem_flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS)
		return -EPERM;
	if (pgoff + vma_pages(vma) > obj->size >> PAGE_SHIFT)
		return -EINVAL;
	/* libhsakmt makes PROT_NONE, MAP_PRIVATE mappings; amdgpu lets it. */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE) {
		if (vma->vm_flags & VM_ACCESS_FLAGS)
			return -EINVAL;
		kfdsim_vma_clear(vma, VM_MAYWRITE);
	}
	kfdsim_vma_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	return 0;
}

const struct drm_gem_object_funcs kfdsim_gem_funcs = {
	.free = bo_free,
	.open = kfdsim_gem_open,
	.close = kfdsim_gem_close,
	.export = kfdsim_prime_export,
	.mmap = bo_mmap,
	.vm_ops = &bo_vm_ops,
};

/** kfdsim_bo_digest() - see kfdsim.h; may take long */
u64 kfdsim_bo_digest(struct kfdsim_bo *bo)
{
	pgoff_t i, n = bo->base.size >> PAGE_SHIFT;
	struct xxh64_state state;

	xxh64_reset(&state, 0);
	for (i = 0; i < n; i++) {
		struct page *page = kfdsim_bo_peek(bo, i);

		if (page) {
			void *va = kmap_local_page(page);

			xxh64_update(&state, va, PAGE_SIZE);
			kunmap_local(va);
		} else {
			xxh64_update(&state, kfdsim_bo_fresh_page(bo),
				     PAGE_SIZE);
		}
		cond_resched();
	}
	return xxh64_digest(&state);
}
