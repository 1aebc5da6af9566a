// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens a checkpoint session on a process, as a dumper does, pauses it, says
 * "ID" on standard output, and waits until it is killed: the session is then
 * abandoned.
 *
 * usage: holdsession PID KFD-FD [new]       new: does not pause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "nl.h"
#include "proc.h"

static void die(const char *what, int err)
{
	fprintf(stderr, "holdsession: %s: %s\n", what, strerror(-err));
	exit(1);
}

static int copy_fd(pid_t pid, int fd)
{
	int pidfd = gpucr_pidfd_open(pid), copy;

	if (pidfd < 0)
		die("pidfd", pidfd);
	copy = gpucr_pidfd_getfd(pidfd, fd);
	if (copy < 0)
		die("KFD file", copy);
	return copy;
}

int main(int argc, char **argv)
{
	struct gpucr_nl_relay r = {
		.cmd = GPUCR_CMD_SESSION_PAUSE, .kfd_fd = -1,
	};
	struct gpucr_nl *nl;
	int err, fd;
	pid_t pid;

	if (argc < 3) {
		fputs("usage: holdsession PID KFD-FD [new]\n", stderr);
		return 2;
	}
	pid = atoi(argv[1]);
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL)) {
		perror("holdsession: seize");
		return 1;
	}
	err = gpucr_nl_open(&nl);
	if (err)
		die("module", err);
	err = gpucr_nl_session_new(nl, GPUCR_DIRECTION_CHECKPOINT, pid,
				   copy_fd(pid, atoi(argv[2])), &r.id, &fd);
	if (err)
		die(gpucr_nl_error(nl), err);
	if (argc == 3)
		err = gpucr_nl_relay(nl, &r);
	if (err)
		die(gpucr_nl_error(nl), err);
	printf("%llx\n", (unsigned long long)r.id);
	fflush(stdout);
	for (;;)
		pause();
}
