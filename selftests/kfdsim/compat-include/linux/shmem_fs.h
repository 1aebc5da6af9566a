/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flags of shmem_file_setup() became a structure, vma_flags_t, whose empty
 * value is a macro where there is such a type.
 */
#ifndef KFDSIM_COMPAT_LINUX_SHMEM_FS_H
#define KFDSIM_COMPAT_LINUX_SHMEM_FS_H

#include_next <linux/shmem_fs.h>
#include <linux/mm.h>

#ifdef EMPTY_VMA_FLAGS
#define KFDSIM_NO_VMA_FLAGS	EMPTY_VMA_FLAGS
#else
#define KFDSIM_NO_VMA_FLAGS	0
#endif

#endif
