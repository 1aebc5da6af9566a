// SPDX-License-Identifier: GPL-2.0
/*
 * DRM files: which they are, which BOs they may map, who shares a BO.
 *
 * Handles come from the file's object_idr, which every driver has. BOs that
 * the file may map without a handle come from the device's VMA manager. Its
 * nodes sit in GEM objects with some drivers only (i915 has them elsewhere),
 * hence the list of drivers; and with those only such nodes are touched that
 * GEM or KFD allowed for the file.
 */
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/sort.h>
#include <drm/drm_device.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_prime.h>
#include <drm/drm_vma_manager.h>

#include <uapi/linux/gpucr.h>

#include "drmfile.h"
#include "snapshot.h"

/* Entries beyond the count, for BOs made while the array is allocated. */
#define GPUCR_BO_SLACK	64

const char *const gpucr_drm_drivers[] = { "amdgpu", "vgem", "virtio_gpu" };
const unsigned int gpucr_num_drm_drivers = ARRAY_SIZE(gpucr_drm_drivers);

static siphash_key_t gpucr_share_key __ro_after_init;

void __init gpucr_share_init(void)
{
	get_random_bytes(&gpucr_share_key, sizeof(gpucr_share_key));
}

/* The object behind a dma-buf where that is a GEM object; not referenced. */
static struct drm_gem_object *gpucr_gem_of(const struct dma_buf *buf)
{
	return buf->ops->mmap == drm_gem_dmabuf_mmap ? buf->priv : NULL;
}

/**
 * gpucr_share_id() - who a BO is, without saying where
 * @obj: the object, referenced by the caller
 *
 * A BO that was imported from another device is named as its exporter names
 * it, where that is a GEM object.
 *
 * Return: a number that is equal for one object in any file and task, until
 * the module is unloaded.
 */
u64 gpucr_share_id(const struct drm_gem_object *obj)
{
	const struct drm_gem_object *origin = NULL;

	if (obj->import_attach)
		origin = gpucr_gem_of(obj->import_attach->dmabuf);
	return siphash_1u64((uintptr_t)(origin ?: obj), &gpucr_share_key);
}

/**
 * gpucr_dmabuf_object() - GEM object behind a file
 * @file: any file, referenced by the caller
 *
 * Return: the object, which lives as long as @file, or NULL where @file is no
 * dma-buf or not made by GEM.
 */
struct drm_gem_object *gpucr_dmabuf_object(struct file *file)
{
	if (file_inode(file)->i_sb->s_magic != DMA_BUF_MAGIC)
		return NULL;
	return gpucr_gem_of(file->private_data);
}

/**
 * gpucr_drm_file() - state of an open DRM node
 * @file: any file, referenced by the caller
 *
 * Return: the state, which lives as long as @file, or NULL where @file is no
 * primary or render node.
 */
struct drm_file *gpucr_drm_file(struct file *file)
{
	return file->f_op->open == drm_open ? file->private_data : NULL;
}

bool gpucr_drm_supported(const struct drm_device *dev)
{
	unsigned int i;

	for (i = 0; i < gpucr_num_drm_drivers; i++)
		if (!strcmp(dev->driver->name, gpucr_drm_drivers[i]))
			return true;
	return false;
}

/**
 * gpucr_bo_at() - BO at an offset of a device
 * @dev: a supported device
 * @pgoff: offset in pages, of a mapping that exists
 * @delta: set to the bytes from the start of the BO to @pgoff
 *
 * Return: the object with a reference, or NULL.
 */
struct drm_gem_object *gpucr_bo_at(struct drm_device *dev, unsigned long pgoff,
				   u64 *delta)
{
	struct drm_vma_offset_manager *mgr = dev->vma_offset_manager;
	struct drm_gem_object *obj = NULL;
	struct drm_vma_offset_node *node;

	if (!mgr)
		return NULL;
	drm_vma_offset_lock_lookup(mgr);
	node = drm_vma_offset_lookup_locked(mgr, pgoff, 1);
	if (node) {
		obj = container_of(node, struct drm_gem_object, vma_node);
		*delta = (u64)(pgoff - drm_vma_node_start(node)) << PAGE_SHIFT;
		if (!kref_get_unless_zero(&obj->refcount))
			obj = NULL;
	}
	drm_vma_offset_unlock_lookup(mgr);
	return obj;
}

