/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private data of CRIU_OP, in KFD's layout: process, devices, BOs, then
 * objects that start with their type. The BO record depends on the
 * personality: it carries 16 GPU ids on 6.1 and 64 later.
 */
#ifndef KFDSIM_CRIU_H
#define KFDSIM_CRIU_H

#include <linux/align.h>
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <uapi/linux/kfd_ioctl.h>
#include "kfdsim.h"

#define KFDSIM_CRIU_VERSION	1
#define KFDSIM_CRIU_GPUS_6_1	16
#define KFDSIM_CRIU_GPUS	64

enum kfdsim_criu_type {
	KFDSIM_CRIU_QUEUE,
	KFDSIM_CRIU_EVENT,
	KFDSIM_CRIU_SVM,
};

struct kfdsim_criu_process {
	u32 version;
	u32 xnack_mode;
};

struct kfdsim_criu_device {
	u64 reserved;
};

/* mapped_gpuids has 16 or 64 entries; the record is padded to 8 bytes. */
struct kfdsim_criu_bo {
	u64 user_addr;
	u32 idr_handle;
	u32 mapped_gpuids[KFDSIM_CRIU_GPUS];
};

struct kfdsim_criu_queue {
	u32 object_type;
	u64 q_address;
	u64 q_size;
	u64 read_ptr_addr;
	u64 write_ptr_addr;
	u64 doorbell_off;
	u64 eop_ring_buffer_address;
	u64 ctx_save_restore_area_address;
	u32 gpu_id;
	u32 type;
	u32 format;
	u32 q_id;
	u32 priority;
	u32 q_percent;
	u32 doorbell_id;
	u32 gws;
	u32 sdma_id;
	u32 eop_ring_buffer_size;
	u32 ctx_save_restore_area_size;
	u32 ctl_stack_size;
	u32 mqd_size;
};

struct kfdsim_criu_event {
	u32 object_type;
	u64 user_handle;
	u32 event_id;
	u32 auto_reset;
	u32 type;
	u32 signaled;
	union {
		struct kfd_hsa_memory_exception_data memory;
		struct kfd_hsa_hw_exception_data hw;
	};
};

#define KFDSIM_CRIU_SVM_ATTRS	4	/* and one per device */

struct kfdsim_criu_svm {
	u32 object_type;
	u64 start;		/* pages */
	u64 size;
	struct kfd_ioctl_svm_attribute attrs[];
};

/* Head of an MQD: the state of a runner. The rest of the MQD is zero. */
#define KFDSIM_MQD_MAGIC	0x31717173	/* "sqq1" */

struct kfdsim_criu_mqd {
	u32 magic;
	s32 error;
	u64 rptr;
	u64 wptr;
	u64 progress;
	u64 done;		/* bytes of the current packet already moved */
	u32 ib_depth;		/* PM4 and AQL: buffers that it is in */
	u32 pad;
	struct kfdsim_pm4_ib ib[KFDSIM_PM4_IBS];
};

/*
 * The control stack of a compute queue holds no waves here, but is filled from
 * its state, so that one that is lost or another's is found out.
 */
static inline u64 kfdsim_ctl_stack_word(const struct kfdsim_criu_mqd *mqd, u32 i)
{
	return (mqd->progress + 1) * 0x9e3779b97f4a7c15ULL + i;
}

static inline u32 kfdsim_criu_bo_gpus(void)
{
	return kfdsim_personality == KFDSIM_6_1 ? KFDSIM_CRIU_GPUS_6_1 :
						  KFDSIM_CRIU_GPUS;
}

static inline size_t kfdsim_criu_bo_size(void)
{
	return ALIGN(offsetof(struct kfdsim_criu_bo, mapped_gpuids) +
		     kfdsim_criu_bo_gpus() * sizeof(u32), 8);
}

/* kfd_criu.c */
void kfdsim_criu_close_fds(const struct kfd_criu_bo_bucket *buckets, u32 n);

static_assert(sizeof(struct kfdsim_criu_process) == 8);
static_assert(sizeof(struct kfdsim_criu_device) == 8);
static_assert(sizeof(struct kfdsim_criu_bo) == 272);
static_assert(sizeof(struct kfdsim_criu_queue) == 120);
static_assert(sizeof(struct kfdsim_criu_event) == 64);
static_assert(sizeof(struct kfdsim_criu_svm) == 24);

#endif
