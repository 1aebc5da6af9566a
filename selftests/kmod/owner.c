// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owners and targets that die. The target is a program whose GPU queue moves;
 * only its progress proves that a pause was undone.
 *
 * Mutations that must turn this red: no orphaning at release; no watch (copies
 * in forks, dead targets); a helper that is run while the owner still traces;
 * no adoption; any process may unpause an abandoned session; the drain asked
 * about before the adoption.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

/* Guest time without KVM is slow time. */
#define LONG_MS	8000

static struct raw nl;
static struct raw_ans *ans;
static struct raw events;

/* How far a dumper goes before it waits to be killed. */
enum stage { STAGE_NEW, STAGE_PAUSED, STAGE_CHECKPOINTED };

struct dumper {
	pid_t pid;
	uint64_t id;
	/* what it is told */
	const struct busy *target;
	enum stage stage;
	bool forks;		/* leaves a fork that holds the session's file */
	bool closes;		/* closes the session's file, and lives on */
	bool undoes;		/* and then unpauses by id, and ends */
};

static void checkpoint(struct raw *r, struct relay *y)
{
	relay_buffers(y);
	y->cmd = GPUCR_CMD_SESSION_CHECKPOINT;
	if (relay_call(r, ans, y))
		_exit(4);
	relay_close_fds(y);
}

static void dump(struct dumper *d, int out)
{
	struct relay y;
	struct raw own;
	int kfd, sfd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (raw_open(&own) || seize(d->target->pid))
		_exit(1);
	kfd = fd_of(d->target->pid, d->target->kfd);
	if (session_new(&own, ans, GPUCR_DIRECTION_CHECKPOINT, d->target->pid,
			kfd, &d->id, &sfd))
		_exit(2);
	close(kfd);
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, d->id);
	if (d->stage >= STAGE_PAUSED && relay_call(&own, ans, &y))
		_exit(3);
	if (d->stage >= STAGE_CHECKPOINTED)
		checkpoint(&own, &y);
	if (d->forks && !fork()) {
		/* Dies with the test, not with the dumper. */
		sleep(60);
		_exit(0);
	}
	if (d->closes)
		close(sfd);
	y.cmd = GPUCR_CMD_SESSION_UNPAUSE;
	if (d->undoes && relay_call(&own, ans, &y))
		_exit(5);
	if (write(out, &d->id, sizeof(d->id)) != sizeof(d->id) || d->undoes)
		_exit(0);
	for (;;)
		pause();
}

static bool dumper_start(struct dumper *d)
{
	int out[2], st;
	bool ok;

	if (pipe2(out, O_CLOEXEC))
		return false;
	fflush(stdout);
	d->pid = fork();
	if (!d->pid)
		dump(d, out[1]);
	close(out[1]);
	ok = read(out[0], &d->id, sizeof(d->id)) == sizeof(d->id);
	close(out[0]);
	if (!ok && waitpid(d->pid, &st, 0) == d->pid)
		ktap_note("the dumper ended with status 0x%x", st);
	return ok;
}

static void dumper_kill(struct dumper *d)
{
	kill(d->pid, SIGKILL);
	waitpid(d->pid, NULL, 0);
}

/* A target, a dumper at that stage, which is then killed. */
static void murder(struct busy *b, struct dumper *d, enum stage stage)
{
	memset(d, 0, sizeof(*d));
	d->target = b;
	d->stage = stage;
	if (!busy_start(b))
		ktap_bail("target");
	if (!dumper_start(d))
		ktap_bail("dumper");
	dumper_kill(d);
}

