/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Being the tracer of a process that goes on running.
 *
 * KFD takes an unpause from a tracer of the target's main thread only.
 * PTRACE_SEIZE makes one without stopping it; only a signal stops it then,
 * which is passed on. Our exit ends it.
 */
#ifndef TRACE_H
#define TRACE_H

#include <sys/types.h>

/* 0, -ESRCH, or -EPERM: another traces it, or it is not ours to trace. */
int trace_seize(pid_t pid);
/* Passes on a signal that has stopped it, and goes on tracing. */
void trace_pump(pid_t pid);
/*
 * Detaches where it is stopped; one that runs cannot be detached, and is let go
 * by our exit.
 */
void trace_let_go(pid_t pid);

#endif
