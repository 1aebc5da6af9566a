/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mmap offsets of /dev/kfd, in bytes: bits 63:62 say what, 61:46 which GPU.
 * Doorbells and MMIO are per GPU, the event page is not.
 */
#ifndef GPUCR_KFDOFFSET_H
#define GPUCR_KFDOFFSET_H

#include <stdbool.h>
#include <stdint.h>

#define GPUCR_KFD_OFFSET_TYPE_SHIFT	62
#define GPUCR_KFD_OFFSET_EVENTS		2
#define GPUCR_KFD_OFFSET_GPU_SHIFT	46
#define GPUCR_KFD_OFFSET_GPU_MASK	(UINT64_C(0xffff) << 46)

static inline bool gpucr_kfd_offset_has_gpu(uint64_t offset)
{
	return offset >> GPUCR_KFD_OFFSET_TYPE_SHIFT !=
	       GPUCR_KFD_OFFSET_EVENTS;
}

static inline uint32_t gpucr_kfd_offset_gpu(uint64_t offset)
{
	return (offset & GPUCR_KFD_OFFSET_GPU_MASK) >>
	       GPUCR_KFD_OFFSET_GPU_SHIFT;
}

static inline uint64_t gpucr_kfd_offset_set_gpu(uint64_t offset,
						uint32_t gpu_id)
{
	return (offset & ~GPUCR_KFD_OFFSET_GPU_MASK) |
	       ((uint64_t)(gpu_id & 0xffff) << GPUCR_KFD_OFFSET_GPU_SHIFT);
}

#endif
