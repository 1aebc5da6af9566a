// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything at once against one module: tasks that dump targets through
 * sessions, restore, list and meddle, and die at any point; targets that die
 * too.
 *
 *	stress [SECONDS [SEED]]		default: 20, from the clock
 *
 * TEST_STRESS_SECONDS and TEST_STRESS_SEED say the same. TEST_STRESS_FLOOR:
 * how many dumps, restores and recoveries there must be at least.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../ktap.h"
#include "../kmod/kfd.h"
#include "../kmod/util.h"

#define SECONDS		20
#define TARGETS		8
#define TASKS		8
#define ARENA		65536
#define FIRST_LOOSE_FD	64
/* The controller looks so often, and kills a target each so many times. */
#define TURN_US		50000
#define TURNS_A_TARGET	20
/* Guest time without KVM is slow time. */
#define END_MS		60000

enum count {
	DUMPS, RESTORES, LISTS, MEDDLES, ADOPTIONS, BUSY, KILLED_OWNERS,
	KILLED_TARGETS, FAULTY, COUNTS,
};

static const char * const count_names[COUNTS] = {
	"dumps", "restores", "lists", "other operations", "adoptions",
	"targets found busy", "owners killed", "targets killed",
	"unexpected answers",
};

struct shared {
	_Atomic uint64_t count[COUNTS];
	volatile bool stop;
	/* Changed by the controller only; a task may meet a dead one. */
	struct {
		volatile pid_t pid;
		volatile int kfd;
		volatile int render;
	} targets[TARGETS];
	uint64_t ids[TASKS];
	struct relay sample;
	char dev[ARENA], bo[ARENA], priv[ARENA];
};

static struct shared *shared;
static struct raw nl;
static struct raw_ans *ans;
static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return ((seed * 0x2545f4914f6cdd1dULL) >> 33) % n;
}

static void doze(unsigned int ms)
{
	usleep(1000 * below(ms));
}

/* What a task does not expect, whatever the others do. */
static void odd(const char *what, int err, const char *text)
{
	shared->count[FAULTY]++;
	ktap_note("%s: errno %d, \"%s\"", what, err, text);
}

/* A death that nobody prepared: no exit handler, no undo. */
static void maybe_die(unsigned int one_in)
{
	if (below(one_in))
		return;
	shared->count[KILLED_OWNERS]++;
	kill(getpid(), SIGKILL);
}

/* The target may die at any time; nothing else may go wrong. */
static bool dump_call(struct relay *y, uint8_t cmd, unsigned int target,
		      pid_t pid)
{
	y->cmd = cmd;
	if (!relay_call(&nl, ans, y))
		return true;
	if (shared->targets[target].pid == pid)
		odd("dump", y->error, y->text);
	return false;
}

static void dump_steps(uint64_t id, unsigned int n, pid_t target)
{
	struct relay y = relay_of(GPUCR_CMD_SESSION_PAUSE, id);

	maybe_die(24);
	if (!dump_call(&y, GPUCR_CMD_SESSION_PAUSE, n, target))
		return;
	maybe_die(4);
	relay_buffers(&y);
	if (below(4) && dump_call(&y, GPUCR_CMD_SESSION_CHECKPOINT, n, target))
		maybe_die(4);
	/* Forgotten: closing the session will have it undone. */
	if (below(8) && dump_call(&y, GPUCR_CMD_SESSION_UNPAUSE, n, target))
		shared->count[DUMPS]++;
	free(y.devices);
	free(y.bos);
	free(y.priv);
	maybe_die(24);
}

