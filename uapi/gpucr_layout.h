/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Layouts that gpucr relies on, pinned at build time: KFD's CRIU ioctl, KFD's
 * private records (gpucr_kfdpriv.h), and the numbers of the netlink family
 * that user space of another version may have compiled in. Included once by
 * the module, once by the library and by the tests.
 */
#ifndef GPUCR_LAYOUT_H
#define GPUCR_LAYOUT_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <assert.h>
#include <stddef.h>
#endif
#include <linux/gpucr.h>
#include <linux/kfd_ioctl.h>
#include "gpucr_kfdpriv.h"

#define GPUCR_PIN_SIZE(type, size)					\
	static_assert(sizeof(type) == (size), "size of " #type)
#define GPUCR_PIN(type, member, offset)					\
	static_assert(offsetof(type, member) == (offset),		\
		       "offset of " #type "." #member)
#define GPUCR_PIN_VALUE(name, value)					\
	static_assert((name) == (value), "value of " #name)

/* KFD's ioctl, unchanged since KFD 1.7. */
GPUCR_PIN_SIZE(struct kfd_ioctl_criu_args, 56);
GPUCR_PIN(struct kfd_ioctl_criu_args, devices, 0);
GPUCR_PIN(struct kfd_ioctl_criu_args, bos, 8);
GPUCR_PIN(struct kfd_ioctl_criu_args, priv_data, 16);
GPUCR_PIN(struct kfd_ioctl_criu_args, priv_data_size, 24);
GPUCR_PIN(struct kfd_ioctl_criu_args, num_devices, 32);
GPUCR_PIN(struct kfd_ioctl_criu_args, num_bos, 36);
GPUCR_PIN(struct kfd_ioctl_criu_args, num_objects, 40);
GPUCR_PIN(struct kfd_ioctl_criu_args, pid, 44);
GPUCR_PIN(struct kfd_ioctl_criu_args, op, 48);
GPUCR_PIN_VALUE(AMDKFD_IOC_CRIU_OP, 0xc0384b22);
GPUCR_PIN_VALUE(KFD_CRIU_OP_PROCESS_INFO, 0);
GPUCR_PIN_VALUE(KFD_CRIU_OP_CHECKPOINT, 1);
GPUCR_PIN_VALUE(KFD_CRIU_OP_UNPAUSE, 2);
GPUCR_PIN_VALUE(KFD_CRIU_OP_RESTORE, 3);
GPUCR_PIN_VALUE(KFD_CRIU_OP_RESUME, 4);

GPUCR_PIN_SIZE(struct kfd_criu_device_bucket, 16);
GPUCR_PIN(struct kfd_criu_device_bucket, user_gpu_id, 0);
GPUCR_PIN(struct kfd_criu_device_bucket, actual_gpu_id, 4);
GPUCR_PIN(struct kfd_criu_device_bucket, drm_fd, 8);

GPUCR_PIN_SIZE(struct kfd_criu_bo_bucket, 48);
GPUCR_PIN(struct kfd_criu_bo_bucket, addr, 0);
GPUCR_PIN(struct kfd_criu_bo_bucket, size, 8);
GPUCR_PIN(struct kfd_criu_bo_bucket, offset, 16);
GPUCR_PIN(struct kfd_criu_bo_bucket, restored_offset, 24);
GPUCR_PIN(struct kfd_criu_bo_bucket, gpu_id, 32);
GPUCR_PIN(struct kfd_criu_bo_bucket, alloc_flags, 36);
GPUCR_PIN(struct kfd_criu_bo_bucket, dmabuf_fd, 40);

/* KFD's private records. */
GPUCR_PIN_SIZE(struct gpucr_kfdpriv_process, 8);
GPUCR_PIN_SIZE(struct gpucr_kfdpriv_device, 8);
GPUCR_PIN(struct gpucr_kfdpriv_bo, user_addr, 0);
GPUCR_PIN(struct gpucr_kfdpriv_bo, idr_handle, 8);
GPUCR_PIN(struct gpucr_kfdpriv_bo, mapped_gpuids, 12);
GPUCR_PIN_VALUE(GPUCR_KFDPRIV_BO_16, (12 + 16 * 4 + 7) / 8 * 8);
GPUCR_PIN_VALUE(GPUCR_KFDPRIV_BO_64, (12 + 64 * 4 + 7) / 8 * 8);
GPUCR_PIN_SIZE(struct gpucr_kfdpriv_queue, 120);
GPUCR_PIN(struct gpucr_kfdpriv_queue, q_address, 8);
GPUCR_PIN(struct gpucr_kfdpriv_queue, gpu_id, 64);
GPUCR_PIN(struct gpucr_kfdpriv_queue, q_type, 68);
GPUCR_PIN(struct gpucr_kfdpriv_queue, ctl_stack_size, 108);
GPUCR_PIN(struct gpucr_kfdpriv_queue, mqd_size, 112);
GPUCR_PIN_SIZE(struct gpucr_kfdpriv_event, 64);
GPUCR_PIN(struct gpucr_kfdpriv_event, user_handle, 8);
GPUCR_PIN(struct gpucr_kfdpriv_event, event_id, 16);
GPUCR_PIN(struct gpucr_kfdpriv_event, data, 32);
GPUCR_PIN_SIZE(struct gpucr_kfdpriv_svm, 24);
GPUCR_PIN(struct gpucr_kfdpriv_svm, start, 8);
GPUCR_PIN(struct gpucr_kfdpriv_svm, size, 16);
GPUCR_PIN_SIZE(struct gpucr_kfdpriv_attr, 8);

/* The family's own numbers: append, never renumber. */
GPUCR_PIN_VALUE(GPUCR_CMD_INFO_GET, 1);
GPUCR_PIN_VALUE(GPUCR_CMD_BO_GET, 2);
GPUCR_PIN_VALUE(GPUCR_CMD_VMA_GET, 3);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_NEW, 4);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_GET, 5);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_DEL, 6);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_JOIN, 7);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_PAUSE, 8);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_CHECKPOINT, 9);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_UNPAUSE, 10);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_RESTORE, 11);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_RESUME, 12);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_NTF, 13);
GPUCR_PIN_VALUE(GPUCR_CMD_QUEUE_GET, 14);
GPUCR_PIN_VALUE(GPUCR_CMD_REMAP_GET, 15);
GPUCR_PIN_VALUE(GPUCR_CMD_REMAP_SET, 16);
GPUCR_PIN_VALUE(GPUCR_CMD_REMAP_RESOLVE, 17);
GPUCR_PIN_VALUE(GPUCR_CMD_SESSION_DRAIN, 18);
GPUCR_PIN_VALUE(GPUCR_SESSION_STATE_NEW, 0);
GPUCR_PIN_VALUE(GPUCR_SESSION_STATE_ABANDONED, 7);
GPUCR_PIN_VALUE(GPUCR_SESSION_STATE_FAILED, 9);
GPUCR_PIN_VALUE(GPUCR_VMA_KIND_RESERVED, 6);
GPUCR_PIN_VALUE(GPUCR_A_SESSION_TASKS, 18);
GPUCR_PIN_VALUE(GPUCR_A_SESSION_DRAIN, 19);
GPUCR_PIN_VALUE(GPUCR_A_RELAY_STATE, 15);
GPUCR_PIN_VALUE(GPUCR_A_RELAY_KEPT_ERROR, 18);
GPUCR_PIN_VALUE(GPUCR_A_BO_HANDLE_COUNT, 8);
GPUCR_PIN_VALUE(GPUCR_A_VMA_BO_DELTA, 14);
GPUCR_PIN_VALUE(GPUCR_A_INFO_SESSIONS_RECOVERED, 12);
GPUCR_PIN_VALUE(GPUCR_A_INFO_MAX_REMAPS, 16);
GPUCR_PIN_VALUE(GPUCR_A_QUEUE_CTL_STACK_SIZE, 23);
GPUCR_PIN_VALUE(GPUCR_A_REMAP_SOURCE, 13);
GPUCR_PIN_VALUE(GPUCR_QUEUE_TYPE_SDMA_BY_ENGINE, 5);
GPUCR_PIN_VALUE(GPUCR_QUEUE_FORMAT_AQL, 1);
GPUCR_PIN_VALUE(GPUCR_REMAP_KIND_DMA_BUF, 1);
GPUCR_PIN_VALUE(GPUCR_REMAP_SOURCE_SET, 1);

#endif
