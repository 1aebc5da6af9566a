// SPDX-License-Identifier: GPL-2.0
/*
 * Topology in sysfs: a node per NUMA node, then one per GPU. All is fixed
 * from init on, so every file is a text made once.
 */
#include <linux/cpumask.h>
#include <linux/device_cgroup.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/topology.h>
#include "kfdsim_kfd.h"

#define TEXT_MAX	2048
#define LINK_PCIE	2
#define LINK_XGMI	11
/* all are caches of a GPU's processors */
#define CACHE_DATA		9
#define CACHE_INSTRUCTION	10
#define GPU_SIMD_BASE	0x80001000U

/* A file, and the directory that it is in if that is its own. */
struct topo_file {
	struct list_head node;
	struct kobj_attribute attr;
	struct kfdsim_gpu *gpu;
	char *text;
};

static LIST_HEAD(topo_files);
static LIST_HEAD(topo_dirs);

struct topo_dir {
	struct list_head node;
	struct kobject *kobj;
};

static unsigned int topo_nodes;
static unsigned int topo_generation = 2;
static unsigned int topo_cpu_nodes;	/* of a machine of ours */

unsigned int kfdsim_topology_nodes(void)
{
	return topo_nodes;
}

static ssize_t topo_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	struct topo_file *f = container_of(attr, struct topo_file, attr);

	if (f->gpu && !kfdsim_gpu_visible(f->gpu))
		return -EPERM;
	return sysfs_emit(buf, "%s\n", f->text);
}

static int topo_add_file(struct kobject *dir, const char *name,
			 struct kfdsim_gpu *gpu, const char *text)
{
	struct topo_file *f = kzalloc(sizeof(*f), GFP_KERNEL);
	int ret;

	if (!f)
		return -ENOMEM;
	f->text = kstrdup(text, GFP_KERNEL);
	if (!f->text) {
		kfree(f);
		return -ENOMEM;
	}
	strim(f->text);		/* the last newline is added when shown */
	f->gpu = gpu;
	sysfs_attr_init(&f->attr.attr);
	f->attr.attr.name = name;
	f->attr.attr.mode = 0444;
	f->attr.show = topo_show;
	ret = sysfs_create_file(dir, &f->attr.attr);
	if (ret) {
		kfree(f->text);
		kfree(f);
		return ret;
	}
	list_add(&f->node, &topo_files);
	return 0;
}

static struct kobject *topo_add_dir(struct kobject *parent, const char *name)
{
	struct topo_dir *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (!d)
		return NULL;
	d->kobj = kobject_create_and_add(name, parent);
	if (!d->kobj) {
		kfree(d);
		return NULL;
	}
	list_add(&d->node, &topo_dirs);
	return d->kobj;
}

/* dir/<n>/properties */
static int topo_add_leaf(struct kobject *dir, unsigned int n,
			 struct kfdsim_gpu *gpu, const char *text)
{
	struct kobject *kobj;
	char name[12];

	snprintf(name, sizeof(name), "%u", n);
	kobj = topo_add_dir(dir, name);
	return kobj ? topo_add_file(kobj, "properties", gpu, text) : -ENOMEM;
}

/* What a node's directories hold, while it is being made. */
struct topo_node {
	struct kobject *kobj;
	struct kobject *mem, *caches, *io, *p2p;
	struct kfdsim_gpu *gpu;
	unsigned int id;
	unsigned int n_mem, n_caches, n_io, n_p2p;
	char text[TEXT_MAX];
	struct seq_buf s;
};

static void prop(struct topo_node *t, const char *name, u64 value)
{
	seq_buf_printf(&t->s, "%s %llu\n", name, value);
}

static int add_mem(struct topo_node *t, u32 heap, u64 size, u32 width, u32 clk)
{
	seq_buf_init(&t->s, t->text, sizeof(t->text));
	prop(t, "heap_type", heap);
	prop(t, "size_in_bytes", size);
	prop(t, "flags", 0);
	prop(t, "width", width);
	prop(t, "mem_clk_max", clk);
	return topo_add_leaf(t->mem, t->n_mem++, t->gpu, t->text);
}

