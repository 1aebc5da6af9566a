/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ends a dump's copy before its end: a signal to CRIU, which has no
 * handler of its own and would leave everything as it is, and the pause limit.
 */
#ifndef GPUCR_WATCH_H
#define GPUCR_WATCH_H

#include <stdint.h>

struct watch {
	uint64_t (*paused_ms)(void);
	unsigned int pause_limit;	/* seconds; 0: none */
};

/* From here to watch_end() SIGTERM, SIGINT and SIGHUP are taken down. */
void watch_begin(void);
/* For content_dump(): a struct watch. */
int watch_tick(void *arg);
/* -ECANCELED, logged, where one of them came. */
int watch_end(void);
/* -ETIME, logged, where the processes have been paused for too long. */
int watch_pause(const struct watch *w);

#endif
