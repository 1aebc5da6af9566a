/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_DRMFILE_H
#define GPUCR_DRMFILE_H

#include <linux/types.h>

struct drm_device;
struct drm_file;
struct drm_gem_object;
struct file;
struct gpucr_snapshot;
struct netlink_ext_ack;

/* Drivers whose VMA manager holds GEM objects only. */
extern const char *const gpucr_drm_drivers[];
extern const unsigned int gpucr_num_drm_drivers;

/**
 * struct gpucr_bo - entry of a snapshot of BOs
 * @obj: used while the snapshot is made, NULL afterwards
 * @size: bytes
 * @offset: mmap offset in bytes, 0 where there is none
 * @share_id: gpucr_share_id()
 * @handle: GEM handle, 0 where there is none
 * @handle_count: handles in all files of the device
 * @flags: enum gpucr_bo_flags
 * @pad: keeps the size a multiple of 8
 */
struct gpucr_bo {
	struct drm_gem_object *obj;
	u64 size;
	u64 offset;
	u64 share_id;
	u32 handle;
	u32 handle_count;
	u32 flags;
	u32 pad;
};

void gpucr_share_init(void);
u64 gpucr_share_id(const struct drm_gem_object *obj);
struct drm_gem_object *gpucr_dmabuf_object(struct file *file);
struct drm_file *gpucr_drm_file(struct file *file);
struct drm_file *gpucr_drm_check(struct file *file, struct netlink_ext_ack *ack);
bool gpucr_drm_supported(const struct drm_device *dev);
struct drm_gem_object *gpucr_bo_at(struct drm_device *dev, unsigned long pgoff,
				   u64 *delta);
u64 gpucr_bo_size_at(struct drm_file *df, u64 pgoff);
struct gpucr_snapshot *gpucr_bo_snapshot(struct file *file,
					 struct netlink_ext_ack *ack);

#endif
