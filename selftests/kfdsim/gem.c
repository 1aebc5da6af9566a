// SPDX-License-Identifier: GPL-2.0
/* GEM ioctls of amdgpu: its checks and its errors, in its order. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include "kfdsim_drm.h"

#define CREATE_FLAGS	(AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED |	\
			 AMDGPU_GEM_CREATE_NO_CPU_ACCESS |		\
			 AMDGPU_GEM_CREATE_CPU_GTT_USWC |		\
			 AMDGPU_GEM_CREATE_VRAM_CLEARED |		\
			 AMDGPU_GEM_CREATE_VM_ALWAYS_VALID |		\
			 AMDGPU_GEM_CREATE_EXPLICIT_SYNC |		\
			 AMDGPU_GEM_CREATE_DISCARDABLE)

#define MEMORY_DOMAINS	(AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT | \
			 AMDGPU_GEM_DOMAIN_VRAM)

#define USERPTR_FLAGS	(AMDGPU_GEM_USERPTR_READONLY |	\
			 AMDGPU_GEM_USERPTR_ANONONLY |	\
			 AMDGPU_GEM_USERPTR_VALIDATE |	\
			 AMDGPU_GEM_USERPTR_REGISTER)

#define VA_FLAGS	(AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_READABLE | \
			 AMDGPU_VM_PAGE_WRITEABLE |			    \
			 AMDGPU_VM_PAGE_EXECUTABLE | AMDGPU_VM_MTYPE_MASK | \
			 AMDGPU_VM_PAGE_NOALLOC)
#define VA_PRT_FLAGS	(AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_PRT)

/* Pages looked at in one go by VALIDATE. */
#define VALIDATE_BATCH	16

static struct kfdsim_bo *bo_lookup(struct drm_file *file, u32 handle)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(file, handle);

	return obj ? gem_to_kfdsim_bo(obj) : NULL;
}

/** kfdsim_gem_open() - a file gets a handle of a BO */
int kfdsim_gem_open(struct drm_gem_object *obj, struct drm_file *file)
{
	struct kfdsim_bo *bo = gem_to_kfdsim_bo(obj);
	struct kfdsim_fpriv *fp = file->driver_priv;
	struct kfdsim_boref *ref;
	int ret = 0;

	if (bo->user_mm && bo->user_mm != current->mm)
		return -EPERM;
	mutex_lock(&fp->lock);
	ref = xa_load(&fp->refs, kfdsim_ref_key(bo));
	if (!ref) {
		ref = kzalloc(sizeof(*ref), GFP_KERNEL);
		if (!ref) {
			ret = -ENOMEM;
			goto out;
		}
		ref->bo = bo;
		INIT_LIST_HEAD(&ref->mappings);
		ret = xa_err(xa_store(&fp->refs, kfdsim_ref_key(bo), ref,
				      GFP_KERNEL));
		if (ret) {
			kfree(ref);
			goto out;
		}
	}
	ref->handles++;
out:
	mutex_unlock(&fp->lock);
	return ret;
}

/** kfdsim_gem_close() - a handle goes; GEM_VA mappings go with the last one */
void kfdsim_gem_close(struct drm_gem_object *obj, struct drm_file *file)
{
	struct kfdsim_bo *bo = gem_to_kfdsim_bo(obj);
	struct kfdsim_fpriv *fp = file->driver_priv;
	struct kfdsim_boref *ref;

	/* Who is being killed does not care how its submissions end. */
	kfdsim_cs_wait_bo(fp, bo, U64_MAX);
	mutex_lock(&fp->lock);
	ref = xa_load(&fp->refs, kfdsim_ref_key(bo));
	/* A handle may be closed, by a guess, before DRM has called open. */
	if (ref && !--ref->handles) {
		xa_erase(&fp->refs, kfdsim_ref_key(bo));
		kfdsim_vm_gem_unmap_all(fp->vm, ref);
		kfree(ref);
	}
	mutex_unlock(&fp->lock);
}

