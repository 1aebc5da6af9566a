// SPDX-License-Identifier: GPL-2.0-only
/* Images for upstream's plugin. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "imgfile.h"
#include "log.h"
#include "pbdecode.h"
#include "upstream.h"
#include "upstream.pb-c.h"

/* What CPUs and GPUs of the topology have under one name. */
#define SAME_NODE(X) \
	X(node) X(gpu_id) X(cpu_cores_count) X(simd_count) X(mem_banks_count) \
	X(caches_count) X(io_links_count) X(max_waves_per_simd) \
	X(lds_size_in_kb) X(gds_size_in_kb) X(num_gws) X(wave_front_size) \
	X(array_count) X(simd_arrays_per_engine) X(cu_per_simd_array) \
	X(simd_per_cu) X(max_slots_scratch_cu) X(vendor_id) X(device_id) \
	X(domain) X(drm_render_minor) X(hive_id) X(num_sdma_engines) \
	X(num_sdma_xgmi_engines) X(num_sdma_queues_per_engine) \
	X(num_cp_queues) X(fw_version) X(capability) X(sdma_fw_version) \
	X(vram_public) X(vram_size)

struct node_msg {
	Gpucr__Up__Node m;
	Gpucr__Up__Link *links;
	Gpucr__Up__Link **p;
};

struct process_msg {
	Gpucr__Up__Process m;
	struct node_msg *nodes;
	Gpucr__Up__Bo *bos;
	size_t num_nodes;
};

/* Of the process's GPUs and of all CPUs upstream wants to know. */
static bool is_told(const struct gpucr_img_kfd *img,
		    const struct gpucr_node *n)
{
	size_t i;

	for (i = 0; n->gpu_id && i < img->num_devices; i++) {
		if (img->devices[i].local_gpu_id == n->gpu_id)
			return true;
	}
	return !n->gpu_id;
}

static int links_to(struct node_msg *to, const struct gpucr_img_kfd *img,
		    const struct gpucr_topology *topo,
		    const struct gpucr_node *from)
{
	size_t i;

	to->links = calloc(from->num_links + 1, sizeof(*to->links));
	to->p = calloc(from->num_links + 1, sizeof(*to->p));
	if (!to->links || !to->p)
		return -ENOMEM;
	for (i = 0; i < from->num_links; i++) {
		const struct gpucr_node *other;
		Gpucr__Up__Link *l = &to->links[to->m.n_links];

		other = gpucr_topology_find_by_node(topo, from->links[i].to);
		if (from->links[i].p2p || !other || !is_told(img, other))
			continue;
		gpucr__up__link__init(l);
		l->has_type = 1;
		l->type = from->links[i].type;
		l->has_to = 1;
		l->to = from->links[i].to;
		to->p[to->m.n_links++] = l;
	}
	to->m.links = to->p;
	return 0;
}

/* In images a GPU has the id by which the process knows it. */
static uint32_t user_id(const struct gpucr_img_kfd *img, uint32_t gpu_id)
{
	size_t i;

	for (i = 0; i < img->num_devices; i++) {
		if (img->devices[i].local_gpu_id == gpu_id)
			return img->devices[i].user_gpu_id;
	}
	return gpu_id;
}

static int node_to(struct node_msg *to, const struct gpucr_img_kfd *img,
		   const struct gpucr_topology *topo,
		   const struct gpucr_node *from)
{
	gpucr__up__node__init(&to->m);
#define SET(f) to->m.has_##f = 1; to->m.f = from->f;
	SAME_NODE(SET)
#undef SET
	to->m.gpu_id = user_id(img, from->gpu_id);
	return links_to(to, img, topo, from);
}

static int nodes_to(struct process_msg *p, const struct gpucr_img_kfd *img,
		    const struct gpucr_topology *topo)
{
	size_t i;
	int err = 0;

	p->nodes = calloc(topo->num_nodes + 1, sizeof(*p->nodes));
	p->m.nodes = calloc(topo->num_nodes + 1, sizeof(*p->m.nodes));
	if (!p->nodes || !p->m.nodes)
		return -ENOMEM;
	for (i = 0; i < topo->num_nodes && !err; i++) {
		const struct gpucr_node *n = &topo->nodes[i];

		if (!is_told(img, n))
			continue;
		if (n->gpu_id)
			p->m.num_of_gpus++;
		else
			p->m.num_of_cpus++;
		err = node_to(&p->nodes[p->num_nodes], img, topo, n);
		p->m.nodes[p->num_nodes] = &p->nodes[p->num_nodes].m;
		p->num_nodes++;
	}
	p->m.n_nodes = p->num_nodes;
	return err;
}