static int add_cache(struct topo_node *t, u32 level, u32 size_kb, u32 type,
		     u32 first)
{
	unsigned int i;

	seq_buf_init(&t->s, t->text, sizeof(t->text));
	prop(t, "processor_id_low", GPU_SIMD_BASE + first);
	prop(t, "level", level);
	prop(t, "size", size_kb);
	prop(t, "cache_line_size", level == 1 ? 64 : 128);
	prop(t, "cache_lines_per_tag", 1);
	prop(t, "association", 0);
	prop(t, "latency", 0);
	prop(t, "type", type);
	seq_buf_printf(&t->s, "sibling_map 1");
	for (i = 1; i < 32; i++)
		seq_buf_printf(&t->s, ",0");
	seq_buf_printf(&t->s, "\n");
	return topo_add_leaf(t->caches, t->n_caches++, t->gpu, t->text);
}

/* count of them, each for as many CUs as the other ones of its kind */
static int add_caches(struct topo_node *t, u32 count, u32 level, u32 size_kb,
		      u32 type)
{
	const struct kfdsim_model *m = t->gpu->model;
	u32 i, cus = m->simd_count / m->simd_per_cu;
	int ret = 0;

	for (i = 0; !ret && size_kb && i < count; i++)
		ret = add_cache(t, level, size_kb, type, i * cus / count);
	return ret;
}

static int add_gpu_caches(struct topo_node *t)
{
	const struct kfdsim_model *m = t->gpu->model;
	int ret = add_caches(t, m->simd_count / m->simd_per_cu, 1, m->l1_kb,
			     CACHE_DATA);

	if (!ret)
		ret = add_caches(t, m->shared_caches, 1, m->scalar_kb, CACHE_DATA);
	if (!ret)
		ret = add_caches(t, m->shared_caches, 1, m->instruction_kb,
				 CACHE_INSTRUCTION);
	if (!ret)
		ret = add_caches(t, m->array_count, 1, m->array_kb, CACHE_DATA);
	if (!ret)
		ret = add_caches(t, 1, 2, m->l2_kb, CACHE_DATA);
	if (!ret)
		ret = add_caches(t, 1, 3, m->l3_kb, CACHE_DATA);
	return ret;
}

/* What there is at one end of a link. */
struct link {
	unsigned int to;
	u32 type;
	u32 weight;
	u32 min_bw;
	u32 max_bw;
	u32 engines;
	u32 flags;
};

static int add_link(struct topo_node *t, bool p2p, const struct link *l)
{
	seq_buf_init(&t->s, t->text, sizeof(t->text));
	prop(t, "type", l->type);
	prop(t, "version_major", 0);
	prop(t, "version_minor", 0);
	prop(t, "node_from", t->id);
	prop(t, "node_to", l->to);
	prop(t, "weight", l->weight);
	prop(t, "min_latency", 0);
	prop(t, "max_latency", 0);
	prop(t, "min_bandwidth", l->min_bw);
	prop(t, "max_bandwidth", l->max_bw);
	prop(t, "recommended_transfer_size", 0);
	if (kfdsim_personality >= KFDSIM_6_12)
		prop(t, "recommended_sdma_engine_id_mask", l->engines);
	prop(t, "flags", l->flags);
	if (p2p)
		return topo_add_leaf(t->p2p, t->n_p2p++, t->gpu, t->text);
	return topo_add_leaf(t->io, t->n_io++, t->gpu, t->text);
}

static bool same_hive(const struct kfdsim_gpu *a, const struct kfdsim_gpu *b)
{
	return a->hive_id && a->hive_id == b->hive_id;
}

static struct link pcie_link(const struct kfdsim_gpu *gpu, unsigned int to,
			     u32 flags)
{
	return (struct link) {
		.to = to, .type = LINK_PCIE, .weight = 20, .min_bw = 312,
		.max_bw = gpu->model->pcie_mbps, .engines = 3, .flags = flags,
	};
}

static struct link routed_link(unsigned int to, u32 weight, u32 flags)
{
	return (struct link) {
		.to = to, .type = LINK_PCIE, .weight = weight, .flags = flags,
	};
}

/*
 * Within a hive. Partitions of one board are nearer to each other; those of
 * different boards have no figure.
 */
static struct link xgmi_link(const struct kfdsim_gpu *a,
			     const struct kfdsim_gpu *b, unsigned int to)
{
	const struct kfdsim_model *m = a->model;
	bool board = a->unique_id == b->unique_id;
	struct link l = {
		.to = to, .type = LINK_XGMI, .weight = 15,
		.min_bw = m->xgmi_mbps, .max_bw = m->xgmi_mbps, .flags = 1,
		.engines = GENMASK(m->num_sdma_engines - 1, 0),
	};

	if (m->num_sdma_xgmi_engines) {
		l.engines = GENMASK(m->num_sdma_xgmi_engines - 1, 0) <<
			    m->num_sdma_engines;
		return l;
	}
	l.weight = board ? 13 : 41;
	if (!board) {
		l.min_bw = 0;
		l.max_bw = 0;
	}
	return l;
}

