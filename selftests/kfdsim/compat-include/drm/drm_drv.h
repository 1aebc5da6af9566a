/* SPDX-License-Identifier: GPL-2.0 */
/*
 * struct drm_driver has a mandatory date up to 6.13 and none after, and up to
 * 6.5 a dma-buf is mapped by a function named in it. A struct member cannot be
 * tested by the preprocessor, hence the version.
 */
#ifndef KFDSIM_COMPAT_DRM_DRV_H
#define KFDSIM_COMPAT_DRM_DRV_H

#include_next <drm/drm_drv.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define KFDSIM_DRM_DATE(d)	.date = (d),
#else
#define KFDSIM_DRM_DATE(d)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define KFDSIM_DRM_PRIME_MMAP(fn)	.gem_prime_mmap = (fn),
#else
#define KFDSIM_DRM_PRIME_MMAP(fn)
#endif

#endif
