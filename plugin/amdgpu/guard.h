/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that lives on when CRIU is killed, and then undoes its pauses:
 * gpucr session watch. Needed where nothing else would: without the module.
 *
 * It is never a child of CRIU's, which waits for any child of its own; it has
 * none of CRIU's descriptors, since those who started CRIU wait for their ends;
 * what is paused it is told over a socket, before it is.
 */
#ifndef GPUCR_GUARD_H
#define GPUCR_GUARD_H

#include <sys/types.h>

struct guard {
	int fd;			/* our end; -1: there is none */
};

#define GUARD_NONE	{ .fd = -1 }

/* Starts the program and waits until it watches us. -errno, logged. */
int guard_start(struct guard *g, const char *program);
/*
 * The KFD process behind descriptor fd of process pid is about to be paused.
 * All who hold it must be told, for the guard cannot know who owns it.
 * -errno, logged: nothing may be paused then.
 */
int guard_add(struct guard *g, pid_t pid, int fd);
/* Nothing is paused any more. */
void guard_clear(struct guard *g);
/* The guard ends, when nothing is paused. */
void guard_stop(struct guard *g);

#endif
