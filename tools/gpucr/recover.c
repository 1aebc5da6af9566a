// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpucr session recover: let the target of an abandoned session go on, or a
 * process that somebody left paused without a session.
 *
 * KFD takes the unpause from a tracer of the target only, see trace.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "module.h"
#include "out.h"
#include "proc.h"
#include "session.h"
#include "trace.h"
#include "unpause.h"

/* PF_KTHREAD, as /proc/PID/stat shows it. */
#define PROC_FLAG_KTHREAD	0x00200000ul

static const struct out_column columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "PID", "pid", out_text, 0 },
	{ "STATE", "state", out_text, 0 },
	{ 0 }
};

static int seize(const struct gpucr_nl_session *s)
{
	int err = trace_seize((pid_t)s->pid);

	if (!err)
		return EXIT_DONE;
	if (err == -ESRCH)
		return fail(TOKEN_PROCESS_GONE, ESRCH,
			    "session %llx: its target, pid %u, has ended",
			    (unsigned long long)s->id, s->pid);
	return fail(TOKEN_TARGET_TRACED, -err,
		    "session %llx: pid %u cannot be traced: %s",
		    (unsigned long long)s->id, s->pid, strerror(-err));
}

/* The session, its owner being dead, ends with that: its state is the last. */
static int unpause(struct gpucr_nl *nl, struct gpucr_nl_session *s)
{
	struct gpucr_nl_relay r = {
		.cmd = GPUCR_CMD_SESSION_UNPAUSE, .id = s->id, .kfd_fd = -1,
	};
	int err = gpucr_nl_relay(nl, &r);

	trace_let_go((pid_t)s->pid);
	if (!err) {
		s->state = r.state;
		return EXIT_DONE;
	}
	if (err == -EPERM || err == -EACCES)
		return module_fail(nl, err, "session %llx",
				   (unsigned long long)s->id);
	return fail(TOKEN_RECOVERY_FAILED, -err, "session %llx: pid %u: %s",
		    (unsigned long long)s->id, s->pid, module_sentence(nl, err));
}

static int recover(struct gpucr_nl *nl, struct gpucr_nl_session *s)
{
	int status;

	if (s->state != GPUCR_SESSION_STATE_ABANDONED &&
	    session_holds_paused(s))
		return fail(TOKEN_SESSION_LIVE, EBUSY,
			    "session %llx: %s, and its owner %s %u lives",
			    (unsigned long long)s->id, session_state(s->state),
			    s->owner_comm, s->owner_pid);
	if (s->state != GPUCR_SESSION_STATE_ABANDONED) {
		out_warn("nothing-paused", "session %llx is %s: there is nothing to undo",
			 (unsigned long long)s->id, session_state(s->state));
		return EXIT_DONE;
	}
	if (!s->pid)
		return fail(TOKEN_NO_PROCESS, ESRCH,
			    "session %llx: its target is not visible from this pid namespace",
			    (unsigned long long)s->id);
	status = seize(s);
	return status ? status : unpause(nl, s);
}

static void add_row(const struct gpucr_nl_session *s)
{
	struct json_object *row = out_row();

	out_add_fmt(row, "id", "%llx", (unsigned long long)s->id);
	out_add_u64(row, "pid", s->pid);
	out_add_str(row, "state", session_state(s->state));
}

