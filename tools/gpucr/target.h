/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process that a command looks at. It is never stopped: its descriptors
 * are found in /proc and copied by pidfd_getfd. Functions return exit
 * statuses.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "args.h"
#include "nl.h"
#include "proc.h"

struct target {
	pid_t pid;
	char comm[16];
	int pidfd;
	struct gpucr_proc_fd *fds;	/* KFD, DRM, dma-bufs */
	size_t num_fds;
};

int target_open(struct target *t, pid_t pid);
/*
 * The module, and the process of args, once the GPU of args is known to be
 * there. Undone by target_close() and gpucr_nl_close().
 */
int target_open_asked(struct target *t, struct gpucr_nl **nl,
		      const struct args *args);
void target_close(struct target *t);
/*
 * At the end of a command: has the process lived through it? Reports and
 * returns the exit status of a change where not.
 */
int target_check_alive(const struct target *t);
/* Is an earlier descriptor the same open file? */
bool target_is_duplicate(const struct target *t, size_t index);
/* Copies descriptor f; *fd is the caller's. */
int target_copy(const struct target *t, const struct gpucr_proc_fd *f, int *fd);
/*
 * Calls fn with a copy of each open file, once, whose kind is one of those in
 * kinds (1 << enum gpucr_dev_kind) and which fits the fd and gpu keys, until
 * it returns a status other than 0. A key fd that fits none is a failure.
 */
int target_for_each_file(const struct target *t, const struct args *args,
			 unsigned int kinds,
			 int (*fn)(const struct gpucr_proc_fd *f, int copy,
				   void *arg), void *arg);

#endif
