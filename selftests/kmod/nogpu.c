// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions and relays on the real amdgpu.ko without hardware: /dev/kfd is
 * there and its entry checks are the real ones. Kernels from 7.2 on refuse to
 * open it without a GPU, with EINVAL; then all is skipped.
 *
 * Mutations that must turn this red: no tracer check; no check that the task
 * holds the file; no ledger (RESUME then ends in an oops on 6.1 and 6.12); no
 * asker check; no owner check.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

static struct raw nl;
static struct raw_ans *ans;
static int kfd;

static int new_own(uint64_t *id, int *sfd)
{
	return session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, getpid(), kfd,
			   id, sfd);
}

static void test_new(void)
{
	const struct raw_msg *m;
	uint64_t id, id2;
	int sfd, sfd2;

	if (!ktap_ok(!new_own(&id, &sfd) && id, "a session on oneself opens"))
		ktap_bail("%s", ans->text);
	ktap_ok(fcntl(sfd, F_GETFD) == FD_CLOEXEC,
		"its descriptor is closed by exec");
	m = session_show(&nl, ans, id);
	ktap_ok(m && raw_u32(m, GPUCR_A_SESSION_PID) == (uint32_t)getpid() &&
		raw_u32(m, GPUCR_A_SESSION_OWNER_PID) == (uint32_t)getpid() &&
		!strcmp(raw_str(m, GPUCR_A_SESSION_OWNER_COMM), "nogpu") &&
		raw_u32(m, GPUCR_A_SESSION_STATE) == GPUCR_SESSION_STATE_NEW &&
		raw_u32(m, GPUCR_A_SESSION_DIRECTION) ==
		GPUCR_DIRECTION_CHECKPOINT &&
		!raw_has(m, GPUCR_A_SESSION_OWNER_GONE) &&
		!raw_has(m, GPUCR_A_SESSION_PAUSED_MS) &&
		!raw_has(m, GPUCR_A_SESSION_ERROR),
		"session-get tells target, owner and state");
	new_own(&id2, &sfd2);
	ktap_ok(refused(ans, EBUSY, "has a session already"),
		"a second one on the same KFD process is refused");
	close(sfd);
	ktap_ok(session_state(&nl, ans, id) == -1 && ans->err == ENOENT,
		"closing the descriptor ends the session");
	ktap_ok(!new_own(&id2, &sfd2) && id2 != id,
		"then another one opens, with another id");
	ktap_ok(!session_del(&nl, ans, id2) &&
		session_state(&nl, ans, id2) == -1, "session-del ends it");
	close(sfd2);
	session_del(&nl, ans, id2);
	ktap_ok(refused(ans, ENOENT, "no session") &&
		ans->bad == GPUCR_A_SESSION_ID,
		"session-del of no session is refused");
}

static void new_refused(uint32_t direction, pid_t pid, int fd, int err,
			const char *words, int bad, const char *what)
{
	uint64_t id;
	int sfd;

	session_new(&nl, ans, direction, pid, fd, &id, &sfd);
	ktap_ok(refused(ans, err, words) && ans->bad == bad, "%s (bad %d)",
		what, ans->bad);
}

static void test_new_refusals(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const uint32_t cp = GPUCR_DIRECTION_CHECKPOINT;

	new_refused(cp, getpid(), null, EINVAL, "not a KFD file",
		    GPUCR_A_SESSION_FD, "a file that is not KFD is refused");
	new_refused(cp, getpid(), 9999, EBADF, "not an open descriptor",
		    GPUCR_A_SESSION_FD, "no file is refused");
	new_refused(cp, 0x7ffffff0, kfd, ESRCH, "no task",
		    GPUCR_A_SESSION_PID, "a pid of no task is refused");
	new_refused(cp, 0, kfd, EINVAL, "needs pid and fd",
		    GPUCR_A_SESSION_PID, "no pid is refused");
	new_refused(cp, getpid(), -1, EINVAL, "needs pid and fd",
		    GPUCR_A_SESSION_FD, "no fd is refused");
	new_refused(2, getpid(), kfd, ERANGE, "", GPUCR_A_SESSION_DIRECTION,
		    "an unknown direction is refused");
	new_refused(GPUCR_DIRECTION_RESTORE, getpid(), -1, EINVAL,
		    "neither pid nor fd", GPUCR_A_SESSION_PID,
		    "a pid for a restore is refused");
	close(null);
}

static int bare_target(void *arg)
{
	struct kfd_target t = { .bare = true };

	(void)arg;
	/* Inherited, it would mean that the target holds ours. */
	close(kfd);
	return kfd_target(&t);
}

