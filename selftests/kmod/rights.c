// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may: every operation but info-get needs CAP_CHECKPOINT_RESTORE or
 * CAP_SYS_ADMIN, of the caller and of the opener of the socket, in the initial
 * user namespace; session-drain needs the latter. Each refusal has a twin that
 * differs in that only.
 *
 * Mutations that must turn this red: no check in an operation; CAP_NET_ADMIN
 * (GENL_ADMIN_PERM) instead; capable() instead of netlink_capable() (the
 * socket tests); ns_capable() of the own namespace (the container's root); no
 * flag on the multicast group.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>

#include "../ktap.h"
#include "raw.h"
#include "util.h"

#define ALL_CAPS	((CAP_BIT(CAP_LAST_CAP) << 1) - 1)
#define SETUID_CAT	"/usr/local/bin/setuid-cat"
#define OURS		(CAP_BIT(CAP_CHECKPOINT_RESTORE) | CAP_BIT(CAP_SYS_ADMIN))

struct op {
	uint8_t cmd;
	bool dump;
};

static const struct op ops[] = {
	{ GPUCR_CMD_BO_GET, true },
	{ GPUCR_CMD_VMA_GET, true },
	{ GPUCR_CMD_SESSION_NEW, false },
	{ GPUCR_CMD_SESSION_GET, true },
	{ GPUCR_CMD_SESSION_DEL, false },
	{ GPUCR_CMD_SESSION_JOIN, false },
	{ GPUCR_CMD_SESSION_PAUSE, true },
	{ GPUCR_CMD_SESSION_CHECKPOINT, true },
	{ GPUCR_CMD_SESSION_UNPAUSE, true },
	{ GPUCR_CMD_SESSION_RESTORE, true },
	{ GPUCR_CMD_SESSION_RESUME, true },
	{ GPUCR_CMD_QUEUE_GET, true },
	{ GPUCR_CMD_REMAP_GET, true },
	{ GPUCR_CMD_REMAP_SET, false },
	{ GPUCR_CMD_REMAP_RESOLVE, false },
};

#define NUM_OPS	(sizeof(ops) / sizeof(ops[0]))

/* All but info-get, session-drain, whose rule is another, and the event. */
_Static_assert(NUM_OPS + 3 == GPUCR_CMD_MAX, "an operation is missing here");

/* What a child reports: a bit for each operation that was let in. */
static int let_in(struct raw *r)
{
	struct raw_ans *a = raw_ans_new();
	size_t i;
	int n = 0;

	for (i = 0; i < NUM_OPS; i++) {
		raw_ask(r, a, ops[i].cmd, ops[i].dump, 0, 0, 0, 0);
		if (a->err == EPERM && strstr(a->text, "CAP_CHECKPOINT_RESTORE"))
			continue;
		n++;
	}
	return n;
}

struct who {
	uint64_t caps;
	bool userns;
	bool netns;
};

static int as(void *arg)
{
	struct who *who = arg;
	struct raw r;

	if (who->userns && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return 100;
	if (who->netns && unshare(CLONE_NEWNET))
		return 100;
	if (!who->userns)
		keep_caps(who->caps);
	if (raw_open(&r))
		return 101;
	return let_in(&r);
}

static int count_as(uint64_t caps)
{
	struct who who = { .caps = caps };

	return in_child(as, &who);
}

static void test_caps(void)
{
	struct who container = { .userns = true };
	struct who netns = { .caps = ALL_CAPS, .netns = true };
	int n;

	n = count_as(0);
	ktap_ok(n == 0, "without capabilities no operation is let in (%d)", n);
	n = count_as(CAP_BIT(CAP_CHECKPOINT_RESTORE));
	ktap_ok(n == NUM_OPS, "CAP_CHECKPOINT_RESTORE alone lets all in (%d)",
		n);
	n = count_as(CAP_BIT(CAP_SYS_ADMIN));
	ktap_ok(n == NUM_OPS, "CAP_SYS_ADMIN alone lets all in (%d)", n);
	n = count_as(ALL_CAPS & ~OURS);
	ktap_ok(n == 0, "all others together, CAP_NET_ADMIN too, let none in (%d)",
		n);
	n = in_child(as, &container);
	ktap_ok(n == 0, "root of a user namespace is let in nowhere (%d)", n);
	n = in_child(as, &netns);
	ktap_ok(n == NUM_OPS, "root in another network namespace is (%d)", n);
}

static int opener(void *arg)
{
	int *sock = arg, fd;
	struct raw r;
	char byte = 0;
	struct iovec io = { &byte, 1 };
	char ctl[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct msghdr m = {
		.msg_iov = &io, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (sock[1])
		keep_caps(0);
	if (raw_open(&r))
		return 1;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &r.fd, sizeof(fd));
	return sendmsg(sock[0], &m, 0) < 0;
}

static int receive(int sock)
{
	int fd = -1;
	char byte;
	struct iovec io = { &byte, 1 };
	char ctl[CMSG_SPACE(sizeof(fd))];
	struct msghdr m = {
		.msg_iov = &io, .msg_iovlen = 1,
		.msg_control = ctl, .msg_controllen = sizeof(ctl),
	};

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) > 0 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* We have all rights; the socket was opened by somebody with or without. */
static int through_socket_of(bool weak)
{
	int pair[2], arg[2];
	struct raw r;

	if (raw_open(&r) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return -1;
	arg[0] = pair[1];
	arg[1] = weak;
	if (in_child(opener, arg))
		return -1;
	close(r.fd);
	r.fd = receive(pair[0]);
	close(pair[0]);
	close(pair[1]);
	return r.fd < 0 ? -1 : let_in(&r);
}

/* The socket was opened with all rights; the writer has none. */
static int weak_writer(void *arg)
{
	struct raw *r = arg;

	keep_caps(0);
	return let_in(r);
}

static int strong_writer(void *arg)
{
	return let_in(arg);
}

static void test_sockets(void)
{
	struct raw r;
	int n;

	n = through_socket_of(true);
	ktap_ok(n == 0, "a socket of a weak opener lets no operation in (%d)", n);
	n = through_socket_of(false);
	ktap_ok(n == NUM_OPS, "the same of a strong opener lets all in (%d)", n);
	raw_open(&r);
	n = in_child(weak_writer, &r);
	ktap_ok(n == 0, "a weak writer gets nothing through a strong socket (%d)",
		n);
	n = in_child(strong_writer, &r);
	ktap_ok(n == NUM_OPS, "a strong writer gets all through it (%d)", n);
}

/* One message through a program that is set-uid root; the answer's verdict. */
static int setuid_writer(void *arg)
{
	bool strong = *(bool *)arg;
	struct raw_ans *a = raw_ans_new();
	struct raw_req q;
	struct nlmsghdr *h = (struct nlmsghdr *)&q;
	int in[2];
	struct raw r;
	pid_t pid;

	if (strong && raw_open(&r))
		return 10;
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 11;
	if ((!strong && raw_open(&r)) || pipe(in))
		return 12;
	raw_begin(&r, &q, GPUCR_CMD_SESSION_GET, true);
	if (write(in[1], &q, h->nlmsg_len) != (ssize_t)h->nlmsg_len)
		return 13;
	close(in[1]);
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(r.fd, 1);
		execl(SETUID_CAT, SETUID_CAT, NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	raw_recv(&r, a);
	if (!a->err)
		return 0;
	return refused(a, EPERM, "CAP_CHECKPOINT_RESTORE") ? 1 : 2;
}

static void test_setuid(void)
{
	bool strong = false;
	int n;

	if (system("cp /bin/cat " SETUID_CAT " && chmod 4755 " SETUID_CAT))
		ktap_bail("no set-uid program");
	n = in_child(setuid_writer, &strong);
	ktap_ok(n == 1, "a set-uid program that writes to a weak opener's socket is refused (%d)",
		n);
	strong = true;
	n = in_child(setuid_writer, &strong);
	ktap_ok(n == 0, "it is let in through the socket of root (%d)", n);
	unlink(SETUID_CAT);
}

/* Returns 0 where session-drain is let in, 1 where it is refused. */
static int drain(struct raw *r)
{
	struct raw_ans *a = raw_ans_new();

	raw_ask(r, a, GPUCR_CMD_SESSION_DRAIN, false, GPUCR_A_SESSION_DRAIN, 0,
		0, 0);
	if (!a->err)
		return 0;
	return refused(a, EPERM, "needs CAP_SYS_ADMIN") ? 1 : 2;
}

static int drain_as(void *arg)
{
	uint64_t *caps = arg;
	struct raw r;

	keep_caps(*caps);
	return raw_open(&r) ? 101 : drain(&r);
}

static void test_drain(void)
{
	uint64_t weak = ALL_CAPS & ~CAP_BIT(CAP_SYS_ADMIN);
	uint64_t strong = CAP_BIT(CAP_SYS_ADMIN);
	int n;

	n = in_child(drain_as, &weak);
	ktap_ok(n == 1, "session-drain is refused without CAP_SYS_ADMIN (%d)",
		n);
	n = in_child(drain_as, &strong);
	ktap_ok(n == 0, "CAP_SYS_ADMIN alone lets it in (%d)", n);
}

static int join_group(void *arg)
{
	struct who *who = arg;
	struct raw r;

	keep_caps(who->caps);
	if (raw_open(&r) || !r.group)
		return 99;
	return setsockopt(r.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &r.group,
			  sizeof(r.group)) ? errno : 0;
}

static void test_group(void)
{
	struct who weak = { .caps = ALL_CAPS & ~CAP_BIT(CAP_SYS_ADMIN) };
	struct who strong = { .caps = CAP_BIT(CAP_SYS_ADMIN) };
	int n;

	n = in_child(join_group, &weak);
	ktap_ok(n == EPERM, "events are refused without CAP_SYS_ADMIN (%d)", n);
	n = in_child(join_group, &strong);
	ktap_ok(n == 0, "events are given with it (%d)", n);
}

int main(void)
{
	ktap_plan(16);
	test_caps();
	test_sockets();
	test_setuid();
	test_drain();
	test_group();
	return ktap_exit();
}
