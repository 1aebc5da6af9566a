// SPDX-License-Identifier: GPL-2.0
/*
 * What amdgpu tells of a DRM file from 7.2 on: its handles, and where a BO is
 * mapped. For kernels before that these are as unknown as any other number.
 */
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_file.h>
#include "kfdsim_drm.h"

/* Flags that GEM_CREATE takes back; CLEARED is amdgpu's to decide. */
#define SETTABLE	(AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED |	\
			 AMDGPU_GEM_CREATE_NO_CPU_ACCESS |		\
			 AMDGPU_GEM_CREATE_CPU_GTT_USWC |		\
			 AMDGPU_GEM_CREATE_VRAM_CLEARED |		\
			 AMDGPU_GEM_CREATE_VM_ALWAYS_VALID |		\
			 AMDGPU_GEM_CREATE_EXPLICIT_SYNC |		\
			 AMDGPU_GEM_CREATE_DISCARDABLE)

static bool told(void)
{
	return kfdsim_personality >= KFDSIM_7_2;
}

static u32 count_handles(struct drm_file *file)
{
	struct drm_gem_object *obj;
	u32 n = 0;
	int id;

	spin_lock(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id)
		n++;
	spin_unlock(&file->table_lock);
	return n;
}

/* Return: how many, or -EAGAIN where there are more than max by now. */
static int list_handles(struct drm_file *file,
			struct drm_amdgpu_gem_list_handles_entry *entries,
			u32 max)
{
	struct drm_gem_object *obj;
	u32 n = 0;
	int id;

	spin_lock(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id) {
		struct kfdsim_bo *bo = gem_to_kfdsim_bo(obj);

		if (n == max) {
			spin_unlock(&file->table_lock);
			return -EAGAIN;
		}
		/* never IS_IMPORT: BOs of other devices cannot come in */
		entries[n++] = (struct drm_amdgpu_gem_list_handles_entry){
			.gem_handle = id,
			.size = obj->size,
			.preferred_domains = bo->preferred,
			.alloc_flags = bo->gem_flags & SETTABLE,
			.alignment = bo_to_kfdsim_gem(bo)->alignment >> PAGE_SHIFT,
		};
	}
	spin_unlock(&file->table_lock);
	return n;
}

/* Where there is too little room, only the number is told, as success. */
KFDSIM_IOCTL(kfdsim_gem_list_handles_ioctl)
{
	struct drm_amdgpu_gem_list_handles_entry *entries;
	struct drm_amdgpu_gem_list_handles *args = data;
	u32 n = count_handles(file);
	int ret;

	if (!told())
		return -EINVAL;
	if (!n || args->num_entries < n) {
		args->num_entries = n;
		return 0;
	}
	entries = kvcalloc(n, sizeof(*entries), GFP_KERNEL);
	if (!entries)
		return -ENOMEM;
	ret = list_handles(file, entries, n);
	if (ret >= 0) {
		args->num_entries = ret;
		ret = copy_to_user(u64_to_user_ptr(args->entries), entries,
				   ret * sizeof(*entries)) ? -EFAULT : 0;
	}
	kvfree(entries);
	return ret;
}

/**
 * kfdsim_gem_mapping_info() - AMDGPU_GEM_OP_GET_MAPPING_INFO
 * @fp: only mappings of this file are told
 * @bo: of this BO
 * @args: the number is told always, the entries where all fit
 */
int kfdsim_gem_mapping_info(struct kfdsim_fpriv *fp, struct kfdsim_bo *bo,
			    struct kfdsim_gem_op *args)
{
	/* 64 Ki mappings of one BO are no program's */
	u32 max = min_t(u32, args->num_entries, 65536), n = 0;
	struct drm_amdgpu_gem_vm_entry *entries;
	struct kfdsim_boref *ref;
	int ret = 0;

	if (!told())
		return -EINVAL;
	entries = kvcalloc(max(max, 1U), sizeof(*entries), GFP_KERNEL);
	if (!entries)
		return -ENOMEM;
	mutex_lock(&fp->lock);
	ref = xa_load(&fp->refs, kfdsim_ref_key(bo));
	if (ref)
		n = kfdsim_vm_gem_list(fp->vm, ref, entries, max);
	mutex_unlock(&fp->lock);
	if (n <= max && copy_to_user(u64_to_user_ptr(args->value), entries,
				     n * sizeof(*entries)))
		ret = -EFAULT;
	args->num_entries = n;
	kvfree(entries);
	return ret;
}
