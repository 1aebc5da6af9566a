// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions and relays on a simulated GPU: states, counts, buffers, what is
 * left after a failure, and the ledger that keeps RESUME from KFD.
 *
 * Mutations that must turn this red: no UNPAUSE before PROCESS_INFO; PAUSED
 * not kept after a failed checkpoint; the ledger not marked, or not compared
 * with the task's memory; RESTORE for a session that has ended; no module
 * reference while paused. (That the ledger's memory is referenced is not seen
 * here: its address would have to come again, which the allocator decides.)
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gpucr_layout.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

#define FAULT	"/sys/kernel/debug/kfdsim/fault"

static struct raw nl;
static struct raw_ans *ans;

/* A target that we trace, and a session on it. */
struct job {
	struct helper h;
	int kfd;
	uint64_t id;
	int sfd;
	struct relay y;
};

static void job_start(struct job *j, unsigned int bos)
{
	struct kfd_target t = { .bos = bos };

	if (!helper_start(&j->h, kfd_target, &t))
		ktap_bail("no simulated GPU");
	if (seize(j->h.pid))
		ktap_bail("seize");
	j->kfd = fd_of(j->h.pid, j->h.fd);
	if (session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, j->h.pid, j->kfd,
			&j->id, &j->sfd))
		ktap_bail("session-new: %s", ans->text);
	j->y = relay_of(GPUCR_CMD_SESSION_PAUSE, j->id);
}

static void job_end(struct job *j)
{
	close(j->sfd);
	close(j->kfd);
	helper_stop(&j->h);
}

static int job_call(struct job *j, uint8_t cmd)
{
	j->y.cmd = cmd;
	return relay_call(&nl, ans, &j->y);
}

static int state_of(struct job *j)
{
	return session_state(&nl, ans, j->id);
}

static int rmmod(void)
{
	return syscall(SYS_delete_module, "gpucr", O_NONBLOCK) ? errno : 0;
}

static void test_pause(struct job *j)
{
	const struct raw_msg *m;
	uint64_t first;

	ktap_ok(!job_call(j, GPUCR_CMD_SESSION_PAUSE) && j->y.accepted &&
		j->y.done && j->y.state == GPUCR_SESSION_STATE_PAUSED,
		"pause is accepted, then done");
	ktap_ok(j->y.num_devices == 1 && j->y.num_bos == 3 &&
		j->y.num_objects == 0 && j->y.priv_size > 16 &&
		j->y.told_pid == (uint32_t)j->h.pid,
		"it counts what the target has: %u GPU, %u BOs",
		j->y.num_devices, j->y.num_bos);
	m = session_show(&nl, ans, j->id);
	ktap_ok(m && raw_u32(m, GPUCR_A_SESSION_NUM_BOS) == 3 &&
		raw_u64(m, GPUCR_A_SESSION_PRIV_SIZE) == j->y.priv_size &&
		raw_has(m, GPUCR_A_SESSION_PAUSED_MS),
		"session-get tells the counts and the pause");
	first = raw_u64(m, GPUCR_A_SESSION_PAUSED_MS);
	usleep(50000);
	m = session_show(&nl, ans, j->id);
	ktap_ok(raw_u64(m, GPUCR_A_SESSION_PAUSED_MS) >= first + 40,
		"the pause grows while it lasts");
	session_del(&nl, ans, j->id);
	ktap_ok(refused(ans, EBUSY, "is paused"),
		"a session with a paused target does not end");
	ktap_ok(rmmod() == EAGAIN || rmmod() == EWOULDBLOCK,
		"the module does not unload meanwhile");
}

static int close_fds(const struct relay *y)
{
	struct kfd_criu_bo_bucket *b = y->bos;
	unsigned int i;
	int n = 0;

	for (i = 0; i < y->num_bos; i++)
		n += !close(b[i].dmabuf_fd);
	return n;
}

