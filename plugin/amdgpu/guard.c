// SPDX-License-Identifier: GPL-2.0-only
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

#include "quietfork.h"

#define READY		"ready\n"
#define START_MS	30000

/* The guard's own process; does not return. Only system calls. */
static void become(const char *program, char *const argv[], int sock)
{
	static char *const env[] = {
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL
	};
	char text[32];
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (chdir("/") || dup2(sock, 0) < 0 || dup2(sock, 1) < 0 ||
	    dup2(null, 2) < 0 || syscall(SYS_close_range, 3, ~0U, 0))
		_exit(1);
	execve(program, argv, env);
	if (write(1, text, snprintf(text, sizeof(text), "%d\n", errno)) < 0)
		_exit(2);
	_exit(1);
}

/* Twice, so that the guard is a child of init. */
static int spawn(const char *program, int sock)
{
	char pid[16];
	char *const argv[] = {
		(char *)program, "session", "watch", "pid", pid, NULL
	};
	pid_t child;

	snprintf(pid, sizeof(pid), "%d", getpid());
	child = quiet_fork(0);
	if (child < 0)
		return -errno;
	if (!child) {
		setsid();
		if (!quiet_fork(SIGCHLD))
			become(program, argv, sock);
		_exit(0);
	}
	while (waitpid(child, NULL, __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* It says that it is ready, or the errno of its exec, or nothing at all. */
static int wait_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[32] = "";
	ssize_t n = 0;
	int ret;

	do {
		ret = poll(&p, 1, START_MS);
	} while (ret < 0 && errno == EINTR);
	if (!ret)
		return -ETIMEDOUT;
	if (ret > 0)
		n = recv(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return -ECHILD;
	if (!strcmp(text, READY))
		return 0;
	return atoi(text) > 0 ? -atoi(text) : -EPROTO;
}

int guard_start(struct guard *g, const char *program)
{
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		err = -errno;
	} else {
		err = spawn(program, fds[1]);
		close(fds[1]);
		if (!err)
			err = wait_ready(fds[0]);
		if (err)
			close(fds[0]);
		else
			g->fd = fds[0];
	}
	if (!err) {
		gpucr_dbg("guard %s watches", program);
		return 0;
	}
	gpucr_err("guard %s cannot be started: %s (guard-failed); without it a killed criu would leave the GPU standing still: install gpucr's tool, load the module, or set guard = off",
		  program, strerror(-err));
	return err;
}

static int tell(const struct guard *g, const char *text)
{
	size_t len = strlen(text);
	ssize_t n = send(g->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

int guard_add(struct guard *g, pid_t pid, int fd)
{
	char text[48];
	int err;

	if (g->fd < 0)
		return 0;
	snprintf(text, sizeof(text), "add %d %d\n", pid, fd);
	err = tell(g, text);
	if (err)
		gpucr_err("the guard does not listen: %s (guard-failed); was it killed?",
			  strerror(-err));
	return err;
}

void guard_clear(struct guard *g)
{
	if (g->fd >= 0 && tell(g, "clear\n"))
		gpucr_dbg("the guard is gone");
}

void guard_stop(struct guard *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
}
