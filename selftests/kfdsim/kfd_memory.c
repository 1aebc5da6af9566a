// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers: allocation, mapping, import and export. A handle is the user GPU
 * id and the slot in that GPU's idr, as KFD's.
 */
#include <linux/bitmap.h>
#include <linux/dma-buf.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_file.h>
#include <uapi/drm/amdgpu_drm.h>
#include "kfdsim_kfd.h"

#define KIND_FLAGS	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | \
			 KFD_IOC_ALLOC_MEM_FLAGS_GTT | \
			 KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | \
			 KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | \
			 KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)

/* What counts as KFD's own, and how much there may be of it; NULL: does not. */
static atomic64_t *mem_account(const struct kfdsim_mem *mem, u64 *limit)
{
	struct kfdsim_gpu *gpu = mem->pdd->gpu;

	if (mem->imported)
		return NULL;
	switch (mem->flags & KIND_FLAGS) {
	case KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
		*limit = gpu->vram_size;
		return &gpu->kfd_vram;
	case KFD_IOC_ALLOC_MEM_FLAGS_GTT:
		*limit = gpu->gtt_size;
		return &gpu->kfd_gtt;
	default:
		return NULL;
	}
}

static void mem_show_vram(struct kfdsim_mem *mem, int sign)
{
	if (!(mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM))
		return;
	atomic64_add(sign * (s64)ALIGN(mem->size, KFDSIM_KFD_ALIGN),
		     &mem->pdd->gpu->kfd_vram_aligned);
	atomic64_add(sign * (s64)mem->size, &mem->pdd->vram_usage);
}

/*
 * KFD gives away no more than there is, so that all of it can be there at once,
 * whatever others use: they can be evicted.
 */
static int mem_reserve(struct kfdsim_mem *mem)
{
	u64 limit;
	atomic64_t *used = mem_account(mem, &limit);

	if (!used)
		return 0;
	if (atomic64_add_return(mem->size, used) > limit) {
		atomic64_sub(mem->size, used);
		return -ENOMEM;
	}
	mem_show_vram(mem, 1);
	return 0;
}

static void mem_unreserve(struct kfdsim_mem *mem)
{
	u64 limit;
	atomic64_t *used = mem_account(mem, &limit);

	if (!used)
		return;
	atomic64_sub(mem->size, used);
	mem_show_vram(mem, -1);
}

static struct kfdsim_bo *mem_make_bo(struct kfdsim_mem *mem)
{
	struct kfdsim_gpu *gpu = mem->pdd->gpu;
	u64 gem_flags = 0;

	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return kfdsim_doorbells_bo(mem->pdd);
	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		return kfdsim_bo_create_userptr(gpu, mem->user_addr, mem->size);
	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_GTT)
		return kfdsim_bo_create(gpu, mem->size, AMDGPU_GEM_DOMAIN_GTT, 0);
	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
		gem_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
	return kfdsim_bo_create(gpu, mem->size, AMDGPU_GEM_DOMAIN_VRAM, gem_flags);
}

