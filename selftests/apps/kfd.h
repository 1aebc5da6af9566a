/* SPDX-License-Identifier: GPL-2.0-only */
/* GPUs by libdrm_amdgpu and raw KFD ioctls, with no ROCm library. */
#ifndef KFD_H
#define KFD_H

#include <stdint.h>

#include <amdgpu.h>

#include "app.h"

#define KFD_MAX_GPUS	64

struct kfd_gpu {
	uint32_t id;		/* KFD's */
	int fd;			/* render node */
	amdgpu_device_handle dev;
	char *doorbells;	/* mapped with the first queue */
};

struct kfd {
	int fd;
	unsigned int num_gpus;
	struct kfd_gpu gpus[KFD_MAX_GPUS];
	volatile uint64_t *event_page;
};

struct kfd_bo {
	struct kfd_gpu *gpu;
	enum app_heap heap;
	void *mem;		/* CPU's and GPU's address */
	uint64_t size;
	uint64_t handle;
	amdgpu_va_handle va;
};

/*
 * Open KFD and the first n GPUs. Errors have been printed; returns an APP_*
 * exit code.
 */
int kfd_open(struct kfd *kfd, unsigned int n);
/* Give KFD's file a descriptor above all others. 0 or -errno, printed. */
int kfd_move_last(struct kfd *kfd);
/*
 * Allocate and map on its GPU. VRAM is mapped read-only for the CPU, so that
 * nothing but the GPU can have written it. Returns 0 or -errno, printed.
 */
int kfd_alloc(struct kfd *kfd, struct kfd_gpu *gpu, enum app_heap heap, uint64_t size,
	      struct kfd_bo *bo);
/* The same of memory that the caller has mapped. */
int kfd_alloc_user(struct kfd *kfd, struct kfd_gpu *gpu, void *mem, uint64_t size,
		   struct kfd_bo *bo);
/* Let the other GPUs map it too. */
int kfd_map_everywhere(struct kfd *kfd, struct kfd_bo *bo);
int kfd_free(struct kfd *kfd, struct kfd_bo *bo);

/* A signal event that resets itself, and its mailbox. */
int kfd_event(struct kfd *kfd, uint32_t *id, volatile uint64_t **slot);
/* 1: signaled, 0: ms have passed, or -errno. */
int kfd_wait(struct kfd *kfd, uint32_t id, unsigned int ms);
/* An SDMA queue; ptrs is a page with rptr at 0 and wptr at 64. */
int kfd_queue(struct kfd *kfd, struct kfd_gpu *gpu, struct kfd_bo *ring, struct kfd_bo *ptrs,
	      volatile uint64_t **doorbell);

#endif
