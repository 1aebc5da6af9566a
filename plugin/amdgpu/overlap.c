// SPDX-License-Identifier: GPL-2.0-only
#include "overlap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

#include "host.h"

#define MAX_LANES	64
/* The kernel takes 253 in a message. */
#define PART_FDS	250
/* A task may come before CRIU's hook; where that never comes it goes on. */
#define READY_MS	10000
#define READY_NAP_NS	2000000
/* For one message of the other side. */
#define TALK_S		30

enum lane_state {
	LANE_STARTING,
	LANE_READY,
	LANE_OFF,
};

/* Messages, in their order. REFUSED is an answer at any time. */
enum word {
	WORD_OFFER = 1,		/* task: this image, so many dma-bufs */
	WORD_GO,
	WORD_PART,		/* task: some of them */
	WORD_TAKEN,
	WORD_REFUSED,
};

struct note {
	uint32_t word;
	uint32_t image_id;
	uint32_t num;
};

/* CRIU and its tasks. */
struct shared {
	_Atomic int state[MAX_LANES];
	_Atomic unsigned int next;	/* lane that no task has yet */
	_Atomic uint64_t num_fds;	/* handed over and not yet closed */
	_Atomic int err;		/* first failure, as a positive errno */
};

struct lane {
	int fd;			/* CRIU's end */
	int store_id;		/* of the tasks' end */
	pthread_t thread;
	bool started;
	bool filled;
	int err;
	uint64_t begin_ms, end_ms;
	struct gpucr_log_capture log;
};

static struct {
	struct shared *shared;	/* NULL: no overlap */
	struct lane lanes[MAX_LANES];
	unsigned int num;
	uint64_t max_fds;
	int wake;		/* eventfd: nothing more will come */
	_Atomic int cancelled;
	sem_t settled;		/* a thread has shared->state set */
	overlap_fill_fn fill;
} overlap;

/* --- messages ----------------------------------------------------------- */

static int tell(int sock, enum word word, uint32_t image_id, uint32_t num)
{
	const struct note n = { word, image_id, num };

	return send(sock, &n, sizeof(n), MSG_NOSIGNAL) == sizeof(n) ?
	       0 : errno == EAGAIN ? -ETIMEDOUT : -errno;
}

/* In a task, where the socket has a time limit. */
static int hear(int sock, enum word want)
{
	struct note n;
	ssize_t len;

	do {
		len = recv(sock, &n, sizeof(n), 0);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (len != sizeof(n))
		return -EPIPE;
	return n.word == want ? 0 : -ECONNREFUSED;
}

static int send_part(int sock, const int *fds, size_t num)
{
	const struct note n = { .word = WORD_PART, .num = num };
	struct iovec iov = { (void *)&n, sizeof(n) };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(PART_FDS * sizeof(int))];
	} control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(num * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(num * sizeof(int));
	memcpy(CMSG_DATA(c), fds, num * sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == sizeof(n) ?
	       0 : errno == EAGAIN ? -ETIMEDOUT : -errno;
}

/* What came is the caller's also after a failure. */
static int receive(int sock, struct note *n, int *fds, size_t max, size_t *num)
{
	struct iovec iov = { n, sizeof(*n) };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(PART_FDS * sizeof(int))];
	} control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t len = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *c;
	int got[PART_FDS];
	size_t i, n_got = 0;

	*num = 0;
	if (len < 0)
		return -errno;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n_got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(got, CMSG_DATA(c), n_got * sizeof(int));
	}
	for (i = 0; i < n_got; i++) {
		if (*num < max)
			fds[(*num)++] = got[i];
		else
			close(got[i]);
	}
	if (msg.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	return len == sizeof(*n) && *num == n_got ? 0 : -EPROTO;
}

/* --- CRIU's side -------------------------------------------------------- */