static void test_checkpoint(struct job *j)
{
	struct kfd_criu_device_bucket *dev;
	struct gpucr_kfdpriv p;
	struct gpucr_kfdpriv_bo bo;
	uint32_t gpu;
	int render, err;

	relay_buffers(&j->y);
	j->y.num_bos--;
	ktap_ok(job_call(j, GPUCR_CMD_SESSION_CHECKPOINT) == EINVAL &&
		j->y.accepted && j->y.state == GPUCR_SESSION_STATE_PAUSED,
		"a checkpoint with a wrong count fails, and leaves it paused");
	j->y.num_bos++;
	ktap_ok(!job_call(j, GPUCR_CMD_SESSION_CHECKPOINT) &&
		j->y.state == GPUCR_SESSION_STATE_CHECKPOINTED,
		"a checkpoint with the right ones succeeds");
	dev = j->y.devices;
	if (!kfd_gpu(&gpu, &render))
		ktap_bail("no GPU");
	close(render);
	ktap_ok(dev->user_gpu_id == gpu && close_fds(&j->y) == 3,
		"devices are told, and each BO has a dma-buf descriptor");
	p = (struct gpucr_kfdpriv) {
		.data = j->y.priv, .size = j->y.priv_size,
		.num_devices = j->y.num_devices, .num_bos = j->y.num_bos,
		.num_objects = j->y.num_objects,
	};
	err = gpucr_kfdpriv_open(&p, 0);
	ktap_ok(!err && !gpucr_kfdpriv_bo(&p, 0, &bo),
		"private data is in the known layout, BO record of %u bytes",
		p.bo_size);
}

static void test_unpause(struct job *j)
{
	uint64_t id;
	int sfd;

	ktap_ok(!job_call(j, GPUCR_CMD_SESSION_UNPAUSE) &&
		j->y.state == GPUCR_SESSION_STATE_UNPAUSED,
		"unpause succeeds");
	job_call(j, GPUCR_CMD_SESSION_UNPAUSE);
	ktap_ok(relay_refused(&j->y, EINVAL, "not paused") && !j->y.accepted,
		"a second one is refused");
	job_call(j, GPUCR_CMD_SESSION_PAUSE);
	ktap_ok(relay_refused(&j->y, EINVAL, "is over"),
		"and so is another pause");
	ktap_ok(!session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, j->h.pid,
			     j->kfd, &id, &sfd),
		"another session opens beside the finished one");
	close(sfd);
}

static void test_life(void)
{
	struct job j;

	job_start(&j, 3);
	test_pause(&j);
	test_checkpoint(&j);
	test_unpause(&j);
	job_end(&j);
}

/* Pauses count on some kernels; whatever was before, one unpause is enough. */
static void test_heals(void)
{
	struct kfd_ioctl_criu_args a = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct busy b;
	struct job j;

	if (!busy_start(&b))
		ktap_bail("vecloop");
	seize(b.pid);
	j.kfd = fd_of(b.pid, b.kfd);
	ioctl(j.kfd, AMDKFD_IOC_CRIU_OP, &a);
	ktap_ok(!busy_moves(&b, 300), "somebody else left the target paused");
	if (session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, b.pid, j.kfd,
			&j.id, &j.sfd))
		ktap_bail("session-new: %s", ans->text);
	j.y = relay_of(GPUCR_CMD_SESSION_PAUSE, j.id);
	ktap_ok(!job_call(&j, GPUCR_CMD_SESSION_PAUSE) &&
		!job_call(&j, GPUCR_CMD_SESSION_PAUSE) && !busy_moves(&b, 300),
		"pausing it, and again, works and holds");
	ktap_ok(!job_call(&j, GPUCR_CMD_SESSION_UNPAUSE) &&
		busy_moves_within(&b, 2000), "one unpause sets it going");
	close(j.sfd);
	close(j.kfd);
	busy_stop(&b);
}

static void test_faults(void)
{
	struct job j;

	job_start(&j, 1);
	spit(FAULT, "point=criu-process-info errno=5 count=1");
	ktap_ok(job_call(&j, GPUCR_CMD_SESSION_PAUSE) == EIO &&
		strstr(j.y.text, "could not stop") &&
		j.y.state == GPUCR_SESSION_STATE_FAILED,
		"a pause that KFD fails ends the session");
	spit(FAULT, "clear");
	job_end(&j);

	job_start(&j, 1);
	job_call(&j, GPUCR_CMD_SESSION_PAUSE);
	relay_buffers(&j.y);
	spit(FAULT, "point=criu-checkpoint errno=12 count=1");
	ktap_ok(job_call(&j, GPUCR_CMD_SESSION_CHECKPOINT) == ENOMEM &&
		j.y.state == GPUCR_SESSION_STATE_PAUSED && state_of(&j) ==
		GPUCR_SESSION_STATE_PAUSED &&
		raw_u32(&ans->msgs[0], GPUCR_A_SESSION_ERROR) == ENOMEM,
		"a checkpoint that KFD fails leaves it paused, and is recorded");
	spit(FAULT, "point=criu-unpause errno=5 count=1");
	ktap_ok(job_call(&j, GPUCR_CMD_SESSION_UNPAUSE) == EIO &&
		j.y.state == GPUCR_SESSION_STATE_PAUSED,
		"an unpause that KFD fails leaves it paused");
	spit(FAULT, "clear");
	ktap_ok(!job_call(&j, GPUCR_CMD_SESSION_UNPAUSE) &&
		j.y.state == GPUCR_SESSION_STATE_UNPAUSED, "it may be repeated");
	job_end(&j);
}

