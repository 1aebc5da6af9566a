// SPDX-License-Identifier: GPL-2.0
/*
 * The machine: which GPUs it has, where they are plugged in and how they are
 * joined. One of our own list, or a captured one (capture.c).
 */
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "kfdsim_drm.h"

static int gpus = -1;
module_param(gpus, int, 0444);
MODULE_PARM_DESC(gpus, "how many GPUs, 0 to 64 [as many as the topology has]");

static char *topology = "mi210";
module_param(topology, charp, 0444);
MODULE_PARM_DESC(topology, "a machine by name, or the path of a captured one that simctl packed");

static unsigned int vram_mb;
module_param(vram_mb, uint, 0444);
MODULE_PARM_DESC(vram_mb, "VRAM of each in MiB; 0: the model's");

static unsigned int machine;
module_param(machine, uint, 0444);
MODULE_PARM_DESC(machine, "another number: other gpu_id and unique_id, as on another machine");

static bool minor_gaps;
module_param(minor_gaps, bool, 0444);
MODULE_PARM_DESC(minor_gaps, "leave a DRM minor out after every other GPU");

#define FIRST_BUS	1

/**
 * struct kind - a machine of our own
 * @name: value of the parameter
 * @model: of all its GPUs
 * @gpus: how many there are, partitions counted one by one
 * @partitions: of each board; they share bus, unique id and hive
 * @hive: GPUs that xGMI joins, 0 for none
 * @board_gap: DRM minors left out between two boards
 */
struct kind {
	const char *name;
	const char *model;
	unsigned int gpus;
	unsigned int partitions;
	unsigned int hive;
	unsigned int board_gap;
};

static const struct kind kinds[] = {
	{ "mi210", "mi210", 1, 1, 0, 0 },
	{ "mi210-8", "mi210", 8, 1, 4, 0 },
	{ "mi300x-spx", "mi300x", 8, 1, 8, 0 },
	{ "mi300x-cpx", "mi300x-xcp", 64, 8, 64, 0 },
	{ "mi308x-cpx", "mi308x-xcp", 32, 4, 32, 4 },
	{ "vega10", "vega10", 1, 1, 0, 0 },
	{ "navi31", "navi31", 1, 1, 0, 0 },
};

static struct kfdsim_spec *specs;
static unsigned int num_specs;

unsigned int kfdsim_machine_gpus(void)
{
	return num_specs;
}

const struct kfdsim_spec *kfdsim_machine_spec(unsigned int index)
{
	return &specs[index];
}

static bool gpu_id_taken(u32 id)
{
	unsigned int i;

	for (i = 0; i < num_specs; i++)
		if (specs[i].gpu_id == id)
			return true;
	return false;
}

/* 16 bits, not 0, different for each GPU. */
static u32 make_gpu_id(u64 seed)
{
	u32 id = hash_64(seed, 16);

	while (!id || gpu_id_taken(id))
		id = (id + 1) & 0xffff;
	return id;
}

static u64 make_id(unsigned int number)
{
	return ((u64)machine << 8 | number) * GOLDEN_RATIO_64;
}

/* What a machine of ours, or a capture, left open. */
static void fill_rest(unsigned int i)
{
	struct kfdsim_spec *s = &specs[i];

	if (!s->unique_id)
		s->unique_id = make_id(s->board + 1);
	if (!s->gpu_id)
		s->gpu_id = make_gpu_id(s->unique_id + s->partition);
	if (!s->vram_size)
		s->vram_size = vram_mb ? (u64)vram_mb << 20 : s->model->vram_size;
	if (minor_gaps && i && !(i % 2))
		s->gap++;
}

static int make_kind(const struct kind *k)
{
	const struct kfdsim_model *model = kfdsim_model_find(k->model);
	unsigned int i, n = gpus < 0 ? k->gpus : gpus;

	specs = kcalloc(max(n, 1U), sizeof(*specs), GFP_KERNEL);
	if (!specs)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct kfdsim_spec *s = &specs[i];

		s->model = model;
		s->order = i;
		s->board = i / k->partitions;
		s->partition = i % k->partitions;
		s->domain = KFDSIM_PCI_DOMAIN;
		s->bus = FIRST_BUS + s->board;
		s->devfn = s->partition;
		if (k->hive)
			s->hive_id = make_id(KFDSIM_MAX_GPUS + 1 + i / k->hive);
		if (i && !s->partition)
			s->gap = k->board_gap;
	}
	num_specs = n;
	return 0;
}

static int make_captured(void)
{
	int n = kfdsim_capture_load(topology);

	if (n < 0)
		return n;
	if (gpus >= 0 && gpus != n) {
		pr_notice("kfdsim: gpus=%d, but the captured topology has %d\n",
			  gpus, n);
		return -EINVAL;
	}
	specs = kcalloc(max(n, 1), sizeof(*specs), GFP_KERNEL);
	if (!specs)
		return -ENOMEM;
	num_specs = n;
	return kfdsim_capture_specs(specs, n);
}

static int make(void)
{
	unsigned int i;

	if (gpus > KFDSIM_MAX_GPUS) {
		pr_notice("kfdsim: gpus=%d is not within 0 and %u\n", gpus,
			  KFDSIM_MAX_GPUS);
		return -EINVAL;
	}
	if (topology[0] == '/')
		return make_captured();
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, topology))
			return make_kind(&kinds[i]);
	pr_notice("kfdsim: topology=%s is not known\n", topology);
	return -EINVAL;
}

/** kfdsim_machine_init() - decide on the GPUs; none is made yet */
int kfdsim_machine_init(void)
{
	unsigned int i;
	int ret = make();

	if (ret) {
		kfdsim_machine_exit();
		return ret;
	}
	for (i = 0; i < num_specs; i++)
		fill_rest(i);
	return 0;
}

void kfdsim_machine_exit(void)
{
	kfree(specs);
	specs = NULL;
	num_specs = 0;
	kfdsim_capture_drop();
}
