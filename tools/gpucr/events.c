// SPDX-License-Identifier: GPL-2.0-only
#include "events.h"

#include <errno.h>
#include <stdlib.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include <linux/gpucr.h>

struct events {
	struct nl_sock *sock;
	void (*fn)(const struct session_event *ev, void *arg);
	void *arg;
};

static int on_message(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *a[GPUCR_A_SESSION_MAX + 1];
	struct session_event ev = { 0 };
	struct events *e = arg;

	if (g->cmd != GPUCR_CMD_SESSION_NTF ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, a, GPUCR_A_SESSION_MAX, NULL) < 0 ||
	    !a[GPUCR_A_SESSION_ID] || !a[GPUCR_A_SESSION_STATE])
		return NL_OK;
	ev.id = nla_get_u64(a[GPUCR_A_SESSION_ID]);
	ev.state = nla_get_u32(a[GPUCR_A_SESSION_STATE]);
	if (a[GPUCR_A_SESSION_PID])
		ev.pid = nla_get_u32(a[GPUCR_A_SESSION_PID]);
	e->fn(&ev, e->arg);
	return NL_OK;
}

struct events *events_open(void)
{
	struct events *e = calloc(1, sizeof(*e));
	int group;

	if (!e)
		return NULL;
	e->sock = nl_socket_alloc();
	if (!e->sock || genl_connect(e->sock))
		goto err_close;
	group = genl_ctrl_resolve_grp(e->sock, GPUCR_FAMILY_NAME,
				      GPUCR_MCGRP_EVENTS);
	if (group < 0 || nl_socket_add_membership(e->sock, group))
		goto err_close;
	nl_socket_disable_seq_check(e->sock);
	nl_socket_set_nonblocking(e->sock);
	nl_socket_modify_cb(e->sock, NL_CB_VALID, NL_CB_CUSTOM, on_message, e);
	return e;

err_close:
	events_close(e);
	return NULL;
}

void events_close(struct events *e)
{
	if (!e)
		return;
	if (e->sock)
		nl_socket_free(e->sock);
	free(e);
}

int events_fd(const struct events *e)
{
	return nl_socket_get_fd(e->sock);
}

int events_read(struct events *e,
		void (*fn)(const struct session_event *ev, void *arg),
		void *arg)
{
	int err;

	e->fn = fn;
	e->arg = arg;
	err = nl_recvmsgs_default(e->sock);
	/* What was lost for lack of room is lost; the next ones come. */
	return err == -NLE_AGAIN || err == -NLE_NOMEM || !err ? 0 : -EIO;
}
