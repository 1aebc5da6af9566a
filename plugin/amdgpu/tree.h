/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The GPU files of the tree being dumped: which open file, held by whom. Read
 * once, when all tasks are stopped, and before any GPU is.
 */
#ifndef GPUCR_TREE_H
#define GPUCR_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "task.h"

struct tree_holder {
	const struct gpucr_task *task;
	int fd;			/* its number there */
};

struct tree_file {
	bool kfd;		/* else a render node of amdgpu */
	uint32_t minor;
	int fd;			/* our copy */
	struct tree_holder *holders;	/* by rising pid, one per task */
	size_t num_holders;
	struct target *target;	/* whose KFD process it is; dump.c's */
};

struct tree {
	dev_t kfd;
	struct gpucr_task *tasks;
	size_t num_tasks;
	struct tree_file *files;
	size_t num_files;
};

/* -errno, logged. The tree is to be closed also after a failure. */
int tree_read(struct tree *t, dev_t kfd);
void tree_close(struct tree *t);

/* The file that fd is a copy of; NULL: none. */
struct tree_file *tree_find(struct tree *t, int fd);
/* Does the task hold the file? */
bool tree_holds(const struct tree_file *f, pid_t pid);
/*
 * The one of the holders for which CRIU will restore the file: that with the
 * lowest pid, in the namespace where the pids are restored.
 */
const struct gpucr_task *tree_restorer(const struct tree_file *f);
/* Is rdev KFD or a render node of amdgpu? */
bool tree_is_gpu(const struct tree *t, dev_t rdev);

#endif
