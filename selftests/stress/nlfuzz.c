// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the family: sane messages in a likely order, the same with something
 * wrong, and noise; answers read whole, in part, by another thread or never;
 * descriptors of every kind, pointers to everywhere.
 *
 *	nlfuzz [MESSAGES [SEED]]
 *
 * Default: 60000, on a debug kernel 15000, and a seed from the clock.
 *
 * TEST_FUZZ_MESSAGES and TEST_FUZZ_SEED say the same. What each worker sends
 * follows from the seed; how workers interleave does not.
 *
 * Counted per operation, by errno and sentence of the answers: how many were
 * answered, passed the policy, passed the capability check (the handler's body
 * was entered), passed the tracer check, and succeeded. One message of a
 * thousand must enter the body of each operation, and some must succeed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <drm.h>
#include <drm_mode.h>
#include <linux/genetlink.h>

#include "../ktap.h"
#include "../kmod/kfd.h"
#include "../kmod/util.h"
#include "fuzz.h"

#define WORKERS		3	/* with rights */
/* Fewer where lockdep watches: a message takes twenty times as long there. */
#define MESSAGES	(access("/proc/lockdep_stats", F_OK) ? 60000 : 15000)
#define FLOOR		1000	/* one message of so many */
#define IDS		16
#define BATCH		8	/* messages of one send, at most */
/*
 * What the kernel makes for us (sessions, dma-bufs) gets low numbers, and is
 * closed now and then; what is to stay is moved out of the way.
 */
#define FIRST_LOOSE_FD	32
#define LAST_LOOSE_FD	499
#define LOOSE_EVERY	64
#define RESTORE_EVERY	200
#define TARGET_EVERY	1500
#define TARGET_BOS	2
#define TELL_EVERY	100000

/* How far a message got. */
enum level { SENT, ANSWERED, POLICY, PERMITTED, TRACER, DONE, LEVELS };

struct shared {
	_Atomic uint64_t count[__GPUCR_CMD_MAX + 1][LEVELS];
	_Atomic int64_t left;
	uint64_t ids[IDS];
	/* A checkpoint for restores, taken before. */
	struct relay sample;
	char dev[FUZZ_ARENA], bo[FUZZ_ARENA], priv[FUZZ_ARENA];
};

static struct shared *shared;

/* What is on its way on a socket, for the answers that come. */
struct way {
	struct fuzz f;
	struct raw_ans *ans;
	uint8_t cmd[256];	/* by the low bits of the number */
	int other;		/* another thread's socket, or -1 */
	char buf[65536];
};

