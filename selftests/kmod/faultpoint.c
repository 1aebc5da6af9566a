// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every fault point of the module, one after the other: the state afterwards
 * is the one that kmod/fault.c promises, the target's queue moves (at once or
 * by what is promised to mend it), nothing is left, and the module unloads.
 *
 * Mutations, each seen to turn this red: no undo of a failed pause, or FAILED
 * where the undo fails too; a session that ends with its owner while KFD
 * pauses, or is not undone then; a state that is not kept after a failed
 * checkpoint or unpause; one try of the helper only; a resume that may be
 * repeated; an event sent all the same; a session or a file leaked on the ways
 * out of session-new (a descriptor must, and was not tried); of the parameter:
 * counts of 0 or without end, errnos out of range, a refused list taken in
 * part, names not logged, no taint, a count not counted down, points armed one
 * at a time only. A point that is not there: the module's list is compared
 * with the table here. (A session leaked by a relay is seen by kmemleak only.)
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gpucr_layout.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

#define FAULT	"/sys/module/gpucr/parameters/fault"
#define KFD_FAULT	"/sys/kernel/debug/kfdsim/fault"
#define BOS	2
/* Guest time without KVM is slow time. */
#define LONG_MS	8000

static struct raw nl;
static struct raw_ans *ans;

/* A running target that we trace, and a session on it. */
struct job {
	struct busy b;
	int kfd;
	uint64_t id;
	int sfd;
	struct relay y;
};

static bool arm(const char *faults)
{
	return spit(FAULT, faults);
}

/* How often it has failed since the module was loaded. */
static int fired(const char *point)
{
	const char *s = slurp(FAULT);
	size_t len = strlen(point);
	int left, n;

	for (; *s; s = strchr(s, '\n') + 1)
		if (!strncmp(s, point, len) && s[len] == ' ' &&
		    sscanf(s + len, "%*d %d %d", &left, &n) == 2)
			return n;
	return -1;
}

static bool job_target(struct job *j)
{
	if (!busy_start(&j->b) || seize(j->b.pid))
		return false;
	j->kfd = fd_of(j->b.pid, j->b.kfd);
	j->sfd = -1;
	return j->kfd >= 0;
}

static int job_session(struct job *j)
{
	int err = session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, j->b.pid,
			      j->kfd, &j->id, &j->sfd);

	j->y = relay_of(GPUCR_CMD_SESSION_PAUSE, j->id);
	return err;
}

static int job_call(struct job *j, uint8_t cmd)
{
	j->y.cmd = cmd;
	return relay_call(&nl, ans, &j->y);
}

static bool job_is(struct job *j, uint32_t state)
{
	return session_state(&nl, ans, j->id) == (int)state;
}

static void job_end(struct job *j)
{
	if (j->sfd >= 0)
		close(j->sfd);
	close(j->kfd);
	busy_stop(&j->b);
}

static size_t num_sessions(void)
{
	raw_ask(&nl, ans, GPUCR_CMD_SESSION_GET, true, 0, 0, 0, 0);
	return ans->err ? (size_t)-1 : ans->num;
}

/* The next free descriptor: one that is only reserved counts as well. */
static int next_fd(void)
{
	int fd = dup(STDOUT_FILENO);

	close(fd);
	return fd;
}

/* --- one function a promise; each returns 0 or where it was broken ------- */

static int refused_session(const char *faults)
{
	struct job j;
	int next, ret = 0;

	if (!job_target(&j))
		return 1;
	next = next_fd();
	arm(faults);
	if (job_session(&j) != EIO || num_sessions() || next_fd() != next)
		ret = 2;
	else if (job_session(&j) || num_sessions() != 1)
		ret = 3;
	else if (!busy_moves_within(&j.b, LONG_MS))
		ret = 4;
	job_end(&j);
	return ret;
}

static int refused_join(const char *faults)
{
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC), sfd, ret = 0;
	uint64_t id;

	if (session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &id, &sfd))
		return 1;
	arm(faults);
	if (session_join(&nl, ans, id, kfd) != EIO ||
	    raw_u32(session_show(&nl, ans, id), GPUCR_A_SESSION_TASKS))
		ret = 2;
	else if (session_join(&nl, ans, id, kfd) ||
		 raw_u32(session_show(&nl, ans, id), GPUCR_A_SESSION_TASKS) != 1)
		ret = 3;
	close(sfd);
	close(kfd);
	return ret;
}

