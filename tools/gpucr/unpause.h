/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KFD processes that somebody has left paused, and how they are set going:
 * traced without being stopped, and unpaused through their own KFD files.
 */
#ifndef UNPAUSE_H
#define UNPAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct unpause_file {
	pid_t pid;
	int fd;			/* its number there */
	unsigned long long start;	/* when the process began */
	bool seized;
	bool done;
};

struct unpause {
	struct unpause_file *files;
	size_t num;
	/* What unpause_run() found: */
	unsigned int unpaused;	/* that were paused */
	unsigned int left;	/* that still may be */
	bool traced;		/* because another traces them */
	int err;		/* the last error of those */
};

/* -ENOMEM; a process that is gone is no error. */
int unpause_add(struct unpause *u, pid_t pid, int fd);
void unpause_clear(struct unpause *u);
/* Tries until all are done, or for patience_ms. */
void unpause_run(struct unpause *u, unsigned int patience_ms);

#endif