static void test_other_task(void)
{
	struct helper h;
	uint64_t id;
	int copy, sfd;

	if (!helper_start(&h, bare_target, NULL))
		ktap_bail("helper");
	copy = fd_of(h.pid, h.fd);
	new_refused(GPUCR_DIRECTION_CHECKPOINT, h.pid, copy, EPERM,
		    "must trace", 0, "a task that is not traced is refused");
	seize(h.pid);
	new_refused(GPUCR_DIRECTION_CHECKPOINT, h.pid, kfd, EINVAL,
		    "does not hold", 0,
		    "a KFD file that the task does not hold is refused");
	ktap_ok(!session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, h.pid, copy,
			     &id, &sfd), "traced, with its file, it is let in");
	close(sfd);
	close(copy);
	helper_stop(&h);
}

/* A thread that does not trace is not the tracer, though its process is. */
static void *other_thread(void *arg)
{
	struct raw own = { 0 };
	struct raw_ans *a = raw_ans_new();
	int *args = arg, sfd;
	uint64_t id;

	raw_open(&own);
	session_new(&own, a, GPUCR_DIRECTION_CHECKPOINT, args[0], args[1], &id,
		    &sfd);
	args[2] = refused(a, EPERM, "calling thread must trace");
	raw_close(&own);
	return NULL;
}

static void test_other_thread(void)
{
	struct helper h;
	pthread_t t;
	int args[3];

	if (!helper_start(&h, bare_target, NULL))
		ktap_bail("helper");
	seize(h.pid);
	args[0] = h.pid;
	args[1] = fd_of(h.pid, h.fd);
	if (pthread_create(&t, NULL, other_thread, args))
		ktap_bail("thread");
	pthread_join(t, NULL);
	ktap_ok(args[2], "another thread of the tracer is refused");
	close(args[1]);
	helper_stop(&h);
}

static void test_states(void)
{
	struct relay y;
	uint64_t id;
	int sfd;

	new_own(&id, &sfd);
	y = relay_of(GPUCR_CMD_SESSION_CHECKPOINT, id);
	y.num_devices = 1;
	y.priv_size = 16;
	relay_buffers(&y);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EINVAL, "not paused") && !y.accepted,
		"checkpoint before pause is refused");
	y = relay_of(GPUCR_CMD_SESSION_UNPAUSE, id);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EINVAL, "not paused") && !y.accepted,
		"unpause before pause is refused");
	y = relay_of(GPUCR_CMD_SESSION_RESUME, id);
	y.kfd_fd = kfd;
	y.pid = getpid();
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EINVAL, "for a checkpoint") && !y.accepted,
		"resume in a checkpoint session is refused");
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, ENODEV, "uses no GPU") && y.accepted &&
		y.done && y.state == GPUCR_SESSION_STATE_FAILED,
		"pause reaches KFD, which finds no GPU");
	ktap_ok(session_state(&nl, ans, id) == GPUCR_SESSION_STATE_FAILED &&
		raw_u32(&ans->msgs[0], GPUCR_A_SESSION_ERROR) == ENODEV,
		"the session has failed, and says why");
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EINVAL, "is over") && !y.accepted,
		"it takes no second pause");
	close(sfd);
	y.id = 1;
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, ENOENT, "no session") &&
		(y.late || y.bad == GPUCR_A_RELAY_ID), "a pause in no session is refused");
}

/* Opens KFD, forks, and the fork is the one that is traced. */
static int inherits(void *arg)
{
	int *pid = arg, pipefd[2], fd = open("/dev/kfd", O_RDWR);
	pid_t child;

	if (fd < 0 || pipe(pipefd))
		return -1;
	child = fork();
	if (!child) {
		close(pipefd[1]);
		/* ends with its parent */
		if (read(pipefd[0], &child, 1) < 0)
			_exit(1);
		_exit(0);
	}
	*pid = child;
	return fd;
}

static void test_inherited(void)
{
	static int *shared;
	struct helper h;
	struct relay y;
	uint64_t id;
	int copy, sfd;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!helper_start(&h, inherits, shared))
		ktap_bail("helper");
	seize(*shared);
	copy = fd_of(h.pid, h.fd);
	ktap_ok(!session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, *shared,
			     copy, &id, &sfd),
		"a task that inherited a KFD file holds it");
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EBADF, "could not be asked") && y.accepted,
		"but KFD refuses: it is another task's");
	close(sfd);
	close(copy);
	helper_stop(&h);
}