/* -ECANCELED: nothing more will come. */
static int wait_message(const struct lane *l, int ms)
{
	struct pollfd p[] = {
		{ .fd = l->fd, .events = POLLIN },
		{ .fd = overlap.wake, .events = POLLIN },
	};
	int ret;

	do {
		ret = poll(p, 2, ms);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	if (p[1].revents)
		return -ECANCELED;
	if (!ret)
		return -ETIMEDOUT;
	return p[0].revents & POLLIN ? 0 : -EPIPE;
}

static int take_parts(const struct lane *l, int *fds, size_t want, size_t *num)
{
	struct note n;
	int err = 0;

	for (*num = 0; !err && *num < want;) {
		size_t got = 0;

		err = wait_message(l, TALK_S * 1000);
		if (!err)
			err = receive(l->fd, &n, fds + *num, want - *num, &got);
		*num += got;
		if (!err && (n.word != WORD_PART || !got))
			err = -EPROTO;
	}
	return err;
}

/* The dma-bufs of one process; *fds is free()d. */
static int take(struct lane *l, uint32_t *image_id, int **fds, size_t *num)
{
	struct note n;
	size_t none;
	int err;

	err = wait_message(l, -1);
	if (!err)
		err = receive(l->fd, &n, NULL, 0, &none);
	if (!err && (n.word != WORD_OFFER || n.num > overlap.max_fds))
		err = -EPROTO;
	if (err)
		return err;
	*image_id = n.image_id;
	*fds = calloc((size_t)n.num + 1, sizeof(**fds));
	if (!*fds)
		return -ENOMEM;
	err = tell(l->fd, WORD_GO, n.image_id, n.num);
	return err ? err : take_parts(l, *fds, n.num, num);
}

static void close_all(int *fds, size_t num)
{
	while (num)
		close(fds[--num]);
	free(fds);
}

static int ask_cancelled(void *arg)
{
	(void)arg;
	return atomic_load(&overlap.cancelled) ? -ECANCELED : 0;
}

static void fill_lane(struct lane *l, uint32_t image_id, int *fds, size_t num)
{
	const struct content_watch watch = { .tick = ask_cancelled };
	int none = 0;

	l->begin_ms = gpucr_now_ms();
	l->err = overlap.fill(image_id, fds, num, &watch);
	l->end_ms = gpucr_now_ms();
	l->filled = !l->err;
	if (l->err && !atomic_load(&overlap.cancelled))
		atomic_compare_exchange_strong(&overlap.shared->err, &none,
					       -l->err);
}

static void serve(struct lane *l)
{
	uint32_t image_id = 0;
	size_t num = 0;
	int *fds = NULL;
	int err;

	err = take(l, &image_id, &fds, &num);
	if (!err) {
		tell(l->fd, WORD_TAKEN, image_id, num);
		fill_lane(l, image_id, fds, num);
		atomic_fetch_sub(&overlap.shared->num_fds, num);
	} else if (err != -ECANCELED) {
		gpucr_info("image %u: its dma-bufs did not come: %s; the task fills them",
			   image_id, strerror(-err));
		tell(l->fd, WORD_REFUSED, image_id, 0);
	}
	close_all(fds, num);
}

static void *run_lane(void *arg)
{
	struct lane *l = arg;
	int state = LANE_READY;

	gpucr_log_capture(&l->log);
	/* CRIU's process changes mount namespaces: see content.c. */
	if (unshare(CLONE_FS)) {
		gpucr_info("no overlap: unshare: %s", strerror(errno));
		state = LANE_OFF;
	}
	atomic_store(&overlap.shared->state[l - overlap.lanes], state);
	sem_post(&overlap.settled);
	if (state == LANE_READY)
		serve(l);
	gpucr_log_capture(NULL);
	return NULL;
}

static int add_lane(struct lane *l)
{
	const struct timeval limit = { .tv_sec = TALK_S };
	int fds[2], i, err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	for (i = 0; i < 2 && !err; i++) {
		if (setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &limit,
			       sizeof(limit)) ||
		    setsockopt(fds[i], SOL_SOCKET, SO_SNDTIMEO, &limit,
			       sizeof(limit)))
			err = -errno;
	}
	if (!err)
		l->store_id = host_store_fd(fds[1]);
	if (!err && l->store_id < 0)
		err = -EIO;
	close(fds[1]);
	l->fd = fds[0];
	if (err)
		close(fds[0]);
	return err;
}

/* All that CRIU itself and its tasks may need of them is left free. */
static uint64_t fd_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return 0;
	return r.rlim_cur > UINT32_MAX ? UINT32_MAX / 2 : r.rlim_cur / 2;
}

