// SPDX-License-Identifier: GPL-2.0-only
/*
 * What belongs together: a pid and its KFD file, a session and its tracer, a
 * request and the thread that made it, a pid and the namespace that it is said
 * in. On a simulated GPU, so on all kernels. Each refusal has a twin that
 * differs in one property and succeeds.
 *
 * Mutations that must turn this red: gpucr_task_holds() returns true; the pid
 * that KFD tells not compared; no tracer check; no asker check; the caller's
 * kind not checked again in the second callback; pids found or told in the
 * initial namespace; the watch does not see that the target has died.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ktap.h"
#include "kfd.h"
#include "ring.h"
#include "util.h"

static struct raw nl;
static struct raw_ans *ans;

/* A target with a GPU, and our copy of its KFD file. */
struct target {
	struct helper h;
	int kfd;
};

static void target_start(struct target *t)
{
	struct kfd_target k = { .bos = 1 };

	if (!helper_start(&t->h, kfd_target, &k))
		ktap_bail("no simulated GPU");
	t->kfd = fd_of(t->h.pid, t->h.fd);
}

static void target_stop(struct target *t)
{
	close(t->kfd);
	helper_stop(&t->h);
}

static int new_on(pid_t pid, int kfd, uint64_t *id, int *sfd)
{
	return session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, pid, kfd, id,
			   sfd);
}

static void test_pairs(void)
{
	struct target a, b;
	uint64_t id;
	int sfd;

	target_start(&a);
	target_start(&b);
	seize(a.h.pid);
	seize(b.h.pid);
	new_on(a.h.pid, b.kfd, &id, &sfd);
	ktap_ok(refused(ans, EINVAL, "does not hold"),
		"one task's pid with another's KFD file is refused");
	ktap_ok(!new_on(a.h.pid, a.kfd, &id, &sfd),
		"with its own it is let in");
	close(sfd);
	target_stop(&a);
	target_stop(&b);
}

/* Opens KFD and forks; the child has the file, but the GPU is its parent's. */
static int inherits(void *arg)
{
	struct kfd_target k = { .bos = 1 };
	int pipefd[2], fd = kfd_target(&k);
	pid_t child;

	if (fd < 0 || pipe(pipefd))
		return -1;
	child = fork();
	if (!child) {
		close(pipefd[1]);
		/* ends with its parent */
		_exit(read(pipefd[0], &child, 1) < 0);
	}
	*(pid_t *)arg = child;
	return fd;
}

static void test_inherited(void)
{
	pid_t *child = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioctl_criu_args a = { 0 };
	struct helper h;
	struct relay y;
	uint64_t id;
	int kfd, sfd;

	if (!helper_start(&h, inherits, child))
		ktap_bail("helper");
	kfd = fd_of(h.pid, h.fd);
	seize(*child);
	if (new_on(*child, kfd, &id, &sfd))
		ktap_bail("session-new: %s", ans->text);
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EBADF, "could not be asked") && y.accepted,
		"a child with its parent's KFD file is not paused: KFD refuses");
	/* Now KFD obeys us, for the parent: the pid that it tells is another. */
	seize(h.pid);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EINVAL, "is another task's") && y.accepted &&
		y.state == GPUCR_SESSION_STATE_FAILED,
		"nor where KFD would pause the parent instead");
	a.op = KFD_CRIU_OP_UNPAUSE;
	ktap_ok(ioctl(kfd, AMDKFD_IOC_CRIU_OP, &a) && errno == EINVAL,
		"which was set going again at once");
	close(sfd);
	if (new_on(h.pid, kfd, &id, &sfd))
		ktap_bail("session-new: %s", ans->text);
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	ktap_ok(!relay_call(&nl, ans, &y), "the parent itself is paused");
	y.cmd = GPUCR_CMD_SESSION_UNPAUSE;
	relay_call(&nl, ans, &y);
	close(sfd);
	close(kfd);
	helper_stop(&h);
}

struct opener {
	struct target *t;
	uint64_t id;
	int sfd;
	int err;
	pthread_barrier_t step;
};

/* A thread of ours traces and opens; tracing ends with the thread. */
static void *open_and_end(void *arg)
{
	struct opener *o = arg;

	o->err = seize(o->t->h.pid) ? -1 :
		 new_on(o->t->h.pid, o->t->kfd, &o->id, &o->sfd);
	pthread_barrier_wait(&o->step);
	pthread_barrier_wait(&o->step);
	return NULL;
}