/** kfdsim_gem_release_refs() - what such a guess left behind, at close */
void kfdsim_gem_release_refs(struct kfdsim_fpriv *fp)
{
	struct kfdsim_boref *ref;
	unsigned long key;

	xa_for_each(&fp->refs, key, ref) {
		kfdsim_vm_gem_unmap_all(fp->vm, ref);
		kfree(ref);
	}
	xa_destroy(&fp->refs);
}

/* One kind alone. */
static bool is_on_chip(u64 domains)
{
	return is_power_of_2(domains) && domains & KFDSIM_ON_CHIP;
}

static int gem_create_check(const struct drm_amdgpu_gem_create_in *in)
{
	if (in->domain_flags & ~(u64)CREATE_FLAGS)
		return -EINVAL;
	if (is_on_chip(in->domains))
		return in->domain_flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID ?
			-EINVAL : 0;
	/* Doorbells are KFD's. */
	if (!in->domains || in->domains & ~(u64)MEMORY_DOMAINS)
		return -EINVAL;
	return 0;
}

/*
 * Also where the chip has none, as amdgpu moves it there only with a
 * submission, of which none here can use it.
 */
static struct kfdsim_bo *create_on_chip(struct kfdsim_gpu *gpu,
					const struct drm_amdgpu_gem_create_in *in)
{
	u64 size = in->bo_size;

	if (in->domains == AMDGPU_GEM_DOMAIN_GDS)
		size = ALIGN(size, 4);
	if (size >> (63 - PAGE_SHIFT))
		return ERR_PTR(-ENOMEM);
	/* a page for each byte, or whatever it counts */
	return kfdsim_bo_create(gpu, size << PAGE_SHIFT, in->domains,
				in->domain_flags | AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
}

/* What cannot be in VRAM, because nobody there can go, may be in GTT. */
static struct kfdsim_bo *gem_create(struct kfdsim_gpu *gpu,
				    const struct drm_amdgpu_gem_create_in *in)
{
	u32 domains = in->domains & (AMDGPU_GEM_DOMAIN_VRAM |
				     AMDGPU_GEM_DOMAIN_GTT);
	struct kfdsim_bo *bo;

	if (is_on_chip(in->domains))
		return create_on_chip(gpu, in);
	bo = kfdsim_bo_create(gpu, in->bo_size,
			      domains ?: AMDGPU_GEM_DOMAIN_GTT,
			      in->domain_flags);
	if (bo == ERR_PTR(-ENOMEM) && domains == AMDGPU_GEM_DOMAIN_VRAM)
		bo = kfdsim_bo_create(gpu, in->bo_size,
				      domains | AMDGPU_GEM_DOMAIN_GTT,
				      in->domain_flags);
	return bo;
}

KFDSIM_IOCTL(kfdsim_gem_create_ioctl)
{
	union drm_amdgpu_gem_create *args = data;
	struct kfdsim_bo *bo;
	u32 handle;
	int ret;

	ret = gem_create_check(&args->in);
	if (ret)
		return ret;
	bo = gem_create(drm_to_kfdsim_gpu(dev), &args->in);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	bo_to_kfdsim_gem(bo)->alignment = args->in.alignment;
	ret = kfdsim_handle_create(file, bo, &handle);
	kfdsim_bo_put(bo);
	if (ret)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.handle = handle;
	return 0;
}

KFDSIM_IOCTL(kfdsim_gem_mmap_ioctl)
{
	union drm_amdgpu_gem_mmap *args = data;
	struct kfdsim_bo *bo = bo_lookup(file, args->in.handle);
	int ret = 0;

	if (!bo)
		return -ENOENT;
	if (bo->userptr || bo->gem_flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS) {
		ret = -EPERM;
	} else {
		memset(args, 0, sizeof(*args));
		args->out.addr_ptr = kfdsim_bo_mmap_offset(bo);
	}
	kfdsim_bo_put(bo);
	return ret;
}

/* The range must begin in memory that no file backs. */
static int userptr_check_anon(unsigned long addr)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	int ret = 0;

	mmap_read_lock(mm);
	vma = vma_lookup(mm, addr);
	if (!vma)
		ret = -EFAULT;
	else if (vma->vm_file)
		ret = -EPERM;
	mmap_read_unlock(mm);
	return ret;
}