static void events_drain(void)
{
	char buf[8192];

	while (recv(events.fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

/* Waits for the event that a session is in a state. */
static bool event_wait(uint64_t id, uint32_t state)
{
	char buf[8192] __attribute__((aligned(8)));
	struct pollfd p = { .fd = events.fd, .events = POLLIN };
	struct nlmsghdr *h = (void *)buf;
	struct raw_msg m;
	ssize_t n;

	while (poll(&p, 1, LONG_MS) == 1) {
		n = recv(events.fd, buf, sizeof(buf), 0);
		if (n < (ssize_t)NLMSG_HDRLEN + 4)
			continue;
		m.cmd = *(uint8_t *)NLMSG_DATA(h);
		m.attrs = (char *)NLMSG_DATA(h) + 4;
		m.len = n - NLMSG_HDRLEN - 4;
		if (m.cmd == GPUCR_CMD_SESSION_NTF &&
		    raw_u64(&m, GPUCR_A_SESSION_ID) == id &&
		    raw_u32(&m, GPUCR_A_SESSION_STATE) == state)
			return true;
	}
	return false;
}

static bool reload(const char *helper)
{
	char cmd[256];

	close(events.fd);
	raw_close(&nl);
	snprintf(cmd, sizeof(cmd),
		 "for i in 1 2 3 4 5 6 7 8 9 10; do modprobe -r gpucr && break; sleep 0.2; done; modprobe gpucr %s%s",
		 helper ? "recovery_helper=" : "", helper ? helper : "");
	if (system(cmd) || raw_open(&nl) || raw_open(&events))
		return false;
	return !setsockopt(events.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
			   &events.group, sizeof(events.group));
}

/* What the tool does: trace without stopping, unpause by id, end. */
static int recover_by_hand(void *arg)
{
	struct dumper *d = arg;
	struct relay y = relay_of(GPUCR_CMD_SESSION_UNPAUSE, d->id);
	struct raw own;

	if (raw_open(&own) || seize(d->target->pid))
		return 1;
	relay_call(&own, ans, &y);
	return y.error ? 2 : y.state == GPUCR_SESSION_STATE_RECOVERED ? 0 : 3;
}

static int untraced_unpause(void *arg)
{
	struct dumper *d = arg;
	struct relay y = relay_of(GPUCR_CMD_SESSION_UNPAUSE, d->id);
	struct raw own;

	if (raw_open(&own))
		return 1;
	relay_call(&own, ans, &y);
	return relay_refused(&y, EPERM, "must trace") && !y.accepted ? 0 : 2;
}

static void test_by_hand(void)
{
	const struct raw_msg *m;
	struct dumper d;
	struct busy b;
	int n;

	murder(&b, &d, STAGE_PAUSED);
	ktap_ok(session_wait(&nl, ans, d.id, GPUCR_SESSION_STATE_ABANDONED,
			     LONG_MS), "without helper it stays abandoned");
	m = session_show(&nl, ans, d.id);
	ktap_ok(m && raw_has(m, GPUCR_A_SESSION_OWNER_GONE) &&
		raw_u32(m, GPUCR_A_SESSION_PID) == (uint32_t)b.pid &&
		!busy_moves(&b, 500), "its target stands still");
	ktap_ok(system("modprobe -r gpucr 2>/dev/null") != 0,
		"the module does not unload");
	n = in_child(untraced_unpause, &d);
	ktap_ok(!n, "who does not trace the target cannot unpause it (%d)", n);
	n = in_child(recover_by_hand, &d);
	ktap_ok(!n && busy_moves_within(&b, LONG_MS) &&
		session_state(&nl, ans, d.id) == -1,
		"a tracer unpauses it by the session's id, which ends it (%d)",
		n);
	busy_stop(&b);
}

static bool drain(bool on)
{
	return !raw_ask(&nl, ans, GPUCR_CMD_SESSION_DRAIN, false,
			GPUCR_A_SESSION_DRAIN, on, 0, 0);
}

static void test_adoption(void)
{
	struct dumper d, next;
	struct busy b;

	murder(&b, &d, STAGE_CHECKPOINTED);
	session_wait(&nl, ans, d.id, GPUCR_SESSION_STATE_ABANDONED, LONG_MS);
	next = d;
	next.stage = STAGE_PAUSED;
	ktap_ok(dumper_start(&next) && next.id == d.id &&
		session_state(&nl, ans, d.id) == GPUCR_SESSION_STATE_PAUSED &&
		!raw_has(&ans->msgs[0], GPUCR_A_SESSION_OWNER_GONE) &&
		raw_u32(&ans->msgs[0], GPUCR_A_SESSION_OWNER_PID) ==
		(uint32_t)next.pid,
		"the next dumper takes over the abandoned session");
	dumper_kill(&next);
	ktap_ok(session_wait(&nl, ans, d.id, GPUCR_SESSION_STATE_ABANDONED,
			     LONG_MS), "and may abandon it again");
	ktap_ok(drain(true) && dumper_start(&next) && next.id == d.id &&
		session_state(&nl, ans, d.id) == GPUCR_SESSION_STATE_PAUSED,
		"it is taken over while the module takes no new ones, too");
	dumper_kill(&next);
	ktap_ok(drain(false) &&
		session_wait(&nl, ans, d.id, GPUCR_SESSION_STATE_ABANDONED,
			     LONG_MS), "and abandoned as before");
	ktap_ok(!in_child(recover_by_hand, &next) &&
		busy_moves_within(&b, LONG_MS), "until somebody mends it");
	busy_stop(&b);
}

static void test_closed(void)
{
	struct dumper d = { .stage = STAGE_PAUSED, .closes = true };
	struct busy b;

	if (!busy_start(&b))
		ktap_bail("target");
	d.target = &b;
	ktap_ok(dumper_start(&d) &&
		session_state(&nl, ans, d.id) == GPUCR_SESSION_STATE_ABANDONED,
		"closing the descriptor of a paused session abandons it");
	dumper_kill(&d);
	d.undoes = true;
	ktap_ok(dumper_start(&d) && busy_moves_within(&b, LONG_MS) &&
		session_state(&nl, ans, d.id) == -1,
		"its tracer can still unpause it");
	waitpid(d.pid, NULL, 0);
	busy_stop(&b);
}

static bool kfd_empty(void)
{
	int i;

	for (i = 0; i < 200 && gpu_stat("processes"); i++)
		usleep(10000);
	return gpu_stat("processes") == 0 && gpu_stat("bos") == 0;
}

static void test_dead_target(void)
{
	struct dumper d = { .stage = STAGE_PAUSED };
	struct busy b;

	if (!busy_start(&b))
		ktap_bail("target");
	d.target = &b;
	if (!dumper_start(&d))
		ktap_bail("dumper");
	kill(b.pid, SIGKILL);
	ktap_ok(session_wait(&nl, ans, d.id, GPUCR_SESSION_STATE_FAILED,
			     LONG_MS) &&
		raw_u32(&ans->msgs[0], GPUCR_A_SESSION_ERROR) == ESRCH,
		"a target that dies fails its session");
	ktap_ok(kfd_empty(),
		"which keeps nothing of it, though its owner lives");
	dumper_kill(&d);
	busy_stop(&b);

	murder(&b, &d, STAGE_PAUSED);
	session_wait(&nl, ans, d.id, GPUCR_SESSION_STATE_ABANDONED, LONG_MS);
	busy_stop(&b);
	ktap_ok(session_wait(&nl, ans, d.id, -1, LONG_MS) && kfd_empty(),
		"a dead target ends an abandoned session");
}

static void test_failing_helper(void)
{
	struct dumper d;
	struct busy b;

	murder(&b, &d, STAGE_PAUSED);
	sleep(5);
	ktap_ok(session_state(&nl, ans, d.id) == GPUCR_SESSION_STATE_ABANDONED,
		"a helper that does nothing recovers nothing");
	ktap_ok(!in_child(recover_by_hand, &d) && busy_moves_within(&b, LONG_MS),
		"by hand it still works");
	busy_stop(&b);
}

/* Nobody traces pid any more: the helper does until it exits, which is after its session has ended. */
static bool untraced(pid_t pid)
{
	char path[32], line[128];
	int tracer, ms;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	for (ms = 0; ms < LONG_MS; ms += 5, usleep(5000)) {
		FILE *f = fopen(path, "re");

		tracer = -1;
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "TracerPid: %d", &tracer) == 1)
				break;
		if (f)
			fclose(f);
		if (tracer <= 0)
			return !tracer;
	}
	return false;
}

static void recovered(struct dumper *d, struct busy *b, const char *what)
{
	bool said = event_wait(d->id, GPUCR_SESSION_STATE_ABANDONED) &&
		    event_wait(d->id, GPUCR_SESSION_STATE_RECOVERED);

	ktap_ok(said && busy_moves_within(b, LONG_MS) &&
		session_wait(&nl, ans, d->id, -1, 100) && untraced(b->pid),
		"%s", what);
}

static void test_helper(void)
{
	struct dumper d;
	struct busy b;

	events_drain();
	murder(&b, &d, STAGE_NEW);
	ktap_ok(session_wait(&nl, ans, d.id, -1, 1000) && busy_moves(&b, 300),
		"killed before the pause, it leaves nothing");
	busy_stop(&b);
	murder(&b, &d, STAGE_PAUSED);
	recovered(&d, &b, "killed when paused, its target is set going");
	busy_stop(&b);
	murder(&b, &d, STAGE_CHECKPOINTED);
	recovered(&d, &b, "killed when checkpointed, its target is set going");
	memset(&d, 0, sizeof(d));
	d.target = &b;
	d.stage = STAGE_PAUSED;
	d.forks = true;
	if (!dumper_start(&d))
		ktap_bail("the next dump");
	dumper_kill(&d);
	recovered(&d, &b, "so it is when a fork of the owner lives on");
	busy_stop(&b);
}

static void test_counters(void)
{
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0);
	ktap_ok(raw_u32(&ans->msgs[0], GPUCR_A_INFO_SESSIONS_OPEN) == 0 &&
		raw_u64(&ans->msgs[0], GPUCR_A_INFO_SESSIONS_TOTAL) == 4 &&
		raw_u64(&ans->msgs[0], GPUCR_A_INFO_SESSIONS_ABANDONED) == 3 &&
		raw_u64(&ans->msgs[0], GPUCR_A_INFO_SESSIONS_RECOVERED) == 3,
		"info-get has counted them");
}

int main(void)
{
	ktap_plan(22);
	ans = raw_ans_new();
	if (raw_open(&nl) || raw_open(&events))
		ktap_bail("family gpucr is absent");
	if (!reload(""))
		ktap_bail("reload without helper");
	test_by_hand();
	test_adoption();
	test_closed();
	test_dead_target();
	if (!reload("/bin/false"))
		ktap_bail("reload with a failing helper");
	test_failing_helper();
	if (!reload(NULL))
		ktap_bail("reload with the default helper");
	test_helper();
	test_counters();
	return ktap_exit();
}