static bool kernels_own(const char *text)
{
	static const char * const words[] = {
		"ttribute", "policy", "NLA_F_NESTED", "out of range",
		"nlmsg_flags", "genlmsghdr", "eserved", "leftover",
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return !text[0];
}

static enum level level_of(int err, const char *text)
{
	if (!err)
		return DONE;
	if (kernels_own(text))
		return ANSWERED;
	if (strstr(text, "needs CAP_") || strstr(text, "process of its own"))
		return POLICY;
	if (strstr(text, "must trace"))
		return PERMITTED;
	return TRACER;
}

static void count(uint8_t cmd, enum level level)
{
	int l;

	/* That it was sent has been counted. */
	for (l = ANSWERED; l <= (int)level; l++)
		shared->count[cmd][l]++;
}

static void take_relay(struct way *w, struct raw_msg *m)
{
	struct relay y = { 0 };

	if (raw_u32(m, GPUCR_A_RELAY_PHASE) != GPUCR_RELAY_PHASE_DONE)
		return;
	w->f.state = raw_u32(m, GPUCR_A_RELAY_STATE);
	if (raw_has(m, GPUCR_A_RELAY_NUM_DEVICES)) {
		w->f.counts.devices = raw_u32(m, GPUCR_A_RELAY_NUM_DEVICES);
		w->f.counts.bos = raw_u32(m, GPUCR_A_RELAY_NUM_BOS);
		w->f.counts.objects = raw_u32(m, GPUCR_A_RELAY_NUM_OBJECTS);
		w->f.counts.priv_size = raw_u64(m, GPUCR_A_RELAY_PRIV_SIZE);
	}
	y.error = raw_u32(m, GPUCR_A_RELAY_ERROR);
	if (y.error)
		w->ans->err = y.error;
	snprintf(w->ans->text, sizeof(w->ans->text), "%s",
		 y.error ? raw_str(m, GPUCR_A_RELAY_MESSAGE) : "");
	/* KFD was called, whatever it said. */
	if (y.error && !w->ans->text[0])
		strcpy(w->ans->text, "interrupted");
}

static void take_payload(struct way *w, struct nlmsghdr *h)
{
	struct raw_msg m = {
		.cmd = *(uint8_t *)NLMSG_DATA(h),
		.len = NLMSG_PAYLOAD(h, 4),
		.attrs = (char *)NLMSG_DATA(h) + 4,
	};

	if (m.cmd == GPUCR_CMD_SESSION_NEW) {
		w->f.id = raw_u64(&m, GPUCR_A_SESSION_ID);
		w->f.state = raw_u32(&m, GPUCR_A_SESSION_STATE);
		w->f.session_fd = raw_u32(&m, GPUCR_A_SESSION_SESSION_FD);
		shared->ids[fuzz_below(&w->f, IDS)] = w->f.id;
	}
	if (m.cmd >= GPUCR_CMD_SESSION_PAUSE && m.cmd <= GPUCR_CMD_SESSION_RESUME)
		take_relay(w, &m);
}

static void take(struct way *w, struct nlmsghdr *h)
{
	uint8_t cmd = w->cmd[h->nlmsg_seq & 255];

	if (h->nlmsg_type == NLMSG_ERROR) {
		w->ans->text[0] = 0;
		raw_take_error(w->ans, h);
	} else if (h->nlmsg_type == NLMSG_DONE) {
		/* A relay's own result has been taken. */
		if (*(int *)NLMSG_DATA(h))
			raw_take_done(w->ans, h);
	} else {
		take_payload(w, h);
		return;
	}
	count(cmd, level_of(w->ans->err, w->ans->text));
	w->ans->err = 0;
	w->ans->text[0] = 0;
}

static int keep_fd(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, LAST_LOOSE_FD + 1);

	close(fd);
	return high;
}

/* Another thread may close what has a low number at any time. */
static void socket_anew(struct way *w)
{
	int one = 1, fd;

	close(w->f.nl.fd);
	do {
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
			    NETLINK_GENERIC);
		if (!setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one,
				sizeof(one)))
			fd = keep_fd(fd);
		else
			fd = -1;
	} while (fd < 0);
	w->f.nl.fd = fd;
	w->ans->err = 0;
	w->ans->text[0] = 0;
}

/* Nothing is waited for: what the kernel has to say it has said. */
static void read_answers(struct way *w, size_t size, unsigned int reads)
{
	struct nlmsghdr *h;
	ssize_t n;

	while (reads--) {
		n = recv(w->f.nl.fd, w->buf, size, MSG_DONTWAIT);
		if (n <= 0)
			return;
		for (h = (void *)w->buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n))
			take(w, h);
	}
}

/* Whole mostly; in part, by whom it does not concern, or not at all. */
static void read_somehow(struct way *w)
{
	struct fuzz *f = &w->f;
	unsigned int dice = fuzz_below(f, 32);

	if (dice == 0) {
		socket_anew(w);
	} else if (dice == 1) {
		read_answers(w, sizeof(w->buf), 1);
		socket_anew(w);
	} else if (dice == 2) {
		read_answers(w, 16 + fuzz_below(f, 4096), 1000);
	} else if (dice == 3 && w->other >= 0) {
		/* Never parsed: the numbers are another's. */
		recv(w->other, w->buf, sizeof(w->buf), MSG_DONTWAIT);
	} else if (dice == 4) {
		return;
	}
	read_answers(w, sizeof(w->buf), 1000);
}

static void send_some(struct way *w, const uint8_t *cmds, unsigned int n,
		      enum fuzz_mode mode)
{
	struct fuzz *f = &w->f;
	struct genlmsghdr *g;
	size_t len = 0, one;
	unsigned int i;
	uint8_t cmd;