/* Number of a GPU's node: those that were taken away have none. */
static unsigned int node_of(unsigned int index)
{
	unsigned int i, n = topo_cpu_nodes;

	for (i = 0; i < index; i++)
		n += !!kfdsim_gpus[i];
	return n;
}

/* GPUs hang on CPU node 0; others are reached over it, or over xGMI. */
static int add_gpu_links(struct topo_node *t)
{
	struct link l = pcie_link(t->gpu, 0, 1);
	unsigned int i;
	int ret = add_link(t, false, &l);

	for (i = 1; !ret && i < topo_cpu_nodes; i++) {
		l = routed_link(i, 52, 1);
		ret = add_link(t, true, &l);
	}
	for (i = 0; !ret && i < kfdsim_num_gpus; i++) {
		struct kfdsim_gpu *other = kfdsim_gpus[i];
		bool hive;

		if (!other || other == t->gpu)
			continue;
		hive = same_hive(other, t->gpu);
		l = hive ? xgmi_link(t->gpu, other, node_of(i)) :
			   routed_link(node_of(i), 40, 3);
		ret = add_link(t, !hive, &l);
	}
	return ret;
}

static int add_cpu_links(struct topo_node *t)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < kfdsim_num_gpus; i++) {
		struct link l;

		if (!kfdsim_gpus[i])
			continue;
		l = t->id ? routed_link(node_of(i), 52, 3) :
			    pcie_link(kfdsim_gpus[i], node_of(i), 3);
		ret = add_link(t, t->id, &l);
	}
	return ret;
}

static void props_common(struct topo_node *t, const struct kfdsim_model *m,
			 unsigned int cpus)
{
	prop(t, "cpu_cores_count", cpus);
	prop(t, "simd_count", m ? m->simd_count : 0);
	prop(t, "mem_banks_count", t->n_mem);
	prop(t, "caches_count", t->n_caches);
	prop(t, "io_links_count", t->n_io);
	prop(t, "p2p_links_count", t->n_p2p);
	prop(t, "cpu_core_id_base", 0);
	prop(t, "simd_id_base", m ? GPU_SIMD_BASE : 0);
	prop(t, "max_waves_per_simd", m ? m->max_waves_per_simd : 0);
	prop(t, "lds_size_in_kb", m ? m->lds_size_in_kb : 0);
	prop(t, "gds_size_in_kb", 0);
	prop(t, "num_gws", m ? m->num_gws : 0);
	prop(t, "wave_front_size", m ? m->wave_front_size : 0);
	prop(t, "array_count", m ? m->array_count : 0);
	prop(t, "simd_arrays_per_engine", m ? m->simd_arrays_per_engine : 0);
	prop(t, "cu_per_simd_array", m ? m->cu_per_simd_array : 0);
	prop(t, "simd_per_cu", m ? m->simd_per_cu : 0);
	prop(t, "max_slots_scratch_cu", m ? m->max_slots_scratch_cu : 0);
	prop(t, "gfx_target_version", m ? m->gfx_target_version : 0);
	prop(t, "vendor_id", m ? 0x1002 : 0);
	prop(t, "device_id", m ? m->device_id : 0);
	prop(t, "location_id", m ? kfdsim_gpu_location(t->gpu) : 0);
	prop(t, "domain", m ? kfdsim_gpu_domain(t->gpu) : 0);
	prop(t, "drm_render_minor", m ? kfdsim_gpu_render_minor(t->gpu) : 0);
	prop(t, "hive_id", m ? t->gpu->hive_id : 0);
	prop(t, "num_sdma_engines", m ? m->num_sdma_engines : 0);
	prop(t, "num_sdma_xgmi_engines", m ? m->num_sdma_xgmi_engines : 0);
	prop(t, "num_sdma_queues_per_engine",
	     m ? m->num_sdma_queues_per_engine : 0);
	prop(t, "num_cp_queues", m ? m->num_cp_queues : 0);
	if (kfdsim_personality >= KFDSIM_6_12) {
		prop(t, "cwsr_size", m ? kfdsim_cwsr_size(m) : 0);
		prop(t, "ctl_stack_size", m ? kfdsim_ctl_stack_size(m) : 0);
	}
}

