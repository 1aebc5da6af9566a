/* SPDX-License-Identifier: GPL-2.0-only */
/* What nl.c and nlsock.c know of each other. */
#ifndef GPUCR_NLSOCK_H
#define GPUCR_NLSOCK_H

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "nl.h"

/* Called for each message that carries data; returns 0 or -errno. */
typedef int (*gpucr_nl_handler)(struct nlmsghdr *nlh, void *arg);

struct gpucr_nl_request {
	struct nl_msg *msg;
	gpucr_nl_handler handler;
	void *arg;
};

/*
 * Readies the handle, in a fork's child with a socket of its own, and begins
 * a request; the caller adds attributes to rq->msg and calls _end().
 */
int gpucr_nl_begin(struct gpucr_nl *nl, struct gpucr_nl_request *rq,
		   uint8_t cmd, bool dump);
/*
 * Sends the request and reads the whole answer; put_err is what adding the
 * attributes gave. Frees the message. 0, -errno of the kernel, or the first
 * error of the handler.
 */
int gpucr_nl_end(struct gpucr_nl *nl, struct gpucr_nl_request *rq,
		 int put_err, gpucr_nl_handler handler, void *arg);
int gpucr_nl_parse(struct nlmsghdr *nlh, struct nlattr **tb, int max,
		   const struct nla_policy *policy);
/* Stores a sentence for gpucr_nl_error(); what is no text becomes a blank. */
void gpucr_nl_set_error(struct gpucr_nl *nl, const char *text, size_t len);

#endif
