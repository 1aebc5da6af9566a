/* SPDX-License-Identifier: GPL-2.0-only */
/* Device mappings of a process being dumped, matched with its BOs. */
#ifndef GPUCR_TARGETMAP_H
#define GPUCR_TARGETMAP_H

#include <sys/types.h>

#include "image.h"

/*
 * Fills img->vmas from the mappings of pid; devices and BOs are filled. A
 * mapping that could not be restored is refused by its address. -errno,
 * logged.
 */
int targetmap_fill(pid_t pid, dev_t kfd, struct gpucr_img_kfd *img);

#endif