static void props_gpu(struct topo_node *t, const struct kfdsim_model *m)
{
	prop(t, "max_engine_clk_fcompute", m->max_engine_clk_fcompute);
	prop(t, "local_mem_size", 0);
	prop(t, "fw_version", m->fw_version);
	prop(t, "capability", m->capability |
			      (kfdsim_svm_on() ? KFDSIM_CAP_SVM : 0));
	if (kfdsim_personality >= KFDSIM_7_2)
		prop(t, "capability2", 0);
	if (kfdsim_personality >= KFDSIM_6_12)
		prop(t, "debug_prop", m->debug_prop);
	prop(t, "sdma_fw_version", m->sdma_fw_version);
	prop(t, "unique_id", t->gpu->unique_id);
	if (kfdsim_personality >= KFDSIM_6_12)
		prop(t, "num_xcc", m->num_xcc);
}

static int add_node_files(struct topo_node *t, unsigned int cpus)
{
	const struct kfdsim_model *m = t->gpu ? t->gpu->model : NULL;
	const char *name = "";
	int ret;

	if (m)
		name = kfdsim_personality == KFDSIM_6_1 ? m->asic_name :
							  "ip discovery";
	snprintf(t->text, sizeof(t->text), "%u\n", t->gpu ? t->gpu->gpu_id : 0);
	ret = topo_add_file(t->kobj, "gpu_id", t->gpu, t->text);
	if (ret)
		return ret;
	snprintf(t->text, sizeof(t->text), "%s\n", name);
	ret = topo_add_file(t->kobj, "name", t->gpu, t->text);
	if (ret)
		return ret;
	seq_buf_init(&t->s, t->text, sizeof(t->text));
	props_common(t, m, cpus);
	if (m)
		props_gpu(t, m);
	prop(t, "max_engine_clk_ccompute", 2450);
	return topo_add_file(t->kobj, "properties", t->gpu, t->text);
}

static int add_node_dirs(struct topo_node *t, struct kobject *nodes)
{
	char name[12];

	snprintf(name, sizeof(name), "%u", t->id);
	t->kobj = topo_add_dir(nodes, name);
	if (!t->kobj)
		return -ENOMEM;
	t->mem = topo_add_dir(t->kobj, "mem_banks");
	t->caches = topo_add_dir(t->kobj, "caches");
	t->io = topo_add_dir(t->kobj, "io_links");
	t->p2p = topo_add_dir(t->kobj, "p2p_links");
	if (!t->mem || !t->caches || !t->io || !t->p2p ||
	    !topo_add_dir(t->kobj, "perf"))
		return -ENOMEM;
	return 0;
}

static int add_node(struct kobject *nodes, unsigned int id, int nid,
		    struct kfdsim_gpu *gpu)
{
	struct topo_node *t = kzalloc(sizeof(*t), GFP_KERNEL);
	unsigned int cpus = 0;
	int ret;

	if (!t)
		return -ENOMEM;
	t->id = id;
	t->gpu = gpu;
	ret = add_node_dirs(t, nodes);
	if (ret)
		goto out_free;
	if (gpu) {
		ret = add_mem(t, 1, gpu->vram_size, gpu->model->mem_width,
			      gpu->model->mem_clk);
		if (!ret)
			ret = add_gpu_caches(t);
		if (!ret)
			ret = add_gpu_links(t);
	} else {
		cpus = cpumask_weight(cpumask_of_node(nid));
		ret = add_mem(t, 0, (u64)node_present_pages(nid) << PAGE_SHIFT,
			      64, 0);
		if (!ret)
			ret = add_cpu_links(t);
	}
	if (!ret)
		ret = add_node_files(t, cpus);
out_free:
	kfree(t);
	return ret;
}

/* The lines that tell where a GPU is are true here, all others as they were. */
static void captured_props(struct seq_buf *s, const char *props,
			   const struct kfdsim_gpu *gpu)
{
	const char *end;

	for (; *props; props = *end ? end + 1 : end) {
		end = strchrnul(props, '\n');
		if (gpu && strstarts(props, "drm_render_minor "))
			seq_buf_printf(s, "drm_render_minor %d\n",
				       kfdsim_gpu_render_minor(gpu));
		else if (gpu && strstarts(props, "location_id "))
			seq_buf_printf(s, "location_id %u\n",
				       kfdsim_gpu_location(gpu));
		else if (gpu && strstarts(props, "domain "))
			seq_buf_printf(s, "domain %u\n",
				       kfdsim_gpu_domain(gpu));
		else
			seq_buf_printf(s, "%.*s\n", (int)(end - props), props);
	}
}

