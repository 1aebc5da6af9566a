/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Images in the format of CRIU's own amdgpu plugin, 3.17 to 4.2: read into
 * the structures of ours, and written from them. Names and layout:
 * docs/image-format.md.
 */
#ifndef GPUCR_UPSTREAM_H
#define GPUCR_UPSTREAM_H

#include "image.h"
#include "topology.h"

void gpucr_up_kfd_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id);
void gpucr_up_render_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id);
void gpucr_up_pages_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id,
			 uint32_t gpu_id);

/*
 * As their namesakes of image.h. Which mappings there are is only in CRIU's
 * image of the process, whose file a render node is only in that of the files:
 * they must be there. 4.3's schema is refused.
 */
int gpucr_up_kfd_read(int dir, uint32_t id, struct gpucr_img_kfd **ret);
int gpucr_up_render_read(int dir, uint32_t id, struct gpucr_img_render *ret);
/* A payload in memory, without page files and mappings. -EBADMSG. */
int gpucr_up_kfd_parse(const uint8_t *payload, size_t len,
		       struct gpucr_img_kfd *ret);

/* topo: of the dump, for the nodes of CPUs. -errno, logged. */
int gpucr_up_kfd_write(int dir, const struct gpucr_img_kfd *img,
		       const struct gpucr_topology *topo);
int gpucr_up_render_write(int dir, const struct gpucr_img_render *img);

#endif
