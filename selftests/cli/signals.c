// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hundred visits of the tool to a process that gets a thousand signals a
 * second: each of them arrives, in order, and nobody traces or stops it.
 * Real-time signals are counted and numbered: of others, several at once are
 * one.
 *
 * Seizing the process for a visit must turn this red: the next signal stops it
 * until the tool ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <amdgpu_drm.h>

#include "../ktap.h"

#define VISITS	100
#define MIN_SIGNALS	1000
#define BO_BYTES	65536u

/* What target, sender and test share. */
static struct {
	_Atomic unsigned int sent, received, gaps;
	_Atomic bool ready, stop;
} *shared;

static void on_signal(int sig, siginfo_t *si, void *ctx)
{
	(void)sig;
	(void)ctx;
	if ((unsigned int)si->si_value.sival_int != shared->received)
		shared->gaps++;
	shared->received++;
}

/* A buffer object with a mapping, so that there is something to see. */
static int open_gpu(void)
{
	union drm_amdgpu_gem_create c = {
		.in = { .bo_size = BO_BYTES, .alignment = 4096,
			.domains = AMDGPU_GEM_DOMAIN_VRAM },
	};
	union drm_amdgpu_gem_mmap m = { 0 };
	int fd = open("/dev/dri/renderD128", O_RDWR);

	if (fd < 0 || ioctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &c))
		return -1;
	m.in.handle = c.out.handle;
	if (ioctl(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &m) ||
	    mmap(NULL, BO_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 m.out.addr_ptr) == MAP_FAILED)
		return -1;
	return open("/dev/kfd", O_RDWR);
}

static void target(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGRTMIN, &sa, NULL);
	if (open_gpu() < 0)
		_exit(1);
	shared->ready = true;
	for (;;)
		pause();
}

static void sender(pid_t to)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	union sigval v;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!shared->stop) {
		v.sival_int = (int)shared->sent;
		if (sigqueue(to, SIGRTMIN, v))
			_exit(1);
		shared->sent++;
		nanosleep(&ms, NULL);
	}
	_exit(0);
}

static int run_tool(const char *object, pid_t pid)
{
	const char *tool = getenv("GPUCR") ? getenv("GPUCR") : "gpucr";
	char text[16];
	int status;
	pid_t child;

	snprintf(text, sizeof(text), "%d", pid);
	child = fork();
	if (!child) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		execlp(tool, tool, "-j", object, "pid", text, NULL);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Traced, or stopped? Then it is not as it was. */
static bool untouched(pid_t pid)
{
	char path[64], line[128];
	bool good = true;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "State:", 6))
			good &= !strpbrk(line + 6, "tTZX");
		else if (!strncmp(line, "TracerPid:", 10))
			good &= !atoi(line + 10);
	}
	fclose(f);
	return good;
}

static unsigned int visit(pid_t pid, unsigned int *touched)
{
	static const char * const objects[] = { "bo", "vma", "file", "ps" };
	unsigned int i, failed = 0;

	for (i = 0; i < VISITS; i++) {
		int status = run_tool(objects[i % 4], pid);

		if (status)
			printf("# %s: exit status %d\n", objects[i % 4], status);
		failed += status != 0;
		*touched += !untouched(pid);
	}
	return failed;
}

static pid_t start(void (*fn)(pid_t), pid_t arg)
{
	pid_t pid = fork();

	if (!pid)
		fn(arg);
	return pid;
}

static void target_of(pid_t unused)
{
	(void)unused;
	target();
}

int main(void)
{
	const struct rlimit many = { 100000, 100000 };
	unsigned int touched = 0, failed;
	pid_t pid, from;
	int i, status;

	ktap_plan(4);
	fflush(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || setrlimit(RLIMIT_SIGPENDING, &many))
		ktap_bail("set-up");
	pid = start(target_of, 0);
	for (i = 0; i < 3000 && !shared->ready; i++)
		usleep(10000);
	if (!shared->ready)
		ktap_bail("the target does not start");
	from = start(sender, pid);
	failed = visit(pid, &touched);
	shared->stop = true;
	waitpid(from, &status, 0);
	for (i = 0; i < 1000 && shared->received < shared->sent; i++)
		usleep(10000);
	printf("# %u signals sent, %u arrived, %u out of order, during %d visits\n",
	       shared->sent, shared->received, shared->gaps, VISITS);
	ktap_ok(!failed, "%d visits see what they are to see", VISITS);
	ktap_ok(!status && shared->sent >= MIN_SIGNALS &&
		shared->received == shared->sent && !shared->gaps,
		"every signal that was sent meanwhile has arrived, in order");
	ktap_ok(!touched, "it is never traced or stopped");
	ktap_ok(!kill(pid, 0) && !waitpid(pid, NULL, WNOHANG), "it lives");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return ktap_exit();
}
