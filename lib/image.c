// SPDX-License-Identifier: GPL-2.0-only
#include "image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imgmsg.h"
#include "log.h"

#define KFD_PREFIX	"gpucr-kfd-"
#define RENDER_PREFIX	"gpucr-renderD-"

void gpucr_img_kfd_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id)
{
	snprintf(name, GPUCR_IMG_NAME_MAX, KFD_PREFIX "%u.img", id);
}

void gpucr_img_render_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id)
{
	snprintf(name, GPUCR_IMG_NAME_MAX, RENDER_PREFIX "%u.img", id);
}

void gpucr_img_pages_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id,
			  uint32_t gpu_id)
{
	snprintf(name, GPUCR_IMG_NAME_MAX, "amdgpu-pages-gpucr-%u-%04x.img",
		 id, gpu_id);
}

int gpucr_img_kfd_write(int dir, const struct gpucr_img_kfd *img)
{
	char name[GPUCR_IMG_NAME_MAX];
	uint8_t *payload;
	size_t len;
	int err;

	gpucr_img_kfd_name(name, img->id);
	err = gpucr_imgmsg_pack_kfd(img, &payload, &len);
	if (err) {
		gpucr_err("%s: %s", name, strerror(-err));
		return err;
	}
	err = gpucr_imgfile_write(dir, name, GPUCR_IMG_KFD, payload, len);
	free(payload);
	return err;
}

int gpucr_img_render_write(int dir, const struct gpucr_img_render *img)
{
	char name[GPUCR_IMG_NAME_MAX];
	uint8_t *payload;
	size_t len;
	int err;

	gpucr_img_render_name(name, img->id);
	err = gpucr_imgmsg_pack_render(img, &payload, &len);
	if (err) {
		gpucr_err("%s: %s", name, strerror(-err));
		return err;
	}
	err = gpucr_imgfile_write(dir, name, GPUCR_IMG_RENDER, payload, len);
	free(payload);
	return err;
}

static int bad(const char *name, const char *what)
{
	gpucr_err("%s: %s (image-damaged); restore another checkpoint", name,
		  what);
	return -EBADMSG;
}

int gpucr_img_kfd_parse(const char *name, const uint8_t *payload, size_t len,
			struct gpucr_img_kfd **ret)
{
	struct gpucr_img_kfd *img;
	const char *fault;
	int err;

	img = calloc(1, sizeof(*img));
	if (!img)
		return -ENOMEM;
	err = gpucr_imgmsg_unpack_kfd(payload, len, img);
	fault = err ? "it cannot be decoded" : gpucr_img_kfd_fault(img);
	if (fault) {
		gpucr_img_kfd_free(img);
		return err == -ENOMEM ? err : bad(name, fault);
	}
	*ret = img;
	return 0;
}

int gpucr_img_render_parse(const char *name, const uint8_t *payload,
			   size_t len, struct gpucr_img_render *ret)
{
	int err = gpucr_imgmsg_unpack_render(payload, len, ret);

	if (err)
		return err == -ENOMEM ? err : bad(name, "it cannot be decoded");
	if (!ret->device.user_gpu_id)
		return bad(name, "it names no GPU");
	return 0;
}

int gpucr_img_kfd_read(int dir, uint32_t id, struct gpucr_img_kfd **ret)
{
	char name[GPUCR_IMG_NAME_MAX];
	uint8_t *payload;
	size_t len;
	int err;

	gpucr_img_kfd_name(name, id);
	err = gpucr_imgfile_read(dir, name, GPUCR_IMG_KFD, &payload, &len);
	if (err)
		return err;
	err = gpucr_img_kfd_parse(name, payload, len, ret);
	free(payload);
	if (err || (*ret)->id == id)
		return err;
	gpucr_img_kfd_free(*ret);
	return bad(name, "it is the image of another file");
}

int gpucr_img_render_read(int dir, uint32_t id, struct gpucr_img_render *ret)
{
	char name[GPUCR_IMG_NAME_MAX];
	uint8_t *payload;
	size_t len;
	int err;

	gpucr_img_render_name(name, id);
	err = gpucr_imgfile_read(dir, name, GPUCR_IMG_RENDER, &payload, &len);
	if (err)
		return err;
	err = gpucr_img_render_parse(name, payload, len, ret);
	free(payload);
	if (!err && ret->id != id)
		err = bad(name, "it is the image of another file");
	return err;
}

void gpucr_img_kfd_clear(struct gpucr_img_kfd *img)
{
	size_t i;

	for (i = 0; i < img->num_pages; i++)
		gpucr_chunks_clear(&img->pages[i].chunks);
	free(img->devices);
	free(img->bos);
	free(img->vmas);
	free(img->pages);
	free(img->priv);
	memset(img, 0, sizeof(*img));
}

void gpucr_img_kfd_free(struct gpucr_img_kfd *img)
{
	if (!img)
		return;
	gpucr_img_kfd_clear(img);
	free(img);
}