/* One life: what it traces is let go by its death. */
static void dump_once(unsigned int self)
{
	unsigned int n = below(TARGETS);
	pid_t target = shared->targets[n].pid;
	uint64_t id;
	int kfd, sfd = -1;

	if (target <= 0 || seize(target)) {
		shared->count[BUSY]++;
		return;
	}
	kfd = fd_of(target, shared->targets[n].kfd);
	if (kfd < 0 || session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, target,
				   kfd, &id, &sfd)) {
		/* Its session is still being ended, or it has died. */
		if (kfd >= 0 && ans->err != EBUSY && ans->err != ESRCH &&
		    ans->err != EPERM && ans->err != EINVAL)
			odd("session-new", ans->err, ans->text);
		return;
	}
	shared->ids[self] = id;
	if (raw_u32(&ans->msgs[0], GPUCR_A_SESSION_STATE) ==
	    GPUCR_SESSION_STATE_PAUSED)
		shared->count[ADOPTIONS]++;
	if (below(2))
		close(kfd);
	dump_steps(id, n, target);
}

static int restore_child(uint64_t id)
{
	struct relay y = shared->sample;
	struct kfd_criu_device_bucket *dev = (void *)shared->dev;
	static char dev_copy[ARENA], bo_copy[ARENA], priv_copy[ARENA];
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC), render;
	uint32_t gpu;

	if (kfd < 0 || raw_open(&nl) || !kfd_gpu(&gpu, &render))
		return -1;
	memcpy(dev_copy, dev, ARENA);
	memcpy(bo_copy, shared->bo, ARENA);
	memcpy(priv_copy, shared->priv, ARENA);
	((struct kfd_criu_device_bucket *)(void *)dev_copy)->drm_fd = render;
	if (session_join(&nl, ans, id, kfd)) {
		sleep(2);
		odd("session-join", ans->err, ans->text);
		return -1;
	}
	maybe_die(24);
	y.cmd = GPUCR_CMD_SESSION_RESTORE;
	y.id = id;
	y.kfd_fd = kfd;
	y.devices = dev_copy;
	y.bos = bo_copy;
	y.priv = priv_copy;
	if (relay_call(&nl, ans, &y)) {
		/* The owner's death ends the session, and then us. */
		sleep(2);
		odd("restore", y.error, y.text);
		return -1;
	}
	maybe_die(24);
	return kfd;
}

static int restore_fn(void *arg)
{
	return restore_child(*(uint64_t *)arg);
}

static void restore_once(unsigned int self)
{
	struct relay y;
	struct helper h;
	uint64_t id;
	int sfd;

	if (session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &id, &sfd)) {
		odd("session-new for a restore", ans->err, ans->text);
		return;
	}
	shared->ids[self] = id;
	if (helper_start(&h, restore_fn, &id)) {
		maybe_die(12);
		y = relay_of(GPUCR_CMD_SESSION_RESUME, id);
		y.pid = h.pid;
		y.kfd_fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
		if (!relay_call(&nl, ans, &y))
			shared->count[RESTORES]++;
		else
			odd("resume", y.error, y.text);
		close(y.kfd_fd);
	}
	helper_stop(&h);
	close(sfd);
}

/* Lists of everything, some of them not read to their end. */
static void list_once(unsigned int self)
{
	static const size_t sizes[] = { 4096, 8192, 32768, 0 };
	unsigned int n = below(TARGETS), what = below(3);
	pid_t target = shared->targets[n].pid;
	struct raw_req q;
	int fd;

	(void)self;
	nl.buf = sizes[below(4)];
	fd = fd_of(target, below(2) ? shared->targets[n].kfd :
				      shared->targets[n].render);
	if (what == 0) {
		raw_begin(&nl, &q, GPUCR_CMD_SESSION_GET, true);
	} else if (what == 1) {
		raw_begin(&nl, &q, GPUCR_CMD_BO_GET, true);
		raw_put_u32(&q, GPUCR_A_BO_FD, fd);
	} else {
		raw_begin(&nl, &q, GPUCR_CMD_VMA_GET, true);
		raw_put_u32(&q, GPUCR_A_VMA_PID, target);
		raw_put_u32(&q, GPUCR_A_VMA_FD, fd);
	}
	raw_send(&nl, &q);
	if (below(8)) {
		raw_recv(&nl, ans);
		if (!ans->err)
			shared->count[LISTS]++;
	} else {
		raw_close(&nl);
		raw_open(&nl);
	}
	close(fd);
}