static int foreign_calls(void *arg)
{
	uint64_t id = *(uint64_t *)arg;
	struct relay y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	struct raw own;

	if (raw_open(&own))
		return 1;
	relay_call(&own, ans, &y);
	if (!relay_refused(&y, EPERM, "another process") || y.accepted)
		return 2;
	session_del(&own, ans, id);
	return refused(ans, EPERM, "only the owner") ? 0 : 3;
}

static void *read_answer(void *arg)
{
	raw_recv(arg, ans);
	return NULL;
}

static void test_owner(void)
{
	struct raw_req q;
	struct relay y;
	uint64_t id;
	pthread_t t;
	int sfd, n;

	new_own(&id, &sfd);
	n = in_child(foreign_calls, &id);
	ktap_ok(!n, "another process can neither pause nor end it (%d)", n);
	y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);
	relay_request(&nl, &q, &y);
	raw_send(&nl, &q);
	if (pthread_create(&t, NULL, read_answer, &nl))
		ktap_bail("thread");
	pthread_join(t, NULL);
	relay_answer(ans, &y);
	ktap_ok(relay_refused(&y, EPERM, "not the thread that asked") &&
		y.accepted && session_state(&nl, ans, id) ==
		GPUCR_SESSION_STATE_NEW,
		"a thread that did not ask does not get the call made");
	close(sfd);
}

static void test_restore(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct relay y;
	uint64_t id, cp;
	int sfd, cpfd;

	ktap_ok(!session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &id,
			     &sfd), "a restore session opens");
	y = relay_of(GPUCR_CMD_SESSION_RESTORE, id);
	y.kfd_fd = kfd;
	y.num_devices = 1;
	y.priv_size = 16;
	relay_buffers(&y);
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EPERM, "not joined"),
		"restore without joining is refused");
	session_join(&nl, ans, id, null);
	ktap_ok(refused(ans, EINVAL, "not a KFD file") &&
		ans->bad == GPUCR_A_SESSION_FD,
		"joining with another file is refused");
	new_own(&cp, &cpfd);
	session_join(&nl, ans, cp, kfd);
	ktap_ok(refused(ans, EINVAL, "only a restore"),
		"joining a checkpoint session is refused");
	close(cpfd);
	ktap_ok(!session_join(&nl, ans, id, kfd) &&
		!session_join(&nl, ans, id, kfd) && session_show(&nl, ans, id) &&
		raw_u32(&ans->msgs[0], GPUCR_A_SESSION_TASKS) == 1,
		"joining works, and twice is once");
	y.kfd_fd = -1;
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EINVAL, "kfd-fd is missing") &&
		(y.late || y.bad == GPUCR_A_RELAY_KFD_FD),
		"restore without a KFD file is refused");
	y.kfd_fd = kfd;
	y.priv = (void *)0xffffffff81000000;
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EFAULT, "not in the caller's memory") &&
		!y.accepted, "a buffer in kernel memory is refused");
	y.priv = NULL;
	y.priv_size = 0;
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EINVAL, "no private data") && !y.accepted,
		"restore of nothing is refused");
	y = relay_of(GPUCR_CMD_SESSION_RESUME, id);
	y.kfd_fd = kfd;
	y.pid = getpid();
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, ENODEV, "has not restored") && !y.accepted,
		"resume without a restore of ours never reaches KFD");
	y.pid = 0x7ffffff0;
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, ESRCH, "no task") && !y.accepted,
		"resume of no task is refused");
	y.pid = 0;
	relay_call(&nl, ans, &y);
	ktap_ok(relay_refused(&y, EINVAL, "pid is missing") &&
		(y.late || y.bad == GPUCR_A_RELAY_PID), "resume without a pid is refused");
	close(sfd);
	close(null);
}

static void test_version(void)
{
	struct kfd_ioctl_get_version_args v = { 0 };
	int err = kfd_version(kfd, &v);

	ktap_ok(!err && v.major_version == 1 && v.minor_version >= 6,
		"KFD answers with its version, %u.%u", v.major_version,
		v.minor_version);
}

int main(void)
{
	ans = raw_ans_new();
	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (kfd < 0) {
		ktap_plan(1);
		if (errno == EINVAL)
			ktap_skip("a KFD that opens without a GPU (up to 6.12)");
		else
			ktap_ok(false, "KFD opens, or refuses with EINVAL: %s",
				strerror(errno));
		return ktap_exit();
	}
	ktap_plan(42);
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	test_version();
	test_new();
	test_new_refusals();
	test_other_task();
	test_other_thread();
	test_states();
	test_inherited();
	test_owner();
	test_restore();
	return ktap_exit();
}