/**
 * gpucr_bo_size_at() - size of the BO that starts at an offset
 * @df: file of a supported device
 * @pgoff: offset in pages
 *
 * Return: bytes; 0 where no BO that the file may map starts there.
 */
u64 gpucr_bo_size_at(struct drm_file *df, u64 pgoff)
{
	struct drm_vma_offset_manager *mgr = df->minor->dev->vma_offset_manager;
	struct drm_vma_offset_node *node;
	u64 size = 0;

	drm_vma_offset_lock_lookup(mgr);
	node = drm_vma_offset_lookup_locked(mgr, pgoff, 1);
	if (node && drm_vma_node_start(node) == pgoff &&
	    drm_vma_node_is_allowed(node, df))
		size = (u64)drm_vma_node_size(node) << PAGE_SHIFT;
	drm_vma_offset_unlock_lookup(mgr);
	return size;
}

/* The caller has a reference, which the entry keeps, and the manager's lock. */
static void gpucr_bo_fill(struct gpucr_bo *bo, struct drm_gem_object *obj,
			  u32 handle)
{
	bo->obj = obj;
	bo->size = obj->size;
	bo->offset = drm_vma_node_offset_addr(&obj->vma_node);
	bo->share_id = gpucr_share_id(obj);
	bo->handle = handle;
	bo->handle_count = READ_ONCE(obj->handle_count);
	bo->flags = handle ? 0 : GPUCR_BO_FLAGS_MAPPED_ONLY;
	if (obj->import_attach)
		bo->flags |= GPUCR_BO_FLAGS_IMPORTED;
	else if (READ_ONCE(obj->dma_buf))
		bo->flags |= GPUCR_BO_FLAGS_EXPORTED;
}

/*
 * Handles first, then what may be mapped; the caller holds the locks. Counts
 * where snap is NULL.
 */
static u32 gpucr_bo_walk(struct drm_file *df, struct gpucr_snapshot *snap)
{
	struct drm_vma_offset_node *node;
	struct drm_gem_object *obj;
	struct drm_mm_node *mn;
	struct gpucr_bo *bo;
	u32 n = 0;
	int handle;

	idr_for_each_entry(&df->object_idr, obj, handle) {
		n++;
		bo = snap ? gpucr_snapshot_add(snap) : NULL;
		if (!bo)
			continue;
		drm_gem_object_get(obj);
		gpucr_bo_fill(bo, obj, handle);
	}
	drm_mm_for_each_node(mn, &df->minor->dev->vma_offset_manager->vm_addr_space_mm) {
		node = container_of(mn, struct drm_vma_offset_node, vm_node);
		/* Before any reference: other nodes may be no GEM objects. */
		if (!drm_vma_node_is_allowed(node, df))
			continue;
		n++;
		obj = container_of(node, struct drm_gem_object, vma_node);
		if (!snap || snap->num >= snap->room ||
		    !kref_get_unless_zero(&obj->refcount))
			continue;
		gpucr_bo_fill(gpucr_snapshot_add(snap), obj, 0);
	}
	return n;
}

/*
 * Both locks are held, so that handles and mappings are of one moment. Node
 * locks nest in the manager's; the kernel has no inverse of either order.
 * Return: entries found, those with a handle twice; may be more than fit.
 */
static u32 gpucr_bo_collect(struct drm_file *df, struct gpucr_snapshot *snap)
{
	struct drm_vma_offset_manager *mgr = df->minor->dev->vma_offset_manager;
	u32 n;

	spin_lock(&df->table_lock);
	drm_vma_offset_lock_lookup(mgr);
	n = gpucr_bo_walk(df, snap);
	drm_vma_offset_unlock_lookup(mgr);
	spin_unlock(&df->table_lock);
	return n;
}