static void test_tracer(void)
{
	struct target t;
	struct opener o = { .t = &t };
	struct relay y;
	pthread_t thread;
	int i;

	target_start(&t);
	pthread_barrier_init(&o.step, NULL, 2);
	if (pthread_create(&thread, NULL, open_and_end, &o))
		ktap_bail("thread");
	pthread_barrier_wait(&o.step);
	if (o.err)
		ktap_bail("session-new: %s", ans->text);
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, o.id);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EPERM, "must trace") && !y.accepted,
		"where another thread of the owner traces, it cannot pause");
	pthread_barrier_wait(&o.step);
	pthread_join(thread, NULL);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EPERM, "must trace") && !y.accepted,
		"nor where nobody traces any more");
	/* The thread may still be on its way out. */
	for (i = 0; i < 100 && seize(t.h.pid); i++)
		usleep(10000);
	ktap_ok(!relay_call(&nl, ans, &y), "tracing itself it can");
	y.cmd = GPUCR_CMD_SESSION_UNPAUSE;
	relay_call(&nl, ans, &y);
	close(o.sfd);
	target_stop(&t);
}

static int read_as_child(void *arg)
{
	raw_recv(arg, ans);
	return 0;
}

/* The kernel's worker takes what is there; the rest says what became of it. */
static void read_as_ring(struct ring *ring)
{
	static char buf[RAW_BUF];

	if (ring_do(ring, IORING_OP_RECV, nl.fd, buf, sizeof(buf),
		    IOSQE_ASYNC) < 0)
		ktap_bail("io_uring recv");
}

/* socketcall(SYS_RECV) by int 0x80, with everything below 4 GiB. */
static int read_as_32(void *arg)
{
	uint32_t *args;
	long ret;
	char *low;

	low = mmap(NULL, 16384, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	args = (uint32_t *)low;
	args[0] = ((struct raw *)arg)->fd;
	args[1] = (uint32_t)(uintptr_t)(low + 4096);
	args[2] = 8192;
	args[3] = 0;
	asm volatile("int $0x80" : "=a" (ret)
		     : "a" (102L), "b" (10L), "c" (args)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)ret < 0;
}

static void send_pause(const struct relay *y)
{
	struct raw_req q;

	relay_request(&nl, &q, y);
	raw_send(&nl, &q);
}

/* What is left of the answer; a timeout where somebody took all of it. */
static void read_rest(struct relay *y)
{
	raw_recv(&nl, ans);
	relay_answer(ans, y);
}

static int compat_pause(void *arg)
{
	struct target *t = arg;
	struct relay y;
	uint64_t id;
	int sfd;

	if (raw_open(&nl) || seize(t->h.pid) ||
	    new_on(t->h.pid, t->kfd, &id, &sfd))
		return 10;
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	send_pause(&y);
	if (read_as_32(&nl))
		return 77;
	read_rest(&y);
	if (!relay_refused(&y, EOPNOTSUPP, "32-bit callers"))
		return 1;
	return relay_call(&nl, ans, &y) ? 2 : 0;
}

static void test_compat_reader(void)
{
	struct target t;
	int n;

	target_start(&t);
	n = in_child(compat_pause, &t);
	/* The kernel may have 32-bit calls switched off: a signal then. */
	if (n == 77 || n == -1)
		ktap_skip("this kernel takes no 32-bit system calls");
	else
		ktap_ok(n == 0, "a pause read by a 32-bit call is refused, by a 64-bit one not (%d)",
			n);
	target_stop(&t);
}

static void test_readers(void)
{
	struct ring ring;
	struct target t;
	struct relay y;
	uint64_t id;
	int sfd;

	target_start(&t);
	seize(t.h.pid);
	if (new_on(t.h.pid, t.kfd, &id, &sfd))
		ktap_bail("session-new: %s", ans->text);
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	if (ring_open(&ring, 0)) {
		send_pause(&y);
		read_as_ring(&ring);
		read_rest(&y);
		ktap_ok(relay_refused(&y, EPERM, "not the thread that asked"),
			"a pause whose answer io_uring's worker reads is refused");
	} else {
		ktap_skip("io_uring is off");
	}
	send_pause(&y);
	in_child(read_as_child, &nl);
	/* The child had its own copy of the answer, and we none. */
	ktap_ok(session_state(&nl, ans, id) == GPUCR_SESSION_STATE_NEW,
		"a pause whose answer another process reads is not made");
	ktap_ok(!relay_call(&nl, ans, &y) &&
		y.state == GPUCR_SESSION_STATE_PAUSED,
		"read by the thread that asked it is");
	y.cmd = GPUCR_CMD_SESSION_UNPAUSE;
	relay_call(&nl, ans, &y);
	close(sfd);
	target_stop(&t);
}

/* Accepted and never read: the target's memory is freed with it. */
static void test_never_read(void)
{
	struct target t;
	struct relay y;
	struct raw lazy;
	struct raw_req q;
	uint64_t id;
	int sfd, i;

	target_start(&t);
	seize(t.h.pid);
	if (new_on(t.h.pid, t.kfd, &id, &sfd) || raw_open(&lazy))
		ktap_bail("session-new: %s", ans->text);
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	relay_request(&lazy, &q, &y);
	raw_send(&lazy, &q);
	target_stop(&t);
	for (i = 0; i < 200 && gpu_stat("processes"); i++)
		usleep(10000);
	ktap_ok(!gpu_stat("processes") && !gpu_stat("bos"),
		"a pause that is never read keeps nothing of a dead target");
	raw_recv(&lazy, ans);
	relay_answer(ans, &y);
	ktap_ok(y.error && y.done, "read later, it fails: %s", y.text);
	raw_close(&lazy);
	close(sfd);
}

/* Shared with who lives in another pid namespace. */
struct ns {
	uint64_t id, outer_id;
	pid_t outer_target;	/* the number that we know the target by */
	int to_outer, from_outer;
};

static int vmas_of(pid_t pid)
{
	return raw_ask(&nl, ans, GPUCR_CMD_VMA_GET, true, GPUCR_A_VMA_PID, pid,
		       0, 0);
}

/* In the namespace: its init, and with number 2 the target. */
static int inside(struct ns *ns)
{
	const struct raw_msg *m;
	struct target t;
	struct relay y;
	uint64_t id;
	int sfd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	target_start(&t);
	if (getpid() != 1 || raw_open(&nl) || seize(t.h.pid) ||
	    new_on(t.h.pid, t.kfd, &ns->id, &sfd))
		return 10;
	m = session_show(&nl, ans, ns->id);
	if (!m || raw_u32(m, GPUCR_A_SESSION_PID) != (uint32_t)t.h.pid ||
	    raw_u32(m, GPUCR_A_SESSION_OWNER_PID) != 1)
		return 1;
	m = session_show(&nl, ans, ns->outer_id);
	if (!m || raw_u32(m, GPUCR_A_SESSION_PID) ||
	    raw_u32(m, GPUCR_A_SESSION_OWNER_PID))
		return 2;
	/* The outside looks, and says what number it sees. */
	if (write(ns->to_outer, "x", 1) != 1 ||
	    read(ns->from_outer, &ns->outer_target, sizeof(pid_t)) !=
	    sizeof(pid_t))
		return 11;
	if (vmas_of(t.h.pid) || ans->num != 0)
		return 3;
	vmas_of(ns->outer_target);
	if (!refused(ans, ESRCH, "no task") || !points_to(ans, GPUCR_A_VMA_PID))
		return 4;
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, ns->id);
	if (relay_call(&nl, ans, &y) || y.told_pid != (uint32_t)t.h.pid)
		return 5;
	y.cmd = GPUCR_CMD_SESSION_UNPAUSE;
	if (relay_call(&nl, ans, &y))
		return 6;
	close(sfd);
	new_on(ns->outer_target, t.kfd, &id, &sfd);
	if (!refused(ans, ESRCH, "no task") || ans->bad != GPUCR_A_SESSION_PID)
		return 7;
	return new_on(t.h.pid, t.kfd, &id, &sfd) ? 8 : 0;
}