static int bos_to(struct process_msg *p, const struct gpucr_img_kfd *img)
{
	size_t i;

	p->bos = calloc(img->num_bos + 1, sizeof(*p->bos));
	p->m.bos = calloc(img->num_bos + 1, sizeof(*p->m.bos));
	if (!p->bos || !p->m.bos)
		return -ENOMEM;
	for (i = 0; i < img->num_bos; i++) {
		const struct gpucr_img_bo *from = &img->bos[i];
		Gpucr__Up__Bo *to = &p->bos[i];

		gpucr__up__bo__init(to);
#define SET(f) to->has_##f = 1; to->f = from->f;
		SET(addr) SET(size) SET(offset) SET(alloc_flags) SET(gpu_id)
#undef SET
		p->m.bos[i] = to;
	}
	p->m.n_bos = img->num_bos;
	return 0;
}

static int process_to(struct process_msg *p, const struct gpucr_img_kfd *img,
		      const struct gpucr_topology *topo)
{
	int err;

	memset(p, 0, sizeof(*p));
	gpucr__up__process__init(&p->m);
	err = nodes_to(p, img, topo);
	if (!err)
		err = bos_to(p, img);
	p->m.has_pid = 1;
	p->m.pid = img->pid;
	p->m.has_num_of_gpus = 1;
	p->m.has_num_of_cpus = 1;
	p->m.has_num_of_bos = 1;
	p->m.num_of_bos = img->num_bos;
	p->m.has_num_of_objects = 1;
	p->m.num_of_objects = img->num_objects;
	/* Performance counters of the runtime: not carried over. */
	p->m.has_shared_mem_size = 1;
	p->m.has_shared_mem_magic = 1;
	p->m.has_priv_data = 1;
	p->m.priv_data.data = img->priv;
	p->m.priv_data.len = img->priv_size;
	return err;
}

static void process_free(struct process_msg *p)
{
	size_t i;

	for (i = 0; i < p->num_nodes; i++) {
		free(p->nodes[i].links);
		free(p->nodes[i].p);
	}
	free(p->nodes);
	free(p->m.nodes);
	free(p->bos);
	free(p->m.bos);
}

static int write_message(int dir, const char *name, const ProtobufCMessage *m)
{
	struct gpucr_outfile o;
	uint8_t *payload;
	uint64_t head;
	size_t len;
	int err;

	err = gpucr_pb_pack(m, &payload, &len);
	if (err)
		return err;
	head = htole64(len);
	err = gpucr_outfile_create(&o, dir, name);
	if (!err) {
		err = gpucr_outfile_write(&o, &head, sizeof(head), 0);
		if (!err)
			err = gpucr_outfile_write(&o, payload, len,
						  sizeof(head));
		if (err)
			gpucr_outfile_abort(&o);
		else
			err = gpucr_outfile_commit(&o);
	}
	free(payload);
	return err;
}

int gpucr_up_kfd_write(int dir, const struct gpucr_img_kfd *img,
		       const struct gpucr_topology *topo)
{
	char name[GPUCR_IMG_NAME_MAX];
	struct process_msg p;
	int err;

	gpucr_up_kfd_name(name, img->id);
	if (img->alias_of || img->no_gpu) {
		gpucr_err("%s: a KFD file %s cannot be told in upstream's format (format-limit); use image-format = native",
			  name, img->no_gpu ? "of a process without GPUs" :
			  "that is opened twice");
		return -EOPNOTSUPP;
	}
	err = process_to(&p, img, topo);
	if (!err)
		err = write_message(dir, name, &p.m.base);
	process_free(&p);
	return err;
}

int gpucr_up_render_write(int dir, const struct gpucr_img_render *img)
{
	char name[GPUCR_IMG_NAME_MAX];
	Gpucr__Up__RenderNode m;

	gpucr_up_render_name(name, img->id);
	gpucr__up__render_node__init(&m);
	m.has_gpu_id = 1;
	m.gpu_id = img->device.user_gpu_id;
	return write_message(dir, name, &m.base);
}