static int refused_list(const char *faults)
{
	arm(faults);
	if (raw_ask(&nl, ans, GPUCR_CMD_SESSION_GET, true, 0, 0, 0, 0) != ENOMEM)
		return 1;
	return num_sessions() ? 2 : 0;
}

/* Which states the events of the next moment tell, as bits. */
static unsigned int events_of(struct raw *ev)
{
	struct timeval tv = { .tv_usec = 300000 };
	unsigned int seen = 0;
	size_t i;

	setsockopt(ev->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	ev->seq = 0;
	raw_recv(ev, ans);
	for (i = 0; i < ans->num; i++)
		seen |= 1u << raw_u32(&ans->msgs[i], GPUCR_A_SESSION_STATE);
	return seen;
}

static int lost_event(const char *faults)
{
	struct raw ev;
	struct job j;
	unsigned int seen;
	int ret = 0;

	if (!job_target(&j) || job_session(&j) || raw_open(&ev) ||
	    setsockopt(ev.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &ev.group,
		       sizeof(ev.group)))
		return 1;
	arm(faults);
	if (job_call(&j, GPUCR_CMD_SESSION_PAUSE) ||
	    !job_is(&j, GPUCR_SESSION_STATE_PAUSED))
		ret = 2;
	job_call(&j, GPUCR_CMD_SESSION_UNPAUSE);
	seen = events_of(&ev);
	if (!ret && seen != 1u << GPUCR_SESSION_STATE_UNPAUSED)
		ret = 3;
	close(ev.fd);
	job_end(&j);
	return ret;
}

/* A dumper that pauses the target and then waits for its death. */
static pid_t dumper(struct busy *b, uint64_t *id)
{
	struct relay y;
	struct raw own;
	int out[2], kfd, sfd;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (raw_open(&own) || seize(b->pid))
			_exit(1);
		kfd = fd_of(b->pid, b->kfd);
		if (session_new(&own, ans, GPUCR_DIRECTION_CHECKPOINT, b->pid,
				kfd, id, &sfd))
			_exit(2);
		y = relay_of(GPUCR_CMD_SESSION_PAUSE, *id);
		if (relay_call(&own, ans, &y) ||
		    write(out[1], id, sizeof(*id)) != sizeof(*id))
			_exit(3);
		for (;;)
			pause();
	}
	close(out[1]);
	if (read(out[0], id, sizeof(*id)) != sizeof(*id))
		pid = -1;
	close(out[0]);
	return pid;
}

/* A paused target whose dumper has been killed. */
static int orphan(struct busy *b, uint64_t *id, const char *faults)
{
	pid_t pid;

	if (!busy_start(b))
		return 1;
	pid = dumper(b, id);
	if (pid < 0)
		return 2;
	arm(faults);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static int helper_again(const char *faults)
{
	struct busy b;
	uint64_t id;
	int ret = orphan(&b, &id, faults);

	if (!ret && (!session_wait(&nl, ans, id, -1, LONG_MS) ||
		     !busy_moves_within(&b, LONG_MS)))
		ret = 3;
	busy_stop(&b);
	return ret;
}

static uint64_t recovery_failed(void)
{
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0);
	return raw_u64(&ans->msgs[0], GPUCR_A_INFO_SESSIONS_RECOVERY_FAILED);
}

/* Three times, and it is given up; running it by hand mends it. */
static int helper_given_up(const char *faults)
{
	char cmd[80];
	struct busy b;
	uint64_t id;
	int i, ret = orphan(&b, &id, faults);

	for (i = 0; !ret && i < 1000 && !recovery_failed(); i++)
		usleep(10000);
	if (!ret && (recovery_failed() != 1 || busy_moves(&b, 200) ||
		     session_state(&nl, ans, id) !=
		     GPUCR_SESSION_STATE_ABANDONED))
		ret = 3;
	if (!ret && (!syscall(SYS_delete_module, "gpucr", O_NONBLOCK) ||
		     errno != EAGAIN))
		ret = 4;
	snprintf(cmd, sizeof(cmd), "gpucr session recover id 0x%llx >/dev/null",
		 (unsigned long long)id);
	if (!ret && (system(cmd) || !busy_moves_within(&b, LONG_MS)))
		ret = 5;
	busy_stop(&b);
	return ret;
}

