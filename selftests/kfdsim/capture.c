// SPDX-License-Identifier: GPL-2.0
/*
 * A captured topology, shown again as it was. simctl packs a directory tree
 * into the text that is read here: a line each, and in a line the attribute's
 * own lines with tabs between them.
 *
 *	kfdsim-topology 1
 *	node NUMBER
 *	gpu_id NUMBER
 *	name TEXT
 *	properties TEXT
 *	mem_banks|caches|io_links|p2p_links NUMBER TEXT
 *
 * All that follows a node belongs to it.
 */
#include <linux/kernel_read_file.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "kfdsim_drm.h"

#define FILE_MAX_BYTES	(16 << 20)
#define MAGIC		"kfdsim-topology 1"

static char *text;			/* everything below points into it */
static struct kfdsim_node *nodes;
static unsigned int num_nodes;
static struct kfdsim_leaf *leaves;
static unsigned int num_leaves;
static struct kfdsim_model *models;	/* of each GPU */

static const char * const leaf_dirs[] = {
	[KFDSIM_MEM_BANKS] = "mem_banks",
	[KFDSIM_CACHES] = "caches",
	[KFDSIM_IO_LINKS] = "io_links",
	[KFDSIM_P2P_LINKS] = "p2p_links",
};

const struct kfdsim_node *kfdsim_capture_nodes(unsigned int *n)
{
	*n = num_nodes;
	return nodes;
}

/* Value of a property, 0 where there is none of that name. */
static u64 value_of(const char *props, const char *name)
{
	size_t len = strlen(name);
	u64 value;

	while (props && *props) {
		if (!strncmp(props, name, len) && props[len] == ' ' &&
		    sscanf(props + len, " %llu", &value) == 1)
			return value;
		props = strchr(props, '\n');
		if (props)
			props++;
	}
	return 0;
}

/* Lines again, as they were. */
static char *with_lines(char *packed)
{
	char *p;

	for (p = packed; (p = strchr(p, '\t')); p++)
		*p = '\n';
	return packed;
}

static int read_text(const char *path)
{
	void *buf = NULL;
	ssize_t size = kernel_read_file_from_path(path, 0, &buf, FILE_MAX_BYTES,
						  NULL, READING_POLICY);

	if (size < 0) {
		pr_notice("kfdsim: topology=%s cannot be read (%zd)\n", path, size);
		return size;
	}
	text = kvmalloc(size + 1, GFP_KERNEL);
	if (text) {
		memcpy(text, buf, size);
		text[size] = 0;
	}
	vfree(buf);
	return text ? 0 : -ENOMEM;
}

/* One for each line is more than enough. */
static int make_room(void)
{
	unsigned int lines = 1;
	const char *p;

	for (p = text; *p; p++)
		lines += *p == '\n';
	nodes = kvcalloc(lines, sizeof(*nodes), GFP_KERNEL);
	leaves = kvcalloc(lines, sizeof(*leaves), GFP_KERNEL);
	return nodes && leaves ? 0 : -ENOMEM;
}

static int parse_leaf(struct kfdsim_node *n, const char *word, char *rest)
{
	char *number = strsep(&rest, " ");
	struct kfdsim_leaf *leaf = &leaves[num_leaves];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(leaf_dirs); i++)
		if (!strcmp(word, leaf_dirs[i]))
			break;
	if (i == ARRAY_SIZE(leaf_dirs) || !rest || kstrtou32(number, 10, &leaf->id))
		return -EINVAL;
	leaf->dir = i;
	leaf->text = with_lines(rest);
	if (!n->leaves)
		n->leaves = leaf;
	n->num_leaves++;
	num_leaves++;
	return 0;
}

static int parse_line(char *line)
{
	char *word = strsep(&line, " ");
	struct kfdsim_node *n = num_nodes ? &nodes[num_nodes - 1] : NULL;

	if (!line)
		return -EINVAL;
	if (!strcmp(word, "node")) {
		n = &nodes[num_nodes++];
		n->gpu = -1;
		n->name = "";
		return kstrtou32(line, 10, &n->id);
	}
	if (!n)
		return -EINVAL;
	if (!strcmp(word, "gpu_id"))
		return kstrtou32(line, 10, &n->gpu_id);
	if (!strcmp(word, "name")) {
		n->name = line;
		return 0;
	}
	if (!strcmp(word, "properties")) {
		n->props = with_lines(line);
		return 0;
	}
	return parse_leaf(n, word, line);
}

static int parse(void)
{
	unsigned int number = 1;
	char *p = text, *line = strsep(&p, "\n");

	if (strcmp(line, MAGIC)) {
		pr_notice("kfdsim: the topology is no file that simctl packed\n");
		return -EINVAL;
	}
	while ((line = strsep(&p, "\n"))) {
		number++;
		if (*line && parse_line(line)) {
			pr_notice("kfdsim: line %u of the topology makes no sense\n",
				  number);
			return -EINVAL;
		}
	}
	return 0;
}

/* A node without properties is none; one with SIMDs is a GPU. */
static int number_gpus(void)
{
	unsigned int i;
	int gpus = 0;

	for (i = 0; i < num_nodes; i++) {
		if (!nodes[i].props) {
			pr_notice("kfdsim: node %u of the topology has no properties\n",
				  nodes[i].id);
			return -EINVAL;
		}
		if (value_of(nodes[i].props, "simd_count"))
			nodes[i].gpu = gpus++;
	}
	if (gpus > KFDSIM_MAX_GPUS) {
		pr_notice("kfdsim: %d GPUs in the topology, at most %u fit\n",
			  gpus, KFDSIM_MAX_GPUS);
		return -EINVAL;
	}
	return gpus;
}