/* The target's file and its BOs, seen without stopping anything. */
static void test_inspect(void)
{
	struct kfd_target t = { .bos = 3 };
	struct helper h;
	size_t i, mapped = 0;
	int render;

	if (!helper_start(&h, kfd_target, &t))
		ktap_bail("no simulated GPU");
	/* The render node was opened right after KFD. */
	render = fd_of(h.pid, h.fd + 1);
	raw_ask(&nl, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD, render, 0, 0);
	for (i = 0; i < ans->num; i++)
		mapped += raw_u32(&ans->msgs[i], GPUCR_A_BO_FLAGS) ==
			  GPUCR_BO_FLAGS_MAPPED_ONLY &&
			  raw_u64(&ans->msgs[i], GPUCR_A_BO_SIZE) == 65536 &&
			  !raw_has(&ans->msgs[i], GPUCR_A_BO_HANDLE);
	ktap_ok(!ans->err && ans->num == 3 && mapped == 3,
		"KFD's BOs are told as mapped-only, nobody traced or stopped");
	close(render);
	helper_stop(&h);
}

static size_t count_kind(uint32_t kind, bool gpu)
{
	size_t i, n = 0;

	for (i = 0; i < ans->num; i++)
		n += raw_u32(&ans->msgs[i], GPUCR_A_VMA_KIND) == kind &&
		     (raw_u32(&ans->msgs[i], GPUCR_A_VMA_GPU_ID) != 0) == gpu;
	return n;
}

static void test_kfd_vmas(void)
{
	struct raw_req q;
	struct busy b;
	int copy;

	if (!busy_start(&b))
		ktap_bail("vecloop");
	copy = fd_of(b.pid, b.kfd);
	raw_begin(&nl, &q, GPUCR_CMD_VMA_GET, true);
	raw_put_u32(&q, GPUCR_A_VMA_PID, b.pid);
	raw_put_u32(&q, GPUCR_A_VMA_FD, copy);
	raw_call(&nl, &q, ans);
	ktap_ok(!ans->err && count_kind(GPUCR_VMA_KIND_DOORBELL, true) == 1 &&
		count_kind(GPUCR_VMA_KIND_BO, false) == 0,
		"doorbells are told with their GPU");
	close(copy);
	busy_stop(&b);
}

static int joins_only(void *arg)
{
	struct restorer *t = arg;
	int kfd = open("/dev/kfd", O_RDWR);
	struct raw own;

	if (kfd < 0 || raw_open(&own) || session_join(&own, ans, t->id, kfd))
		return -1;
	return kfd;
}

static struct restorer *restorer(void)
{
	struct relay from;

	if (!relay_sample_bos(&nl, ans, 0, &from))
		ktap_bail("no sample");
	return restorer_new(&from);
}

static void resume_refused(struct relay *y, pid_t pid, int err,
			   const char *words, const char *what)
{
	y->pid = pid;
	relay_call(&nl, ans, y);
	ktap_ok(relay_refused(y, err, words) && !y->accepted, "%s", what);
}

static void test_restore(void)
{
	struct restorer *t = restorer();
	struct helper good, idle;
	struct relay y;
	int sfd;

	session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &t->id, &sfd);
	ktap_ok(helper_start(&good, restorer_run, t) &&
		session_state(&nl, ans, t->id) == GPUCR_SESSION_STATE_RESTORED,
		"a task that joined restores on its own KFD file");
	if (!helper_start(&idle, joins_only, t))
		ktap_bail("joiner");
	y = relay_of(GPUCR_CMD_SESSION_RESUME, t->id);
	y.kfd_fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	resume_refused(&y, idle.pid, ENODEV, "has not restored",
		       "a task that only joined is not resumed");
	resume_refused(&y, getpid(), ENODEV, "has not restored",
		       "nor is one that did not even join");
	y.pid = good.pid;
	ktap_ok(!relay_call(&nl, ans, &y) && y.accepted &&
		y.state == GPUCR_SESSION_STATE_RESUMED,
		"the task that restored is resumed");
	resume_refused(&y, good.pid, EALREADY, "resumed already",
		       "once: a second resume never reaches KFD");
	ktap_ok(gpu_stat("resume_stray") == 0 && gpu_stat("resume_null") == 0 &&
		gpu_stat("corruption") == 0, "KFD saw no stray resume");
	close(sfd);
	close(y.kfd_fd);
	helper_stop(&good);
	helper_stop(&idle);
}

