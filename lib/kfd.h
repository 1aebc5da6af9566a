/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/kfd and its CRIU operations, as they are: no bookkeeping. Who may call
 * what, and how often, is backend.h's to know.
 */
#ifndef GPUCR_KFD_H
#define GPUCR_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <linux/kfd_ioctl.h>

#define GPUCR_KFD_PATH	"/dev/kfd"

/* What PROCESS_INFO counts. */
struct gpucr_kfd_counts {
	uint32_t pid;		/* in the innermost pid namespace of the owner */
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
	uint64_t priv_size;
};

/* What CHECKPOINT fills and RESTORE takes. */
struct gpucr_kfd_state {
	struct gpucr_kfd_counts n;
	struct kfd_criu_device_bucket *devices;
	struct kfd_criu_bo_bucket *bos;
	uint8_t *priv;
	uint32_t image_pid;	/* restore: whose it was, for the module's table */
};

/* Buffers for counts; dma-buf numbers are set to KFD_INVALID_FD. */
int gpucr_kfd_state_alloc(struct gpucr_kfd_state *s,
			  const struct gpucr_kfd_counts *n);
/* Closes the dma-bufs and frees the buffers. */
void gpucr_kfd_state_clear(struct gpucr_kfd_state *s);
void gpucr_kfd_state_close_bos(struct gpucr_kfd_state *s);
/* KFD's descriptors come without it. */
void gpucr_kfd_state_set_cloexec(struct gpucr_kfd_state *s);
/*
 * Room in the descriptor table for one dma-buf per BO: raises the limit, and
 * gives back the old one for gpucr_kfd_room_restore().
 */
int gpucr_kfd_room(uint32_t num_bos, struct rlimit *old);
void gpucr_kfd_room_restore(const struct rlimit *old);

/* Does the BO have content that must be copied? */
static inline bool gpucr_kfd_bo_has_content(uint32_t alloc_flags)
{
	return alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
			      KFD_IOC_ALLOC_MEM_FLAGS_GTT);
}

/* Device number of KFD by sysfs. -ENODEV where there is none. */
int gpucr_kfd_dev(dev_t *ret);
/*
 * The caller's own KFD file, O_CLOEXEC, checked to be device dev and version
 * 1.8 or newer. -errno, logged.
 */
int gpucr_kfd_open(dev_t dev);
int gpucr_kfd_version(int fd, uint32_t *major, uint32_t *minor);

int gpucr_kfd_process_info(int fd, struct gpucr_kfd_counts *ret);
int gpucr_kfd_checkpoint(int fd, struct gpucr_kfd_state *s);
int gpucr_kfd_unpause(int fd);
int gpucr_kfd_restore(int fd, struct gpucr_kfd_state *s);
int gpucr_kfd_resume(int fd, pid_t pid);

#endif
