// SPDX-License-Identifier: GPL-2.0-only
/* Device files of processes, by /proc. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/kcmp.h>

#include "proc.h"

#define DRM_MAJOR	226U
/* Inode of the initial pid namespace, fixed by the kernel. */
#define PIDNS_INIT_INO	0xeffffffcU
/* The kernel's PF_EXITING, in the flags of /proc/PID/stat. */
#define FLAG_EXITING	0x4U

/* First size - 1 bytes of a small file. Length or -errno. */
static ssize_t read_file(const char *path, char *text, size_t size)
{
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do
		n = read(fd, text, size - 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		n = -errno;
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	return n;
}

static bool is_kfd(uint32_t dev_major, uint32_t dev_minor)
{
	unsigned int maj, min;
	char text[32];

	if (read_file("/sys/class/kfd/kfd/dev", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%u:%u", &maj, &min) != 2)
		return false;
	return maj == dev_major && min == dev_minor;
}

enum gpucr_dev_kind gpucr_dev_kind(uint32_t dev_major, uint32_t dev_minor)
{
	char path[64], text[512];

	if (dev_major != DRM_MAJOR)
		return is_kfd(dev_major, dev_minor) ? GPUCR_DEV_KFD
						    : GPUCR_DEV_OTHER;
	/* By name: minors beyond 191 are of either kind. */
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/uevent", dev_major,
		 dev_minor);
	if (read_file(path, text, sizeof(text)) <= 0)
		return dev_minor >= 128 ? GPUCR_DEV_RENDER : GPUCR_DEV_PRIMARY;
	if (strstr(text, "DEVNAME=dri/renderD"))
		return GPUCR_DEV_RENDER;
	if (strstr(text, "DEVNAME=dri/card"))
		return GPUCR_DEV_PRIMARY;
	return GPUCR_DEV_OTHER;
}

/* Last part of what the link names. */
static int link_name(const char *path, char *name, size_t size)
{
	char target[PATH_MAX];
	const char *base;
	ssize_t len;

	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	target[len] = '\0';
	base = strrchr(target, '/');
	base = base ? base + 1 : target;
	snprintf(name, size, "%s", base);
	return 0;
}

/* virtio-pci only carries the device proper, a child of its own. */
static void virtio_driver(uint32_t dev_minor, char *name, size_t size)
{
	char path[PATH_MAX];
	struct dirent *de;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device", DRM_MAJOR,
		 dev_minor);
	d = opendir(path);
	if (!d)
		return;
	while ((de = readdir(d))) {
		if (strncmp(de->d_name, "virtio", 6))
			continue;
		snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device/%s/driver",
			 DRM_MAJOR, dev_minor, de->d_name);
		if (!link_name(path, name, size))
			break;
	}
	closedir(d);
}

void gpucr_dev_driver(uint32_t dev_minor, char *name, size_t size)
{
	char path[64];

	name[0] = '\0';
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device/driver",
		 DRM_MAJOR, dev_minor);
	if (!link_name(path, name, size) && strcmp(name, "faux_driver")) {
		if (!strcmp(name, "virtio-pci"))
			virtio_driver(dev_minor, name, size);
		return;
	}
	/* A device made by its own module has the module's name and no driver. */
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device", DRM_MAJOR,
		 dev_minor);
	if (link_name(path, name, size))
		name[0] = '\0';
}

uint32_t gpucr_dev_render_minor(uint32_t dev_minor)
{
	unsigned int render = 0;
	struct dirent *de;
	char path[64];
	DIR *d;

	if (gpucr_dev_kind(DRM_MAJOR, dev_minor) == GPUCR_DEV_RENDER)
		return dev_minor;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device/drm",
		 DRM_MAJOR, dev_minor);
	d = opendir(path);
	if (!d)
		return 0;
	while (!render && (de = readdir(d)))
		if (sscanf(de->d_name, "renderD%u", &render) != 1)
			render = 0;
	closedir(d);
	return render;
}

struct fd_list {
	struct gpucr_proc_fd *at;
	size_t num, max;
};

static int fd_list_add(struct fd_list *l, const struct gpucr_proc_fd *f)
{
	if (l->num == l->max) {
		size_t max = l->max ? 2 * l->max : 16;
		void *at = reallocarray(l->at, max, sizeof(*l->at));

		if (!at)
			return -ENOMEM;
		l->at = at;
		l->max = max;
	}
	l->at[l->num++] = *f;
	return 0;
}

static int compare_fd(const void *a, const void *b)
{
	const struct gpucr_proc_fd *x = a, *y = b;

	if (x->pid != y->pid)
		return (x->pid > y->pid) - (x->pid < y->pid);
	return (x->fd > y->fd) - (x->fd < y->fd);
}

static bool is_dma_buf(int dir, const char *name)
{
	char target[16];
	ssize_t len = readlinkat(dir, name, target, sizeof(target));

	return len >= 8 && !memcmp(target, "/dmabuf:", 8);
}

