// SPDX-License-Identifier: GPL-2.0-only
/* What a session keeps is told to those who hold a file of it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "holder.h"
#include "module.h"
#include "out.h"
#include "proc.h"
#include "session.h"

static int ask_with(int pidfd, int fd, int (*ask)(int holder, void *arg),
		    void *arg)
{
	int copy = gpucr_pidfd_getfd(pidfd, fd), err;

	/* Closed meanwhile, or not for us: the next one may do. */
	if (copy < 0)
		return -EPERM;
	err = ask(copy, arg);
	close(copy);
	return err;
}

static bool is_session(pid_t pid, const char *fd)
{
	char path[64], to[64];
	ssize_t n;

	if (*fd < '0' || *fd > '9')
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%.20s", pid, fd);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return false;
	to[n] = '\0';
	return !strcmp(to, "anon_inode:[gpucr-session]");
}

static int ask_owner(pid_t pid, int pidfd, int (*ask)(int holder, void *arg),
		     void *arg)
{
	char path[32];
	struct dirent *e;
	int err = -EPERM;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	if (!d)
		return -EPERM;
	while (err == -EPERM && (e = readdir(d)))
		if (is_session(pid, e->d_name))
			err = ask_with(pidfd, atoi(e->d_name), ask, arg);
	closedir(d);
	return err;
}

static int ask_target(pid_t pid, int pidfd, int (*ask)(int holder, void *arg),
		      void *arg)
{
	struct gpucr_proc_fd *fds;
	size_t i, num;
	int err = -EPERM;

	if (gpucr_proc_fds(pid, &fds, &num))
		return -EPERM;
	for (i = 0; err == -EPERM && i < num; i++)
		if (fds[i].kind == GPUCR_DEV_KFD)
			err = ask_with(pidfd, fds[i].fd, ask, arg);
	free(fds);
	return err;
}

static int ask_process(uint32_t pid,
		       int (*of)(pid_t pid, int pidfd,
				 int (*ask)(int holder, void *arg), void *arg),
		       int (*ask)(int holder, void *arg), void *arg)
{
	int pidfd = pid ? gpucr_pidfd_open((pid_t)pid) : -ESRCH, err;

	if (pidfd < 0)
		return -EPERM;
	err = of((pid_t)pid, pidfd, ask, arg);
	close(pidfd);
	return err;
}

int holder_ask(const struct gpucr_nl_session *s, bool kfd,
	       int (*ask)(int holder, void *arg), void *arg)
{
	int err = ask(-1, arg);

	if (err == -EPERM && !s->owner_gone)
		err = ask_process(s->owner_pid, ask_owner, ask, arg);
	if (err == -EPERM && kfd)
		err = ask_process(s->pid, ask_target, ask, arg);
	return err;
}

static int show(struct holder_question *q,
		int (*add_rows)(struct holder_question *q))
{
	struct args as_id = *q->args;
	int status, err;

	as_id.text[KEY_ID] = q->args->text[KEY_SESSION];
	status = session_find(q->nl, &as_id, &q->s);
	if (status)
		return status;
	err = add_rows(q);
	if (err)
		return module_fail(q->nl, err, "session %llx",
				   (unsigned long long)q->s.id);
	return EXIT_DONE;
}

int holder_show(const struct args *args, const struct out_column *columns,
		int (*add_rows)(struct holder_question *q))
{
	struct holder_question q = { .args = args };
	int status = module_open(&q.nl);

	if (status)
		return status;
	status = show(&q, add_rows);
	gpucr_nl_close(q.nl);
	return status ? status : out_finish(columns);
}