	for (i = 0; i < n; i++) {
		one = fuzz_build(f, w->buf + len, cmds[i], mode);
		/* A mutation may have made another command of it. */
		g = NLMSG_DATA((struct nlmsghdr *)(w->buf + len));
		cmd = g->cmd < __GPUCR_CMD_MAX ? g->cmd : __GPUCR_CMD_MAX;
		w->cmd[f->nl.seq & 255] = cmd;
		shared->count[cmd][SENT]++;
		len += NLMSG_ALIGN(one);
	}
	if (send(f->nl.fd, w->buf, len, MSG_DONTWAIT) < 0 &&
	    (errno == EBADF || errno == ENOTSOCK))
		socket_anew(w);
}

/* What would bring the thread's session further. */
static uint8_t next_step(struct fuzz *f)
{
	if (!f->id)
		return GPUCR_CMD_SESSION_NEW;
	switch (f->state) {
	case GPUCR_SESSION_STATE_NEW:
		return GPUCR_CMD_SESSION_PAUSE;
	case GPUCR_SESSION_STATE_PAUSED:
		return GPUCR_CMD_SESSION_CHECKPOINT;
	case GPUCR_SESSION_STATE_CHECKPOINTED:
		return fuzz_below(f, 2) ? GPUCR_CMD_SESSION_UNPAUSE :
					  GPUCR_CMD_QUEUE_GET;
	}
	f->id = 0;
	return GPUCR_CMD_SESSION_NEW;
}

static uint8_t some_cmd(struct fuzz *f)
{
	uint32_t dice = fuzz_below(f, 256);

	/* Mostly such as there are. */
	return dice < 4 ? dice * 64 : 1 + dice % GPUCR_CMD_MAX;
}

static void one_round(struct way *w)
{
	static const enum fuzz_mode modes[] = {
		FUZZ_SANE, FUZZ_SANE, FUZZ_SANE, FUZZ_SANE, FUZZ_MUTATED,
		FUZZ_MUTATED, FUZZ_MUTATED, FUZZ_NOISE,
	};
	struct fuzz *f = &w->f;
	enum fuzz_mode mode = modes[fuzz_below(f, 8)];
	unsigned int n = fuzz_below(f, 2) ? 1 : 1 + fuzz_below(f, BATCH), i;
	uint8_t cmds[BATCH];

	for (i = 0; i < n; i++)
		cmds[i] = fuzz_below(f, 4) ? some_cmd(f) : next_step(f);
	/* Numbers that have no entry are made of another's attributes. */
	for (i = 0; i < n; i++)
		if (cmds[i] > GPUCR_CMD_MAX || !cmds[i])
			cmds[i] = GPUCR_CMD_SESSION_NTF;
	send_some(w, cmds, n, mode);
	read_somehow(w);
	shared->left -= n;
}

static char *arena(void)
{
	char *p = mmap(NULL, FUZZ_ARENA + 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + FUZZ_ARENA, 4096, PROT_NONE))
		ktap_bail("no memory");
	return p;
}

/* A BO that is known: its place, and a dma-buf of it. */
static void make_bo(struct fuzz *f)
{
	struct drm_mode_create_dumb c = { .width = 64, .height = 64, .bpp = 32 };
	struct drm_prime_handle p = { .flags = DRM_CLOEXEC | DRM_RDWR };
	struct drm_mode_map_dumb m = { 0 };
	int card = f->fds[FD_CARD];

	if (ioctl(card, DRM_IOCTL_MODE_CREATE_DUMB, &c))
		ktap_bail("no BO on vgem: %s", strerror(errno));
	m.handle = c.handle;
	p.handle = c.handle;
	if (ioctl(card, DRM_IOCTL_MODE_MAP_DUMB, &m) ||
	    ioctl(card, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p))
		ktap_bail("no dma-buf on vgem: %s", strerror(errno));
	f->bo_pgoff = m.offset / 4096;
	f->bo_size = c.size;
	f->fds[FD_DMABUF] = p.fd;
}