static int open_shared(void)
{
	void *p = mmap(NULL, sizeof(*overlap.shared), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	overlap.wake = eventfd(0, EFD_CLOEXEC);
	if (overlap.wake < 0) {
		int err = -errno;

		munmap(p, sizeof(*overlap.shared));
		return err;
	}
	overlap.shared = p;
	return 0;
}

void overlap_init(unsigned int num)
{
	int err;

	memset(&overlap, 0, sizeof(overlap));
	overlap.max_fds = fd_limit();
	if (!num)
		return;
	err = open_shared();
	sem_init(&overlap.settled, 0, 0);
	while (!err && overlap.num < num && overlap.num < MAX_LANES) {
		err = add_lane(&overlap.lanes[overlap.num]);
		overlap.num += !err;
	}
	if (err)
		gpucr_info("overlap for %u of %u processes: %s", overlap.num,
			   num, strerror(-err));
}

void overlap_start(overlap_fill_fn fill)
{
	unsigned int i;
	sigset_t all, old;
	int err;

	overlap.fill = fill;
	for (i = 0; i < overlap.num; i++) {
		struct lane *l = &overlap.lanes[i];

		/* Signals are for CRIU's own thread. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		err = pthread_create(&l->thread, NULL, run_lane, l);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		l->started = !err;
		if (!err)
			continue;
		gpucr_info("no overlap: no thread: %s", strerror(err));
		atomic_store(&overlap.shared->state[i], LANE_OFF);
	}
	/* Before CRIU's next step each must have left its filesystem state. */
	for (i = 0; i < overlap.num; i++) {
		while (overlap.lanes[i].started && sem_wait(&overlap.settled))
			;
	}
}

/* The failure that ended the restore is told first. */
static void tell_logs(void)
{
	unsigned int i;

	for (i = 0; i < overlap.num; i++) {
		if (overlap.lanes[i].err == -atomic_load(&overlap.shared->err))
			gpucr_log_release(&overlap.lanes[i].log);
	}
	for (i = 0; i < overlap.num; i++)
		gpucr_log_release(&overlap.lanes[i].log);
}

static void sum_up(struct overlap_result *ret)
{
	uint64_t begin = UINT64_MAX, end = 0;
	unsigned int i;

	for (i = 0; i < overlap.num; i++) {
		const struct lane *l = &overlap.lanes[i];

		if (!l->filled)
			continue;
		ret->processes++;
		begin = l->begin_ms < begin ? l->begin_ms : begin;
		end = l->end_ms > end ? l->end_ms : end;
	}
	ret->fill_ms = ret->processes ? end - begin : 0;
}

int overlap_end(bool cancel, struct overlap_result *ret)
{
	uint64_t start = gpucr_now_ms();
	unsigned int i;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!overlap.shared)
		return 0;
	if (cancel)
		atomic_store(&overlap.cancelled, 1);
	eventfd_write(overlap.wake, 1);
	for (i = 0; i < overlap.num; i++) {
		if (overlap.lanes[i].started)
			pthread_join(overlap.lanes[i].thread, NULL);
		close(overlap.lanes[i].fd);
	}
	ret->wait_ms = gpucr_now_ms() - start;
	sum_up(ret);
	tell_logs();
	err = -atomic_load(&overlap.shared->err);
	close(overlap.wake);
	sem_destroy(&overlap.settled);
	munmap(overlap.shared, sizeof(*overlap.shared));
	memset(&overlap, 0, sizeof(overlap));
	return err;
}

/* --- a task's side ------------------------------------------------------ */

static bool is_ready(unsigned int lane)
{
	const struct timespec nap = { .tv_nsec = READY_NAP_NS };
	uint64_t until = gpucr_now_ms() + READY_MS;
	int state;

	for (;;) {
		state = atomic_load(&overlap.shared->state[lane]);
		if (state != LANE_STARTING || gpucr_now_ms() > until)
			return state == LANE_READY;
		nanosleep(&nap, NULL);
	}
}

static int talk(int sock, uint32_t image_id, const int *fds, size_t num)
{
	size_t done, part;
	int err;

	err = tell(sock, WORD_OFFER, image_id, num);
	if (!err)
		err = hear(sock, WORD_GO);
	for (done = 0; done < num && !err; done += part) {
		part = num - done < PART_FDS ? num - done : PART_FDS;
		err = send_part(sock, fds + done, part);
	}
	return err ? err : hear(sock, WORD_TAKEN);
}

/* Room for them was reserved. */
static int send_all(unsigned int lane, uint32_t image_id, const int *fds,
		    size_t num)
{
	int sock, err;

	sock = host_stored_fd(overlap.lanes[lane].store_id);
	if (sock < 0)
		return -EIO;
	err = talk(sock, image_id, fds, num);
	close(sock);
	return err;
}

bool overlap_hand_over(uint32_t image_id, const int *fds, size_t num)
{
	unsigned int lane;
	int err = -EMFILE;

	if (!overlap.num || !num)
		return false;
	lane = atomic_fetch_add(&overlap.shared->next, 1);
	if (lane >= overlap.num || !is_ready(lane)) {
		gpucr_info("image %u: no thread of CRIU for it: this task fills its GPU memory itself",
			   image_id);
		return false;
	}
	if (atomic_fetch_add(&overlap.shared->num_fds, num) + num <=
	    overlap.max_fds)
		err = send_all(lane, image_id, fds, num);
	if (!err)
		return true;
	atomic_fetch_sub(&overlap.shared->num_fds, num);
	gpucr_info("image %u: its %zu dma-bufs cannot be handed over: %s; this task fills them itself",
		   image_id, num, strerror(-err));
	return false;
}

int overlap_error(void)
{
	return overlap.shared ? -atomic_load(&overlap.shared->err) : 0;
}
