/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an image holds, in memory: one struct for a KFD file and its process,
 * one for a render node. Layout and rules: docs/image-format.md.
 */
#ifndef GPUCR_IMAGE_H
#define GPUCR_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pages.h"

#define GPUCR_IMG_NAME_MAX	64
#define GPUCR_IMG_MAX_DEVICES	256
#define GPUCR_IMG_NO_BO		UINT32_MAX
#define GPUCR_IMG_MAX_LINKS	128	/* of one GPU */

/* A link of a GPU, where the dump was made. */
struct gpucr_img_link {
	uint32_t to;		/* number of a node of the topology */
	uint32_t type;
	bool cpu;		/* that node is no GPU */
	bool p2p;
};

/* A GPU of the process. User ids are those of its first start. */
struct gpucr_img_device {
	uint32_t user_gpu_id;
	uint32_t local_gpu_id;
	uint32_t render_minor;
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t gfx_target_version;
	uint32_t simd_count;
	uint32_t num_xcc;
	uint32_t location_id;
	uint32_t domain;
	uint32_t fw_version;
	uint32_t sdma_fw_version;
	uint32_t capability;
	uint32_t num_gws;
	uint32_t caches_count;
	uint64_t vram_bytes;
	uint64_t unique_id;
	uint64_t hive_id;
	char name[64];
	bool upstream;		/* gfx target, num_xcc and names not known */
	/* The rest is not known where this is false: an early image. */
	bool has_topology;
	uint32_t node;		/* number in the topology */
	uint32_t mem_banks_count;
	uint32_t io_links_count;
	uint32_t max_waves_per_simd;
	uint32_t lds_size_in_kb;
	uint32_t gds_size_in_kb;
	uint32_t wave_front_size;
	uint32_t array_count;
	uint32_t simd_arrays_per_engine;
	uint32_t cu_per_simd_array;
	uint32_t simd_per_cu;
	uint32_t max_slots_scratch_cu;
	uint32_t num_sdma_engines;
	uint32_t num_sdma_xgmi_engines;
	uint32_t num_sdma_queues_per_engine;
	uint32_t num_cp_queues;
	uint32_t vram_public;
	uint32_t num_links;
	struct gpucr_img_link links[GPUCR_IMG_MAX_LINKS];
};

struct gpucr_node;
struct gpucr_topology;

/* A GPU as an image has it, from the topology that it is part of. */
void gpucr_img_device_from_node(struct gpucr_img_device *ret,
				const struct gpucr_topology *topo,
				const struct gpucr_node *node,
				uint32_t user_gpu_id);

struct gpucr_img_bo {
	uint64_t addr;
	uint64_t size;
	uint64_t offset;
	uint32_t alloc_flags;
	uint32_t gpu_id;	/* user id */
};

enum gpucr_img_vma_kind {
	GPUCR_IMG_VMA_RENDER = 1,	/* a BO through the render node */
	GPUCR_IMG_VMA_KFD_GPU = 2,	/* doorbells, MMIO: a GPU id in the offset */
	GPUCR_IMG_VMA_KFD_EVENTS = 3,	/* event page, through KFD */
};

struct gpucr_img_vma {
	uint64_t start;
	uint64_t end;
	uint64_t offset;	/* bytes, as mapped at the dump */
	uint32_t kind;
	uint32_t gpu_id;	/* user id; 0 for events */
	uint32_t bo;		/* index; GPUCR_IMG_NO_BO but for render */
};

/* Content of all VRAM and GTT BOs of one GPU, BO after BO. */
struct gpucr_img_pages {
	uint32_t gpu_id;	/* user id */
	char file[GPUCR_IMG_NAME_MAX];
	struct gpucr_chunks chunks;
};

struct gpucr_img_kfd {
	uint32_t id;
	uint32_t pid;		/* of the owner, innermost pid namespace */
	uint32_t num_objects;
	uint32_t bo_record_size; /* of KFD's private data; 0: not known */
	uint32_t alias_of;	/* not 0: another open of that id's process */
	bool no_gpu;		/* a KFD file of a process without GPUs */
	bool upstream;		/* in the format of upstream's plugin */
	uint64_t time;		/* seconds since 1970 */
	/* How long KFD's CHECKPOINT took, and the copies; 0: not known. */
	uint64_t read_us, copy_us;
	char kernel_release[72];
	char driver[128];	/* of KFD; "": not recorded */
	char writer[32];
	struct gpucr_img_device *devices;
	size_t num_devices;
	struct gpucr_img_bo *bos;
	size_t num_bos;
	struct gpucr_img_vma *vmas;
	size_t num_vmas;
	struct gpucr_img_pages *pages;
	size_t num_pages;
	uint8_t *priv;
	size_t priv_size;
};

struct gpucr_img_render {
	uint32_t id;
	struct gpucr_img_device device;
	bool kfd_vm;		/* the file whose GPU address space KFD uses */
	uint32_t owner_pid;
};

void gpucr_img_kfd_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id);
void gpucr_img_render_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id);
void gpucr_img_pages_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id,
			  uint32_t gpu_id);

/* -errno, logged. */
int gpucr_img_kfd_write(int dir, const struct gpucr_img_kfd *img);
int gpucr_img_render_write(int dir, const struct gpucr_img_render *img);
/*
 * What is returned obeys every rule of the format; *ret goes to
 * gpucr_img_kfd_free(). -ENOENT, not logged: there is none.
 */
int gpucr_img_kfd_read(int dir, uint32_t id, struct gpucr_img_kfd **ret);
int gpucr_img_render_read(int dir, uint32_t id, struct gpucr_img_render *ret);
/* From a payload in memory; name is for messages. */
int gpucr_img_kfd_parse(const char *name, const uint8_t *payload, size_t len,
			struct gpucr_img_kfd **ret);
int gpucr_img_render_parse(const char *name, const uint8_t *payload,
			   size_t len, struct gpucr_img_render *ret);
/* Frees the arrays, not the struct. */
void gpucr_img_kfd_clear(struct gpucr_img_kfd *img);
void gpucr_img_kfd_free(struct gpucr_img_kfd *img);

/* NULL where the image has no such GPU. */
const struct gpucr_img_device *
gpucr_img_find_device(const struct gpucr_img_kfd *img, uint32_t user_gpu_id);
/* Bytes of the VRAM and GTT BOs of a GPU; of all GPUs where it is 0. */
uint64_t gpucr_img_content_bytes(const struct gpucr_img_kfd *img,
				 uint32_t user_gpu_id);

/* Rules between the parts: image_check.c. NULL, or what is wrong. */
const char *gpucr_img_kfd_fault(const struct gpucr_img_kfd *img);

#endif