static int gpucr_bo_cmp_object(const void *a, const void *b)
{
	const struct gpucr_bo *x = a, *y = b;

	if (x->obj != y->obj)
		return x->obj < y->obj ? -1 : 1;
	/* Entries with a handle before the one without. */
	if (!x->handle != !y->handle)
		return x->handle ? -1 : 1;
	return 0;
}

static int gpucr_bo_cmp_offset(const void *a, const void *b)
{
	const struct gpucr_bo *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->handle != y->handle)
		return x->handle < y->handle ? -1 : 1;
	return 0;
}

/* Drops the second mention of BOs that have a handle, and all references. */
static void gpucr_bo_finish(struct gpucr_snapshot *snap)
{
	const struct drm_gem_object *last = NULL;
	u32 i, kept = 0;

	sort(gpucr_snapshot_entry(snap, 0), snap->num, snap->entry_size,
	     gpucr_bo_cmp_object, NULL);
	for (i = 0; i < snap->num; i++) {
		struct gpucr_bo *bo = gpucr_snapshot_entry(snap, i);
		struct drm_gem_object *obj = bo->obj;

		bo->obj = NULL;
		if (bo->handle || obj != last)
			*(struct gpucr_bo *)gpucr_snapshot_entry(snap, kept++) = *bo;
		last = obj;
		drm_gem_object_put(obj);
		cond_resched();
	}
	snap->num = kept;
	sort(gpucr_snapshot_entry(snap, 0), snap->num, snap->entry_size,
	     gpucr_bo_cmp_offset, NULL);
}

/**
 * gpucr_drm_check() - is a file an open node of a supported device?
 * @file: any file, referenced by the caller
 * @ack: told why not
 *
 * Return: its state, which lives as long as @file, or an error pointer:
 * -EINVAL, -EOPNOTSUPP.
 */
struct drm_file *gpucr_drm_check(struct file *file, struct netlink_ext_ack *ack)
{
	struct drm_file *df = gpucr_drm_file(file);

	if (!df) {
		NL_SET_ERR_MSG(ack, "the descriptor is not a DRM node");
		return ERR_PTR(-EINVAL);
	}
	if (!gpucr_drm_supported(df->minor->dev) ||
	    !df->minor->dev->vma_offset_manager) {
		NL_SET_ERR_MSG(ack,
			       "the DRM driver is not amdgpu, vgem or virtio_gpu");
		return ERR_PTR(-EOPNOTSUPP);
	}
	return df;
}

/**
 * gpucr_bo_snapshot() - the BOs that a DRM file has a handle of or may map
 * @file: the file, referenced by the caller
 * @ack: told why not
 *
 * Takes object and device references while it works and leaves none. May
 * sleep.
 *
 * Return: a snapshot of struct gpucr_bo by offset, or an error pointer:
 * -EINVAL, -EOPNOTSUPP, -E2BIG, -ENOMEM, -EAGAIN where BOs are made faster
 * than they can be counted.
 */
struct gpucr_snapshot *gpucr_bo_snapshot(struct file *file,
					 struct netlink_ext_ack *ack)
{
	struct drm_file *df = gpucr_drm_check(file, ack);
	struct gpucr_snapshot *snap;
	u32 n;

	if (IS_ERR(df))
		return ERR_CAST(df);
	n = gpucr_bo_collect(df, NULL);
	/* A BO with a handle is counted twice. */
	if (n > 2 * GPUCR_MAX_OBJECTS)
		goto err_too_many;
	snap = gpucr_snapshot_alloc(n + GPUCR_BO_SLACK, sizeof(struct gpucr_bo));
	if (!snap)
		return ERR_PTR(-ENOMEM);
	n = gpucr_bo_collect(df, snap);
	gpucr_bo_finish(snap);
	if (n > snap->room) {
		NL_SET_ERR_MSG(ack, "BOs were made meanwhile; ask again");
		gpucr_snapshot_free(snap);
		return ERR_PTR(-EAGAIN);
	}
	if (snap->num > GPUCR_MAX_OBJECTS)
		goto err_free;
	return snap;

err_free:
	gpucr_snapshot_free(snap);
err_too_many:
	NL_SET_ERR_MSG(ack, "the file has too many BOs");
	return ERR_PTR(-E2BIG);
}
