// SPDX-License-Identifier: GPL-2.0-only
/* Configuration files; what one of an image may never do is asserted. */
#include <string.h>

#include "fuzz.h"
#include "opt.h"

static int parse(const uint8_t *data, size_t size, bool from_image,
		 struct gpucr_opts *o)
{
	char *text = malloc(size + 1);
	int err;

	HOLDS(text);
	memcpy(text, data, size);
	text[size] = '\0';
	gpucr_opts_defaults(o);
	err = gpucr_opts_parse(o, text, "input", from_image);
	free(text);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpucr_opts o;
	size_t i;

	parse(data, size, false, &o);
	HOLDS(o.map_len <= GPUCR_OPT_MAX_PAIRS);
	/* 0000:00:00.0 is a PCI address, 0 is no id. */
	for (i = 0; i < o.map_len; i++)
		HOLDS((o.map[i].image.value ||
		       o.map[i].image.kind == GPUCR_NAME_PCI) &&
		      (o.map[i].local.value ||
		       o.map[i].local.kind == GPUCR_NAME_PCI));
	parse(data, size, true, &o);
	HOLDS(o.space_check && o.check_capability && o.check_vram_size &&
	      o.check_num_gws && o.check_caches_count && o.check_fw_ver &&
	      o.check_sdma_fw_ver && o.check_numa && o.check_links);
	return 0;
}
