// SPDX-License-Identifier: GPL-2.0-only
/* What several tests need. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>
#include <drm.h>

#include "util.h"

int open_card(const char *driver)
{
	char name[64], path[32];
	int i, fd;

	for (i = 0; i < 64; i++) {
		struct drm_version v = { .name = name, .name_len = sizeof(name) - 1 };

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		memset(name, 0, sizeof(name));
		if (!ioctl(fd, DRM_IOCTL_VERSION, &v) && !strcmp(name, driver))
			return fd;
		close(fd);
	}
	return -1;
}

void keep_caps(uint64_t mask)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct d[2];
	int c;

	for (c = 0; c < 64; c++)
		if (!(mask & CAP_BIT(c)))
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	d[0].effective = (uint32_t)mask;
	d[1].effective = (uint32_t)(mask >> 32);
	d[0].permitted = d[0].effective;
	d[1].permitted = d[1].effective;
	d[0].inheritable = 0;
	d[1].inheritable = 0;
	if (syscall(SYS_capset, &h, d)) {
		printf("Bail out! capset: %s\n", strerror(errno));
		_exit(1);
	}
}

int in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid;
	int st;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(fn(arg));
	if (pid < 0 || waitpid(pid, &st, 0) != pid || !WIFEXITED(st))
		return -1;
	return WEXITSTATUS(st);
}

int seize(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? errno : 0;
}

bool refused(const struct raw_ans *a, int err, const char *words)
{
	if (a->err == err && strstr(a->text, words))
		return true;
	printf("# got errno %d (%s), \"%s\"; wanted %d (%s), \"%s\"\n", a->err,
	       strerror(a->err), a->text, err, strerror(err), words);
	return false;
}

bool points_to(const struct raw_ans *a, int attr)
{
	return a->late || a->bad == attr;
}

int fd_of(pid_t pid, int fd)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0), ret;

	if (pidfd < 0)
		return -1;
	ret = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	close(pidfd);
	return ret;
}

bool helper_start(struct helper *h, int (*fn)(void *arg), void *arg)
{
	pid_t parent = getpid();
	int ready[2];
	bool ok;

	if (pipe2(ready, O_CLOEXEC))
		return false;
	fflush(stdout);
	h->pid = fork();
	if (!h->pid) {
		/* A parent killed before that would leave us for ever. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		h->fd = fn(arg);
		if (write(ready[1], &h->fd, sizeof(h->fd)) != sizeof(h->fd))
			_exit(1);
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	ok = h->pid > 0 && read(ready[0], &h->fd, sizeof(h->fd)) ==
			   sizeof(h->fd) && h->fd >= 0;
	close(ready[0]);
	return ok;
}

void helper_stop(struct helper *h)
{
	kill(h->pid, SIGKILL);
	waitpid(h->pid, NULL, __WALL);
}

const char *slurp(const char *path)
{
	static char buf[65536];
	size_t n;
	FILE *f = fopen(path, "r");

	buf[0] = 0;
	if (!f)
		return buf;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	buf[n] = 0;
	fclose(f);
	return buf;
}

bool spit(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, line, strlen(line));
	close(fd);
	return n == (ssize_t)strlen(line);
}

long long gpu_stat(const char *name)
{
	const char *s = slurp("/sys/kernel/debug/kfdsim/stats");
	size_t len = strlen(name);

	for (; *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : "")
		if (!strncmp(s, name, len) && s[len] == ' ')
			return atoll(s + len);
	return -1;
}

/* Progress of all its queues; -1: it has none. */
static long long progress(pid_t pid)
{
	const char *s = slurp("/sys/kernel/debug/kfdsim/queues");
	unsigned long long n;
	long long sum = -1;
	int p;

	for (; *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : "")
		if (sscanf(s, "%d %*u %*u %*s %llu", &p, &n) == 2 && p == pid)
			sum = (sum < 0 ? 0 : sum) + n;
	return sum;
}

bool busy_moves(const struct busy *b, unsigned int ms)
{
	long long first;

	/* A packet that was under way when the queue stopped may still end. */
	usleep(20000);
	first = progress(b->pid);
	usleep(ms * 1000);
	return first >= 0 && progress(b->pid) > first;
}

bool busy_moves_within(const struct busy *b, unsigned int ms)
{
	long long first = progress(b->pid);
	unsigned int i;

	for (i = 0; i < ms / 10; i++) {
		if (progress(b->pid) > first)
			return true;
		usleep(10000);
	}
	return false;
}

static int find_kfd(pid_t pid)
{
	char path[64], to[64];
	ssize_t n;
	int fd;

	for (fd = 3; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		n = readlink(path, to, sizeof(to) - 1);
		if (n < 0)
			continue;
		to[n] = 0;
		if (!strcmp(to, "/dev/kfd"))
			return fd;
	}
	return -1;
}

bool busy_start(struct busy *b)
{
	int i, null;

	fflush(stdout);
	b->pid = fork();
	if (!b->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		execlp("vecloop", "vecloop", "--size", "64K", NULL);
		_exit(127);
	}
	/* A minute: a debug kernel without KVM is slow. */
	for (i = 0; i < 3000; i++) {
		usleep(20000);
		if (progress(b->pid) > 2)
			break;
		if (waitpid(b->pid, NULL, WNOHANG) == b->pid)
			return false;
	}
	b->kfd = find_kfd(b->pid);
	return b->kfd >= 0;
}

void busy_stop(struct busy *b)
{
	kill(b->pid, SIGKILL);
	waitpid(b->pid, NULL, __WALL);
}
