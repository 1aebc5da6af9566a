/* SPDX-License-Identifier: GPL-2.0 */
/*
 * 6.3 made vm_area_struct.vm_flags read-only and gave vm_flags_set() instead.
 * An inline function cannot be tested by the preprocessor, hence the version.
 */
#ifndef KFDSIM_COMPAT_LINUX_MM_H
#define KFDSIM_COMPAT_LINUX_MM_H

#include_next <linux/mm.h>
#include <linux/version.h>

static inline void kfdsim_vma_set(struct vm_area_struct *vma,
				  unsigned long flags)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	vma->vm_flags |= flags;
#else
	vm_flags_set(vma, flags);
#endif
}

static inline void kfdsim_vma_clear(struct vm_area_struct *vma,
				    unsigned long flags)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	vma->vm_flags &= ~flags;
#else
	vm_flags_clear(vma, flags);
#endif
}

#endif
