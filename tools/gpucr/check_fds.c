// SPDX-License-Identifier: GPL-2.0-only
/* Files that CRIU cannot dump, by what the kernel calls them. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "check.h"
#include "kfd.h"
#include "proc.h"

#define MEM_MAJOR	1
#define TTY_MAJOR	4
#define TTYAUX_MAJOR	5
#define MISC_MAJOR	10
#define TUN_MINOR	200
#define PTY_FIRST	136
#define PTY_LAST	143
#define DRM_MAJOR	226

/* Anonymous inodes that CRIU knows; the rest it does not. */
static const char * const known_anon[] = {
	"[eventfd]", "[eventpoll]", "inotify", "[fanotify]", "[signalfd]",
	"[timerfd]", "bpf-map", "[pidfd]",
};

static void say(pid_t pid, const char *fd, enum check_answer answer,
		const char *token, const char *fix, const char *what)
{
	char subject[48];

	snprintf(subject, sizeof(subject), "pid %d fd %.10s", pid, fd);
	check_say(answer, subject, token, fix, "%s", what);
}

static void judge_anon(pid_t pid, const char *fd, const char *name)
{
	char what[192];
	size_t i;

	if (!strcmp(name, "[io_uring]")) {
		say(pid, fd, CHECK_NO, "io-uring",
		    "sysctl kernel.io_uring_disabled=2 before the job starts",
		    "io_uring cannot be dumped by CRIU");
		return;
	}
	for (i = 0; i < sizeof(known_anon) / sizeof(known_anon[0]); i++)
		if (!strcmp(name, known_anon[i]))
			return;
	snprintf(what, sizeof(what), "anon_inode:%.100s cannot be dumped by CRIU",
		 name);
	say(pid, fd, CHECK_NO, "fd-unsupported", "have the job close it", what);
}

static void judge_drm(pid_t pid, const char *fd, uint32_t minor)
{
	char driver[32], what[192];
	enum gpucr_dev_kind kind = gpucr_dev_kind(DRM_MAJOR, minor);

	gpucr_dev_driver(minor, driver, sizeof(driver));
	if (kind == GPUCR_DEV_RENDER && !strcmp(driver, "amdgpu"))
		return;
	snprintf(what, sizeof(what), "a %s node of driver %s cannot be dumped",
		 kind == GPUCR_DEV_RENDER ? "render" : "card",
		 *driver ? driver : "unknown");
	say(pid, fd, CHECK_NO, "fd-unsupported", "have the job close it", what);
}

static void judge_device(pid_t pid, const char *fd, dev_t dev)
{
	unsigned int maj = major(dev), min = minor(dev);
	char what[192];
	dev_t kfd;

	if (maj == MEM_MAJOR || maj == TTY_MAJOR || maj == TTYAUX_MAJOR ||
	    (maj >= PTY_FIRST && maj <= PTY_LAST) ||
	    (maj == MISC_MAJOR && min == TUN_MINOR))
		return;
	if (!gpucr_kfd_dev(&kfd) && kfd == dev)
		return;
	if (maj == DRM_MAJOR) {
		judge_drm(pid, fd, min);
		return;
	}
	snprintf(what, sizeof(what), "device %u:%u: CRIU needs a plugin of its own for it",
		 maj, min);
	say(pid, fd, CHECK_WARN, "fd-unsupported",
	    "gpucr doctor lists the plugins", what);
}

static void judge(pid_t pid, int dir, const char *fd)
{
	char link[256];
	struct stat st;
	ssize_t n;

	n = readlinkat(dir, fd, link, sizeof(link) - 1);
	if (n <= 0)
		return;
	link[n] = '\0';
	if (!strncmp(link, "anon_inode:", 11))
		judge_anon(pid, fd, link + 11);
	else if (!strncmp(link, "/dmabuf:", 8))
		say(pid, fd, CHECK_NO, "fd-unsupported",
		    "have the job close it",
		    "a dma-buf cannot be dumped");
	else if (!fstatat(dir, fd, &st, 0) && S_ISCHR(st.st_mode))
		judge_device(pid, fd, st.st_rdev);
}

void check_fds(pid_t pid)
{
	struct dirent *de;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	if (!d) {
		snprintf(path, sizeof(path), "pid %d", pid);
		check_say(CHECK_WARN, path, "no-ptrace-access",
			  "run as root, or with CAP_SYS_PTRACE",
			  "its files cannot be looked at");
		return;
	}
	while ((de = readdir(d)))
		if (isdigit((unsigned char)de->d_name[0]))
			judge(pid, dirfd(d), de->d_name);
	closedir(d);
}
