/* SPDX-License-Identifier: GPL-2.0-only */
/* Render nodes of amdgpu: which file is one, and what it holds. */
#ifndef GPUCR_RENDERNODE_H
#define GPUCR_RENDERNODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define GPUCR_DRM_MAJOR		226
#define GPUCR_DRM_FIRST_RENDER	128

bool gpucr_drm_is_render(const struct stat *st);
/* Asks the driver itself, by DRM's version ioctl. */
bool gpucr_drm_is_amdgpu(int fd);
/*
 * Opens the render node with that minor, O_CLOEXEC, under whatever name /dev
 * has it. -errno; -ENOENT where no node has it, -EXDEV where it is not of
 * amdgpu. Not logged.
 */
int gpucr_drm_open_render(uint32_t minor);
/*
 * Buffer objects that the file has handles of: those made or imported through
 * the render node, not KFD's. 0 or -errno.
 */
int gpucr_drm_count_handles(int fd, uint32_t *ret);
/* May this very file map a BO of the device at the offset? */
bool gpucr_drm_may_map(int fd, uint64_t offset, uint64_t size);

#endif