static int mem_check(const struct kfdsim_mem *mem)
{
	u32 kind = mem->flags & KIND_FLAGS;

	if (hweight32(kind) != 1)
		return -EINVAL;
	if (kind == KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return mem->size == KFDSIM_DOORBELL_BYTES ? 0 : -EINVAL;
	if (kind == KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return mem->size == PAGE_SIZE ? 0 : -EINVAL;
	if (kind != KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		return 0;
	if (!mem->user_addr || !PAGE_ALIGNED(mem->user_addr))
		return -EINVAL;
	return access_ok((void __user *)mem->user_addr, mem->size) ? 0 : -EFAULT;
}

static int mem_populate(struct kfdsim_mem *mem)
{
	struct drm_file *file = kfdsim_drm_file(mem->pdd->drm_file);
	int ret;

	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return 0;
	mem->bo = mem_make_bo(mem);
	if (IS_ERR(mem->bo)) {
		ret = PTR_ERR(mem->bo);
		mem->bo = NULL;
		return ret;
	}
	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		return kfdsim_userptr_register(mem);
	if (mem->bo->borrowed)
		return 0;
	ret = kfdsim_bo_allow(mem->bo, file);
	mem->allowed = !ret;
	return ret;
}

/**
 * kfdsim_mem_create() - make a buffer, without a handle yet
 * @pdd: with a VM; process lock held
 * @va: GPU address, at a page
 * @size: bytes; rounded up to pages
 * @flags: KFD_IOC_ALLOC_MEM_FLAGS_*
 * @user_addr: of a userptr
 *
 * Return: it, or an error pointer.
 */
struct kfdsim_mem *kfdsim_mem_create(struct kfdsim_pdd *pdd, u64 va, u64 size,
				     u32 flags, u64 user_addr)
{
	struct kfdsim_mem *mem;
	int ret;

	if (!size || size > KFDSIM_GPUVM_LIMIT || !PAGE_ALIGNED(va))
		return ERR_PTR(-EINVAL);
	mem = kzalloc(sizeof(*mem), GFP_KERNEL);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&mem->user);
	mem->pdd = pdd;
	mem->va = va;
	mem->size = PAGE_ALIGN(size);
	mem->flags = flags;
	mem->user_addr = user_addr;
	ret = mem_check(mem);
	if (!ret)
		ret = mem_reserve(mem);
	if (ret)
		goto err_free;
	ret = mem_populate(mem);
	if (ret)
		goto err_unreserve;
	atomic64_inc(&kfdsim_stats.bos);
	return mem;

err_unreserve:
	if (mem->bo)
		kfdsim_bo_put(mem->bo);
	mem_unreserve(mem);
err_free:
	kfree(mem);
	return ERR_PTR(ret);
}

static int mem_unmap(struct kfdsim_mem *mem, struct kfdsim_pdd *on)
{
	int ret = 0;

	if (!test_bit(on->index, mem->mapped))
		return 0;
	if (mem->bo && !test_bit(on->index, mem->deferred))
		ret = kfdsim_vm_unmap(on->vm, mem->bo, mem->va);
	clear_bit(on->index, mem->deferred);
	clear_bit(on->index, mem->mapped);
	if (bitmap_empty(mem->mapped, KFDSIM_MAX_GPUS))
		kfdsim_room_remove(mem);
	return ret;
}

/** kfdsim_mem_destroy() - unmap and free a buffer; its handle is gone already */
void kfdsim_mem_destroy(struct kfdsim_mem *mem)
{
	struct kfdsim_process *p = mem->pdd->process;
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		mem_unmap(mem, p->pdds[i]);
	kfdsim_userptr_unregister(mem);
	if (mem->allowed)
		kfdsim_bo_revoke(mem->bo, kfdsim_drm_file(mem->pdd->drm_file));
	mem_unreserve(mem);
	if (mem->bo && mem->bo->borrowed)
		kfdsim_doorbells_bo_forget(mem->bo);
	if (mem->bo)
		kfdsim_bo_put(mem->bo);
	kfree(mem);
	atomic64_dec(&kfdsim_stats.bos);
}

/**
 * kfdsim_mem_map() - make a buffer visible to one GPU; process lock held
 * @mem: the buffer
 * @on: the GPU, with a VM
 *
 * Mapping twice is not an error.
 */
int kfdsim_mem_map(struct kfdsim_mem *mem, struct kfdsim_pdd *on)
{
	int ret;

	if (test_bit(on->index, mem->mapped))
		return 0;
	if (mem->bo) {
		/* it may have had to go while nobody had it mapped */
		ret = kfdsim_place_back(mem->bo, true, on->process->mm);
		if (ret)
			return ret;
		ret = kfdsim_vm_map(on->vm, mem->bo, 0, mem->va, mem->size,
				    AMDGPU_VM_PAGE_READABLE |
				    AMDGPU_VM_PAGE_WRITEABLE |
				    AMDGPU_VM_PAGE_EXECUTABLE);
		if (ret)
			return ret;
	}
	if (bitmap_empty(mem->mapped, KFDSIM_MAX_GPUS))
		kfdsim_room_add(mem);
	set_bit(on->index, mem->mapped);
	return 0;
}

/** kfdsim_mem_lookup() - by handle; process lock held */
struct kfdsim_mem *kfdsim_mem_lookup(struct kfdsim_process *p, u64 handle)
{
	struct kfdsim_pdd *pdd =
		kfdsim_pdd_by_user_id(p, KFDSIM_HANDLE_GPU(handle));

	return pdd ? idr_find(&pdd->mems, KFDSIM_HANDLE_ID(handle)) : NULL;
}

/**
 * kfdsim_mem_at() - buffer mapped on a GPU that is exactly so long
 * @on: the GPU
 * @va: any address in its first page
 * @size: bytes
 *
 * Process lock held.
 */
struct kfdsim_mem *kfdsim_mem_at(struct kfdsim_pdd *on, u64 va, u64 size)
{
	struct kfdsim_process *p = on->process;
	struct kfdsim_mem *mem;
	unsigned int i;
	int id;

	for (i = 0; i < p->n_pdds; i++)
		idr_for_each_entry(&p->pdds[i]->mems, mem, id)
			if (mem->bo && mem->va >> PAGE_SHIFT == va >> PAGE_SHIFT &&
			    mem->size == PAGE_ALIGN(size) &&
			    test_bit(on->index, mem->mapped))
				return mem;
	return NULL;
}

/** kfdsim_mem_free_all() - free what a process left; process lock held */
void kfdsim_mem_free_all(struct kfdsim_pdd *pdd)
{
	struct kfdsim_mem *mem;
	int id;

	idr_for_each_entry(&pdd->mems, mem, id) {
		idr_remove(&pdd->mems, id);
		kfdsim_mem_destroy(mem);
	}
}

/**
 * kfdsim_mem_offset() - where mmap() finds a buffer
 * @mem: not a userptr
 * @gpu_id: for doorbells and MMIO
 */
u64 kfdsim_mem_offset(const struct kfdsim_mem *mem, u32 gpu_id)
{
	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return KFDSIM_MMAP_TYPE_DOORBELL | KFDSIM_MMAP_GPU(gpu_id);
	if (mem->flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return KFDSIM_MMAP_TYPE_MMIO | KFDSIM_MMAP_GPU(gpu_id);
	return kfdsim_bo_mmap_offset(mem->bo);
}

static int mem_add_handle(struct kfdsim_mem *mem, u32 gpu_id, u64 *handle)
{
	int id = idr_alloc(&mem->pdd->mems, mem, 0, 0, GFP_KERNEL);

	if (id < 0)
		return -EFAULT;
	*handle = KFDSIM_HANDLE(gpu_id, id);
	return 0;
}

KFDSIM_IOCTL(alloc_memory)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args *args = data;
	struct kfdsim_mem *mem;
	struct kfdsim_pdd *pdd;
	int ret;

	if (!args->size)
		return -EINVAL;
	ret = kfdsim_fault("alloc-memory");
	if (ret)
		return ret;
	mutex_lock(&p->lock);
	pdd = kfdsim_pdd_bound(p, args->gpu_id, &ret);
	if (!pdd)
		goto out_unlock;
	mem = kfdsim_mem_create(pdd, args->va_addr, args->size, args->flags,
				args->mmap_offset);
	if (IS_ERR(mem)) {
		ret = PTR_ERR(mem);
		goto out_unlock;
	}
	ret = mem_add_handle(mem, args->gpu_id, &args->handle);
	if (ret) {
		kfdsim_mem_destroy(mem);
		goto out_unlock;
	}
	if (!(args->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR))
		args->mmap_offset = kfdsim_mem_offset(mem, args->gpu_id);
out_unlock:
	mutex_unlock(&p->lock);
	return ret;
}

KFDSIM_IOCTL(free_memory)
{
	struct kfd_ioctl_free_memory_of_gpu_args *args = data;
	struct kfdsim_mem *mem;
	int ret = 0;

	mutex_lock(&p->lock);
	if (p->event_handle && p->event_handle == args->handle) {
		ret = -EPERM;
		goto out_unlock;
	}
	mem = kfdsim_mem_lookup(p, args->handle);
	if (!mem) {
		ret = -EINVAL;
		goto out_unlock;
	}
	if (mem->queue_refs || !bitmap_empty(mem->mapped, KFDSIM_MAX_GPUS)) {
		ret = -EBUSY;
		goto out_unlock;
	}
	idr_remove(&mem->pdd->mems, KFDSIM_HANDLE_ID(args->handle));
	kfdsim_mem_destroy(mem);
out_unlock:
	mutex_unlock(&p->lock);
	return ret;
}

static u32 *copy_gpu_ids(u64 user, u32 n, u32 done)
{
	u32 *ids;

	if (!n || done > n || n > KFDSIM_MAX_GPUS)
		return ERR_PTR(-EINVAL);
	ids = kmalloc_array(n, sizeof(*ids), GFP_KERNEL);
	if (!ids)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(ids, u64_to_user_ptr(user), n * sizeof(*ids))) {
		kfree(ids);
		return ERR_PTR(-EFAULT);
	}
	return ids;
}

static int map_on_all(struct kfdsim_process *p,
		      struct kfd_ioctl_map_memory_to_gpu_args *args,
		      const u32 *ids)
{
	struct kfdsim_pdd *owner, *peer;
	struct kfdsim_mem *mem;
	int ret = 0;
	u32 i;

	owner = kfdsim_pdd_bound(p, KFDSIM_HANDLE_GPU(args->handle), &ret);
	if (!owner)
		return ret;
	mem = idr_find(&owner->mems, KFDSIM_HANDLE_ID(args->handle));
	if (!mem)
		return -ENOMEM;
	for (i = args->n_success; i < args->n_devices; i++) {
		peer = kfdsim_pdd_bound(p, ids[i], &ret);
		if (!peer)
			return ret;
		ret = kfdsim_mem_map(mem, peer);
		if (ret)
			return ret;
		args->n_success = i + 1;
	}
	return 0;
}

KFDSIM_IOCTL(map_memory)
{
	struct kfd_ioctl_map_memory_to_gpu_args *args = data;
	u32 *ids = copy_gpu_ids(args->device_ids_array_ptr, args->n_devices,
				args->n_success);
	int ret;

	if (IS_ERR(ids))
		return PTR_ERR(ids);
	ret = kfdsim_fault("map-memory");
	if (!ret) {
		mutex_lock(&p->lock);
		ret = map_on_all(p, args, ids);
		mutex_unlock(&p->lock);
	}
	kfree(ids);
	return ret;
}

static int unmap_from_all(struct kfdsim_process *p,
			  struct kfd_ioctl_unmap_memory_from_gpu_args *args,
			  const u32 *ids)
{
	struct kfdsim_pdd *peer;
	struct kfdsim_mem *mem;
	int ret;
	u32 i;

	if (!kfdsim_pdd_by_user_id(p, KFDSIM_HANDLE_GPU(args->handle)))
		return -EINVAL;
	mem = kfdsim_mem_lookup(p, args->handle);
	if (!mem)
		return -ENOMEM;
	if (mem->queue_refs)
		return -EBUSY;
	for (i = args->n_success; i < args->n_devices; i++) {
		peer = kfdsim_pdd_by_user_id(p, ids[i]);
		if (!peer)
			return -EINVAL;
		ret = mem_unmap(mem, peer);
		if (ret)
			return ret;
		args->n_success = i + 1;
	}
	return 0;
}

KFDSIM_IOCTL(unmap_memory)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args *args = data;
	u32 *ids = copy_gpu_ids(args->device_ids_array_ptr, args->n_devices,
				args->n_success);
	int ret;

	if (IS_ERR(ids))
		return PTR_ERR(ids);
	mutex_lock(&p->lock);
	ret = unmap_from_all(p, args, ids);
	mutex_unlock(&p->lock);
	kfree(ids);
	return ret;
}

