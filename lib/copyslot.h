/* SPDX-License-Identifier: GPL-2.0-only */
/* Private to copy.c and copyslot.c: slots, mapped BOs, SDMA submissions. */
#ifndef GPUCR_COPYSLOT_H
#define GPUCR_COPYSLOT_H

#include <stdbool.h>
#include <stdint.h>

#include <amdgpu.h>

#include "copy.h"

/* A BO in the GPU address space of the copy. bo NULL: not mapped. */
struct gpucr_copy_map {
	amdgpu_bo_handle bo;
	amdgpu_va_handle va_handle;
	uint64_t va;
	uint64_t size;
};

struct gpucr_copy_slot {
	void *mem;			/* pinned while mapped */
	struct gpucr_copy_map data;	/* mem, seen by the GPU */
	struct gpucr_copy_map ib;	/* packets */
	uint32_t *packets;
	size_t num_dw, max_dw;
	amdgpu_bo_handle *bos;		/* that this submission touches */
	size_t num_bos, max_bos;
	size_t zeros, max_zeros;	/* packets that write zeros */
	struct amdgpu_cs_fence fence;
	bool busy;
	size_t len;			/* bytes of mem in use */
	uint64_t pos, span;		/* in the stream; span has the zeros */
	uint32_t first_bo;		/* where it starts, for messages */
	uint64_t first_offset;
};

struct gpucr_copy {
	struct gpucr_copy_config cfg;
	amdgpu_device_handle dev;
	amdgpu_context_handle ctx;
	uint32_t max_packet;		/* bytes that one packet copies */
	bool count_minus_one;
	bool own_clock;			/* not the kernel's */
	bool stuck;			/* a wait failed: free nothing */
	bool hangs;			/* it ran into its deadline */
	bool failed;			/* at this place, the first one */
	struct gpucr_copy_place place;
	struct gpucr_copy_slot *slots;
};

void gpucr_copy_note(struct gpucr_copy *c, uint32_t bo, uint64_t offset);

int gpucr_copy_map(struct gpucr_copy *c, const struct gpucr_copy_bo *bo,
		   struct gpucr_copy_map *ret);
void gpucr_copy_unmap(struct gpucr_copy_map *m);

void gpucr_copy_slot_reset(struct gpucr_copy_slot *s);
/* The next len bytes of the slot from or to the BO. */
int gpucr_copy_slot_add(struct gpucr_copy *c, struct gpucr_copy_slot *s,
			const struct gpucr_copy_map *m, uint64_t offset,
			uint64_t len, bool to_gpu);
/* Zeros to the BO, without memory of the slot. */
int gpucr_copy_slot_zero(struct gpucr_copy *c, struct gpucr_copy_slot *s,
			 const struct gpucr_copy_map *m, uint64_t offset,
			 uint64_t len);
/* Bytes that the slot can take from or to one BO, or zeros. */
uint64_t gpucr_copy_slot_room(const struct gpucr_copy *c,
			      const struct gpucr_copy_slot *s, bool zero);
int gpucr_copy_slot_submit(struct gpucr_copy *c, struct gpucr_copy_slot *s);
/* Would gpucr_copy_slot_wait() return at once? */
bool gpucr_copy_slot_is_done(struct gpucr_copy_slot *s);
int gpucr_copy_slot_wait(struct gpucr_copy *c, struct gpucr_copy_slot *s);

#endif