/* A pause fails and leaves the session in that state, the target running. */
static int pause_leaves(const char *faults, uint32_t state, bool left_paused)
{
	struct kfd_ioctl_criu_args a = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct job j;
	int ret = 0;

	if (!job_target(&j) || job_session(&j))
		return 1;
	if (left_paused && ioctl(j.kfd, AMDKFD_IOC_CRIU_OP, &a))
		return 2;
	arm(faults);
	if (job_call(&j, GPUCR_CMD_SESSION_PAUSE) != EIO || !job_is(&j, state))
		ret = 3;
	else if (!busy_moves_within(&j.b, LONG_MS))
		ret = 4;
	else if (state == GPUCR_SESSION_STATE_NEW &&
		 (job_call(&j, GPUCR_CMD_SESSION_PAUSE) ||
		  job_call(&j, GPUCR_CMD_SESSION_UNPAUSE) ||
		  !busy_moves_within(&j.b, LONG_MS)))
		ret = 5;
	job_end(&j);
	return ret;
}

static int pause_as_before(const char *faults)
{
	return pause_leaves(faults, GPUCR_SESSION_STATE_NEW, false);
}

static int pause_healed(const char *faults)
{
	return pause_leaves(faults, GPUCR_SESSION_STATE_NEW, true);
}

static int pause_failed(const char *faults)
{
	return pause_leaves(faults, GPUCR_SESSION_STATE_FAILED, false);
}

/* Neither pause nor its undoing is sure: the session answers for it. */
static int pause_due(const char *faults)
{
	struct job j;
	int ret = 0;

	if (!job_target(&j) || job_session(&j))
		return 1;
	arm(faults);
	if (job_call(&j, GPUCR_CMD_SESSION_PAUSE) != EIO ||
	    !job_is(&j, GPUCR_SESSION_STATE_PAUSED))
		ret = 2;
	else if (job_call(&j, GPUCR_CMD_SESSION_UNPAUSE) ||
		 !job_is(&j, GPUCR_SESSION_STATE_UNPAUSED) ||
		 !busy_moves_within(&j.b, LONG_MS))
		ret = 3;
	job_end(&j);
	return ret;
}

static void *close_soon(void *arg)
{
	usleep(500000);
	close(*(int *)arg);
	return NULL;
}

/* A dumper that lets go of its session while KFD pauses the target. */
static int fickle_dumper(void *arg)
{
	struct busy *b = arg;
	pthread_t t;
	struct job j = { .b = *b };

	if (raw_open(&nl) || seize(b->pid))
		return 1;
	j.kfd = fd_of(b->pid, b->kfd);
	if (job_session(&j))
		return 2;
	spit(KFD_FAULT, "point=criu-process-info delay_ms=2000 count=1");
	pthread_create(&t, NULL, close_soon, &j.sfd);
	job_call(&j, GPUCR_CMD_SESSION_PAUSE);
	spit(KFD_FAULT, "clear");
	pthread_join(t, NULL);
	if (!relay_refused(&j.y, ECANCELED, "ended meanwhile"))
		return 3;
	return job_is(&j, GPUCR_SESSION_STATE_ABANDONED) ? 0 : 4;
}

/* The pause has come too late, and is not undone: somebody answers for it. */
static int pause_abandoned(const char *faults)
{
	struct busy b;
	int ret;

	if (!busy_start(&b))
		return 10;
	arm(faults);
	ret = in_child(fickle_dumper, &b);
	if (!ret && !busy_moves_within(&b, LONG_MS))
		ret = 5;
	busy_stop(&b);
	return ret;
}

