/* SPDX-License-Identifier: GPL-2.0-only */
/* VRAM and GTT content of one GPU's BOs, to and from its page file. */
#ifndef GPUCR_CONTENT_H
#define GPUCR_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copy.h"
#include "image.h"
#include "kfd.h"
#include "pace.h"
#include "progress.h"

struct content_config {
	int dir;			/* image directory */
	uint32_t gpu_id;		/* user id */
	int drm_fd;			/* render node of that GPU */
	unsigned int slots;
	size_t slot_size;
	uint64_t max_buffer;		/* bytes; 0: no limit */
	bool uring;			/* several writes in flight */
	int zstd_level;			/* 0: not compressed */
	struct gpucr_pace *pace;	/* of the storage; NULL: no limit */
	struct gpucr_progress *progress; /* or NULL */
	unsigned int copy_ms;		/* for each copy; 0: the usual time */
	unsigned int store_ms;		/* for each write; 0: the usual time */
	bool plain;			/* upstream's page file */
	const int *stop;		/* given up elsewhere; or NULL */
};

/*
 * Asked several times a second by the thread that waits for the others: not 0
 * is the errno to give up with, logged by whoever says so.
 */
struct content_watch {
	int (*tick)(void *arg);
	void *arg;
};

/* The page file of one GPU, to be written or read. */
struct content_job {
	struct content_config cfg;
	const struct gpucr_kfd_state *state;
	/* To be written: gpu_id and file are set, chunks are the result. */
	struct gpucr_img_pages *pages;
	int pipe;			/* in a dump to a streamer; or -1 */
	int err;			/* its own failure, if it was one */
	bool placed;			/* where in GPU memory is known */
	struct gpucr_copy_place place;
};

/*
 * Writes the page files of all jobs, at the same time, each in a thread of its
 * own that is gone on return. -errno of the job that failed first, logged; the
 * others are stopped then. Where a GPU has no content, its chunks.num is 0.
 * watch may be NULL.
 */
int content_dump(struct content_job *jobs, size_t num,
		 const struct content_watch *watch);
/*
 * Fills the BOs from the page files of all jobs, at the same time, in this
 * thread alone; from a streamer one after the other. Every byte was checked on
 * the way. -errno, logged.
 */
int content_restore(struct content_job *jobs, size_t num);
/* The same, each job in a thread of its own, as in content_dump(). */
int content_restore_apart(struct content_job *jobs, size_t num,
			  const struct content_watch *watch);

#endif
