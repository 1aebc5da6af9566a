// SPDX-License-Identifier: GPL-2.0-only
/* Can a process be dumped, with all its children? */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "fail.h"
#include "module.h"
#include "proc.h"
#include "target.h"
#include "task.h"

bool check_tree_has(const struct check_tree *t, pid_t pid)
{
	size_t i;

	for (i = 0; i < t->num; i++)
		if (t->pids[i] == pid)
			return true;
	return false;
}

static int add_pid(struct check_tree *t, pid_t pid)
{
	pid_t *more = reallocarray(t->pids, t->num + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	t->pids = more;
	t->pids[t->num++] = pid;
	return 0;
}

/* A number of /proc/PID/status; -1: it is gone, or has no such line. */
static long status_value(pid_t pid, const char *name)
{
	char path[64], line[256];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			value = atol(line + strlen(name));
	if (f)
		fclose(f);
	return value;
}

/* Appends children of what is there already; true where there were any. */
static bool add_children(struct check_tree *t, int *err)
{
	DIR *d = opendir("/proc");
	size_t before = t->num;
	struct dirent *de;

	*err = d ? 0 : -errno;
	while (d && !*err && (de = readdir(d))) {
		pid_t pid = (pid_t)atoi(de->d_name);

		if (!isdigit((unsigned char)de->d_name[0]) ||
		    check_tree_has(t, pid))
			continue;
		if (check_tree_has(t, (pid_t)status_value(pid, "PPid:")))
			*err = add_pid(t, pid);
	}
	if (d)
		closedir(d);
	return t->num > before;
}

static int read_tree(struct check_tree *t, pid_t root)
{
	int err = add_pid(t, root);

	while (!err && add_children(t, &err))
		;
	return err;
}

/* What stands in the way whatever files it has. */
static void check_task(pid_t pid)
{
	struct gpucr_task task;
	char subject[32];
	long tracer;

	snprintf(subject, sizeof(subject), "pid %d", pid);
	tracer = status_value(pid, "TracerPid:");
	if (tracer > 0)
		check_say(CHECK_NO, subject, "target-traced",
			  "end its tracer",
			  "pid %ld traces it, so CRIU cannot", tracer);
	if (!gpucr_task_read(pid, &task) && task.foreign_userns)
		check_say(CHECK_NO, subject, "userns",
			  "run the job without a user namespace of its own",
			  "it is in another user namespace, where KFD does not restore");
}

static void check_session(const struct check_tree *t, struct gpucr_nl *nl)
{
	struct gpucr_nl_session *s;
	char subject[32];
	size_t i, num;

	if (gpucr_nl_sessions(nl, 0, &s, &num))
		return;
	for (i = 0; i < num; i++) {
		if (!check_tree_has(t, (pid_t)s[i].pid))
			continue;
		snprintf(subject, sizeof(subject), "pid %u", s[i].pid);
		check_say(CHECK_NO, subject, "session-failed",
			  "gpucr session",
			  "it has a session already, %06llx",
			  (unsigned long long)s[i].id);
	}
	free(s);
}

static int check_members(const struct check_tree *t, const char *dir)
{
	struct check_size size = { 0 };
	struct gpucr_nl *nl = NULL;
	size_t i;
	int status;

	status = module_open_if_loaded(&nl);
	if (status)
		return status;
	for (i = 0; i < t->num; i++) {
		check_task(t->pids[i]);
		check_fds(t->pids[i]);
	}
	if (nl)
		check_session(t, nl);
	check_gpu(t, nl, &size);
	check_space(&size, dir);
	gpucr_nl_close(nl);
	return EXIT_DONE;
}

int check_pid(pid_t pid, const char *dir)
{
	struct check_tree tree = { 0 };
	struct target t;
	int status, err;

	/* The one whose absence is an error, not an answer. */
	status = target_open(&t, pid);
	if (status)
		return status;
	err = read_tree(&tree, pid);
	if (err)
		status = fail(TOKEN_NO_MEMORY, -err, "pid %d: its children",
			      pid);
	if (!status)
		status = check_members(&tree, dir);
	if (!status)
		status = target_check_alive(&t);
	target_close(&t);
	free(tree.pids);
	return status;
}