/**
 * kfdsim_capture_load() - read a captured topology
 * @path: of the packed file
 *
 * Return: how many GPUs it has, or a negative errno, said in the kernel log.
 * Undone by kfdsim_capture_drop(), also after a failure.
 */
int kfdsim_capture_load(const char *path)
{
	int ret = read_text(path);

	if (!ret)
		ret = make_room();
	if (!ret)
		ret = parse();
	if (!ret)
		ret = number_gpus();
	return ret;
}

void kfdsim_capture_drop(void)
{
	kvfree(models);
	kvfree(leaves);
	kvfree(nodes);
	kvfree(text);
	models = NULL;
	leaves = NULL;
	nodes = NULL;
	text = NULL;
	num_nodes = 0;
	num_leaves = 0;
}

/* The figures that the tree has, over those of the model that is nearest. */
static void fill_model(struct kfdsim_model *m, const struct kfdsim_node *n)
{
	u32 version = value_of(n->props, "gfx_target_version");

	*m = *kfdsim_model_near(version ?: 90000);
	if (version)
		m->gfx_target_version = version;
	m->device_id = value_of(n->props, "device_id");
	m->simd_count = value_of(n->props, "simd_count");
	m->simd_per_cu = max_t(u32, 1, value_of(n->props, "simd_per_cu"));
	m->max_waves_per_simd = value_of(n->props, "max_waves_per_simd");
	m->lds_size_in_kb = value_of(n->props, "lds_size_in_kb");
	m->num_gws = value_of(n->props, "num_gws");
	m->wave_front_size = value_of(n->props, "wave_front_size");
	m->array_count = value_of(n->props, "array_count");
	m->simd_arrays_per_engine =
		max_t(u32, 1, value_of(n->props, "simd_arrays_per_engine"));
	m->cu_per_simd_array = value_of(n->props, "cu_per_simd_array");
	m->max_slots_scratch_cu = value_of(n->props, "max_slots_scratch_cu");
	m->num_xcc = max_t(u32, 1, value_of(n->props, "num_xcc"));
	m->max_engine_clk_fcompute =
		value_of(n->props, "max_engine_clk_fcompute");
	m->fw_version = value_of(n->props, "fw_version");
	m->sdma_fw_version = value_of(n->props, "sdma_fw_version");
	/* 0 on the oldest kernels, which do not tell it */
	m->num_sdma_engines = value_of(n->props, "num_sdma_engines") ?:
			      m->num_sdma_engines;
	m->num_sdma_xgmi_engines = value_of(n->props, "num_sdma_xgmi_engines");
	m->num_sdma_queues_per_engine =
		value_of(n->props, "num_sdma_queues_per_engine") ?:
		m->num_sdma_queues_per_engine;
	m->num_cp_queues = value_of(n->props, "num_cp_queues") ?:
			   m->num_cp_queues;
}

static u64 vram_of(const struct kfdsim_node *n)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < n->num_leaves; i++)
		if (n->leaves[i].dir == KFDSIM_MEM_BANKS &&
		    value_of(n->leaves[i].text, "heap_type"))
			sum += value_of(n->leaves[i].text, "size_in_bytes");
	return sum;
}

/* Minors came in this order, with those of others between them. */
static void order_by_minor(struct kfdsim_spec *specs, unsigned int n,
			   const u32 *minors)
{
	unsigned int i, j;

	for (i = 0; i < n; i++) {
		u32 before = 0;

		for (j = 0; j < n; j++) {
			if (minors[j] > minors[i] ||
			    (minors[j] == minors[i] && j >= i))
				continue;
			specs[i].order++;
			before = max(before, minors[j]);
		}
		if (before && minors[i] > before)
			specs[i].gap = min(minors[i] - before - 1, 64U);
	}
}

/**
 * kfdsim_capture_specs() - what the loaded topology says of its GPUs
 * @specs: all zero
 * @n: what kfdsim_capture_load() returned
 */
int kfdsim_capture_specs(struct kfdsim_spec *specs, unsigned int n)
{
	u32 minors[KFDSIM_MAX_GPUS];
	unsigned int i;

	models = kvcalloc(max(n, 1U), sizeof(*models), GFP_KERNEL);
	if (!models)
		return -ENOMEM;
	for (i = 0; i < num_nodes; i++) {
		const struct kfdsim_node *node = &nodes[i];
		struct kfdsim_spec *s;
		u32 location;

		if (node->gpu < 0)
			continue;
		s = &specs[node->gpu];
		fill_model(&models[node->gpu], node);
		location = value_of(node->props, "location_id");
		s->model = &models[node->gpu];
		s->gpu_id = node->gpu_id;
		s->unique_id = value_of(node->props, "unique_id");
		s->hive_id = value_of(node->props, "hive_id");
		s->vram_size = vram_of(node);
		s->board = node->gpu;
		s->domain = KFDSIM_PCI_DOMAIN + value_of(node->props, "domain");
		s->bus = location >> 8;
		s->devfn = location;
		minors[node->gpu] = value_of(node->props, "drm_render_minor");
	}
	order_by_minor(specs, n, minors);
	return 0;
}
