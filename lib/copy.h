/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Content of buffer objects to and from memory, by a GPU's SDMA engine.
 *
 * The BOs of one GPU are one stream, in the order given. It passes through a
 * few slots of pinned memory: while one is copied by the engine, another is
 * written to or filled from storage. Zeros on the way to the GPU pass through
 * none, the engine makes them. One thread; nothing is kept open or mapped after
 * gpucr_copy_close().
 */
#ifndef GPUCR_COPY_H
#define GPUCR_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct gpucr_copy;

struct gpucr_copy_config {
	int drm_fd;		/* render node; stays the caller's */
	uint32_t gpu_id;	/* for messages */
	unsigned int slots;
	size_t slot_size;	/* bytes, a multiple of 2 MiB */
	unsigned int deadline_ms; /* for each wait */
	const int *stop;	/* not 0: give up with -ECANCELED; or NULL */
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

/* Bytes in the memory of a GPU. */
struct gpucr_copy_place {
	uint32_t gpu_id;
	uint32_t bo;		/* its index */
	uint64_t offset;
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

/* Memory that a sink still needs after put() is waited for before its reuse. */
struct gpucr_copy_sink {
	gpucr_copy_fn put;
	/* Would settle() wait? */
	bool (*needs)(void *arg, const void *buf, size_t len);
	int (*settle)(void *arg, void *buf, size_t len);
	void *arg;
};

/* The memory of the slots, at most max of them. Returns how many. */
unsigned int gpucr_copy_buffers(const struct gpucr_copy *c, struct iovec *v,
				unsigned int max);

/* From the BOs to sink, which is settled on return. */
int gpucr_copy_from_gpu(struct gpucr_copy *c, const struct gpucr_copy_bo *bos,
			size_t num, const struct gpucr_copy_sink *sink);
/* Where the first failure was; false: it was of no BO. */
bool gpucr_copy_failed_at(const struct gpucr_copy *c,
			  struct gpucr_copy_place *ret);
/* BOs of one GPU and where their content comes from. */
struct gpucr_copy_fill {
	struct gpucr_copy *c;
	const struct gpucr_copy_bo *bos;
	size_t num;
	/* How many bytes from pos on, at most max, are zeros, or are not. */
	uint64_t (*extent)(void *arg, uint64_t pos, uint64_t max, bool *zero);
	/* In order, of one extent each; zeros are passed with no buffer. */
	gpucr_copy_fn source;
	/* Some time before source, with the same arguments. */
	gpucr_copy_fn begin;
	/* Would source not have to wait? Waits itself, for so long at most. */
	bool (*ready)(void *arg, uint64_t wait_ns);
	void *arg;
};

/*
 * Fills the BOs of several GPUs at the same time: sources are asked in turn,
 * by this one thread, while the engines work. All is in place on return.
 */
int gpucr_copy_to_gpus(const struct gpucr_copy_fill *fills, size_t num);

#endif
