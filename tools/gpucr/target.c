// SPDX-License-Identifier: GPL-2.0-only
/* The process that a command looks at. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"
#include "gpu.h"
#include "module.h"
#include "target.h"

static bool has_ended(const struct target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

	/* Files are gone before the pidfd tells of the end. */
	return poll(&p, 1, 0) > 0 || gpucr_proc_is_exiting(t->pid);
}

static int gone(const struct target *t)
{
	return fail(TOKEN_PROCESS_GONE, ESRCH,
		    "pid %d (%s): ended while it was looked at", t->pid,
		    t->comm);
}

/* What a look into another process may give. */
static int failed(const struct target *t, int err, const char *what)
{
	if (has_ended(t) || err == -ESRCH)
		return gone(t);
	if (err == -EPERM || err == -EACCES)
		return fail(TOKEN_NO_PTRACE_ACCESS, -err,
			    "pid %d (%s): %s cannot be read: %s", t->pid,
			    t->comm, what, strerror(-err));
	if (err == -ENOMEM)
		return fail(TOKEN_NO_MEMORY, ENOMEM, "pid %d: %s", t->pid, what);
	return fail(TOKEN_KERNEL_REFUSED, -err, "pid %d (%s): %s: %s", t->pid,
		    t->comm, what, strerror(-err));
}

static int no_pidfd(pid_t pid, int err)
{
	if (err == -ESRCH)
		return fail(TOKEN_NO_PROCESS, ESRCH,
			    "pid %d: there is no such process", pid);
	/* ENOENT: newer kernels. */
	if (err == -EINVAL || err == -ENOENT)
		return fail(TOKEN_NO_PROCESS, -err,
			    "pid %d: a thread, not a process", pid);
	return fail(TOKEN_KERNEL_REFUSED, -err, "pid %d: %s", pid,
		    strerror(-err));
}

int target_open(struct target *t, pid_t pid)
{
	int err, status;

	memset(t, 0, sizeof(*t));
	t->pid = pid;
	t->pidfd = gpucr_pidfd_open(pid);
	if (t->pidfd < 0)
		return no_pidfd(pid, t->pidfd);
	gpucr_proc_comm(pid, t->comm, sizeof(t->comm));
	if (has_ended(t)) {
		status = fail(TOKEN_NO_PROCESS, ESRCH,
			      "pid %d (%s): has ended, or is ending",
			      pid, t->comm);
		target_close(t);
		return status;
	}
	err = gpucr_proc_fds(pid, &t->fds, &t->num_fds);
	if (!err)
		return EXIT_DONE;
	status = failed(t, err, "its descriptors");
	target_close(t);
	return status;
}

int target_open_asked(struct target *t, struct gpucr_nl **nl,
		      const struct args *args)
{
	int status = module_open(nl);

	if (status)
		return status;
	status = gpu_check(args);
	if (!status)
		status = target_open(t, (pid_t)args->value[KEY_PID]);
	if (status)
		gpucr_nl_close(*nl);
	return status;
}

void target_close(struct target *t)
{
	close(t->pidfd);
	free(t->fds);
	memset(t, 0, sizeof(*t));
}

int target_check_alive(const struct target *t)
{
	return has_ended(t) ? gone(t) : EXIT_DONE;
}

bool target_is_duplicate(const struct target *t, size_t index)
{
	size_t i;

	for (i = 0; i < index; i++)
		if (gpucr_proc_same_file(&t->fds[i], &t->fds[index]) == 1)
			return true;
	return false;
}

int target_copy(const struct target *t, const struct gpucr_proc_fd *f, int *fd)
{
	struct stat st;

	*fd = gpucr_pidfd_getfd(t->pidfd, f->fd);
	if (*fd == -EBADF)
		goto changed;
	if (*fd < 0)
		return failed(t, *fd, "a descriptor");
	if (!fstat(*fd, &st) && st.st_dev == f->inode_dev &&
	    st.st_ino == f->inode)
		return EXIT_DONE;
	close(*fd);
	*fd = -1;
changed:
	return fail(TOKEN_LIST_CHANGED, EBADF,
		    "pid %d (%s): fd %d was closed meanwhile", t->pid, t->comm,
		    f->fd);
}

static int check_fd(const struct target *t, const struct args *args,
		    unsigned int kinds)
{
	size_t i;

	if (!args->has[KEY_FD])
		return EXIT_DONE;
	for (i = 0; i < t->num_fds; i++)
		if ((uint64_t)t->fds[i].fd == args->value[KEY_FD] &&
		    kinds & (1u << t->fds[i].kind))
			return EXIT_DONE;
	return fail(TOKEN_NO_GPU_FILE, 0, "pid %d (%s): fd %s is not open or not a %s file",
		    t->pid, t->comm, args->text[KEY_FD],
		    kinds & (1u << GPUCR_DEV_KFD) ? "GPU" : "DRM");
}

int target_for_each_file(const struct target *t, const struct args *args,
			 unsigned int kinds,
			 int (*fn)(const struct gpucr_proc_fd *f, int copy,
				   void *arg), void *arg)
{
	int copy, status = check_fd(t, args, kinds);
	size_t i;

	for (i = 0; !status && i < t->num_fds; i++) {
		const struct gpucr_proc_fd *f = &t->fds[i];

		if (!(kinds & (1u << f->kind)))
			continue;
		if (args->has[KEY_FD] ? (uint64_t)f->fd != args->value[KEY_FD]
				      : target_is_duplicate(t, i))
			continue;
		/* KFD and dma-bufs have pages of any GPU: fn looks closer. */
		if ((f->kind == GPUCR_DEV_RENDER ||
		     f->kind == GPUCR_DEV_PRIMARY) &&
		    !args_gpu_matches(args, gpu_of_minor(f->dev_minor)))
			continue;
		status = target_copy(t, f, &copy);
		if (status)
			break;
		status = fn(f, copy, arg);
		close(copy);
	}
	return status;
}
