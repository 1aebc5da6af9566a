/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* ioctls of KFD 1.12 and 1.13, which 6.1 does not know. */
#ifndef KFDSIM_COMPAT_UAPI_LINUX_KFD_IOCTL_H
#define KFDSIM_COMPAT_UAPI_LINUX_KFD_IOCTL_H

#include_next <uapi/linux/kfd_ioctl.h>

#ifndef AMDKFD_IOC_EXPORT_DMABUF
struct kfd_ioctl_export_dmabuf_args {
	__u64 handle;
	__u32 flags;
	__u32 dmabuf_fd;
};

#define AMDKFD_IOC_EXPORT_DMABUF \
	AMDKFD_IOWR(0x24, struct kfd_ioctl_export_dmabuf_args)
#endif

#ifndef AMDKFD_IOC_RUNTIME_ENABLE
#define KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK	1

struct kfd_ioctl_runtime_enable_args {
	__u64 r_debug;
	__u32 mode_mask;
	__u32 capabilities_mask;
};

#define AMDKFD_IOC_RUNTIME_ENABLE \
	AMDKFD_IOWR(0x25, struct kfd_ioctl_runtime_enable_args)
#endif

#endif