static int job_paused(struct job *j)
{
	if (!job_target(j) || job_session(j) ||
	    job_call(j, GPUCR_CMD_SESSION_PAUSE))
		return 1;
	relay_buffers(&j->y);
	return 0;
}

static int stays_paused(const char *faults, uint8_t cmd)
{
	struct job j;
	int ret = job_paused(&j);

	arm(faults);
	if (!ret && (job_call(&j, cmd) != EIO ||
		     !job_is(&j, GPUCR_SESSION_STATE_PAUSED)))
		ret = 2;
	relay_close_fds(&j.y);
	if (!ret && (job_call(&j, GPUCR_CMD_SESSION_UNPAUSE) ||
		     !job_is(&j, GPUCR_SESSION_STATE_UNPAUSED) ||
		     !busy_moves_within(&j.b, LONG_MS)))
		ret = 3;
	job_end(&j);
	return ret;
}

static int checkpoint_fails(const char *faults)
{
	return stays_paused(faults, GPUCR_CMD_SESSION_CHECKPOINT);
}

static int unpause_fails(const char *faults)
{
	return stays_paused(faults, GPUCR_CMD_SESSION_UNPAUSE);
}

static int checkpoint_without_queues(const char *faults)
{
	struct job j;
	int ret = job_paused(&j);

	arm(faults);
	if (!ret && (job_call(&j, GPUCR_CMD_SESSION_CHECKPOINT) ||
		     raw_u32(&ans->msgs[ans->num - 1],
			     GPUCR_A_RELAY_KEPT_ERROR) != EIO ||
		     !job_is(&j, GPUCR_SESSION_STATE_CHECKPOINTED)))
		ret = 2;
	relay_close_fds(&j.y);
	if (!ret && (job_call(&j, GPUCR_CMD_SESSION_UNPAUSE) ||
		     !busy_moves_within(&j.b, LONG_MS)))
		ret = 3;
	job_end(&j);
	return ret;
}

/* A restore session with one task that has restored, or has failed to. */
struct revival {
	struct restorer *t;
	struct helper h;
	int sfd;
};

static int revive(struct revival *v, const char *faults)
{
	struct relay from;

	memset(v, 0, sizeof(*v));
	if (!relay_sample_bos(&nl, ans, BOS, &from))
		return 1;
	v->t = restorer_new(&from);
	v->t->image_pid = 7;
	if (session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &v->t->id,
			&v->sfd))
		return 1;
	if (faults)
		arm(faults);
	helper_start(&v->h, restorer_run, v->t);
	return 0;
}

static void revival_end(struct revival *v)
{
	close(v->sfd);
	helper_stop(&v->h);
}

static int resume(struct revival *v)
{
	struct relay y = relay_of(GPUCR_CMD_SESSION_RESUME, v->t->id);

	y.kfd_fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	y.pid = v->h.pid;
	relay_call(&nl, ans, &y);
	close(y.kfd_fd);
	return y.error;
}

static int restore_fails(const char *faults)
{
	struct revival v;
	int ret = revive(&v, faults);

	if (!ret && (v.t->error != EIO ||
		     session_state(&nl, ans, v.t->id) !=
		     GPUCR_SESSION_STATE_FAILED))
		ret = 2;
	if (!ret && resume(&v) != EINVAL)
		ret = 3;
	revival_end(&v);
	return ret;
}

static int resume_fails(const char *faults)
{
	long long stray = gpu_stat("resume_stray");
	struct revival v;
	int ret = revive(&v, NULL);

	arm(faults);
	if (!ret && (v.t->error || resume(&v) != EIO ||
		     session_state(&nl, ans, v.t->id) !=
		     GPUCR_SESSION_STATE_FAILED))
		ret = 2;
	if (!ret && (resume(&v) != EINVAL || gpu_stat("resume_stray") != stray))
		ret = 3;
	revival_end(&v);
	return ret;
}

static int restore_keeps(const char *faults, uint32_t kept)
{
	struct revival v;
	int ret = revive(&v, faults);

	if (!ret && (v.t->error || v.t->kept != kept ||
		     v.t->kept_error != EIO))
		ret = 2;
	if (!ret && resume(&v))
		ret = 3;
	revival_end(&v);
	return ret;
}