static int add_captured_files(struct topo_node *t, const struct kfdsim_node *n)
{
	struct kobject *dirs[KFDSIM_LEAF_DIRS] = {
		[KFDSIM_MEM_BANKS] = t->mem,
		[KFDSIM_CACHES] = t->caches,
		[KFDSIM_IO_LINKS] = t->io,
		[KFDSIM_P2P_LINKS] = t->p2p,
	};
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < n->num_leaves; i++)
		ret = topo_add_leaf(dirs[n->leaves[i].dir], n->leaves[i].id, t->gpu,
				    n->leaves[i].text);
	if (ret)
		return ret;
	snprintf(t->text, sizeof(t->text), "%u", t->gpu ? t->gpu->gpu_id : 0);
	ret = topo_add_file(t->kobj, "gpu_id", t->gpu, t->text);
	if (!ret)
		ret = topo_add_file(t->kobj, "name", t->gpu, n->name);
	if (ret)
		return ret;
	seq_buf_init(&t->s, t->text, sizeof(t->text));
	captured_props(&t->s, n->props, t->gpu);
	if (seq_buf_has_overflowed(&t->s))
		return -E2BIG;
	return topo_add_file(t->kobj, "properties", t->gpu, t->text);
}

static int add_captured(struct kobject *nodes, const struct kfdsim_node *n)
{
	struct topo_node *t = kzalloc(sizeof(*t), GFP_KERNEL);
	int ret;

	if (!t)
		return -ENOMEM;
	t->id = n->id;
	t->gpu = n->gpu < 0 ? NULL : kfdsim_gpus[n->gpu];
	ret = add_node_dirs(t, nodes);
	if (!ret)
		ret = add_captured_files(t, n);
	kfree(t);
	return ret;
}

static int add_nodes(struct kobject *nodes)
{
	const struct kfdsim_node *captured;
	unsigned int i, n;
	int nid, ret = 0;

	captured = kfdsim_capture_nodes(&n);
	for (i = 0; !ret && i < n; i++)
		ret = add_captured(nodes, &captured[i]);
	topo_nodes = n;
	if (ret || n)
		return ret;
	topo_cpu_nodes = num_online_nodes();
	for_each_online_node(nid) {
		ret = add_node(nodes, topo_nodes++, nid, NULL);
		if (ret)
			return ret;
	}
	for (i = 0; !ret && i < kfdsim_num_gpus; i++)
		if (kfdsim_gpus[i])
			ret = add_node(nodes, topo_nodes++, 0, kfdsim_gpus[i]);
	return ret;
}

/* Children come before their parents in the lists. */
static void drop_all(void)
{
	struct topo_dir *d, *next_d;
	struct topo_file *f, *next_f;

	list_for_each_entry_safe(d, next_d, &topo_dirs, node) {
		list_del(&d->node);
		kobject_del(d->kobj);
		kobject_put(d->kobj);
		kfree(d);
	}
	list_for_each_entry_safe(f, next_f, &topo_files, node) {
		list_del(&f->node);
		kfree(f->text);
		kfree(f);
	}
}

/** kfdsim_topology_init() - make the tree below the kfd device */
int kfdsim_topology_init(struct kobject *parent)
{
	struct kobject *top = topo_add_dir(parent, "topology");
	struct kobject *nodes = top ? topo_add_dir(top, "nodes") : NULL;
	char generation[12];
	int ret = nodes ? 0 : -ENOMEM;

	snprintf(generation, sizeof(generation), "%u", topo_generation);
	if (!ret)
		ret = topo_add_file(top, "generation_id", NULL, generation);
	if (!ret)
		ret = topo_add_file(top, "system_properties", NULL,
				    "platform_oem 35498446626881\nplatform_id 2314885668560749121\nplatform_rev 1\n");
	if (!ret)
		ret = add_nodes(nodes);
	if (ret)
		drop_all();
	return ret;
}

void kfdsim_topology_exit(void)
{
	drop_all();
}

/**
 * kfdsim_topology_rebuild() - make it again, since the GPUs are others
 * @parent: as for kfdsim_topology_init()
 *
 * Readers may find it half made, and see by generation_id that it changed.
 */
int kfdsim_topology_rebuild(struct kobject *parent)
{
	drop_all();
	topo_generation++;
	topo_nodes = 0;
	return kfdsim_topology_init(parent);
}
