/* SPDX-License-Identifier: GPL-2.0-only */
/* One KFD process of the tree being dumped. */
#ifndef GPUCR_TARGET_H
#define GPUCR_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "image.h"
#include "kfdrules.h"
#include "pace.h"
#include "progress.h"
#include "task.h"
#include "topology.h"

#include "watch.h"

struct target {
	struct gpucr_task task;		/* the owner */
	struct gpucr_ckpt *ckpt;
	struct gpucr_kfd_counts counts;
	struct gpucr_kfd_state state;
	bool read;			/* state is filled */
	uint64_t read_us;		/* how long that took */
	struct target_key *keys;	/* its BOs, sorted, for comparison */
	size_t num_keys;
	bool no_gpu;			/* none visible to it: never paused */
	uint32_t image_id;		/* 0: not yet written */
	struct target *next;
};

/* A BO as its device knows it: same key, same object. */
struct target_key {
	uint32_t local_gpu_id;
	uint64_t offset;
};

/* What a target is written with. */
struct target_env {
	int dir;
	dev_t kfd;
	bool late;	/* CRIU had read shared memory before the pause */
	const struct gpucr_opts *opts;
	const struct gpucr_topology *topo;
	struct gpucr_kfd_rules rules;
	/* Files being written, and written: a failed dump removes them. */
	void (*writing)(const char *name);
	void (*wrote)(const char *name);
	struct watch watch;
	struct gpucr_pace pace;
	struct gpucr_progress *progress;	/* or NULL */
	/* Sums, for the summary. */
	uint64_t raw_bytes, stored_bytes, copy_ms;
};

/* CHECKPOINT, once. -errno, logged. */
int target_read(struct target *t);
/* -EOPNOTSUPP, logged, where both have one BO. Both are read. */
int target_refuse_shared(const struct target *a, const struct target *b);
void target_free(struct target *t);
/* Everything of the process, as image id. -errno, logged. */
int target_write(struct target *t, struct target_env *env, uint32_t id);
/* For a GPU of the target as its device bucket names it. */
int target_device(const struct target *t, const struct gpucr_topology *topo,
		  uint32_t index, struct gpucr_img_device *ret);
/* Refuses where bytes (and 5 %) do not fit the directory, if it is written. */
int target_check_space(int dir, uint64_t bytes);

#endif
