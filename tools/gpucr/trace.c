// SPDX-License-Identifier: GPL-2.0-only
#include "trace.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int trace_seize(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? -errno : 0;
}

static bool stopped(pid_t pid, int *wstatus)
{
	return waitpid(pid, wstatus, __WALL | WNOHANG) == pid &&
	       WIFSTOPPED(*wstatus);
}

static bool is_group_stop(int wstatus)
{
	int sig = WSTOPSIG(wstatus);

	return wstatus >> 16 == PTRACE_EVENT_STOP &&
	       (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN ||
		sig == SIGTTOU);
}

/* An event carries no signal to pass on. */
static int signal_of(int wstatus)
{
	return wstatus >> 16 ? 0 : WSTOPSIG(wstatus);
}

void trace_pump(pid_t pid)
{
	int wstatus;

	if (!stopped(pid, &wstatus))
		return;
	if (is_group_stop(wstatus))
		ptrace(PTRACE_LISTEN, pid, NULL, NULL);
	else
		ptrace(PTRACE_CONT, pid, NULL, signal_of(wstatus));
}

void trace_let_go(pid_t pid)
{
	int wstatus;

	if (stopped(pid, &wstatus))
		ptrace(PTRACE_DETACH, pid, NULL, signal_of(wstatus));
}
