/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_VMA_H
#define GPUCR_VMA_H

#include <linux/types.h>

struct file;
struct gpucr_snapshot;
struct netlink_ext_ack;
struct pid;

/**
 * struct gpucr_vma - entry of a snapshot of device mappings
 * @start: first address
 * @end: address after the last
 * @pgoff: offset of @start in the file, in pages
 * @share_id: of the BO; valid where @bo_size is not 0
 * @bo_size: bytes of the BO, 0 where there is none
 * @bo_delta: bytes from the start of the BO to @start
 * @flags: enum gpucr_vma_flags
 * @kind: enum gpucr_vma_kind
 * @major: of the device, 0 for a dma-buf
 * @minor: of the device
 * @gpu_id: KFD's id where the offset carries one, else 0
 * @pad: keeps the size a multiple of 8
 */
struct gpucr_vma {
	u64 start;
	u64 end;
	u64 pgoff;
	u64 share_id;
	u64 bo_size;
	u64 bo_delta;
	u32 flags;
	u32 kind;
	u32 major;
	u32 minor;
	u32 gpu_id;
	u32 pad;
};

struct gpucr_snapshot *gpucr_vma_snapshot(struct pid *tgid, struct file *only,
					  struct netlink_ext_ack *ack);

#endif