KFDSIM_IOCTL(available_memory)
{
	struct kfd_ioctl_get_available_memory_args *args = data;
	struct kfdsim_pdd *pdd;
	u64 used;

	mutex_lock(&p->lock);
	pdd = kfdsim_pdd_by_user_id(p, args->gpu_id);
	mutex_unlock(&p->lock);
	if (!pdd)
		return -EINVAL;
	/* KFD's own buffers; what others use could be evicted */
	used = atomic64_read(&pdd->gpu->kfd_vram_aligned);
	args->available = used < pdd->gpu->vram_size ?
			  ALIGN_DOWN(pdd->gpu->vram_size - used,
				     KFDSIM_KFD_ALIGN) : 0;
	return 0;
}

KFDSIM_IOCTL(acquire_vm)
{
	struct kfd_ioctl_acquire_vm_args *args = data;
	struct file *file = fget(args->drm_fd);
	struct kfdsim_pdd *pdd;
	int ret;

	if (!file)
		return -EINVAL;
	mutex_lock(&p->lock);
	pdd = kfdsim_pdd_by_user_id(p, args->gpu_id);
	if (!pdd) {
		ret = -EINVAL;
	} else if (pdd->drm_file) {
		ret = pdd->drm_file == file ? 0 : -EBUSY;
	} else {
		ret = kfdsim_pdd_acquire_vm(pdd, file);
		if (!ret)
			file = NULL;	/* the pdd keeps it */
	}
	mutex_unlock(&p->lock);
	if (file)
		fput(file);
	return ret;
}

