/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the test programs share: options, going to the background in a form
 * that CRIU can dump, saying when they are ready.
 */
#ifndef APP_H
#define APP_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes. */
#define APP_OK		0
#define APP_FAILED	1
#define APP_USAGE	2
#define APP_ABSENT	3

enum app_heap {
	APP_VRAM = 1 << 0,
	APP_GTT = 1 << 1,
	APP_USERPTR = 1 << 2,
	APP_SVM = 1 << 3,	/* vecloop only */
};

struct app_opt {
	unsigned int gpus;	/* GPUs used, the first ones */
	unsigned int bos;	/* BOs rewritten in each step, per heap and GPU */
	uint64_t size;		/* of each of them */
	unsigned int heaps;	/* APP_* bits */
	unsigned int queues;	/* per GPU */
	unsigned int procs;	/* processes, each with its own KFD */
	uint64_t steps;		/* 0: for ever */
	unsigned int delay_ms;	/* between steps */
	bool digest;		/* print each BO's digest too */
	unsigned int small_bos;	/* constant BOs of 64 KiB in VRAM, per GPU */
	uint64_t idle_vram;	/* bytes of a BO in VRAM that nobody writes, per GPU */
	uint64_t zero_vram;	/* bytes of a BO in VRAM that holds zeros, per GPU */
	const char *hold;	/* opened, and kept open */
	bool half_socket;	/* one end of a socket pair, after all others */
	const char *shared;	/* kind of memory that processes share */
	unsigned int threads;	/* more threads, which do nothing */
	unsigned int children;	/* processes forked late, which do nothing */
	unsigned int fill_fds;	/* descriptors taken before all others */
	bool kfd_last;		/* KFD's descriptor is above the render nodes' */
	bool no_stdin;		/* descriptor 0 is closed */
	const char *pidfile;
	const char *log;
	unsigned int proc;	/* which of procs this is */
};

void app_parse(struct app_opt *opt, int argc, char **argv);

/*
 * Become what CRIU can dump: own session, stdin from /dev/null, cwd /. With
 * --log the caller's process stays in front only until app_ready() and then
 * exits 0, or with our status where we end before.
 */
void app_start(struct app_opt *opt);
/* The threads and children that were asked for, when all that they inherit is there. */
void app_extras(const struct app_opt *opt);
/* First step done in this process; the last of all processes frees the front. */
void app_ready(const struct app_opt *opt);
/* Has a process that we forked failed? Then its exit code, else 0. */
int app_children(const struct app_opt *opt, bool wait);

void app_sleep(unsigned int ms);
/* "vecloop: ..." on stderr. */
void app_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* One step line, the form that tests and people read. */
void app_step(uint64_t step, uint64_t digest);

#endif
