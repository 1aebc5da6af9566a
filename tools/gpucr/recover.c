// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpucr session recover: let the target of an abandoned session go on.
 *
 * KFD takes the unpause from a tracer of the target only. PTRACE_SEIZE makes
 * one without stopping it; signals that come meanwhile are passed on.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "fail.h"
#include "module.h"
#include "out.h"
#include "session.h"

static const struct out_column columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "PID", "pid", out_text, 0 },
	{ "STATE", "state", out_text, 0 },
	{ 0 }
};

static int seize(const struct gpucr_nl_session *s)
{
	if (!ptrace(PTRACE_SEIZE, (pid_t)s->pid, NULL, NULL))
		return EXIT_DONE;
	if (errno == ESRCH)
		return fail(TOKEN_PROCESS_GONE, ESRCH,
			    "session %llx: its target, pid %u, has ended",
			    (unsigned long long)s->id, s->pid);
	return fail(TOKEN_TARGET_TRACED, errno,
		    "session %llx: pid %u cannot be traced: %s",
		    (unsigned long long)s->id, s->pid, strerror(errno));
}

/*
 * A tracee that got a signal stands still until it is detached, and detaching
 * is possible only then; one that runs is let go by our exit.
 */
static void let_go(pid_t pid)
{
	int wstatus, sig;

	if (waitpid(pid, &wstatus, __WALL | WNOHANG) != pid ||
	    !WIFSTOPPED(wstatus))
		return;
	/* An event (a group stop, say) carries no signal to pass on. */
	sig = wstatus >> 16 ? 0 : WSTOPSIG(wstatus);
	ptrace(PTRACE_DETACH, pid, NULL, sig);
}

/* The session, its owner being dead, ends with that: its state is the last. */
static int unpause(struct gpucr_nl *nl, struct gpucr_nl_session *s)
{
	struct gpucr_nl_relay r = {
		.cmd = GPUCR_CMD_SESSION_UNPAUSE, .id = s->id, .kfd_fd = -1,
	};
	int err = gpucr_nl_relay(nl, &r);

	let_go((pid_t)s->pid);
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

int session_recover(const struct args *args)
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
	return status ? status : out_finish(columns);
}
