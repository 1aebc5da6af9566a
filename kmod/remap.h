/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_REMAP_H
#define GPUCR_REMAP_H

#include <linux/bits.h>
#include <linux/rbtree.h>
#include <linux/types.h>

struct drm_file;
struct gpucr_counts;
struct gpucr_remap_buckets;
struct gpucr_session;
struct gpucr_snapshot;
struct netlink_ext_ack;

/* Most offsets kept for a session: told by info-get. */
#define GPUCR_MAX_REMAPS	BIT(20)

/**
 * struct gpucr_remap - where a BO of the image has come to
 * @old_pgoff: its offset in the image, pages
 * @size: bytes, a multiple of the page size
 * @new_pgoff: its offset here, pages
 * @image_pid: task in the image
 * @gpu_id: GPU in the image
 * @minor: of the render node that it is on
 * @source: enum gpucr_remap_source
 */
struct gpucr_remap {
	u64 old_pgoff;
	u64 size;
	u64 new_pgoff;
	u32 image_pid;
	u32 gpu_id;
	u32 minor;
	u32 source;
};

/**
 * struct gpucr_resolved - how a mapping is made again
 * @new_pgoff: offset in pages, in the render node or the dma-buf
 * @delta: bytes from the start of the BO
 * @size: bytes of the BO
 * @kind: enum gpucr_remap_kind
 * @minor: of the render node that the BO is on
 */
struct gpucr_resolved {
	u64 new_pgoff;
	u64 delta;
	u64 size;
	u32 kind;
	u32 minor;
};

struct gpucr_remap_buckets *
gpucr_remap_read(u64 devices, u64 bos, const struct gpucr_counts *counts,
		 struct netlink_ext_ack *ack);
int gpucr_remap_fill(struct gpucr_session *s, u32 image_pid,
		     const struct gpucr_remap_buckets *b, u32 *kept,
		     struct netlink_ext_ack *ack);
void gpucr_remap_buckets_free(struct gpucr_remap_buckets *b);
int gpucr_remap_set(struct gpucr_session *s, struct drm_file *df,
		    struct gpucr_remap *r, struct netlink_ext_ack *ack);
int gpucr_remap_resolve(struct gpucr_session *s, struct drm_file *df,
			const struct gpucr_remap *key,
			struct gpucr_resolved *res,
			struct netlink_ext_ack *ack);
struct gpucr_snapshot *gpucr_remap_snapshot(struct gpucr_session *s,
					    u32 image_pid,
					    struct netlink_ext_ack *ack);
void gpucr_remap_free_all(struct rb_root *root);

#endif
