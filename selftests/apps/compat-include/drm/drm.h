/* SPDX-License-Identifier: GPL-2.0-only */
/* bookworm's linux/kfd_ioctl.h includes this name, but only libdrm-dev has the file, as drm.h. */
#include <drm.h>