/* The module starts us from a kernel thread, nobody else does. */
static bool called_by_kernel(void)
{
	unsigned long flags = 0;
	char path[64], text[1024];
	char *p = NULL;
	FILE *f;

	if (getppid() == 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", getppid());
	f = fopen(path, "re");
	if (!f)
		return false;
	p = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	fclose(f);
	if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %lu", &flags) != 1)
		return false;
	return flags & PROC_FLAG_KTHREAD;
}

static int recover_id(const struct args *args)
{
	struct gpucr_nl_session s;
	struct gpucr_nl *nl;
	int status;

	status = module_open(&nl);
	if (status)
		return status;
	status = session_find(nl, args, &s);
	if (!status)
		status = recover(nl, &s);
	if (!status)
		add_row(&s);
	gpucr_nl_close(nl);
	return status;
}

/* Is there a session that has the process paused? Its end is the module's. */
static int find_session(struct gpucr_nl *nl, pid_t pid,
			struct gpucr_nl_session *ret, bool *found)
{
	struct gpucr_nl_session *s;
	size_t i, num;
	int err;

	*found = false;
	err = gpucr_nl_sessions(nl, 0, &s, &num);
	if (err)
		return module_fail(nl, err, "sessions");
	for (i = 0; i < num && !*found; i++) {
		*ret = s[i];
		*found = (pid_t)s[i].pid == pid && session_holds_paused(&s[i]);
	}
	free(s);
	return EXIT_DONE;
}

static int add_files(struct unpause *u, pid_t pid)
{
	struct gpucr_proc_fd *fds;
	size_t i, num;
	int err;

	err = gpucr_proc_fds(pid, &fds, &num);
	if (err == -ESRCH)
		return fail(TOKEN_NO_PROCESS, ESRCH,
			    "pid %d: there is no such process", pid);
	if (err)
		return fail(TOKEN_NO_PTRACE_ACCESS, -err, "pid %d: %s", pid,
			    strerror(-err));
	for (i = 0; i < num && !err; i++) {
		if (fds[i].kind == GPUCR_DEV_KFD)
			err = unpause_add(u, pid, fds[i].fd);
	}
	free(fds);
	if (err)
		return fail(TOKEN_NO_MEMORY, ENOMEM, "pid %d", pid);
	return u->num ? EXIT_DONE :
		fail(TOKEN_NO_KFD_PROCESS, 0, "pid %d: does not use KFD", pid);
}

/* Without a session: through the process's own KFD file, as the guard does. */
static int recover_directly(pid_t pid)
{
	struct json_object *row;
	struct unpause u = { 0 };
	int status;

	status = add_files(&u, pid);
	if (!status)
		unpause_run(&u, 0);
	if (!status && u.traced)
		status = fail(TOKEN_TARGET_TRACED, EPERM,
			      "pid %d: has another tracer", pid);
	else if (!status && u.left)
		status = fail(TOKEN_RECOVERY_FAILED, -u.err, "pid %d: %s", pid,
			      strerror(-u.err));
	if (!status) {
		if (!u.unpaused)
			out_warn("nothing-paused", "pid %d is not paused: there is nothing to undo",
				 pid);
		row = out_row();
		out_add_null(row, "id");
		out_add_u64(row, "pid", (uint64_t)pid);
		out_add_str(row, "state", u.unpaused ? "recovered" : "running");
	}
	unpause_clear(&u);
	return status;
}

static int recover_pid(pid_t pid)
{
	struct gpucr_nl_session s;
	struct gpucr_nl *nl;
	bool found = false;
	int status;

	status = module_open_if_loaded(&nl);
	if (status)
		return status;
	if (nl)
		status = find_session(nl, pid, &s, &found);
	if (!status && found) {
		status = recover(nl, &s);
		if (!status)
			add_row(&s);
	}
	gpucr_nl_close(nl);
	return status || found ? status : recover_directly(pid);
}

int session_recover(const struct args *args)
{
	int status;

	if (!access(SESSION_NO_RECOVER, F_OK) && called_by_kernel())
		return fail(TOKEN_RECOVERY_OFF, 0, "%s is there",
			    SESSION_NO_RECOVER);
	if (args->has[KEY_ID] == args->has[KEY_PID])
		return fail(TOKEN_USAGE, 0, "recover: id ID or pid N, one of them");
	if (args->has[KEY_ID])
		status = recover_id(args);
	else
		status = recover_pid((pid_t)args->value[KEY_PID]);
	return status ? status : out_finish(columns);
}
