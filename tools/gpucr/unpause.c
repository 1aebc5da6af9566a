// SPDX-License-Identifier: GPL-2.0-only
#include "unpause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kfd.h"
#include "proc.h"
#include "task.h"
#include "trace.h"

#define FIRST_WAIT_MS	10
#define LONGEST_WAIT_MS	1000

int unpause_add(struct unpause *u, pid_t pid, int fd)
{
	unsigned long long start = gpucr_proc_start_time(pid);
	struct unpause_file *more;

	if (!start)
		return 0;
	more = reallocarray(u->files, u->num + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	u->files = more;
	u->files[u->num++] = (struct unpause_file){
		.pid = pid, .fd = fd, .start = start,
	};
	return 0;
}

void unpause_clear(struct unpause *u)
{
	free(u->files);
	memset(u, 0, sizeof(*u));
}

/* Several files of one process are traced once. */
static int seize(struct unpause *u, struct unpause_file *f)
{
	size_t i;
	int err;

	for (i = 0; i < u->num; i++) {
		if (u->files[i].pid == f->pid && u->files[i].seized)
			f->seized = true;
	}
	if (f->seized)
		return 0;
	err = trace_seize(f->pid);
	f->seized = !err;
	return err;
}

/* Is anybody of the list still to be traced? KFD wants the owner to be. */
static bool all_seized(const struct unpause *u)
{
	size_t i;

	for (i = 0; i < u->num; i++) {
		if (!u->files[i].seized && !u->files[i].done)
			return false;
	}
	return true;
}

static int ask_kfd(const struct unpause_file *f)
{
	int pidfd, fd, err;

	pidfd = gpucr_pidfd_open(f->pid);
	if (pidfd < 0)
		return pidfd;
	fd = gpucr_pidfd_getfd(pidfd, f->fd);
	close(pidfd);
	if (fd < 0)
		return fd;
	err = gpucr_kfd_unpause(fd);
	close(fd);
	return err;
}

static void try_one(struct unpause *u, struct unpause_file *f)
{
	int err;

	trace_pump(f->pid);
	err = ask_kfd(f);
	if (!err)
		u->unpaused++;
	/* EINVAL: not paused. EBADF: whoever owns it is gone, or to come. */
	f->done = !err || err == -EINVAL ||
		  (err == -EBADF && all_seized(u));
	if (!f->done)
		u->err = err;
}

static void try_all(struct unpause *u)
{
	struct unpause_file *f;
	size_t i;
	int err;

	u->traced = false;
	for (i = 0; i < u->num; i++) {
		f = &u->files[i];
		if (f->done)
			continue;
		f->done = gpucr_task_is_gone(f->pid) ||
			  gpucr_proc_start_time(f->pid) != f->start;
		err = f->done ? 0 : seize(u, f);
		if (err == -ESRCH)
			f->done = true;
		else if (err)
			u->traced = true;
	}
	for (i = 0; i < u->num; i++) {
		f = &u->files[i];
		if (!f->done && f->seized)
			try_one(u, f);
	}
	u->left = 0;
	for (i = 0; i < u->num; i++)
		u->left += !u->files[i].done;
}

void unpause_run(struct unpause *u, unsigned int patience_ms)
{
	unsigned int wait_ms = FIRST_WAIT_MS, waited = 0;
	struct timespec wait;
	size_t i;

	for (;;) {
		try_all(u);
		if (!u->left || waited >= patience_ms)
			break;
		wait.tv_sec = wait_ms / 1000;
		wait.tv_nsec = wait_ms % 1000 * 1000000L;
		nanosleep(&wait, NULL);
		waited += wait_ms;
		if (wait_ms < LONGEST_WAIT_MS)
			wait_ms *= 2;
		for (i = 0; i < u->num; i++) {
			if (u->files[i].seized)
				trace_pump(u->files[i].pid);
		}
	}
	for (i = 0; i < u->num; i++) {
		if (u->files[i].seized)
			trace_let_go(u->files[i].pid);
	}
}