/* Operations on others' sessions: refused, whatever they meet. */
static void meddle_once(unsigned int self)
{
	static const uint8_t cmds[] = {
		GPUCR_CMD_SESSION_PAUSE, GPUCR_CMD_SESSION_CHECKPOINT,
		GPUCR_CMD_SESSION_UNPAUSE, GPUCR_CMD_SESSION_RESTORE,
		GPUCR_CMD_SESSION_RESUME,
	};
	uint64_t id = shared->ids[below(TASKS)];
	struct relay y = relay_of(cmds[below(5)], id);

	(void)self;
	if (!below(3)) {
		session_del(&nl, ans, id);
		y.error = ans->err;
	} else if (!below(3)) {
		raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0);
		y.error = ans->err ? ans->err : EPERM;
	} else {
		y.kfd_fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
		y.pid = shared->targets[below(TARGETS)].pid;
		y.num_devices = 1;
		y.priv_size = 16;
		y.devices = shared->dev;
		y.priv = shared->priv;
		relay_call(&nl, ans, &y);
		close(y.kfd_fd);
	}
	if (!y.error)
		odd("meddling succeeded", y.cmd, y.text);
	shared->count[MEDDLES]++;
}

struct role {
	void (*once)(unsigned int self);
	unsigned int lives;	/* rounds before it is a new process */
	unsigned int doze_ms;
};

static const struct role roles[TASKS] = {
	{ dump_once, 1, 30 }, { dump_once, 1, 30 }, { dump_once, 1, 30 },
	{ restore_once, 50, 20 }, { restore_once, 50, 20 },
	{ list_once, 1000, 30 }, { list_once, 1000, 30 },
	{ meddle_once, 1000, 30 },
};

static void task(unsigned int self, uint64_t its_seed)
{
	const struct role *role = &roles[self];
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seed = its_seed;
	if (raw_open(&nl))
		_exit(1);
	for (i = 0; i < role->lives && !shared->stop; i++) {
		role->once(self);
		doze(role->doze_ms);
	}
	_exit(0);
}

static pid_t task_start(unsigned int self)
{
	uint64_t its_seed = seed + below(1 << 30);
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		task(self, its_seed | 1);
	return pid;
}

static void target_start(unsigned int n)
{
	struct kfd_target t = { .bos = 2 };
	struct helper h;

	if (!helper_start(&h, kfd_target, &t))
		ktap_bail("no target");
	shared->targets[n].kfd = h.fd;
	/* The render node was opened right after KFD. */
	shared->targets[n].render = h.fd + 1;
	shared->targets[n].pid = h.pid;
}

/* A tracer that dies leaves it; then it is ours to wait for. */
static void target_stop(unsigned int n)
{
	pid_t pid = shared->targets[n].pid;

	shared->targets[n].pid = 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
}

static void sample_take(void)
{
	struct relay *y = &shared->sample;

	target_start(0);
	*y = (struct relay) {
		.devices = shared->dev, .bos = shared->bo, .priv = shared->priv,
	};
	if (!relay_sample(&nl, ans, shared->targets[0].pid,
			  shared->targets[0].kfd, y))
		ktap_bail("no sample");
	target_stop(0);
}

/* Whose turn it is: tasks that ended begin anew, some are killed. */
static void mind_tasks(pid_t *tasks)
{
	static unsigned int turn;
	unsigned int i;
	int st;

	for (i = 0; i < TASKS; i++) {
		if (!tasks[i] || waitpid(tasks[i], &st, WNOHANG) == tasks[i]) {
			if (tasks[i] && !(WIFEXITED(st) && !WEXITSTATUS(st)) &&
			    !(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL))
				odd("a task ended", st, "");
			tasks[i] = task_start(i);
		} else if (!below(200)) {
			kill(tasks[i], SIGKILL);
			shared->count[KILLED_OWNERS]++;
		}
	}
	if (!(++turn % TURNS_A_TARGET)) {
		i = below(TARGETS);
		target_stop(i);
		shared->count[KILLED_TARGETS]++;
		target_start(i);
	}
}

