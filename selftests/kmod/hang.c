// SPDX-License-Identifier: GPL-2.0-only
/*
 * KFD hangs inside an operation: nobody else waits for it. Relays run outside
 * generic netlink's locks; session-get and info-get take none of a relay.
 *
 * Mutation that must turn this red: the call made in the first callback, or
 * session-get taking the relay's mutex.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/genetlink.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

#define FAULT	"/sys/kernel/debug/kfdsim/fault"
/* One second natively; five without KVM. */
#define SOON_MS	5000

static struct raw nl;
static struct raw_ans *ans;
static struct busy target;

static unsigned int now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The pause hangs in KFD; the id has been told before. */
static void hang(int out)
{
	struct relay y;
	struct raw own;
	uint64_t id;
	int kfd, sfd;

	if (raw_open(&own) || seize(target.pid))
		_exit(1);
	kfd = fd_of(target.pid, target.kfd);
	if (session_new(&own, ans, GPUCR_DIRECTION_CHECKPOINT, target.pid, kfd,
			&id, &sfd))
		_exit(2);
	if (write(out, &id, sizeof(id)) != sizeof(id))
		_exit(3);
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	_exit(relay_call(&own, ans, &y) == EINTR ? 0 : 4);
}

static bool wait_hanging(pid_t pid)
{
	char path[64];
	int i;

	snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
	for (i = 0; i < 500; i++) {
		if (strstr(slurp(path), "fault"))
			return true;
		usleep(10000);
	}
	return false;
}

static void in_time(bool ok, unsigned int since, const char *what)
{
	unsigned int ms = now_ms() - since;

	ktap_ok(ok && ms < SOON_MS, "%s answers meanwhile, after %u ms", what,
		ms);
}

static void test_others(uint64_t id)
{
	struct raw ctrl = nl;
	struct raw_req q;
	unsigned int t;

	t = now_ms();
	in_time(session_state(&nl, ans, id) == GPUCR_SESSION_STATE_NEW, t,
		"session-get");
	t = now_ms();
	in_time(!raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0), t,
		"info-get");
	t = now_ms();
	if (system("modprobe -qn team"))
		ktap_skip("this kernel has no module team to load meanwhile");
	else
		in_time(!system("modprobe team && modprobe -r team"), t,
			"loading another family");
	ctrl.fd = raw_socket();
	ctrl.family = GENL_ID_CTRL;
	t = now_ms();
	raw_begin(&ctrl, &q, CTRL_CMD_GETFAMILY, true);
	raw_call(&ctrl, &q, ans);
	in_time(!ans->err && ans->num > 1, t, "another family");
	raw_close(&ctrl);
	t = now_ms();
	session_del(&nl, ans, id);
	in_time(ans->err == EPERM, t, "session-del by another");
}

int main(void)
{
	int out[2], st;
	uint64_t id;
	pid_t pid;

	ktap_plan(8);
	ans = raw_ans_new();
	if (raw_open(&nl) || !busy_start(&target) || pipe(out))
		ktap_bail("set-up");
	spit(FAULT, "point=criu-process-info hang=1 count=1");
	fflush(stdout);
	pid = fork();
	if (!pid)
		hang(out[1]);
	if (read(out[0], &id, sizeof(id)) != sizeof(id))
		ktap_bail("no session");
	ktap_ok(wait_hanging(pid), "a pause hangs inside KFD");
	test_others(id);
	kill(pid, SIGKILL);
	ktap_ok(waitpid(pid, &st, 0) == pid && WIFSIGNALED(st),
		"a fatal signal ends it");
	ktap_ok(session_wait(&nl, ans, id, -1, 2000) &&
		busy_moves_within(&target, SOON_MS),
		"nothing is left, and the target runs");
	spit(FAULT, "clear");
	busy_stop(&target);
	return ktap_exit();
}
