// SPDX-License-Identifier: GPL-2.0-only
/* The GPUs of this machine's topology as lib/topology.c reads it, a line each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "topology.h"

int main(void)
{
	struct gpucr_topology *t;
	size_t i;
	int ret = gpucr_topology_read(NULL, &t);

	if (ret) {
		fprintf(stderr, "topology: %s\n", strerror(-ret));
		return 1;
	}
	for (i = 0; i < t->num_gpus; i++) {
		const struct gpucr_node *n = t->gpus[i];

		printf("%u %u %" PRIu64 " %" PRIu64 " %u %u %u %u %u %" PRIu64 "\n",
		       n->gpu_id, n->drm_render_minor, n->unique_id, n->hive_id,
		       n->gfx_target_version, n->location_id, n->domain, n->num_xcc,
		       n->io_links_count, n->vram_size);
	}
	gpucr_topology_free(t);
	return 0;
}
