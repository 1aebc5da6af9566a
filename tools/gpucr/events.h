/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's events about sessions. */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdint.h>

struct events;

struct session_event {
	uint64_t id;
	uint32_t state;		/* enum gpucr_session_state */
	uint32_t pid;		/* of the target; 0: not told */
};

/* NULL where the module is not loaded, or the caller may not listen. */
struct events *events_open(void);
void events_close(struct events *e);
/* To be polled for input. */
int events_fd(const struct events *e);
/* Calls fn for each event that has come. -errno. */
int events_read(struct events *e,
		void (*fn)(const struct session_event *ev, void *arg),
		void *arg);

#endif
