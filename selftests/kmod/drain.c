// SPDX-License-Identifier: GPL-2.0-only
/*
 * session-drain: new sessions are kept out, open ones go on, and only
 * CAP_SYS_ADMIN may. That an abandoned one can be adopted is seen in owner.
 *
 * Mutations, each seen to turn this red: no look at the flag in session-new;
 * the flag not told; CAP_CHECKPOINT_RESTORE enough; the limit not checked; no
 * value not refused; draining that does not end.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <linux/capability.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

static struct raw nl;
static struct raw_ans *ans;

static int drain(struct raw *r, uint32_t v)
{
	return raw_ask(r, ans, GPUCR_CMD_SESSION_DRAIN, false,
		       GPUCR_A_SESSION_DRAIN, v, 0, 0);
}

static bool told(void)
{
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0);
	return raw_has(&ans->msgs[0], GPUCR_A_INFO_DRAINING);
}

static int weak(void *arg)
{
	struct raw r;

	(void)arg;
	keep_caps(CAP_BIT(CAP_CHECKPOINT_RESTORE));
	if (raw_open(&r))
		return 1;
	drain(&r, 1);
	return refused(ans, EPERM, "needs CAP_SYS_ADMIN in") ? 0 : 2;
}

int main(void)
{
	uint64_t id, other;
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC), sfd, fd, n;

	ktap_plan(10);
	ans = raw_ans_new();
	if (raw_open(&nl) || kfd < 0)
		ktap_bail("family gpucr or KFD is absent");
	n = in_child(weak, NULL);
	ktap_ok(n == 0 && !told(),
		"CAP_CHECKPOINT_RESTORE alone does not drain (%d)", n);
	raw_ask(&nl, ans, GPUCR_CMD_SESSION_DRAIN, false, 0, 0, 0, 0);
	ktap_ok(refused(ans, EINVAL, "drain is missing"), "a value is needed");
	ktap_ok(drain(&nl, 2) == ERANGE && !told(), "2 is none");
	if (session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &id, &sfd))
		ktap_bail("session-new: %s", ans->text);
	ktap_ok(!drain(&nl, 1) && told(), "CAP_SYS_ADMIN drains, and it is told");
	session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &other, &fd);
	ktap_ok(refused(ans, EAGAIN, "being upgraded"),
		"a new session is kept out");
	session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, getpid(), kfd, &other,
		    &fd);
	ktap_ok(refused(ans, EAGAIN, "being upgraded"), "be it for a checkpoint");
	ktap_ok(!session_join(&nl, ans, id, kfd) &&
		session_state(&nl, ans, id) == GPUCR_SESSION_STATE_NEW,
		"an open one goes on");
	close(sfd);
	ktap_ok(session_wait(&nl, ans, id, -1, 2000), "and ends");
	ktap_ok(!drain(&nl, 0) && !told(), "draining ends");
	ktap_ok(!session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &other,
			     &fd), "and sessions are new again");
	return ktap_exit();
}
