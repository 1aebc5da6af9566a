// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the module's events, "ID STATE PID" a line, until it is killed. Says
 * "listening" when none is missed any more.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include <linux/gpucr.h>

static const char *state_name(uint32_t state)
{
	static const char * const names[] = {
		"new", "paused", "checkpointed", "unpaused", "restoring",
		"restored", "resumed", "abandoned", "recovered", "failed",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

static int on_message(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *a[GPUCR_A_SESSION_MAX + 1];

	(void)arg;
	if (g->cmd != GPUCR_CMD_SESSION_NTF ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, a, GPUCR_A_SESSION_MAX, NULL) < 0 ||
	    !a[GPUCR_A_SESSION_ID] || !a[GPUCR_A_SESSION_STATE])
		return NL_OK;
	printf("%llx %s %u\n",
	       (unsigned long long)nla_get_u64(a[GPUCR_A_SESSION_ID]),
	       state_name(nla_get_u32(a[GPUCR_A_SESSION_STATE])),
	       a[GPUCR_A_SESSION_PID] ? nla_get_u32(a[GPUCR_A_SESSION_PID]) : 0);
	return NL_OK;
}

int main(void)
{
	struct nl_sock *s = nl_socket_alloc();
	int group, err;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!s || genl_connect(s))
		return 1;
	group = genl_ctrl_resolve_grp(s, GPUCR_FAMILY_NAME, GPUCR_MCGRP_EVENTS);
	if (group < 0 || nl_socket_add_membership(s, group)) {
		fprintf(stderr, "events: cannot listen\n");
		return 1;
	}
	nl_socket_disable_seq_check(s);
	nl_socket_modify_cb(s, NL_CB_VALID, NL_CB_CUSTOM, on_message, NULL);
	puts("listening");
	do {
		err = nl_recvmsgs_default(s);
	} while (!err);
	fprintf(stderr, "events: %s\n", nl_geterror(err));
	return 1;
}
