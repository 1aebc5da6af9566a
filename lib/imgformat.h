/* SPDX-License-Identifier: GPL-2.0-only */
/* Images of a directory, in whichever of the two formats they are. */
#ifndef GPUCR_IMGFORMAT_H
#define GPUCR_IMGFORMAT_H

#include "image.h"
#include "topology.h"

enum gpucr_img_format {
	GPUCR_FORMAT_NATIVE,
	GPUCR_FORMAT_UPSTREAM,	/* that of CRIU 4.2's plugin */
};

/* Entries of CRIU's inventory. */
#define GPUCR_ENTRY_NATIVE	"gpucr"
#define GPUCR_ENTRY_UPSTREAM	"amdgpu_plugin"

/*
 * Which one is asked for: as the inventory says; where it has no list of
 * plugins, by the files that are there. Files of the other format are what an
 * earlier dump left.
 */
enum gpucr_img_format gpucr_image_format(int dir);

/* As their namesakes of image.h. */
int gpucr_image_kfd_read(int dir, enum gpucr_img_format format, uint32_t id,
			 struct gpucr_img_kfd **ret);
int gpucr_image_render_read(int dir, enum gpucr_img_format format,
			    uint32_t id, struct gpucr_img_render *ret);
/* Ids of all manifests of a kind, rising; *ret is free()d. */
int gpucr_image_list(int dir, enum gpucr_img_format format,
		     enum gpucr_img_kind kind, uint32_t **ret, size_t *num);
void gpucr_image_kfd_name(char name[GPUCR_IMG_NAME_MAX],
			  enum gpucr_img_format format, uint32_t id);
void gpucr_image_render_name(char name[GPUCR_IMG_NAME_MAX],
			     enum gpucr_img_format format, uint32_t id);

#endif