/* Have all pages present, as amdgpu wants to see each once. */
static int userptr_validate(unsigned long addr, u64 size, u64 flags)
{
	unsigned int gup = flags & AMDGPU_GEM_USERPTR_READONLY ? 0 : FOLL_WRITE;
	struct page *pages[VALIDATE_BATCH];
	unsigned long end = addr + size;
	int ret, i;

	if (flags & AMDGPU_GEM_USERPTR_ANONONLY) {
		ret = userptr_check_anon(addr);
		if (ret)
			return ret;
	}
	while (addr < end) {
		int want = min_t(unsigned long, VALIDATE_BATCH,
				 (end - addr) >> PAGE_SHIFT);

		ret = get_user_pages_fast(addr, want, gup, pages);
		if (ret <= 0)
			return -EFAULT;
		for (i = 0; i < ret; i++)
			put_page(pages[i]);
		addr += (unsigned long)ret << PAGE_SHIFT;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

KFDSIM_IOCTL(kfdsim_gem_userptr_ioctl)
{
	struct drm_amdgpu_gem_userptr *args = data;
	struct kfdsim_bo *bo;
	u32 handle;
	int ret;

	if (offset_in_page(args->addr | args->size))
		return -EINVAL;
	if (args->flags & ~(u32)USERPTR_FLAGS)
		return -EINVAL;
	if (!(args->flags & (AMDGPU_GEM_USERPTR_READONLY |
			     AMDGPU_GEM_USERPTR_REGISTER)))
		return -EACCES;
	bo = kfdsim_bo_create_userptr(drm_to_kfdsim_gpu(dev), args->addr,
				      args->size);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = 0;
	if (args->flags & AMDGPU_GEM_USERPTR_VALIDATE)
		ret = userptr_validate(args->addr, args->size, args->flags);
	if (!ret)
		ret = kfdsim_handle_create(file, bo, &handle);
	kfdsim_bo_put(bo);
	if (!ret)
		args->handle = handle;
	return ret;
}

KFDSIM_IOCTL(kfdsim_gem_wait_idle_ioctl)
{
	union drm_amdgpu_gem_wait_idle *args = data;
	struct kfdsim_bo *bo = bo_lookup(file, args->in.handle);
	int ret;

	if (!bo)
		return -ENOENT;
	ret = kfdsim_cs_wait_bo(file->driver_priv, bo, args->in.timeout);
	kfdsim_bo_put(bo);
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.status = ret;		/* 1: still busy */
	return 0;
}

static void metadata_get(struct kfdsim_gem *gem,
			 struct drm_amdgpu_gem_metadata *args)
{
	args->data.tiling_info = gem->tiling;
	args->data.flags = gem->meta_flags;
	args->data.data_size_bytes = gem->meta_size;
	memcpy(args->data.data, gem->meta, gem->meta_size);
}

static void metadata_set(struct kfdsim_gem *gem,
			 const struct drm_amdgpu_gem_metadata *args)
{
	gem->tiling = args->data.tiling_info;
	gem->meta_flags = args->data.flags;
	gem->meta_size = args->data.data_size_bytes;
	memcpy(gem->meta, args->data.data, gem->meta_size);
}

KFDSIM_IOCTL(kfdsim_gem_metadata_ioctl)
{
	struct drm_amdgpu_gem_metadata *args = data;
	struct kfdsim_bo *bo = bo_lookup(file, args->handle);
	struct kfdsim_gem *gem;
	int ret = 0;

	if (!bo)
		return -ENOENT;
	gem = bo_to_kfdsim_gem(bo);
	mutex_lock(&gem->lock);
	if (args->op == AMDGPU_GEM_METADATA_OP_GET_METADATA)
		metadata_get(gem, args);
	else if (args->op != AMDGPU_GEM_METADATA_OP_SET_METADATA ||
		 args->data.data_size_bytes > sizeof(args->data.data))
		ret = -EINVAL;
	else
		metadata_set(gem, args);
	mutex_unlock(&gem->lock);
	kfdsim_bo_put(bo);
	return ret;
}

static int gem_op_info(struct kfdsim_bo *bo, u64 value)
{
	struct drm_amdgpu_gem_create_in info = {
		.bo_size = bo->base.size,
		.alignment = bo_to_kfdsim_gem(bo)->alignment,
		.domains = bo->preferred,
		.domain_flags = bo->gem_flags,
	};

	return copy_to_user(u64_to_user_ptr(value), &info, sizeof(info)) ?
		-EFAULT : 0;
}

KFDSIM_IOCTL(kfdsim_gem_op_ioctl)
{
	struct kfdsim_gem_op *args = data;
	struct kfdsim_bo *bo = bo_lookup(file, args->handle);
	int ret;

	if (!bo)
		return -ENOENT;
	switch (args->op) {
	case AMDGPU_GEM_OP_GET_GEM_CREATE_INFO:
		ret = gem_op_info(bo, args->value);
		break;
	case AMDGPU_GEM_OP_SET_PLACEMENT:
		/* A hint; here BOs stay where they were made. */
		ret = bo->userptr ? -EPERM : 0;
		break;
	case AMDGPU_GEM_OP_GET_MAPPING_INFO:
		ret = kfdsim_gem_mapping_info(file->driver_priv, bo, args);
		break;
	default:
		ret = -EINVAL;
		break;
	}
	kfdsim_bo_put(bo);
	return ret;
}

static int va_check(struct kfdsim_gem_va *args)
{
	if (args->va_address < KFDSIM_VA_RESERVED)
		return -EINVAL;
	if (args->va_address >= KFDSIM_VA_HOLE_START &&
	    args->va_address < KFDSIM_VA_HOLE_END)
		return -EINVAL;
	args->va_address &= KFDSIM_VA_MASK;
	if (args->map_size > KFDSIM_VA_MASK ||
	    args->va_address + args->map_size > KFDSIM_VA_MASK + 1 - KFDSIM_VA_TOP)
		return -EINVAL;
	if (args->flags & ~(u32)VA_FLAGS && args->flags & ~(u32)VA_PRT_FLAGS)
		return -EINVAL;
	if (args->operation < AMDGPU_VA_OP_MAP ||
	    args->operation > AMDGPU_VA_OP_REPLACE)
		return -EINVAL;
	if (kfdsim_personality >= KFDSIM_7_2 && args->vm_timeline_syncobj_out &&
	    args->flags & AMDGPU_VM_DELAY_UPDATE)
		return -EINVAL;
	return 0;
}

/* REPLACE must not clear anything where its own mapping is no good. */
static int va_check_bo(const struct kfdsim_gem_va *args,
		       const struct kfdsim_boref *ref)
{
	u64 size = ref ? ref->bo->base.size : KFDSIM_VA_MASK + 1;

	if (!IS_ALIGNED(args->offset_in_bo, PAGE_SIZE) ||
	    args->offset_in_bo > size ||
	    args->map_size > size - args->offset_in_bo)
		return -EINVAL;
	return 0;
}

/* fp->lock held: ref stays. */
static int va_op(struct kfdsim_fpriv *fp, const struct kfdsim_gem_va *args,
		 struct kfdsim_boref *ref)
{
	int ret;

	switch (args->operation) {
	case AMDGPU_VA_OP_UNMAP:
		return kfdsim_vm_gem_unmap(fp->vm, ref, args->va_address);
	case AMDGPU_VA_OP_CLEAR:
		return kfdsim_vm_clear(fp->vm, args->va_address, args->map_size);
	case AMDGPU_VA_OP_REPLACE:
		ret = va_check_bo(args, ref);
		if (!ret)
			ret = kfdsim_vm_clear(fp->vm, args->va_address,
					      args->map_size);
		if (ret)
			return ret;
		break;
	}
	return kfdsim_vm_gem_map(fp->vm, ref, args->offset_in_bo,
				 args->va_address, args->map_size, args->flags);
}

/* The syncobjs that 7.2 has in it; kernels before do not look at them. */
static int va_wait(struct drm_file *file, const struct kfdsim_gem_va *args)
{
	int ret;

	if (kfdsim_personality < KFDSIM_7_2)
		return 0;
	ret = kfdsim_syncobj_wait_user(file, args->input_fence_syncobj_handles,
				       args->num_syncobj_handles);
	/* not mapped first and then refused */
	if (!ret && args->vm_timeline_syncobj_out)
		ret = kfdsim_syncobj_exists(file, args->vm_timeline_syncobj_out);
	return ret;
}

static int va_signal(struct drm_file *file, const struct kfdsim_gem_va *args)
{
	if (kfdsim_personality < KFDSIM_7_2 || !args->vm_timeline_syncobj_out ||
	    args->flags & AMDGPU_VM_DELAY_UPDATE)
		return 0;
	return kfdsim_syncobj_signal(file, args->vm_timeline_syncobj_out,
				     args->vm_timeline_point);
}

/* A mapping stays until the submissions that were made before are over. */
static int va_settle(struct kfdsim_fpriv *fp, const struct kfdsim_gem_va *args,
		     struct kfdsim_bo *bo)
{
	if (args->operation == AMDGPU_VA_OP_MAP)
		return 0;
	return kfdsim_cs_wait_bo(fp, args->operation == AMDGPU_VA_OP_UNMAP ?
				 bo : NULL, U64_MAX);
}

/* bo: NULL for what has none */
static int va_do(struct kfdsim_fpriv *fp, const struct kfdsim_gem_va *args,
		 struct kfdsim_bo *bo)
{
	struct kfdsim_boref *ref = NULL;
	int ret;

	mutex_lock(&fp->lock);
	if (bo)
		ref = xa_load(&fp->refs, kfdsim_ref_key(bo));
	ret = bo && !ref ? -ENOENT : va_op(fp, args, ref);
	mutex_unlock(&fp->lock);
	return ret;
}

KFDSIM_IOCTL(kfdsim_gem_va_ioctl)
{
	struct kfdsim_gem_va *args = data;
	struct kfdsim_bo *bo = NULL;
	int ret;

	ret = va_check(args);
	if (ret)
		return ret;
	if (args->operation != AMDGPU_VA_OP_CLEAR &&
	    !(args->flags & AMDGPU_VM_PAGE_PRT)) {
		bo = bo_lookup(file, args->handle);
		if (!bo)
			return -ENOENT;
	}
	ret = va_wait(file, args);
	if (!ret)
		ret = va_settle(file->driver_priv, args, bo);
	if (!ret)
		ret = va_do(file->driver_priv, args, bo);
	if (!ret)
		ret = va_signal(file, args);
	if (bo)
		kfdsim_bo_put(bo);
	return ret;
}

KFDSIM_IOCTL(kfdsim_vm_ioctl)
{
	struct kfdsim_fpriv *fp = file->driver_priv;
	union drm_amdgpu_vm *args = data;

	if (args->in.flags)
		return -EINVAL;
	switch (args->in.op) {
	case AMDGPU_VM_OP_RESERVE_VMID:
		WRITE_ONCE(fp->vmid_reserved, true);
		return 0;
	case AMDGPU_VM_OP_UNRESERVE_VMID:
		WRITE_ONCE(fp->vmid_reserved, false);
		return 0;
	}
	return -EINVAL;
}
