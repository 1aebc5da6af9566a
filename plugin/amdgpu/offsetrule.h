/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The GPU id in the mmap offset of a doorbell or MMIO page: some kernels look
 * the GPU up by its own id, others by the id that the process knows it by. In
 * a process that is restored onto another GPU these differ, and only trying
 * tells.
 *
 * Where GPUs change places both ids are those of some GPU, so either offset can
 * be mapped, one of them to the wrong GPU. That is tried beforehand, in a
 * process of our own with ids that no GPU has.
 */
#ifndef GPUCR_OFFSETRULE_H
#define GPUCR_OFFSETRULE_H

#include <sys/types.h>

#include "devmap.h"
#include "image.h"
#include "kfdrules.h"

/*
 * Finds the rule, in the restored task, through its KFD file, unless it is
 * known or does not matter (all ids are what they were): it stays as it is
 * then. -errno, logged.
 */
int offsetrule_find(const struct gpucr_img_kfd *img,
		    const struct gpucr_devmap *devmap, int kfd_fd,
		    enum gpucr_offset_rule *rule);
/*
 * Before any task is made: finds the rule where the tasks could not. Leaves it
 * as it is where it is known, or not needed, or cannot be found.
 */
void offsetrule_prepare(const struct gpucr_devmap *devmap, dev_t kfd,
			enum gpucr_offset_rule *rule);
/* The offset of such a mapping, here. */
uint64_t offsetrule_apply(enum gpucr_offset_rule rule,
			  const struct gpucr_img_vma *v, uint32_t local_id);

#endif
