/* SPDX-License-Identifier: GPL-2.0-only */
/* GPU processes for the stand-in: sets of BOs whose every byte is known. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "../../plugin/amdgpu/content.h"

struct set {
	const char *name;
	uint64_t bo_size;	/* 0: one BO a GPU */
	bool dull;		/* what compression can do something about */
	/* BOs but the first run of so many in every zero_of are zeros; or 0 */
	unsigned int zero_run, zero_of;
};

/* BOs of bytes in all, dealt to the GPUs in turn; *s is workload_free()d. */
void workload_make(const struct set *set, unsigned int gpus, uint64_t bytes,
		   struct gpucr_kfd_state *s);
void workload_free(struct gpucr_kfd_state *s);
/* A job and page file for each GPU; image directory dir. */
void workload_jobs(struct content_job *jobs, unsigned int gpus,
		   const struct gpucr_kfd_state *s,
		   struct gpucr_img_pages *pages, int dir, bool dump);
/* Overwrite every byte. */
void workload_poison(const struct gpucr_kfd_state *s);
/* Is every byte as it was made? Tells the first that is not. */
bool workload_check(const struct set *set, const struct gpucr_kfd_state *s);

#endif
