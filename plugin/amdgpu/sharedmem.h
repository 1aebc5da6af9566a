/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of a process that a GPU can write and other tasks see as well. */
#ifndef GPUCR_SHAREDMEM_H
#define GPUCR_SHAREDMEM_H

#include <sys/types.h>

#include "image.h"

/*
 * For a dump whose pause came after CRIU had begun to read shared memory:
 * refuses, by address, user memory of a BO and SVM ranges that lie in a shared
 * mapping. img has BOs and private data. -EOPNOTSUPP, logged.
 */
int sharedmem_refuse(pid_t pid, const struct gpucr_img_kfd *img);

#endif
