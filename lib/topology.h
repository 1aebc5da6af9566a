/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KFD's topology as sysfs tells it: every node that this process may read.
 *
 * Nothing is kept open. Attributes that an older or newer kernel lacks are 0.
 */
#ifndef GPUCR_TOPOLOGY_H
#define GPUCR_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUCR_TOPOLOGY_ROOT	"/sys/class/kfd/kfd/topology"

/* Values of a link's type, as the kernel's; others are slower kinds. */
#define GPUCR_LINK_PCIE	2
#define GPUCR_LINK_XGMI	11

struct gpucr_link {
	uint32_t to;			/* number of a node */
	uint32_t type;
	bool p2p;			/* through PCIe switches or the CPU */
};

struct gpucr_node {
	uint32_t node;			/* number in the topology */
	uint32_t gpu_id;		/* 0: a CPU node */
	char name[64];
	uint32_t cpu_cores_count;
	uint32_t simd_count;
	uint32_t mem_banks_count;
	uint32_t caches_count;
	uint32_t io_links_count;
	uint32_t p2p_links_count;
	uint32_t max_waves_per_simd;
	uint32_t lds_size_in_kb;
	uint32_t gds_size_in_kb;
	uint32_t num_gws;
	uint32_t wave_front_size;
	uint32_t array_count;
	uint32_t simd_arrays_per_engine;
	uint32_t cu_per_simd_array;
	uint32_t simd_per_cu;
	uint32_t max_slots_scratch_cu;
	uint32_t gfx_target_version;
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t location_id;		/* PCI bus, device and function */
	uint32_t domain;		/* PCI domain */
	uint32_t drm_render_minor;
	uint32_t num_sdma_engines;
	uint32_t num_sdma_xgmi_engines;
	uint32_t num_sdma_queues_per_engine;
	uint32_t num_cp_queues;
	uint32_t fw_version;
	uint32_t sdma_fw_version;
	uint32_t capability;
	uint32_t num_xcc;
	uint64_t hive_id;
	uint64_t unique_id;		/* partitions of one GPU share it */
	uint64_t vram_size;		/* bytes, over all VRAM banks */
	uint32_t vram_public;		/* 1: the CPU can map all of it */
	struct gpucr_link *links;	/* from this node, as they are listed */
	size_t num_links;
};

struct gpucr_topology {
	uint32_t generation;
	struct gpucr_node *nodes;	/* by rising node number */
	size_t num_nodes;
	const struct gpucr_node **gpus;	/* those with a gpu_id, same order */
	size_t num_gpus;
	size_t num_skipped;		/* nodes there that cannot be read */
};

/*
 * root NULL: GPUCR_TOPOLOGY_ROOT. 0 or -errno: -ENOENT where there is no
 * topology. *ret goes to gpucr_topology_free().
 */
int gpucr_topology_read(const char *root, struct gpucr_topology **ret);
void gpucr_topology_free(struct gpucr_topology *topo);

/* NULL where there is none. The node belongs to the topology. */
const struct gpucr_node *
gpucr_topology_find_by_gpu_id(const struct gpucr_topology *topo,
			      uint32_t gpu_id);
const struct gpucr_node *
gpucr_topology_find_by_minor(const struct gpucr_topology *topo,
			     uint32_t render_minor);
const struct gpucr_node *
gpucr_topology_find_by_node(const struct gpucr_topology *topo, uint32_t node);

#endif