static void open_fds(struct fuzz *f)
{
	int pair[2], i;
	uint32_t gpu;

	f->fds[FD_KFD_OWN] = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	kfd_gpu(&gpu, &f->fds[FD_RENDER_OWN]);
	f->fds[FD_CARD] = open_card("vgem");
	make_bo(f);
	f->fds[FD_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
	f->fds[FD_PIPE] = pipe2(pair, O_CLOEXEC) ? -1 : pair[0];
	f->fds[FD_MEMFD] = memfd_create("fuzz", MFD_CLOEXEC);
	f->fds[FD_PATH] = open("/dev/kfd", O_PATH | O_CLOEXEC);
	f->fds[FD_DIR] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->fds[FD_PIDFD] = syscall(SYS_pidfd_open, getpid(), 0);
	f->fds[FD_UNIX] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	f->fds[FD_EVENT] = eventfd(0, EFD_CLOEXEC);
	for (i = 0; i < FD_NUM; i++)
		if (i != FD_KFD_TARGET && i != FD_RENDER_TARGET)
			f->fds[i] = keep_fd(f->fds[i]);
}

static void target_renew(struct fuzz *f, struct helper *h)
{
	struct kfd_target t = { .bos = TARGET_BOS };

	if (h->pid) {
		close(f->fds[FD_KFD_TARGET]);
		close(f->fds[FD_RENDER_TARGET]);
		helper_stop(h);
	}
	if (!helper_start(h, kfd_target, &t) || seize(h->pid))
		ktap_bail("no target");
	f->target = h->pid;
	f->fds[FD_KFD_TARGET] = keep_fd(fd_of(h->pid, h->fd));
	/* The render node was opened right after KFD. */
	f->fds[FD_RENDER_TARGET] = keep_fd(fd_of(h->pid, h->fd + 1));
}

static void way_open(struct way *w, uint64_t seed)
{
	struct fuzz *f = &w->f;
	int i;

	f->seed = seed * 2654435761 + 88172645463325252ULL;
	for (i = 0; i < 16; i++)
		fuzz_rnd(f);
	w->ans = raw_ans_new();
	w->other = -1;
	f->ids = shared->ids;
	f->num_ids = IDS;
	f->dev = arena();
	f->bo = arena();
	f->priv = arena();
	if (raw_open(&f->nl))
		ktap_bail("family gpucr is absent");
	f->nl.fd = keep_fd(f->nl.fd);
}

static void *second_thread(void *arg)
{
	struct way *w = arg;

	while (shared->left > 0)
		one_round(w);
	return NULL;
}

static void restore_steps(struct way *w)
{
	static const uint8_t steps[] = {
		GPUCR_CMD_SESSION_NEW, GPUCR_CMD_SESSION_JOIN,
		GPUCR_CMD_SESSION_RESTORE, GPUCR_CMD_REMAP_SET,
		GPUCR_CMD_REMAP_RESOLVE, GPUCR_CMD_REMAP_GET,
		GPUCR_CMD_REMAP_RESOLVE, GPUCR_CMD_SESSION_RESUME,
		GPUCR_CMD_SESSION_RESUME,
	};
	struct kfd_criu_device_bucket *dev = (void *)w->f.dev;
	unsigned int i;

	for (i = 0; i < sizeof(steps); i++) {
		memcpy(w->f.dev, shared->dev, FUZZ_ARENA);
		memcpy(w->f.bo, shared->bo, FUZZ_ARENA);
		memcpy(w->f.priv, shared->priv, FUZZ_ARENA);
		if (!fuzz_below(&w->f, 8))
			w->f.priv[fuzz_below(&w->f, 1024)] = fuzz_rnd(&w->f);
		dev->drm_fd = w->f.fds[FD_RENDER_OWN];
		send_some(w, &steps[i], 1,
			  fuzz_below(&w->f, 16) ? FUZZ_SANE : FUZZ_MUTATED);
		read_answers(w, sizeof(w->buf), 1000);
		shared->left--;
	}
}

/* A fresh process, since KFD restores into nothing else. */
static void restore_in_child(struct way *w, uint64_t seed)
{
	static struct way own;
	uint32_t gpu;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		ktap_bail("fork");
	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	way_open(&own, seed);
	memcpy(own.f.fds, w->f.fds, sizeof(own.f.fds));
	own.f.bo_pgoff = w->f.bo_pgoff;
	own.f.bo_size = w->f.bo_size;
	own.f.fds[FD_KFD_OWN] = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	kfd_gpu(&gpu, &own.f.fds[FD_RENDER_OWN]);
	own.f.restores = true;
	own.f.target = w->f.target;
	own.f.counts.devices = shared->sample.num_devices;
	own.f.counts.bos = shared->sample.num_bos;
	own.f.counts.objects = shared->sample.num_objects;
	own.f.counts.priv_size = shared->sample.priv_size;
	restore_steps(&own);
	_exit(0);
}

static void main_thread(struct way *w, struct way *second)
{
	struct helper target = { 0 };
	struct fuzz *f = &w->f;
	uint64_t n;

	for (n = 0; shared->left > 0; n++) {
		if (!(n % TARGET_EVERY)) {
			target_renew(f, &target);
			second->f.target = f->target;
			second->f.fds[FD_KFD_TARGET] = f->fds[FD_KFD_TARGET];
			second->f.fds[FD_RENDER_TARGET] =
				f->fds[FD_RENDER_TARGET];
		}
		if (!(n % LOOSE_EVERY))
			close_range(FIRST_LOOSE_FD, LAST_LOOSE_FD, 0);
		if (!(n % RESTORE_EVERY))
			restore_in_child(w, fuzz_rnd(f));
		one_round(w);
	}
	helper_stop(&target);
}

/* One with rights has two threads, which share all but their sockets. */
static void worker(uint64_t seed)
{
	static struct way ways[2];
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	way_open(&ways[0], seed * 2);
	way_open(&ways[1], seed * 2 + 1);
	open_fds(&ways[0].f);
	ways[1].f.bo_pgoff = ways[0].f.bo_pgoff;
	ways[1].f.bo_size = ways[0].f.bo_size;
	memcpy(ways[1].f.fds, ways[0].f.fds, sizeof(ways[0].f.fds));
	ways[1].f.target = getpid();
	ways[1].other = ways[0].f.nl.fd;
	ways[0].other = ways[1].f.nl.fd;
	if (pthread_create(&t, NULL, second_thread, &ways[1]))
		ktap_bail("thread");
	main_thread(&ways[0], &ways[1]);
	pthread_join(t, NULL);
	_exit(0);
}

static void weak_worker(uint64_t seed)
{
	int64_t next = shared->left - TELL_EVERY;
	static struct way w;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_fds(&w.f);
	keep_caps(0);
	way_open(&w, seed);
	w.f.target = getppid();
	while (shared->left > 0) {
		one_round(&w);
		/* The others have the work. */
		usleep(500);
		if (shared->left <= next) {
			ktap_note("%ld messages to go", (long)next);
			fflush(stdout);
			next -= TELL_EVERY;
		}
	}
	_exit(0);
}

static void take_sample(void)
{
	struct kfd_target t = { .bos = TARGET_BOS };
	struct raw_ans *ans = raw_ans_new();
	struct relay *y = &shared->sample;
	struct helper h;
	struct raw nl;

	if (raw_open(&nl) || !helper_start(&h, kfd_target, &t))
		ktap_bail("no simulated GPU, or no family gpucr");
	*y = (struct relay) {
		.devices = shared->dev, .bos = shared->bo, .priv = shared->priv,
	};
	if (!relay_sample(&nl, ans, h.pid, h.fd, y))
		ktap_bail("no sample");
	helper_stop(&h);
	raw_close(&nl);
}

static bool workers_end(const pid_t *pids, unsigned int n)
{
	bool ok = true;
	unsigned int i;
	int st;

	for (i = 0; i < n; i++) {
		if (waitpid(pids[i], &st, 0) != pids[i] || st) {
			ktap_note("worker %u ended with status 0x%x", i, st);
			/* The others need not go on. */
			shared->left = 0;
			ok = false;
		}
	}
	return ok;
}

static bool run(uint64_t seed)
{
	pid_t pids[WORKERS + 1];
	unsigned int i;

	fflush(stdout);
	for (i = 0; i <= WORKERS; i++) {
		pids[i] = fork();
		if (!pids[i] && i < WORKERS)
			worker(seed + i + 1);
		if (!pids[i])
			weak_worker(seed);
	}
	return workers_end(pids, WORKERS + 1);
}

/* Every operation has an entry, by the header and by the module's own list. */
static void test_table(void)
{
	struct raw_ans *ans = raw_ans_new();
	unsigned int cmd, n = 0, told = 0;
	const char *end;
	struct raw nl;

	for (cmd = 1; cmd <= GPUCR_CMD_MAX; cmd++) {
		if (fuzz_ops[cmd].name)
			n++;
		else
			ktap_note("command %u has no entry", cmd);
	}
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0);
	end = ans->msgs[0].attrs + ans->msgs[0].len;
	for (const char *p = ans->msgs[0].attrs; p + NLA_HDRLEN <= end;
	     p += NLA_ALIGN(((const struct nlattr *)p)->nla_len)) {
		if (((const struct nlattr *)p)->nla_type != GPUCR_A_INFO_OP)
			continue;
		cmd = *(const uint32_t *)(p + NLA_HDRLEN);
		told += cmd <= GPUCR_CMD_MAX && fuzz_ops[cmd].how;
		if (cmd > GPUCR_CMD_MAX || !fuzz_ops[cmd].how)
			ktap_note("the module knows command %u, the fuzzer not",
				  cmd);
	}
	/* All but the notification are operations. */
	ktap_ok(n == GPUCR_CMD_MAX && told == n - 1,
		"each of %u commands has an entry", GPUCR_CMD_MAX);
	raw_close(&nl);
}