static int restore_without_offsets(const char *faults)
{
	return restore_keeps(faults, 0);
}

static int restore_one_less(const char *faults)
{
	return restore_keeps(faults, BOS - 1);
}

static int ask_set(uint64_t id, int render, uint64_t at)
{
	struct raw_req q;

	raw_begin(&nl, &q, GPUCR_CMD_REMAP_SET, false);
	raw_put_u64(&q, GPUCR_A_REMAP_ID, id);
	raw_put_u32(&q, GPUCR_A_REMAP_FD, render);
	raw_put_u32(&q, GPUCR_A_REMAP_IMAGE_PID, 5);
	raw_put_u32(&q, GPUCR_A_REMAP_GPU_ID, 5);
	raw_put_u64(&q, GPUCR_A_REMAP_OLD_PGOFF, 0x100000);
	raw_put_u64(&q, GPUCR_A_REMAP_SIZE, 65536);
	raw_put_u64(&q, GPUCR_A_REMAP_NEW_PGOFF, at / 4096);
	raw_call(&nl, &q, ans);
	return ans->err;
}

/* In a child, since its KFD process stays as long as it does. */
static int set_child(void *arg)
{
	struct kfd_target k = { .bos = 1 };
	int kfd = kfd_target(&k), sfd;
	uint64_t id, at;

	if (kfd < 0 || raw_open(&nl) ||
	    session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &id, &sfd))
		return 1;
	raw_ask(&nl, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD, kfd + 1, 0, 0);
	if (ans->num != 1)
		return 2;
	at = raw_u64(&ans->msgs[0], GPUCR_A_BO_OFFSET);
	arm(arg);
	if (ask_set(id, kfd + 1, at) != EIO)
		return 3;
	return ask_set(id, kfd + 1, at) ? 4 : 0;
}

static int refused_set(const char *faults)
{
	return in_child(set_child, (void *)faults);
}

/* --- the table ----------------------------------------------------------- */

static const struct walk {
	const char *point;
	const char *faults;
	int (*promise)(const char *faults);
	const char *what;
} walks[] = {
	{ "session-new", "session-new:EIO", refused_session, "no session" },
	{ "session-file", "session-file:EIO", refused_session, "no session" },
	{ "session-reply", "session-reply:EIO", refused_session,
	  "no session, no descriptor" },
	{ "join", "join:EIO", refused_join, "no member" },
	{ "snapshot", "snapshot:EIO", refused_list, "no list" },
	{ "event", "event:EIO,1", lost_event, "no event, the right state" },
	{ "helper", "helper:EIO", helper_again, "recovered by the next try" },
	{ "helper", "helper:EIO,3", helper_given_up,
	  "given up, counted, mended by hand" },
	{ "relay", "relay:EIO", pause_as_before, "the session as before" },
	{ "args", "args:EIO", pause_as_before, "the session as before" },
	{ "heal", "heal:EIO", pause_as_before, "the session as before" },
	{ "heal-after", "heal-after:EIO", pause_healed, "healed, as before" },
	{ "pause", "pause:EIO", pause_failed, "failed, running" },
	{ "pause-after", "pause-after:EIO", pause_failed, "failed, running" },
	{ "undo", "pause-after:EIO undo:EIO", pause_due,
	  "paused, unpause is due" },
	{ "undo-after", "pause-after:EIO;undo-after:EIO", pause_due,
	  "paused, unpause is due" },
	{ "undo", "undo:EIO", pause_abandoned,
	  "abandoned where the owner has closed it, and recovered" },
	{ "checkpoint", "checkpoint:EIO", checkpoint_fails, "still paused" },
	{ "checkpoint-after", "checkpoint-after:EIO", checkpoint_fails,
	  "still paused" },
	{ "unpause", "unpause:EIO", unpause_fails, "still paused" },
	{ "unpause-after", "unpause-after:5", unpause_fails, "still paused" },
	{ "restore", "restore:EIO", restore_fails, "failed" },
	{ "restore-after", "restore-after:EIO", restore_fails, "failed" },
	{ "resume", "resume:EIO", resume_fails, "failed, not repeated" },
	{ "resume-after", "resume-after:EIO", resume_fails,
	  "failed, not repeated" },
	{ "queue-keep", "queue-keep:EIO", checkpoint_without_queues,
	  "checkpointed, no queues" },
	{ "remap-read", "remap-read:EIO", restore_without_offsets,
	  "restored, no offsets" },
	{ "remap-fill", "remap-fill:EIO", restore_one_less,
	  "restored, one offset less" },
	{ "remap-set", "remap-set:EIO", refused_set, "not set" },
};

