// SPDX-License-Identifier: GPL-2.0-only
/* Topology trees, whole and broken, as gpucr_topology_read() sees them. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topology.h"

#include "../ktap.h"

static char root[] = "/tmp/gpucr-topology.XXXXXX";
static void make_dir(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	if (mkdir(full, 0755) && errno != EEXIST)
		exit(1);
}

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	f = fopen(full, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		exit(1);
}

static void make_node(int n, const char *gpu_id, const char *props)
{
	char path[64];

	snprintf(path, sizeof(path), "nodes/%d", n);
	make_dir(path);
	snprintf(path, sizeof(path), "nodes/%d/gpu_id", n);
	if (gpu_id)
		put(path, gpu_id);
	snprintf(path, sizeof(path), "nodes/%d/properties", n);
	if (props)
		put(path, props);
}

static void make_tree(void)
{
	char *big = malloc(65536);

	if (!mkdtemp(root) || !big)
		exit(1);
	make_dir("nodes");
	put("generation_id", "7\n");
	make_node(0, "0\n", "cpu_cores_count 8\nsimd_count 0\n");
	make_node(1, "51234\n",
		  "cpu_cores_count 0\nsimd_count 416\nmem_banks_count 2\n"
		  "gfx_target_version 90010\ndrm_render_minor 128\n"
		  "a line that nobody knows\nnovalue\n\nnegative -4\n"
		  "simd_per_cu 99999999999\nunknown_thing 5\n"
		  "hive_id 18446744073709551615\nunique_id 11\nnum_xcc 1");
	put("nodes/1/name", "aldebaran\n");
	make_dir("nodes/1/mem_banks");
	make_dir("nodes/1/mem_banks/0");
	make_dir("nodes/1/mem_banks/1");
	put("nodes/1/mem_banks/0/properties",
	    "heap_type 1\nsize_in_bytes 68702699520\n");
	put("nodes/1/mem_banks/1/properties",
	    "heap_type 0\nsize_in_bytes 4096\n");
	make_node(2, "4660\n", NULL);		/* no properties */
	make_node(10, "77\n", "drm_render_minor 130\nsimd_count 4\n");
	memset(big, 'x', 65535);
	memcpy(big, "drm_render_minor 131\n", 21);
	big[65535] = '\0';
	make_node(11, "78\n", big);
	make_node(12, "no number\n", "simd_count 1\n");
	make_dir("nodes/junk");
	free(big);
}

static void remove_tree(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	if (system(cmd))
		exit(1);
}

static void test_gpu(const struct gpucr_topology *t)
{
	const struct gpucr_node *n = gpucr_topology_find_by_gpu_id(t, 51234);

	ktap_ok(n && n->node == 1 && n->simd_count == 416 &&
	   n->gfx_target_version == 90010 && n->num_xcc == 1,
	   "properties among odd lines, the last one without its end");
	ktap_ok(n && !strcmp(n->name, "aldebaran"), "name");
	ktap_ok(n && n->hive_id == UINT64_MAX && n->unique_id == 11,
	   "64-bit properties");
	ktap_ok(n && !n->simd_per_cu, "a value that does not fit is left out");
	ktap_ok(n && n->vram_size == 68702699520ULL, "VRAM banks alone are summed");
}

static void test_nodes(const struct gpucr_topology *t)
{
	const struct gpucr_node *n;

	ktap_ok(t->generation == 7, "generation");
	ktap_ok(t->num_skipped == 1 && !gpucr_topology_find_by_node(t, 2),
	   "a node without readable properties is skipped and counted");
	ktap_ok(t->num_nodes == 5 && t->nodes[2].node == 10,
	   "nodes by number, not by name");
	ktap_ok(t->num_gpus == 3, "CPU nodes are no GPUs");
	n = gpucr_topology_find_by_minor(t, 130);
	ktap_ok(n && n->gpu_id == 77, "by render minor, with gaps");
	n = gpucr_topology_find_by_minor(t, 131);
	ktap_ok(n && n->gpu_id == 78, "a file without end is cut");
	ktap_ok(!gpucr_topology_find_by_minor(t, 0), "no GPU has minor 0");
}

int main(void)
{
	struct gpucr_topology *t;

	ktap_plan(14);
	make_tree();
	ktap_ok(!gpucr_topology_read(root, &t) && t, "a tree is read");
	if (t) {
		test_gpu(t);
		test_nodes(t);
	}
	gpucr_topology_free(t);
	remove_tree();
	ktap_ok(gpucr_topology_read(root, &t) == -ENOENT && !t,
	   "no tree is ENOENT");
	return ktap_exit();
}