static bool print_counts(uint64_t floor)
{
	bool ok = true;
	unsigned int cmd;

	ktap_note("%-18s %9s %9s %9s %9s %9s %9s", "operation", "sent",
		  "answered", "policy", "permitted", "tracer", "done");
	for (cmd = 1; cmd <= __GPUCR_CMD_MAX; cmd++) {
		const _Atomic uint64_t *c = shared->count[cmd];
		bool other = cmd == __GPUCR_CMD_MAX;

		ktap_note("%-18s %9lu %9lu %9lu %9lu %9lu %9lu",
			  other ? "(others)" : fuzz_ops[cmd].name, c[SENT],
			  c[ANSWERED], c[POLICY], c[PERMITTED], c[TRACER],
			  c[DONE]);
		if (!other && fuzz_ops[cmd].how)
			ok &= c[PERMITTED] >= floor && c[DONE] > floor / 20;
	}
	return ok;
}

static void test_nothing_left(void)
{
	struct raw_ans *ans = raw_ans_new();
	struct raw nl;
	int i;

	if (raw_open(&nl))
		ktap_bail("the family has gone");
	raw_ask(&nl, ans, GPUCR_CMD_SESSION_DRAIN, false, GPUCR_A_SESSION_DRAIN,
		0, 0, 0);
	for (i = 0; i < 1000; i++) {
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
}

static uint64_t number(int argc, char **argv, int arg, const char *env,
		       uint64_t otherwise)
{
	const char *s = argc > arg ? argv[arg] : getenv(env);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
	uint64_t messages = number(argc, argv, 1, "TEST_FUZZ_MESSAGES", MESSAGES);
	uint64_t seed = number(argc, argv, 2, "TEST_FUZZ_SEED", time(NULL));
	time_t start;
	bool ok;

	ktap_plan(5);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		ktap_bail("no memory");
	test_table();
	take_sample();
	shared->left = messages;
	start = time(NULL);
	ktap_note("seed %lu", seed);
	ok = run(seed);
	ktap_ok(ok, "%lu messages, and the workers live: %ld s", messages,
		time(NULL) - start);
	ktap_ok(print_counts(messages / FLOOR),
		"each operation was entered %lu times and more, and succeeded",
		messages / FLOOR);
	test_nothing_left();
	return ktap_exit();
}
