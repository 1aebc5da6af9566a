/* SPDX-License-Identifier: GPL-2.0-only */
/* VRAM and GTT content of one GPU's BOs, to and from its page file. */
#ifndef GPUCR_CONTENT_H
#define GPUCR_CONTENT_H

#include <stdint.h>

#include "image.h"
#include "kfd.h"

struct content_config {
	int dir;			/* image directory */
	uint32_t gpu_id;		/* user id */
	int drm_fd;			/* render node of that GPU */
	unsigned int slots;
	size_t slot_size;
	uint64_t max_buffer;		/* bytes; 0: no limit */
};

/*
 * Writes the page file; ret->gpu_id and ret->file are set. -errno, logged.
 * Where the GPU has no content: 0, and ret->chunks.num is 0.
 */
int content_dump(const struct content_config *cfg,
		 const struct gpucr_kfd_state *s, struct gpucr_img_pages *ret);
/* Fills the BOs; every byte was checked on the way. -errno, logged. */
int content_restore(const struct content_config *cfg,
		    const struct gpucr_kfd_state *s,
		    const struct gpucr_img_pages *pages);

#endif
