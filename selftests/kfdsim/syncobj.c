// SPDX-License-Identifier: GPL-2.0
/*
 * DRM's syncobjs, as submissions and mappings wait for and signal them. What
 * is done is done inside the ioctl, so that what is signalled is over.
 */
#include <linux/dma-fence-chain.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_file.h>
#include <drm/drm_syncobj.h>
#include "kfdsim_drm.h"

#define MAX_HANDLES	65536

/**
 * kfdsim_syncobj_wait() - until a point is signalled, or a signal comes
 * @file: whose
 * @handle: syncobj
 * @point: 0 for a binary one
 * @flags: DRM_SYNCOBJ_WAIT_FLAGS_*
 */
int kfdsim_syncobj_wait(struct drm_file *file, u32 handle, u64 point, u64 flags)
{
	struct dma_fence *fence;
	long ret;

	ret = drm_syncobj_find_fence(file, handle, point, flags, &fence);
	if (ret)
		return ret;
	ret = dma_fence_wait(fence, true);
	dma_fence_put(fence);
	return ret;
}

/** kfdsim_syncobj_wait_user() - for n binary ones, named in user space */
int kfdsim_syncobj_wait_user(struct drm_file *file, u64 handles, u32 n)
{
	u32 *h;
	u32 i;
	int ret = 0;

	if (!n)
		return 0;
	if (n > MAX_HANDLES)
		return -ENOMEM;
	h = kvmalloc_array(n, sizeof(*h), GFP_KERNEL);
	if (!h)
		return -ENOMEM;
	if (copy_from_user(h, u64_to_user_ptr(handles), n * sizeof(*h)))
		ret = -EFAULT;
	for (i = 0; i < n && !ret; i++) {
		if (h[i])
			ret = kfdsim_syncobj_wait(file, h[i], 0, 0);
		else
			ret = -EINVAL;
	}
	kvfree(h);
	return ret;
}

/** kfdsim_syncobj_exists() - 0 or -ENOENT */
int kfdsim_syncobj_exists(struct drm_file *file, u32 handle)
{
	struct drm_syncobj *obj = drm_syncobj_find(file, handle);

	if (!obj)
		return -ENOENT;
	drm_syncobj_put(obj);
	return 0;
}

/**
 * kfdsim_syncobj_signal() - have a point signalled
 * @file: whose
 * @handle: syncobj
 * @point: 0 replaces the fence of a binary one
 *
 * Return: 0, -ENOENT, -ENOMEM.
 */
int kfdsim_syncobj_signal(struct drm_file *file, u32 handle, u64 point)
{
	struct drm_syncobj *obj = drm_syncobj_find(file, handle);
	struct dma_fence_chain *chain;
	struct dma_fence *fence;

	if (!obj)
		return -ENOENT;
	fence = dma_fence_get_stub();
	if (point) {
		chain = dma_fence_chain_alloc();
		if (!chain) {
			dma_fence_put(fence);
			drm_syncobj_put(obj);
			return -ENOMEM;
		}
		drm_syncobj_add_point(obj, chain, fence, point);
	} else {
		drm_syncobj_replace_fence(obj, fence);
	}
	dma_fence_put(fence);
	drm_syncobj_put(obj);
	return 0;
}
