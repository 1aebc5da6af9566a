// SPDX-License-Identifier: GPL-2.0-only
#include "tree.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "log.h"
#include "proc.h"
#include "rendernode.h"

static bool same_file(int a, int b)
{
	pid_t self = getpid();

	return syscall(SYS_kcmp, self, self, KCMP_FILE, a, b) == 0;
}

bool tree_is_gpu(const struct tree *t, dev_t rdev)
{
	char driver[32];

	if (rdev == t->kfd)
		return true;
	if (gpucr_dev_kind(major(rdev), minor(rdev)) != GPUCR_DEV_RENDER)
		return false;
	gpucr_dev_driver(minor(rdev), driver, sizeof(driver));
	return !strcmp(driver, "amdgpu");
}

struct tree_file *tree_find(struct tree *t, int fd)
{
	size_t i;

	for (i = 0; i < t->num_files; i++) {
		if (same_file(t->files[i].fd, fd))
			return &t->files[i];
	}
	return NULL;
}

bool tree_holds(const struct tree_file *f, pid_t pid)
{
	size_t i;

	for (i = 0; i < f->num_holders; i++) {
		if (f->holders[i].task->pid == pid)
			return true;
	}
	return false;
}

const struct gpucr_task *tree_restorer(const struct tree_file *f)
{
	const struct gpucr_task *best = f->holders[0].task;
	size_t i;

	for (i = 1; i < f->num_holders; i++) {
		const struct gpucr_task *t = f->holders[i].task;

		/* Numbers of different namespaces say nothing. */
		if (t->depth == best->depth ? t->ns_pid < best->ns_pid :
					      t->pid < best->pid)
			best = t;
	}
	return best;
}

static int add_holder(struct tree_file *f, const struct gpucr_task *task,
		      int fd)
{
	struct tree_holder *more;

	if (f->num_holders && f->holders[f->num_holders - 1].task == task)
		return 0;
	more = reallocarray(f->holders, f->num_holders + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->holders = more;
	f->holders[f->num_holders++] = (struct tree_holder){
		.task = task, .fd = fd,
	};
	return 0;
}

/* Takes copy over. */
static int add_file(struct tree *t, const struct gpucr_task *task,
		    const struct gpucr_proc_fd *p, int copy)
{
	struct tree_file *f = tree_find(t, copy);
	struct tree_file *more;

	if (f) {
		close(copy);
		return add_holder(f, task, p->fd);
	}
	more = reallocarray(t->files, t->num_files + 1, sizeof(*more));
	if (!more) {
		close(copy);
		return -ENOMEM;
	}
	t->files = more;
	f = &t->files[t->num_files++];
	memset(f, 0, sizeof(*f));
	f->kfd = p->kind == GPUCR_DEV_KFD;
	f->minor = p->dev_minor;
	f->fd = copy;
	return add_holder(f, task, p->fd);
}

static int add_fd(struct tree *t, const struct gpucr_task *task, int pidfd,
		  const struct gpucr_proc_fd *p)
{
	int copy;

	if (p->kind != GPUCR_DEV_KFD && p->kind != GPUCR_DEV_RENDER)
		return 0;
	if (!tree_is_gpu(t, makedev(p->dev_major, p->dev_minor)))
		return 0;
	copy = gpucr_pidfd_getfd(pidfd, p->fd);
	if (copy == -EBADF || copy == -ESRCH)
		return 0;
	if (copy < 0) {
		gpucr_err("pid %d, fd %d: cannot be copied: %s (not-tracer)",
			  task->pid, p->fd, strerror(-copy));
		return copy;
	}
	if (p->kind == GPUCR_DEV_RENDER && !gpucr_drm_is_amdgpu(copy)) {
		close(copy);
		return 0;
	}
	return add_file(t, task, p, copy);
}

static int read_task(struct tree *t, const struct gpucr_task *task)
{
	struct gpucr_proc_fd *fds;
	size_t i, num;
	int pidfd, err;

	err = gpucr_proc_fds(task->pid, &fds, &num);
	if (err == -ESRCH)
		return 0;
	if (err) {
		gpucr_err("pid %d: its descriptors cannot be listed: %s",
			  task->pid, strerror(-err));
		return err;
	}
	pidfd = num ? gpucr_pidfd_open(task->pid) : -ESRCH;
	if (pidfd < 0 && pidfd != -ESRCH) {
		err = pidfd;
		gpucr_err("pid %d: no pidfd: %s (not-tracer)", task->pid,
			  strerror(-err));
	}
	for (i = 0; pidfd >= 0 && i < num && !err; i++)
		err = add_fd(t, task, pidfd, &fds[i]);
	if (pidfd >= 0)
		close(pidfd);
	free(fds);
	return err;
}

int tree_read(struct tree *t, dev_t kfd)
{
	size_t i;
	int err;

	memset(t, 0, sizeof(*t));
	t->kfd = kfd;
	err = gpucr_task_list_traced(&t->tasks, &t->num_tasks);
	if (err) {
		gpucr_err("the tasks of the tree cannot be listed: %s",
			  strerror(-err));
		return err;
	}
	for (i = 0; i < t->num_tasks && !err; i++)
		err = read_task(t, &t->tasks[i]);
	return err;
}

void tree_close(struct tree *t)
{
	size_t i;

	for (i = 0; i < t->num_files; i++) {
		close(t->files[i].fd);
		free(t->files[i].holders);
	}
	free(t->files);
	free(t->tasks);
	memset(t, 0, sizeof(*t));
}