/* Is descriptor name of the directory a GPU file? Follows, never opens. */
static bool look_at(int dir, const char *name, struct gpucr_proc_fd *f)
{
	struct stat st;
	char *end;
	long n;

	n = strtol(name, &end, 10);
	if (*name < '0' || *name > '9' || *end || n > INT_MAX)
		return false;
	if (fstatat(dir, name, &st, 0))
		return false;
	f->fd = (int)n;
	f->dev_major = S_ISCHR(st.st_mode) ? major(st.st_rdev) : 0;
	f->dev_minor = S_ISCHR(st.st_mode) ? minor(st.st_rdev) : 0;
	f->inode_dev = st.st_dev;
	f->inode = st.st_ino;
	if (S_ISCHR(st.st_mode))
		f->kind = gpucr_dev_kind(f->dev_major, f->dev_minor);
	else
		f->kind = is_dma_buf(dir, name) ? GPUCR_DEV_DMA_BUF
						: GPUCR_DEV_OTHER;
	return f->kind != GPUCR_DEV_OTHER;
}

/* A directory in /proc that is not there is a process that is not there. */
static int proc_error(int err)
{
	return err == ENOENT ? -ESRCH : -err;
}

static int list_fds(pid_t pid, struct fd_list *l)
{
	struct gpucr_proc_fd f = { .pid = pid };
	struct dirent *de;
	char path[32];
	int err = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	if (!d)
		return proc_error(errno);
	for (;;) {
		errno = 0;
		de = readdir(d);
		if (!de) {
			err = errno ? proc_error(errno) : 0;
			break;
		}
		if (look_at(dirfd(d), de->d_name, &f))
			err = fd_list_add(l, &f);
		if (err)
			break;
	}
	closedir(d);
	return err;
}

static int fd_list_give(struct fd_list *l, int err, struct gpucr_proc_fd **ret,
			size_t *num)
{
	if (err) {
		free(l->at);
		*l = (struct fd_list){ 0 };
	}
	if (l->num)
		qsort(l->at, l->num, sizeof(*l->at), compare_fd);
	*ret = l->at;
	*num = l->num;
	return err;
}

int gpucr_proc_fds(pid_t pid, struct gpucr_proc_fd **ret, size_t *num)
{
	struct fd_list l = { 0 };

	return fd_list_give(&l, list_fds(pid, &l), ret, num);
}

int gpucr_proc_all_fds(struct gpucr_proc_fd **ret, size_t *num, size_t *hidden)
{
	struct fd_list l = { 0 };
	struct dirent *de;
	int err = 0;
	DIR *d;

	*hidden = 0;
	d = opendir("/proc");
	if (!d)
		return fd_list_give(&l, -errno, ret, num);
	while (!err && (de = readdir(d))) {
		pid_t pid = atoi(de->d_name);

		if (pid <= 0)
			continue;
		err = list_fds(pid, &l);
		if (err == -EACCES || err == -EPERM)
			++*hidden;
		if (err != -ENOMEM)
			err = 0;
	}
	closedir(d);
	return fd_list_give(&l, err, ret, num);
}

int gpucr_proc_same_file(const struct gpucr_proc_fd *a,
			 const struct gpucr_proc_fd *b)
{
	long ret;

	if (a->inode_dev != b->inode_dev || a->inode != b->inode)
		return 0;
	if (a->pid == b->pid && a->fd == b->fd)
		return 1;
	ret = syscall(SYS_kcmp, a->pid, b->pid, KCMP_FILE, a->fd, b->fd);
	if (ret < 0)
		return -errno;
	return ret == 0;
}

int gpucr_proc_comm(pid_t pid, char *comm, size_t size)
{
	char path[32];
	ssize_t n;
	size_t i;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	n = read_file(path, comm, size);
	if (n < 0) {
		comm[0] = '\0';
		return proc_error((int)-n);
	}
	comm[strcspn(comm, "\n")] = '\0';
	for (i = 0; comm[i]; i++)
		if ((unsigned char)comm[i] < ' ' || (unsigned char)comm[i] > '~')
			comm[i] = '?';
	return 0;
}

unsigned long long gpucr_proc_start_time(pid_t pid)
{
	unsigned long long start = 0;
	char path[32], text[1024], *rest;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return 0;
	/* The name, in parentheses, may hold anything. */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			    &start) != 1)
		return 0;
	return start;
}

bool gpucr_proc_is_exiting(pid_t pid)
{
	char path[32], text[512];
	unsigned int flags;
	const char *rest;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return true;
	/* The name may hold anything, blanks and parentheses too. */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		return false;
	return flags & FLAG_EXITING;
}

bool gpucr_proc_initial_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == PIDNS_INIT_INO;
}

int gpucr_pidfd_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int gpucr_pidfd_getfd(int pidfd, int fd)
{
	int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	return copy < 0 ? -errno : copy;
}