static int make_namespace(void *arg)
{
	pid_t pid;
	int st;

	if (unshare(CLONE_NEWPID))
		return 100;
	pid = fork();
	if (!pid)
		_exit(inside(arg));
	return waitpid(pid, &st, 0) == pid && WIFEXITED(st) ? WEXITSTATUS(st) :
							       101;
}

/* The number that the session tells here; has it got 2 inside? */
static pid_t seen_outside(uint64_t id)
{
	const struct raw_msg *m = session_show(&nl, ans, id);
	char path[64], want[64];
	pid_t pid;

	if (!m)
		return 0;
	pid = raw_u32(m, GPUCR_A_SESSION_PID);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	snprintf(want, sizeof(want), "NSpid:\t%d\t2\n", pid);
	return strstr(slurp(path), want) ? pid : 0;
}

static void test_namespaces(void)
{
	struct ns *ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct target t;
	int up[2], down[2], sfd, n;
	pid_t pid, seen = 0;
	char byte;

	target_start(&t);
	seize(t.h.pid);
	if (new_on(t.h.pid, t.kfd, &ns->outer_id, &sfd) || pipe(up) ||
	    pipe(down))
		ktap_bail("session-new: %s", ans->text);
	ns->to_outer = up[1];
	ns->from_outer = down[0];
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(up[0]);
		close(down[1]);
		close(sfd);
		_exit(make_namespace(ns));
	}
	close(up[1]);
	if (read(up[0], &byte, 1) == 1)
		seen = seen_outside(ns->id);
	ktap_ok(seen > 0, "from outside, a session tells the number that its target has here");
	if (write(down[1], &seen, sizeof(seen)) != sizeof(seen))
		ktap_bail("pipe");
	waitpid(pid, &n, 0);
	ktap_ok(!n, "inside a pid namespace, pids are its own, in and out (%d)",
		WEXITSTATUS(n));
	close(sfd);
	target_stop(&t);
}

int main(void)
{
	ktap_plan(17);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	test_pairs();
	test_inherited();
	test_tracer();
	test_compat_reader();
	test_readers();
	test_never_read();
	test_namespaces();
	return ktap_exit();
}