#define WALKS	(sizeof(walks) / sizeof(walks[0]))

/* KFD keeps what it knows of a process until its end, and a little longer. */
static bool nothing_left(void)
{
	int i;

	for (i = 0; i < 500 && (num_sessions() || gpu_stat("processes") > 0 ||
				gpu_stat("bos") > 0); i++)
		usleep(10000);
	return !num_sessions() && !gpu_stat("processes") && !gpu_stat("bos");
}

static bool reload(void)
{
	int i;

	raw_close(&nl);
	/* Work of the last session may still be on its way out. */
	for (i = 0; i < 200; i++) {
		if (!syscall(SYS_delete_module, "gpucr", O_NONBLOCK))
			break;
		usleep(10000);
	}
	return i < 200 && !system("modprobe gpucr") && !raw_open(&nl);
}

/* A child of its own, so that our end is the end of what KFD knows of it. */
static int walk_child(void *arg)
{
	const struct walk *w = arg;

	if (raw_open(&nl))
		return 99;
	return w->promise(w->faults);
}

static void walk(const struct walk *w)
{
	int n = in_child(walk_child, (void *)w);
	int hits = fired(w->point);

	arm("");
	ktap_ok(n == 0 && hits > 0 && nothing_left() && reload(),
		"%s: %s, nothing left, unloads (step %d, failed %d times)",
		w->faults, w->what, n, hits);
}

static void test_list(void)
{
	char name[64];
	const char *s;
	size_t i, n = 0, known = 0;

	for (s = slurp(FAULT); *s; s = strchr(s, '\n') + 1) {
		if (sscanf(s, "%63s", name) != 1)
			break;
		n++;
		for (i = 0; i < WALKS && strcmp(walks[i].point, name); i++)
			;
		known += i < WALKS;
		if (i == WALKS)
			ktap_note("no walk for %s", name);
	}
	ktap_ok(n > 20 && known == n, "each of the module's %zu points is walked",
		n);
}

static void test_syntax(void)
{
	static const char * const wrong[] = {
		"nowhere:EIO", "pause", "pause:", "pause:EWHAT", "pause:0",
		"pause:134", "pause:EIO,", "pause:EIO,0", "pause:EIO,x",
		"pause:EIO,1000001", "join:EIO pause", ":EIO",
	};
	size_t i, refused = 0, taken = 0;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (!arm(wrong[i]) && errno == EINVAL)
			refused++;
		else
			ktap_note("accepted: %s", wrong[i]);
		taken += !strstr(slurp(FAULT), "join 0 0 ");
	}
	ktap_ok(refused == i, "what is no list of points is refused");
	ktap_ok(!system("dmesg | grep -q 'gpucr: fault point checkpoint-after'"),
		"and the log names the points");
	ktap_ok(!taken, "nothing of a refused list is taken");
	ktap_ok(strchr(slurp("/proc/sys/kernel/tainted"), '\n') &&
		strtoul(slurp("/proc/sys/kernel/tainted"), NULL, 10) & 64,
		"the kernel is tainted by its use");
}

/* With arguments: the walks of these points only. */
static bool wanted(const char *point, char **points)
{
	if (!*points)
		return true;
	for (; *points; points++)
		if (!strcmp(*points, point))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	size_t i, n = 0;

	(void)argc;
	for (i = 0; i < WALKS; i++)
		n += wanted(walks[i].point, argv + 1);
	ktap_plan(n + 5);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	test_list();
	test_syntax();
	for (i = 0; i < WALKS; i++)
		if (wanted(walks[i].point, argv + 1))
			walk(&walks[i]);
	return ktap_exit();
}
