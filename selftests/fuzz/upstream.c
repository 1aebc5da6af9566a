// SPDX-License-Identifier: GPL-2.0-only
/* Payloads of upstream's manifests: what is taken is consistent in itself. */
#include "fuzz.h"
#include "upstream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpucr_img_kfd img;
	size_t i;

	if (gpucr_up_kfd_parse(data, size, &img))
		return 0;
	HOLDS(img.num_devices <= 2 * GPUCR_IMG_MAX_DEVICES);
	for (i = 0; i < img.num_devices; i++)
		HOLDS(img.devices[i].user_gpu_id &&
		      img.devices[i].num_links <= GPUCR_IMG_MAX_LINKS);
	gpucr_img_kfd_fault(&img);
	gpucr_img_kfd_clear(&img);
	return 0;
}
