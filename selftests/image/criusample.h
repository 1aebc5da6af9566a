/* SPDX-License-Identifier: GPL-2.0-only */
/* CRIU's own images, as far as the reader of them looks, for tests. */
#ifndef GPUCR_CRIUSAMPLE_H
#define GPUCR_CRIUSAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "image.h"

/*
 * inventory.img (with the plugins named, none where the list is NULL),
 * files.img with the files as those of a plugin and one regular, ids,
 * fdinfo, core, fs, mm and two pages of memory of the task pid, which has each
 * file open and a second thread, and stats-dump.
 */
int criusample_write(int dir, const char *const *plugins, const uint32_t *ids,
		     size_t num, uint32_t pid);

/* mm-<pid>.img: the mappings as those of a plugin, and one that is not. */
int criusample_mm(int dir, uint32_t pid, const struct gpucr_img_vma *v,
		  size_t num);

#endif
