/* SPDX-License-Identifier: GPL-2.0-only */
/* The payload of a manifest: structs to protobuf and back. */
#ifndef GPUCR_IMGMSG_H
#define GPUCR_IMGMSG_H

#include "image.h"

/* *ret is free()d by the caller. */
int gpucr_imgmsg_pack_kfd(const struct gpucr_img_kfd *img, uint8_t **ret,
			  size_t *len);
int gpucr_imgmsg_pack_render(const struct gpucr_img_render *img,
			     uint8_t **ret, size_t *len);
/*
 * -EBADMSG where it cannot be decoded, or would need far more memory than its
 * length explains. Rules between the fields are not checked here. The struct
 * is the caller's to clear, also after a failure.
 */
int gpucr_imgmsg_unpack_kfd(const uint8_t *payload, size_t len,
			    struct gpucr_img_kfd *img);
int gpucr_imgmsg_unpack_render(const uint8_t *payload, size_t len,
			       struct gpucr_img_render *img);

#endif
