/* SPDX-License-Identifier: GPL-2.0 */
/*
 * GEM_LIST_HANDLES and GET_MAPPING_INFO came together, and with them GEM_OP's
 * argument grew; before them GEM_VA's. The simulator speaks them also where the
 * kernel does not.
 */
#ifndef KFDSIM_COMPAT_DRM_AMDGPU_DRM_H
#define KFDSIM_COMPAT_DRM_AMDGPU_DRM_H

#include_next <drm/amdgpu_drm.h>

#ifdef DRM_AMDGPU_GEM_LIST_HANDLES
#define kfdsim_gem_op	drm_amdgpu_gem_op
#define kfdsim_gem_va	drm_amdgpu_gem_va
#else
#define DRM_AMDGPU_GEM_LIST_HANDLES	0x19

struct drm_amdgpu_gem_list_handles {
	__u64 entries;
	__u32 num_entries;
	__u32 padding;
};

struct drm_amdgpu_gem_list_handles_entry {
	__u32 gem_handle;
	__u32 flags;
	__u64 size;
	__u64 preferred_domains;
	__u64 alloc_flags;
	__u64 alignment;
};

#define DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_LIST_HANDLES, \
		 struct drm_amdgpu_gem_list_handles)

#define AMDGPU_GEM_OP_GET_MAPPING_INFO	2

struct drm_amdgpu_gem_vm_entry {
	__u64 addr;
	__u64 size;
	__u64 offset;
	__u64 flags;
};

struct kfdsim_gem_op {
	__u32 handle;
	__u32 op;
	__u64 value;
	__u32 num_entries;
	__u32 padding;
};

struct kfdsim_gem_va {
	__u32 handle;
	__u32 _pad;
	__u32 operation;
	__u32 flags;
	__u64 va_address;
	__u64 offset_in_bo;
	__u64 map_size;
	__u64 vm_timeline_point;
	__u32 vm_timeline_syncobj_out;
	__u32 num_syncobj_handles;
	__u64 input_fence_syncobj_handles;
};

/* By their sizes DRM gives the arguments room. */
#undef DRM_IOCTL_AMDGPU_GEM_VA
#define DRM_IOCTL_AMDGPU_GEM_VA \
	DRM_IOW(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_VA, struct kfdsim_gem_va)
#undef DRM_IOCTL_AMDGPU_GEM_OP
#define DRM_IOCTL_AMDGPU_GEM_OP \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP, struct kfdsim_gem_op)
#endif

#endif