/* The ledger knows the program, not only the pid. env(1) makes an exec more. */
static pid_t restore_then_exec(struct restorer *arg, int more)
{
	char *argv[] = { "env", "env", "env", "sleep", "60", NULL };
	pid_t pid = fork();

	if (!pid) {
		if (restorer_run(arg) < 0)
			_exit(1);
		execvp(argv[3 - more], argv + 3 - more);
		_exit(1);
	}
	return pid;
}

/* Returns what came of resuming it, a positive errno. */
static int exec_then_resume(struct restorer *t, int more)
{
	char path[64];
	struct relay y;
	pid_t pid;
	int sfd, i;

	session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &t->id, &sfd);
	pid = restore_then_exec(t, more);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	for (i = 0; i < 500 && strcmp(slurp(path), "sleep\n"); i++)
		usleep(10000);
	if (session_state(&nl, ans, t->id) != GPUCR_SESSION_STATE_RESTORED)
		ktap_bail("no restore");
	y = relay_of(GPUCR_CMD_SESSION_RESUME, t->id);
	y.kfd_fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	y.pid = pid;
	relay_call(&nl, ans, &y);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(y.kfd_fd);
	close(sfd);
	return !relay_refused(&y, ENODEV, "has not restored") || y.accepted;
}

static void test_exec(void)
{
	struct restorer *t = restorer();
	int i, n = 0;

	for (i = 0; i < 4 && !n; i++)
		n = exec_then_resume(t, i);
	ktap_ok(!n, "a task restored, and became another program, which is not resumed (%d of 4 times)",
		i);
}

static pid_t restore_alone(const struct restorer *t)
{
	struct restorer own = *t;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(restorer_run(&own) < 0 ? own.error : 0);
	return pid;
}

/* The second waits for the first, and the owner does not wait for either. */
static void test_late(void)
{
	struct restorer *t = restorer();
	int st[2] = { -1, -1 }, i;
	pid_t pid[2];

	session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &t->id, &t->sfd);
	spit(FAULT, "point=criu-restore delay_ms=3000 count=1");
	pid[0] = restore_alone(t);
	session_wait(&nl, ans, t->id, GPUCR_SESSION_STATE_RESTORING, 8000);
	pid[1] = restore_alone(t);
	for (i = 0; i < 100 && session_show(&nl, ans, t->id) &&
		    raw_u32(&ans->msgs[0], GPUCR_A_SESSION_TASKS) < 2; i++)
		usleep(10000);
	usleep(300000);
	close(t->sfd);
	for (i = 0; i < 2; i++)
		waitpid(pid[i], &st[i], 0);
	spit(FAULT, "clear");
	ktap_ok(!st[0] && WIFEXITED(st[1]) && WEXITSTATUS(st[1]) == ECANCELED,
		"once a session has ended nobody restores for it any more (%d)",
		WEXITSTATUS(st[1]));
}

static void test_bad_restore(void)
{
	struct restorer *t = restorer();
	struct helper h;
	int sfd;

	session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &t->id, &sfd);
	spit(FAULT, "point=criu-restore errno=12 count=1");
	ktap_ok(!helper_start(&h, restorer_run, t) &&
		session_state(&nl, ans, t->id) == GPUCR_SESSION_STATE_FAILED &&
		raw_u32(&ans->msgs[0], GPUCR_A_SESSION_ERROR) == ENOMEM,
		"a restore that KFD fails fails the session");
	spit(FAULT, "clear");
	helper_stop(&h);
	ktap_ok(!helper_start(&h, restorer_run, t), "which takes no more tasks");
	helper_stop(&h);
	close(sfd);
}

static void test_nothing_left(void)
{
	int i;

	/* KFD keeps what it knows of us until our end. */
	for (i = 0; i < 200 && gpu_stat("processes") > 1; i++)
		usleep(10000);
	raw_ask(&nl, ans, GPUCR_CMD_SESSION_GET, true, 0, 0, 0, 0);
	ktap_ok(!ans->num && gpu_stat("processes") == 1 &&
		gpu_stat("bos") == 0,
		"nothing is left: %zu sessions, %lld processes (we), %lld BOs",
		ans->num, gpu_stat("processes"), gpu_stat("bos"));
}

int main(void)
{
	ktap_plan(34);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	test_life();
	test_heals();
	test_faults();
	test_inspect();
	test_kfd_vmas();
	test_restore();
	test_exec();
	test_late();
	test_bad_restore();
	test_nothing_left();
	return ktap_exit();
}
