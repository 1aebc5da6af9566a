// SPDX-License-Identifier: GPL-2.0-only
#include "kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "log.h"

#define KFD_SYSFS_DEV	"/sys/class/kfd/kfd/dev"
#define KFD_NO_FD	0xffffffffu
/* Descriptors that other code of the process may need meanwhile. */
#define KFD_FD_RESERVE	256

int gpucr_kfd_state_alloc(struct gpucr_kfd_state *s,
			  const struct gpucr_kfd_counts *n)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	s->n = *n;
	/* One more of each: a pointer that KFD accepts where there is none. */
	s->devices = calloc((size_t)n->num_devices + 1, sizeof(*s->devices));
	s->bos = calloc((size_t)n->num_bos + 1, sizeof(*s->bos));
	s->priv = calloc(1, n->priv_size + 1);
	if (!s->devices || !s->bos || !s->priv) {
		gpucr_kfd_state_clear(s);
		return -ENOMEM;
	}
	for (i = 0; i < n->num_bos; i++)
		s->bos[i].dmabuf_fd = KFD_NO_FD;
	return 0;
}

void gpucr_kfd_state_close_bos(struct gpucr_kfd_state *s)
{
	uint32_t i;

	for (i = 0; s->bos && i < s->n.num_bos; i++) {
		if (s->bos[i].dmabuf_fd == KFD_NO_FD)
			continue;
		close(s->bos[i].dmabuf_fd);
		s->bos[i].dmabuf_fd = KFD_NO_FD;
	}
}

void gpucr_kfd_state_set_cloexec(struct gpucr_kfd_state *s)
{
	uint32_t i;

	for (i = 0; i < s->n.num_bos; i++) {
		if (!gpucr_kfd_bo_has_content(s->bos[i].alloc_flags))
			s->bos[i].dmabuf_fd = KFD_NO_FD;
		else if (s->bos[i].dmabuf_fd != KFD_NO_FD)
			fcntl(s->bos[i].dmabuf_fd, F_SETFD, FD_CLOEXEC);
	}
}

void gpucr_kfd_state_clear(struct gpucr_kfd_state *s)
{
	gpucr_kfd_state_close_bos(s);
	free(s->devices);
	free(s->bos);
	free(s->priv);
	memset(s, 0, sizeof(*s));
}

int gpucr_kfd_room(uint32_t num_bos, struct rlimit *old)
{
	rlim_t want = (rlim_t)num_bos + KFD_FD_RESERVE;
	struct rlimit lim;
	int fd;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return -errno;
	/* The lowest free number: all below it are taken. */
	fd = open("/", O_PATH | O_CLOEXEC);
	if (fd >= 0) {
		want += fd;
		close(fd);
	}
	*old = lim;
	if (lim.rlim_cur >= want)
		return 0;
	lim.rlim_cur = want;
	/* CAP_SYS_RESOURCE allows it; CRIU has and needs it. */
	if (lim.rlim_max < want)
		lim.rlim_max = want;
	if (!setrlimit(RLIMIT_NOFILE, &lim))
		return 0;
	gpucr_err("%u buffer objects need %llu descriptors, and the limit cannot be raised: %s (nofile)",
		  num_bos, (unsigned long long)want, strerror(errno));
	return -EMFILE;
}

void gpucr_kfd_room_restore(const struct rlimit *old)
{
	setrlimit(RLIMIT_NOFILE, old);
}

int gpucr_kfd_dev(dev_t *ret)
{
	unsigned int maj, min;
	FILE *f;
	int n;

	f = fopen(KFD_SYSFS_DEV, "re");
	if (!f)
		return -ENODEV;
	n = fscanf(f, "%u:%u", &maj, &min);
	fclose(f);
	if (n != 2)
		return -ENODEV;
	*ret = makedev(maj, min);
	return 0;
}

int gpucr_kfd_version(int fd, uint32_t *major, uint32_t *minor)
{
	struct kfd_ioctl_get_version_args args = { 0 };

	if (ioctl(fd, AMDKFD_IOC_GET_VERSION, &args))
		return -errno;
	*major = args.major_version;
	*minor = args.minor_version;
	return 0;
}

static int check_file(int fd, dev_t dev)
{
	uint32_t maj = 0, min = 0;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != dev) {
		gpucr_err("%s is device %u:%u, but KFD is %u:%u (wrong-device)",
			  GPUCR_KFD_PATH, major(st.st_rdev), minor(st.st_rdev),
			  major(dev), minor(dev));
		return -ENODEV;
	}
	err = gpucr_kfd_version(fd, &maj, &min);
	if (err) {
		gpucr_err("%s: GET_VERSION: %s", GPUCR_KFD_PATH,
			  strerror(-err));
		return err;
	}
	if (maj != 1 || min < 8) {
		gpucr_err("KFD %u.%u cannot checkpoint: 1.8 or newer is needed (kfd-too-old)",
			  maj, min);
		return -EOPNOTSUPP;
	}
	return 0;
}

int gpucr_kfd_open(dev_t dev)
{
	int fd, err;

	fd = open(GPUCR_KFD_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		gpucr_err("%s cannot be opened: %s (no-kfd); give the process the device node and access to it",
			  GPUCR_KFD_PATH, strerror(-err));
		return err;
	}
	err = check_file(fd, dev);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static int criu_op(int fd, uint32_t op, struct kfd_ioctl_criu_args *args)
{
	args->op = op;
	return ioctl(fd, AMDKFD_IOC_CRIU_OP, args) ? -errno : 0;
}

static void fill_args(struct kfd_ioctl_criu_args *args,
		      const struct gpucr_kfd_state *s)
{
	memset(args, 0, sizeof(*args));
	args->devices = (uintptr_t)s->devices;
	args->bos = (uintptr_t)s->bos;
	args->priv_data = (uintptr_t)s->priv;
	args->priv_data_size = s->n.priv_size;
	args->num_devices = s->n.num_devices;
	args->num_bos = s->n.num_bos;
	args->num_objects = s->n.num_objects;
}

int gpucr_kfd_process_info(int fd, struct gpucr_kfd_counts *ret)
{
	struct kfd_ioctl_criu_args args = { 0 };
	int err;

	err = criu_op(fd, KFD_CRIU_OP_PROCESS_INFO, &args);
	if (err)
		return err;
	ret->pid = args.pid;
	ret->num_devices = args.num_devices;
	ret->num_bos = args.num_bos;
	ret->num_objects = args.num_objects;
	ret->priv_size = args.priv_data_size;
	return 0;
}

int gpucr_kfd_checkpoint(int fd, struct gpucr_kfd_state *s)
{
	struct kfd_ioctl_criu_args args;

	fill_args(&args, s);
	return criu_op(fd, KFD_CRIU_OP_CHECKPOINT, &args);
}

int gpucr_kfd_unpause(int fd)
{
	struct kfd_ioctl_criu_args args = { 0 };

	return criu_op(fd, KFD_CRIU_OP_UNPAUSE, &args);
}

int gpucr_kfd_restore(int fd, struct gpucr_kfd_state *s)
{
	struct kfd_ioctl_criu_args args;

	fill_args(&args, s);
	return criu_op(fd, KFD_CRIU_OP_RESTORE, &args);
}

int gpucr_kfd_resume(int fd, pid_t pid)
{
	struct kfd_ioctl_criu_args args = { .pid = pid };

	return criu_op(fd, KFD_CRIU_OP_RESUME, &args);
}
