// SPDX-License-Identifier: GPL-2.0-only
#include "gpurule.h"

#include <string.h>

enum relation {
	EQUAL,		/* there == here */
	AT_LEAST,	/* here is as good or better */
};

struct rule {
	const char *field;
	const char *token;
	const char *option;
	enum relation relation;
	bool late;		/* unknown in images without topology */
	bool ours;		/* unknown in upstream's */
	uint32_t there, here;	/* offsets */
	uint32_t there_size, here_size;
	uint32_t check;		/* offset in the options */
};

#define NO_CHECK	UINT32_MAX
#define SIZE_OF(s, f)	sizeof(((struct s *)0)->f)
#define AT(tf, hf) \
	.there = offsetof(struct gpucr_img_device, tf), \
	.here = offsetof(struct gpucr_node, hf), \
	.there_size = SIZE_OF(gpucr_img_device, tf), \
	.here_size = SIZE_OF(gpucr_node, hf)

#define SAME(f) { .field = #f, .token = "gpu-differs", .relation = EQUAL, \
		  AT(f, f), .check = NO_CHECK }
#define SAME_LATE(f) { .field = #f, .token = "gpu-differs", \
		       .relation = EQUAL, .late = true, AT(f, f), \
		       .check = NO_CHECK }
#define SAME_OURS(f) { .field = #f, .token = "gpu-differs", \
		       .relation = EQUAL, .ours = true, AT(f, f), \
		       .check = NO_CHECK }
#define OPTION(opt, c) \
	.option = opt, .check = offsetof(struct gpucr_opts, c)

/* What tells most comes first: it is what a refusal names. */
static const struct rule rules[] = {
	SAME(vendor_id), SAME(device_id), SAME_OURS(gfx_target_version),
	/* Partition mode: the share of the chip that this GPU is. */
	SAME_OURS(num_xcc), SAME(simd_count),
	SAME_LATE(array_count), SAME_LATE(simd_arrays_per_engine),
	SAME_LATE(cu_per_simd_array), SAME_LATE(simd_per_cu),
	SAME_LATE(max_waves_per_simd), SAME_LATE(wave_front_size),
	SAME_LATE(lds_size_in_kb), SAME_LATE(max_slots_scratch_cu),
	SAME_LATE(num_sdma_engines), SAME_LATE(num_sdma_xgmi_engines),
	SAME_LATE(num_sdma_queues_per_engine), SAME_LATE(num_cp_queues),
	SAME_LATE(mem_banks_count), SAME_LATE(vram_public),
	{ .field = "io_links_count", .token = "links-differ",
	  .relation = EQUAL, .late = true,
	  AT(io_links_count, io_links_count),
	  OPTION("link-check", check_links) },
	{ .field = "capability", .token = "gpu-differs", .relation = EQUAL,
	  AT(capability, capability),
	  OPTION("capability-check", check_capability) },
	{ .field = "vram_size", .token = "vram-smaller", .relation = AT_LEAST,
	  AT(vram_bytes, vram_size),
	  OPTION("vram-size-check", check_vram_size) },
	{ .field = "num_gws", .token = "gpu-differs", .relation = AT_LEAST,
	  AT(num_gws, num_gws), OPTION("num-gws-check", check_num_gws) },
	{ .field = "caches_count", .token = "gpu-differs",
	  .relation = AT_LEAST, AT(caches_count, caches_count),
	  OPTION("caches-count-check", check_caches_count) },
	{ .field = "fw_version", .token = "firmware-older",
	  .relation = AT_LEAST, AT(fw_version, fw_version),
	  OPTION("fw-ver-check", check_fw_ver) },
	{ .field = "sdma_fw_version", .token = "firmware-older",
	  .relation = AT_LEAST, AT(sdma_fw_version, sdma_fw_version),
	  OPTION("sdma-fw-ver-check", check_sdma_fw_ver) },
};

_Static_assert(sizeof(rules) / sizeof(rules[0]) < GPUCR_MAX_RULES, "room");

static uint64_t value(const void *base, uint32_t offset, uint32_t size)
{
	const char *p = (const char *)base + offset;
	uint64_t v64;
	uint32_t v32;

	if (size == sizeof(v32)) {
		memcpy(&v32, p, sizeof(v32));
		return v32;
	}
	memcpy(&v64, p, sizeof(v64));
	return v64;
}

static bool is_checked(const struct rule *r, const struct gpucr_opts *o)
{
	if (r->check == NO_CHECK)
		return true;
	return *(const bool *)((const char *)o + r->check);
}

size_t gpucr_rules_apply(const struct gpucr_img_device *there,
			 const struct gpucr_node *here,
			 const struct gpucr_opts *opts, struct gpucr_rule *ret)
{
	size_t i, num = 0;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *r = &rules[i];
		struct gpucr_rule *to = &ret[num];

		if ((r->late && !there->has_topology) ||
		    (r->ours && there->upstream))
			continue;
		*to = (struct gpucr_rule){
			.field = r->field, .token = r->token,
			.option = r->option,
			.there = value(there, r->there, r->there_size),
			.here = value(here, r->here, r->here_size),
		};
		to->broken = r->relation == EQUAL ? to->there != to->here :
						    to->there > to->here;
		to->forbids = to->broken && is_checked(r, opts);
		num++;
	}
	return num;
}
