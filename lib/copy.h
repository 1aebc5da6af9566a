/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Content of buffer objects to and from memory, by a GPU's SDMA engine.
 *
 * The BOs of one GPU are one stream, in the order given. It passes through a
 * few slots of pinned memory: while one is copied by the engine, another is
 * written to or filled from storage. One thread; nothing is kept open or
 * mapped after gpucr_copy_close().
 */
#ifndef GPUCR_COPY_H
#define GPUCR_COPY_H

#include <stddef.h>
#include <stdint.h>

struct gpucr_copy;

struct gpucr_copy_config {
	int drm_fd;		/* render node; stays the caller's */
	uint32_t gpu_id;	/* for messages */
	unsigned int slots;
	size_t slot_size;	/* bytes, a multiple of 2 MiB */
	unsigned int deadline_ms; /* for each wait */
};

#define GPUCR_COPY_DEADLINE_MS	60000

/*
 * Slots for a memory limit in bytes (0: none): as many and as large as wanted,
 * fewer and smaller where the limit asks for it, but at least one of 2 MiB.
 */
void gpucr_copy_size(struct gpucr_copy_config *cfg, unsigned int slots,
		     size_t slot_size, uint64_t limit);

/* A BO, by its dma-buf; index is for messages. */
struct gpucr_copy_bo {
	int dmabuf_fd;
	uint32_t index;
	uint64_t size;
};

/* -errno, logged. */
int gpucr_copy_open(const struct gpucr_copy_config *cfg,
		    struct gpucr_copy **ret);
void gpucr_copy_close(struct gpucr_copy *c);

/*
 * Called with consecutive pieces of the stream; each but the last is a whole
 * slot. A failure ends the copy and is returned.
 */
typedef int (*gpucr_copy_fn)(void *arg, uint64_t pos, void *buf, size_t len);

/* From the BOs to sink. */
int gpucr_copy_from_gpu(struct gpucr_copy *c, const struct gpucr_copy_bo *bos,
			size_t num, gpucr_copy_fn sink, void *arg);
/* From source to the BOs. All is in place on return. */
int gpucr_copy_to_gpu(struct gpucr_copy *c, const struct gpucr_copy_bo *bos,
		      size_t num, gpucr_copy_fn source, void *arg);

#endif
