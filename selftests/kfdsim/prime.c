// SPDX-License-Identifier: GPL-2.0
/*
 * dma-bufs. Own operations, so that a dma-buf of ours is known by them. Other
 * devices, another simulated GPU included, cannot attach: pages of a BO come
 * when touched, there is no list of them to give.
 */
#include <linux/dma-buf.h>
#include <drm/drm_drv.h>
#include <drm/drm_prime.h>
#include "kfdsim_drm.h"

static int dmabuf_attach(struct dma_buf *buf, struct dma_buf_attachment *at)
{
	return -EOPNOTSUPP;
}

static struct sg_table *dmabuf_map(struct dma_buf_attachment *at,
				   enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void dmabuf_unmap(struct dma_buf_attachment *at, struct sg_table *sgt,
			 enum dma_data_direction dir)
{
}

static const struct dma_buf_ops kfdsim_dmabuf_ops = {
	.attach = dmabuf_attach,
	.map_dma_buf = dmabuf_map,
	.unmap_dma_buf = dmabuf_unmap,
	.release = drm_gem_dmabuf_release,
	.mmap = drm_gem_dmabuf_mmap,
};

/** kfdsim_prime_export() - new dma-buf of a BO; takes a reference of it */
struct dma_buf *kfdsim_prime_export(struct drm_gem_object *obj, int flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	if (gem_to_kfdsim_bo(obj)->userptr)
		return ERR_PTR(-EPERM);
	info.ops = &kfdsim_dmabuf_ops;
	info.size = obj->size;
	info.flags = flags;
	info.priv = obj;
	info.resv = obj->resv;
	return drm_gem_dmabuf_export(obj->dev, &info);
}

/**
 * kfdsim_bo_export_fd() - put a dma-buf of a BO into current's table
 * @bo: the BO
 * @flags: O_CLOEXEC, O_RDWR
 *
 * A dma-buf that DRM made of a handle is used again, since DRM insists on one
 * per object that has handles.
 * Return: descriptor or a negative errno.
 */
int kfdsim_bo_export_fd(struct kfdsim_bo *bo, int flags)
{
	struct drm_device *dev = bo->base.dev;
	struct dma_buf *buf;
	int fd;

	mutex_lock(&dev->object_name_lock);
	buf = bo->base.dma_buf;
	if (buf)
		get_dma_buf(buf);
	mutex_unlock(&dev->object_name_lock);
	if (!buf)
		buf = kfdsim_prime_export(&bo->base, flags);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	fd = dma_buf_fd(buf, flags & O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buf);
	return fd;
}

/** kfdsim_bo_from_dmabuf() - see kfdsim.h */
struct kfdsim_bo *kfdsim_bo_from_dmabuf(struct dma_buf *buf)
{
	struct kfdsim_bo *bo;

	if (buf->ops != &kfdsim_dmabuf_ops)
		return NULL;
	bo = gem_to_kfdsim_bo(buf->priv);
	kfdsim_bo_get(bo);
	return bo;
}

/* A handle that file has of bo; 0 if none is known. import_lock held. */
static u32 known_handle(struct kfdsim_fpriv *fp, struct drm_file *file,
			struct kfdsim_bo *bo)
{
	struct kfdsim_boref *ref;
	struct drm_gem_object *obj;
	u32 handle = 0;

	mutex_lock(&fp->lock);
	ref = xa_load(&fp->refs, kfdsim_ref_key(bo));
	if (ref)
		handle = ref->handle;
	mutex_unlock(&fp->lock);
	if (!handle)
		return 0;
	/* It may have been closed and given to something else. */
	obj = drm_gem_object_lookup(file, handle);
	if (!obj)
		return 0;
	drm_gem_object_put(obj);
	return obj == &bo->base ? handle : 0;
}

static int handle_create_locked(struct drm_file *file, struct kfdsim_bo *bo,
				u32 *handle)
{
	struct kfdsim_fpriv *fp = file->driver_priv;
	struct kfdsim_boref *ref;
	int ret = drm_gem_handle_create(file, &bo->base, handle);

	if (ret)
		return ret;
	mutex_lock(&fp->lock);
	ref = xa_load(&fp->refs, kfdsim_ref_key(bo));
	if (ref)
		ref->handle = *handle;
	mutex_unlock(&fp->lock);
	return 0;
}

int kfdsim_handle_create(struct drm_file *file, struct kfdsim_bo *bo, u32 *handle)
{
	struct kfdsim_fpriv *fp = file->driver_priv;
	int ret;

	mutex_lock(&fp->import_lock);
	ret = handle_create_locked(file, bo, handle);
	mutex_unlock(&fp->import_lock);
	return ret;
}

/**
 * kfdsim_prime_fd_to_handle() - import a dma-buf of the same device
 * @dev: importer
 * @file: gets the handle
 * @fd: the dma-buf
 * @handle: that one, an old one where the file had the BO already
 *
 * DRM's own way allows one dma-buf per object and warns otherwise; KFD makes
 * more.
 * Return: 0; -EINVAL for what is not ours or is another GPU's.
 */
int kfdsim_prime_fd_to_handle(struct drm_device *dev, struct drm_file *file,
			      int fd, u32 *handle)
{
	struct kfdsim_fpriv *fp = file->driver_priv;
	struct dma_buf *buf = dma_buf_get(fd);
	struct kfdsim_bo *bo;
	int ret = -EINVAL;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	bo = kfdsim_bo_from_dmabuf(buf);
	if (!bo)
		goto out_buf;
	if (bo->base.dev != dev)
		goto out_bo;
	mutex_lock(&fp->import_lock);
	*handle = known_handle(fp, file, bo);
	ret = *handle ? 0 : handle_create_locked(file, bo, handle);
	mutex_unlock(&fp->import_lock);
out_bo:
	kfdsim_bo_put(bo);
out_buf:
	dma_buf_put(buf);
	return ret;
}
