// SPDX-License-Identifier: GPL-2.0-only
/*
 * KFD hangs inside an operation: nobody else waits for it, and a signal ends
 * it, be it fatal or not. Relays run outside generic netlink's locks;
 * session-get and info-get take none of a relay.
 *
 * Mutations that must turn this red: the call made in the first callback;
 * session-get taking the relay's mutex; -ERESTARTSYS told as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

#define FAULT	"/sys/kernel/debug/kfdsim/fault"
/* One second natively; five without KVM, and more where lockdep watches. */
#define SOON_MS	(access("/proc/lockdep_stats", F_OK) ? 5000u : 20000u)

static struct raw nl;
static struct raw_ans *ans;
static struct busy target;

static unsigned int now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nothing(int sig)
{
	(void)sig;
}

/* The pause hangs in KFD; the id has been told before. */
static void hang(int out)
{
	struct sigaction sa = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	struct relay y;
	struct raw own;
	uint64_t id;
	int kfd, sfd;

	sigaction(SIGUSR1, &sa, NULL);
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

/*
 * Another family's own operation: ethtool's list of features, which every link
 * has, the loopback too. 6.1 wants a header, be it empty.
 */
static bool ask_ethtool(void)
{
	struct raw r = nl;
	struct raw_req q;
	bool ok;

	r.fd = raw_socket();
	r.family = GENL_ID_CTRL;
	raw_begin(&r, &q, CTRL_CMD_GETFAMILY, false);
	raw_put(&q, CTRL_ATTR_FAMILY_NAME, ETHTOOL_GENL_NAME,
		sizeof(ETHTOOL_GENL_NAME));
	raw_call(&r, &q, ans);
	ok = !ans->err && ans->num;
	if (ok) {
		r.family = raw_u32(&ans->msgs[0], CTRL_ATTR_FAMILY_ID);
		raw_begin(&r, &q, ETHTOOL_MSG_FEATURES_GET, true);
		raw_put(&q, ETHTOOL_A_FEATURES_HEADER | NLA_F_NESTED, "", 0);
		raw_call(&r, &q, ans);
		ok = !ans->err && ans->num;
		if (!ok)
			ktap_note("ethtool: %zu links, errno %d, %s", ans->num,
				  ans->err, ans->text);
	}
	raw_close(&r);
	return ok;
}

static void test_others(uint64_t id)
{
	unsigned int t;

	t = now_ms();
	in_time(session_state(&nl, ans, id) == GPUCR_SESSION_STATE_NEW, t,
		"session-get");
	t = now_ms();
	in_time(!raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0), t,
		"info-get");
	t = now_ms();
	in_time(!system("gpucr info >/dev/null"), t, "gpucr info");
	t = now_ms();
	if (system("modprobe -qn team"))
		ktap_skip("this kernel has no module team to load meanwhile");
	else
		in_time(!system("modprobe team && modprobe -r team"), t,
			"loading another family");
	t = now_ms();
	in_time(ask_ethtool(), t, "another family");
	t = now_ms();
	session_del(&nl, ans, id);
	in_time(ans->err == EPERM, t, "session-del by another");
}

/* Returns the status of the process that the signal met in the hanging call. */
static int hang_and_signal(int sig, bool others)
{
	int out[2], st = -1;
	uint64_t id;
	pid_t pid;

	if (pipe(out))
		ktap_bail("pipe");
	spit(FAULT, "point=criu-process-info hang=1 count=1");
	fflush(stdout);
	pid = fork();
	if (!pid)
		hang(out[1]);
	if (read(out[0], &id, sizeof(id)) != sizeof(id))
		ktap_bail("no session");
	ktap_ok(wait_hanging(pid), "a pause hangs inside KFD");
	if (others)
		test_others(id);
	kill(pid, sig);
	waitpid(pid, &st, 0);
	ktap_ok(session_wait(&nl, ans, id, -1, 2000) &&
		busy_moves_within(&target, SOON_MS),
		"signal %d: nothing is left, and the target runs", sig);
	spit(FAULT, "clear");
	close(out[0]);
	close(out[1]);
	return st;
}

/* ERESTARTSYS: no system call is restarted here, so nobody may see it. */
static void test_restart(void)
{
	int out[2], st = -1;
	pid_t pid;

	if (pipe(out))
		ktap_bail("pipe");
	spit(FAULT, "point=criu-process-info errno=512 count=1");
	fflush(stdout);
	pid = fork();
	if (!pid)
		hang(out[1]);
	waitpid(pid, &st, 0);
	spit(FAULT, "clear");
	ktap_ok(WIFEXITED(st) && !WEXITSTATUS(st),
		"an answer that means \"call again\" is EINTR (0x%x)", st);
	close(out[0]);
	close(out[1]);
}

int main(void)
{
	int st;

	ktap_plan(13);
	ans = raw_ans_new();
	if (raw_open(&nl) || !busy_start(&target))
		ktap_bail("set-up");
	st = hang_and_signal(SIGKILL, true);
	ktap_ok(WIFSIGNALED(st), "a fatal signal ended the call");
	st = hang_and_signal(SIGUSR1, false);
	ktap_ok(WIFEXITED(st) && !WEXITSTATUS(st),
		"another one too: the answer was EINTR (0x%x)", st);
	test_restart();
	busy_stop(&target);
	return ktap_exit();
}