static void run(unsigned int seconds)
{
	pid_t tasks[TASKS] = { 0 };
	time_t end = time(NULL) + seconds;
	struct busy witness;
	unsigned int i;

	if (!busy_start(&witness))
		ktap_bail("vecloop");
	/* Beside it all there is one whom nobody touches. */
	kill(witness.pid, SIGSTOP);
	for (i = 0; i < TARGETS; i++)
		target_start(i);
	while (time(NULL) < end) {
		mind_tasks(tasks);
		usleep(TURN_US);
	}
	shared->stop = true;
	for (i = 0; i < TASKS; i++)
		waitpid(tasks[i], NULL, 0);
	kill(witness.pid, SIGCONT);
	ktap_ok(busy_moves_within(&witness, END_MS),
		"a process beside it all is at work");
	busy_stop(&witness);
	for (i = 0; i < TARGETS; i++)
		target_stop(i);
}

static uint64_t recovered(void)
{
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0);
	return ans->err ? 0 : raw_u64(&ans->msgs[0],
				      GPUCR_A_INFO_SESSIONS_RECOVERED);
}

static void test_counts(uint64_t floor, uint64_t recoveries)
{
	const _Atomic uint64_t *c = shared->count;
	unsigned int i;

	for (i = 0; i < COUNTS; i++)
		ktap_note("%7lu %s", c[i], count_names[i]);
	ktap_note("%7lu recoveries", recoveries);
	ktap_ok(!c[FAULTY], "no answer but what was expected");
	ktap_ok(c[DUMPS] >= floor && c[RESTORES] >= floor &&
		recoveries >= floor,
		"%lu dumps, %lu restores, %lu recoveries: each %lu at least",
		c[DUMPS], c[RESTORES], recoveries, floor);
	ktap_ok(c[LISTS] >= floor && c[MEDDLES] >= floor &&
		c[KILLED_OWNERS] && c[KILLED_TARGETS],
		"and the rest was there to disturb them");
}

static void test_nothing_left(void)
{
	int i;

	for (i = 0; i < END_MS / 20; i++) {
		raw_ask(&nl, ans, GPUCR_CMD_SESSION_GET, true, 0, 0, 0, 0);
		if (!ans->err && !ans->num && !gpu_stat("processes"))
			break;
		usleep(20000);
	}
	ktap_ok(!ans->err && !ans->num && !gpu_stat("processes") &&
		!gpu_stat("bos"),
		"nothing is left: %zu sessions, %lld processes, %lld BOs",
		ans->num, gpu_stat("processes"), gpu_stat("bos"));
	ktap_ok(!gpu_stat("resume_stray") && !gpu_stat("resume_null") &&
		!gpu_stat("corruption"), "KFD saw no stray resume");
	raw_close(&nl);
	for (i = 0; i < 50 && syscall(SYS_delete_module, "gpucr", O_NONBLOCK);
	     i++)
		usleep(100000);
	ktap_ok(i < 50, "the module unloads: nothing holds it");
	ktap_ok(!system("modprobe gpucr"), "and loads again");
}

static uint64_t number(int argc, char **argv, int arg, const char *env,
		       uint64_t otherwise)
{
	const char *s = argc > arg ? argv[arg] : getenv(env);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
	unsigned int seconds = number(argc, argv, 1, "TEST_STRESS_SECONDS",
				      SECONDS);
	uint64_t before, floor = number(0, NULL, 0, "TEST_STRESS_FLOOR", 3);

	seed = number(argc, argv, 2, "TEST_STRESS_SEED", time(NULL)) | 1;
	ktap_plan(8);
	ktap_note("seed %lu", seed);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ans = raw_ans_new();
	if (shared == MAP_FAILED || raw_open(&nl))
		ktap_bail("family gpucr is absent");
	sample_take();
	before = recovered();
	/* As a canary it leaves a session behind. */
	if (ktap_canary())
		session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1,
			    &(uint64_t) { 0 }, &(int) { 0 });
	run(seconds);
	test_counts(floor, recovered() - before);
	test_nothing_left();
	return ktap_exit();
}