static u32 dmabuf_kfd_flags(const struct kfdsim_bo *bo)
{
	u32 flags = bo->domain == AMDGPU_GEM_DOMAIN_VRAM ?
		    KFD_IOC_ALLOC_MEM_FLAGS_VRAM : KFD_IOC_ALLOC_MEM_FLAGS_GTT;

	if (bo->gem_flags & AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED)
		flags |= KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
	return flags;
}

/* BO of ours behind a dma-buf descriptor, with a reference. */
static struct kfdsim_bo *bo_from_fd(u32 fd)
{
	struct dma_buf *buf = dma_buf_get(fd);
	struct kfdsim_bo *bo;

	if (IS_ERR(buf))
		return ERR_CAST(buf);
	bo = kfdsim_bo_from_dmabuf(buf);
	dma_buf_put(buf);
	return bo ?: ERR_PTR(-EINVAL);
}

KFDSIM_IOCTL(get_dmabuf_info)
{
	struct kfd_ioctl_get_dmabuf_info_args *args = data;
	struct kfdsim_bo *bo = bo_from_fd(args->dmabuf_fd);

	if (IS_ERR(bo))
		return PTR_ERR(bo);
	args->size = bo->base.size;
	args->gpu_id = bo->gpu->gpu_id;
	args->flags = dmabuf_kfd_flags(bo);
	args->metadata_size = 0;
	kfdsim_bo_put(bo);
	return 0;
}

