/* SPDX-License-Identifier: GPL-2.0-only */
/* What several tests need: DRM devices, tracing, capabilities, refusals. */
#ifndef GPUCR_TEST_UTIL_H
#define GPUCR_TEST_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "raw.h"

/* A primary node of the first device with that driver, opened; -1: none. */
int open_card(const char *driver);

/* Only these of the capabilities stay, in all sets. */
void keep_caps(uint64_t mask);
#define CAP_BIT(c)	(1ULL << (c))

/* Runs fn in a child; returns what it returned (0 to 255), or -1. */
int in_child(int (*fn)(void *arg), void *arg);

/* PTRACE_SEIZE without stopping it. Returns 0 or a positive errno. */
int seize(pid_t pid);

/* Was the request refused with this errno, and with words like these? */
bool refused(const struct raw_ans *a, int err, const char *words);
/*
 * Does the refusal point to this attribute? True also where the kernel cannot
 * say: 6.1 with a dump, whose refusals come with its end.
 */
bool points_to(const struct raw_ans *a, int attr);

/* A copy of another process's descriptor; -1 with errno. */
int fd_of(pid_t pid, int fd);

/*
 * A process that opens what the parent says and then waits for its end.
 * It answers on a pipe when it is ready.
 */
struct helper {
	pid_t pid;
	int fd;			/* number of what it opened, in its table */
};

/* fn runs in the child first and returns that number, or -1. */
bool helper_start(struct helper *h, int (*fn)(void *arg), void *arg);
void helper_stop(struct helper *h);

/* The program vecloop, at work: its queue moves. */
struct busy {
	pid_t pid;
	int kfd;		/* number of its KFD file */
};

bool busy_start(struct busy *b);
void busy_stop(struct busy *b);
/* Has its queue moved, seen over ms? */
bool busy_moves(const struct busy *b, unsigned int ms);
/* Does its queue move within ms? */
bool busy_moves_within(const struct busy *b, unsigned int ms);

/* The whole of a small file as a string; "" where it cannot be read. */
const char *slurp(const char *path);
/* Writes a line; false with errno. */
bool spit(const char *path, const char *line);
/* Counter of that name in the test GPU's statistics; -1: none. */
long long gpu_stat(const char *name);

#endif
