/* SPDX-License-Identifier: GPL-2.0-only */
/* What a session keeps is told to those who hold a file of it. */
#ifndef HOLDER_H
#define HOLDER_H

#include "args.h"
#include "nl.h"

struct out_column;

/* A question about what one session has kept, in the making. */
struct holder_question {
	const struct args *args;
	struct gpucr_nl *nl;
	struct gpucr_nl_session s;
};

/*
 * A command about the session that the session key names: add_rows puts the
 * rows, and returns 0 or the module's -errno. Returns the exit status.
 */
int holder_show(const struct args *args, const struct out_column *columns,
		int (*add_rows)(struct holder_question *q));
/*
 * Calls ask without a file, then, for as long as it answers -EPERM, with copies
 * of the session's file in its owner and, where kfd is set, of KFD files of
 * its target. Nothing is stopped or traced. Returns ask's last answer.
 */
int holder_ask(const struct gpucr_nl_session *s, bool kfd,
	       int (*ask)(int holder, void *arg), void *arg);

#endif