static struct kfdsim_mem *mem_import(struct kfdsim_pdd *pdd,
				     struct kfdsim_bo *bo, u64 va)
{
	struct kfdsim_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL);
	int ret;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	ret = kfdsim_bo_allow(bo, kfdsim_drm_file(pdd->drm_file));
	if (ret) {
		kfree(mem);
		return ERR_PTR(ret);
	}
	kfdsim_bo_get(bo);
	INIT_LIST_HEAD(&mem->user);
	mem->pdd = pdd;
	mem->bo = bo;
	mem->va = va;
	mem->size = bo->base.size;
	mem->flags = (dmabuf_kfd_flags(bo) & ~KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) |
		     KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
		     KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE;
	mem->imported = true;
	mem->allowed = true;
	atomic64_inc(&kfdsim_stats.bos);
	return mem;
}

KFDSIM_IOCTL(import_dmabuf)
{
	struct kfd_ioctl_import_dmabuf_args *args = data;
	struct kfdsim_bo *bo = bo_from_fd(args->dmabuf_fd);
	struct kfdsim_mem *mem;
	struct kfdsim_pdd *pdd;
	int ret;

	if (IS_ERR(bo))
		return PTR_ERR(bo);
	mutex_lock(&p->lock);
	pdd = kfdsim_pdd_bound(p, args->gpu_id, &ret);
	if (!pdd)
		goto out_unlock;
	if (!PAGE_ALIGNED(args->va_addr)) {
		ret = -EINVAL;
		goto out_unlock;
	}
	mem = mem_import(pdd, bo, args->va_addr);
	if (IS_ERR(mem)) {
		ret = PTR_ERR(mem);
		goto out_unlock;
	}
	ret = mem_add_handle(mem, args->gpu_id, &args->handle);
	if (ret)
		kfdsim_mem_destroy(mem);
out_unlock:
	mutex_unlock(&p->lock);
	kfdsim_bo_put(bo);
	return ret;
}

KFDSIM_IOCTL(export_dmabuf)
{
	struct kfd_ioctl_export_dmabuf_args *args = data;
	struct kfdsim_mem *mem;
	int ret = -EINVAL;

	if (args->flags & ~(O_CLOEXEC | O_ACCMODE))
		return -EINVAL;
	mutex_lock(&p->lock);
	mem = kfdsim_mem_lookup(p, args->handle);
	if (mem && mem->bo && !mem->bo->userptr && !mem->bo->borrowed)
		ret = kfdsim_bo_export_fd(mem->bo, args->flags);
	mutex_unlock(&p->lock);
	if (ret < 0)
		return ret;
	args->dmabuf_fd = ret;
	return 0;
}
