// SPDX-License-Identifier: GPL-2.0-only
/* A GPU of an image, from the topology of the dump. */
#include <stdio.h>
#include <string.h>

#include "image.h"
#include "topology.h"

#define SAME_NAMES(X) \
	X(node) X(vendor_id) X(device_id) X(gfx_target_version) X(simd_count) \
	X(num_xcc) X(location_id) X(domain) X(fw_version) X(sdma_fw_version) \
	X(capability) X(num_gws) X(caches_count) X(unique_id) X(hive_id) \
	X(mem_banks_count) X(io_links_count) X(max_waves_per_simd) \
	X(lds_size_in_kb) X(gds_size_in_kb) X(wave_front_size) X(array_count) \
	X(simd_arrays_per_engine) X(cu_per_simd_array) X(simd_per_cu) \
	X(max_slots_scratch_cu) X(num_sdma_engines) X(num_sdma_xgmi_engines) \
	X(num_sdma_queues_per_engine) X(num_cp_queues) X(vram_public)

static void copy_links(struct gpucr_img_device *d,
		       const struct gpucr_topology *topo,
		       const struct gpucr_node *n)
{
	size_t i;

	for (i = 0; i < n->num_links && i < GPUCR_IMG_MAX_LINKS; i++) {
		const struct gpucr_link *l = &n->links[i];
		const struct gpucr_node *to;

		/* Of a node that is hidden here nothing more can be said. */
		to = gpucr_topology_find_by_node(topo, l->to);
		if (!to)
			continue;
		d->links[d->num_links++] = (struct gpucr_img_link){
			.to = l->to, .type = l->type, .cpu = !to->gpu_id,
			.p2p = l->p2p,
		};
	}
}

void gpucr_img_device_from_node(struct gpucr_img_device *ret,
				const struct gpucr_topology *topo,
				const struct gpucr_node *node,
				uint32_t user_gpu_id)
{
	memset(ret, 0, sizeof(*ret));
	ret->user_gpu_id = user_gpu_id;
	ret->local_gpu_id = node->gpu_id;
	ret->render_minor = node->drm_render_minor;
	ret->vram_bytes = node->vram_size;
#define COPY(f) ret->f = node->f;
	SAME_NAMES(COPY)
#undef COPY
	snprintf(ret->name, sizeof(ret->name), "%s", node->name);
	ret->has_topology = true;
	copy_links(ret, topo, node);
}
