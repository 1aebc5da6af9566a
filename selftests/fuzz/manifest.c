// SPDX-License-Identifier: GPL-2.0-only
/* Payloads of manifests: what is taken is written, read again, and the same. */
#include <string.h>

#include "fuzz.h"
#include "imgmsg.h"

static void again(const struct gpucr_img_kfd *img)
{
	struct gpucr_img_kfd *back;
	uint8_t *payload;
	size_t len;

	HOLDS(!gpucr_imgmsg_pack_kfd(img, &payload, &len));
	HOLDS(!gpucr_img_kfd_parse("again", payload, len, &back));
	HOLDS(back->num_bos == img->num_bos &&
	      back->num_vmas == img->num_vmas &&
	      back->num_pages == img->num_pages &&
	      back->priv_size == img->priv_size);
	HOLDS(!img->num_bos || !memcmp(back->bos, img->bos, img->num_bos *
				       sizeof(*img->bos)));
	gpucr_img_kfd_free(back);
	free(payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpucr_img_render render;
	struct gpucr_img_kfd *img;

	if (!gpucr_img_kfd_parse("input", data, size, &img)) {
		again(img);
		gpucr_img_kfd_free(img);
	}
	if (!gpucr_img_render_parse("input", data, size, &render))
		HOLDS(render.device.user_gpu_id);
	return 0;
}
