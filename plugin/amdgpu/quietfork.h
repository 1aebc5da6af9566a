/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fork whose end sends CRIU no SIGCHLD: its handler would take it for the
 * death of a task. To be waited for by pid, with __WALL, before the hook
 * returns, since CRIU also waits for any child. No atfork handler runs: the
 * caller has one thread, and the child ends by exec or _exit.
 */
#ifndef GPUCR_QUIETFORK_H
#define GPUCR_QUIETFORK_H

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* signal: what the parent gets at its end; 0: none */
static inline pid_t quiet_fork(unsigned long signal)
{
	return syscall(SYS_clone, signal, 0, 0, 0, 0);
}

#endif
