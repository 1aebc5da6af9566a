/* SPDX-License-Identifier: GPL-2.0-only */
/* Checkpoint and restore sessions. */
#ifndef SESSION_H
#define SESSION_H

#include "args.h"
#include "nl.h"

/* While it is there nothing is recovered but by hand. */
#define SESSION_NO_RECOVER	"/run/gpucr/no-recover"

/* The word for a state. */
const char *session_state(uint32_t state);
/* Are the queues of the target stopped? */
bool session_holds_paused(const struct gpucr_nl_session *s);
/* The session that the id key names; exit status. */
int session_find(struct gpucr_nl *nl, const struct args *args,
		 struct gpucr_nl_session *ret);

/* gpucr session recover id ID | pid N */
int session_recover(const struct args *args);
/* gpucr session watch pid N */
int session_watch(const struct args *args);
/* gpucr session drain on|off */
int session_drain(const struct args *args);

#endif
