// SPDX-License-Identifier: GPL-2.0-only
/* Topologies in sysfs: properties, gpu_id, name, bank of each of two nodes. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "topology.h"

static const char * const files[] = {
	"properties", "gpu_id", "name", "mem_banks/0/properties",
};
static char path[64];
static int nodes[2];

static void make_nodes(void)
{
	char name[32];
	int dir = fuzz_dir(path), i;

	HOLDS(!mkdirat(dir, "nodes", 0700));
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "nodes/%d", i);
		HOLDS(!mkdirat(dir, name, 0700));
		nodes[i] = openat(dir, name, O_RDONLY | O_DIRECTORY);
		HOLDS(nodes[i] >= 0);
		HOLDS(!mkdirat(nodes[i], "mem_banks", 0700));
		HOLDS(!mkdirat(nodes[i], "mem_banks/0", 0700));
	}
}

static void check(const struct gpucr_topology *t)
{
	size_t i;

	HOLDS(t->num_gpus <= t->num_nodes && t->num_nodes <= 2);
	for (i = 0; i < t->num_nodes; i++)
		HOLDS(memchr(t->nodes[i].name, 0, sizeof(t->nodes[i].name)));
	for (i = 0; i < t->num_gpus; i++)
		HOLDS(t->gpus[i]->gpu_id);
	gpucr_topology_find_by_gpu_id(t, 1);
	gpucr_topology_find_by_minor(t, 128);
	gpucr_topology_find_by_node(t, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpucr_topology *t;
	const uint8_t *part;
	size_t i, j, len;

	if (!*path)
		make_nodes();
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 4; j++) {
			len = fuzz_part(&data, &size, &part);
			fuzz_put(nodes[i], files[j], part, len);
		}
	}
	if (!gpucr_topology_read(path, &t)) {
		check(t);
		gpucr_topology_free(t);
	}
	return 0;
}
