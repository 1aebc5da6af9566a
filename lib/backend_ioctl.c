// SPDX-License-Identifier: GPL-2.0-only
/* The backend that calls KFD itself. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backend_ops.h"

static int ioctl_open(struct gpucr_backend *b)
{
	(void)b;
	return 0;
}

static void ioctl_close(struct gpucr_backend *b)
{
	(void)b;
}

static int ioctl_ckpt_open(struct gpucr_ckpt *c)
{
	(void)c;
	return 0;
}

static int ioctl_pause(struct gpucr_ckpt *c, struct gpucr_kfd_counts *ret,
		       bool *was_paused)
{
	int err;

	/* Heals a target that somebody left paused. EINVAL: nobody did. */
	err = gpucr_kfd_unpause(c->kfd_fd);
	if (err && err != -EINVAL)
		return err;
	*was_paused = !err;
	return gpucr_kfd_process_info(c->kfd_fd, ret);
}

static int ioctl_read(struct gpucr_ckpt *c, struct gpucr_kfd_state *s)
{
	return gpucr_kfd_checkpoint(c->kfd_fd, s);
}

static int ioctl_unpause(struct gpucr_ckpt *c)
{
	return gpucr_kfd_unpause(c->kfd_fd);
}

static void ioctl_ckpt_close(struct gpucr_ckpt *c)
{
	(void)c;
}

static int ioctl_restore_open(struct gpucr_restore *r)
{
	(void)r;
	return 0;
}

static int ioctl_run(struct gpucr_restore *r, int kfd_fd,
		     struct gpucr_kfd_state *s)
{
	(void)r;
	return gpucr_kfd_restore(kfd_fd, s);
}

static int ioctl_resume(struct gpucr_restore *r, pid_t pid)
{
	if (r->kfd_fd < 0)
		r->kfd_fd = gpucr_kfd_open(r->be->kfd);
	if (r->kfd_fd < 0)
		return r->kfd_fd;
	return gpucr_kfd_resume(r->kfd_fd, pid);
}

static void ioctl_restore_close(struct gpucr_restore *r)
{
	if (r->kfd_fd >= 0)
		close(r->kfd_fd);
}

static const char *ioctl_why(struct gpucr_backend *b, int err)
{
	(void)b;
	switch (-err) {
	case EBADF:
		return "the KFD process belongs to a task that is not of this tree";
	case EACCES:
		return "CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN is needed in the initial user namespace";
	case EOPNOTSUPP:
		return "a queue of a type that KFD cannot checkpoint";
	}
	return "";
}

const struct gpucr_backend_ops gpucr_backend_ioctl = {
	.name = "ioctl",
	.needs_guard = true,
	.open = ioctl_open,
	.close = ioctl_close,
	.ckpt_open = ioctl_ckpt_open,
	.pause = ioctl_pause,
	.read = ioctl_read,
	.unpause = ioctl_unpause,
	.ckpt_close = ioctl_ckpt_close,
	.restore_open = ioctl_restore_open,
	.run = ioctl_run,
	.resume = ioctl_resume,
	.restore_close = ioctl_restore_close,
	.why = ioctl_why,
};
