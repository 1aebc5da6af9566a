/* SPDX-License-Identifier: GPL-2.0-only */
/* linux/kfd_ioctl.h includes <drm/drm.h>; Debian has it with libdrm only. */
#ifndef GPUCR_SYSINCLUDE_DRM_H
#define GPUCR_SYSINCLUDE_DRM_H

#include <libdrm/drm.h>

#endif
