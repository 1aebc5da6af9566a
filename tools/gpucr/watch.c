// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpucr session watch: outlive a dumper, and undo what it has left paused.
 *
 * The plugin starts it where there is no module. Standard input tells, a line
 * each: "add PID FD" before the KFD process behind that descriptor is paused,
 * "clear" when nothing is paused any more. Standard output says "ready" when
 * the dumper's end cannot be missed any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "out.h"
#include "proc.h"
#include "session.h"
#include "unpause.h"

/* The dead dumper is their tracer for a moment yet; KFD may refuse for longer. */
#define PATIENCE_MS	60000

struct watch {
	pid_t pid;
	int pidfd;
	bool eof;
	char text[256];
	size_t len;
	struct unpause paused;
};

static void obey(struct watch *w, const char *line)
{
	int pid, fd;

	if (!strcmp(line, "clear"))
		unpause_clear(&w->paused);
	else if (sscanf(line, "add %d %d", &pid, &fd) == 2 && pid > 0 && fd >= 0)
		unpause_add(&w->paused, pid, fd);
}

/* False: nothing more is there now, or ever. */
static bool take_input(struct watch *w)
{
	char *end;
	ssize_t n;

	n = read(STDIN_FILENO, w->text + w->len, sizeof(w->text) - 1 - w->len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		w->eof = true;
		return false;
	}
	w->len += (size_t)n;
	w->text[w->len] = '\0';
	while ((end = strchr(w->text, '\n'))) {
		*end++ = '\0';
		obey(w, w->text);
		w->len = strlen(end);
		memmove(w->text, end, w->len + 1);
	}
	/* No line of ours is so long. */
	if (w->len == sizeof(w->text) - 1)
		w->len = 0;
	return true;
}

/* Until the dumper ends, or has nothing paused and nothing more to say. */
static void wait_for_end(struct watch *w)
{
	struct pollfd p[2] = {
		{ .fd = w->pidfd, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};

	while (!w->eof || w->paused.num) {
		p[1].fd = w->eof ? -1 : STDIN_FILENO;
		if (poll(p, 2, -1) < 0)
			continue;
		while (!w->eof && take_input(w))
			;
		if (p[0].revents)
			return;
	}
}

/* Nobody reads our output any more. */
static void tell_kernel_log(const struct watch *w)
{
	FILE *f = fopen("/dev/kmsg", "we");

	if (!f)
		return;
	if (w->paused.left)
		fprintf(f, "<5>gpucr: %u KFD files that pid %d had paused when it died may still be so (recovery-failed); run: gpucr session recover pid %d\n",
			w->paused.left, w->pid, w->paused.files[0].pid);
	else
		fprintf(f, "<5>gpucr: pid %d died while GPU work was paused; %u set going\n",
			w->pid, w->paused.unpaused);
	fclose(f);
}

static int start(struct watch *w, pid_t pid)
{
	w->pid = pid;
	w->pidfd = gpucr_pidfd_open(pid);
	if (w->pidfd == -ESRCH)
		return fail(TOKEN_NO_PROCESS, ESRCH,
			    "pid %d: there is no such process", pid);
	if (w->pidfd < 0)
		return fail(TOKEN_KERNEL_REFUSED, -w->pidfd, "pid %d: %s", pid,
			    strerror(-w->pidfd));
	/* A signal to the dumper's group or terminal is none to us. */
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	fcntl(STDIN_FILENO, F_SETFL,
	      fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
	puts("ready");
	return out_flush(EXIT_DONE);
}

int session_watch(const struct args *args)
{
	struct watch w = { 0 };
	int status;

	status = start(&w, (pid_t)args->value[KEY_PID]);
	if (status)
		return status;
	wait_for_end(&w);
	if (w.paused.num) {
		if (access(SESSION_NO_RECOVER, F_OK))
			unpause_run(&w.paused, PATIENCE_MS);
		else
			w.paused.left = w.paused.num;
		if (w.paused.unpaused || w.paused.left)
			tell_kernel_log(&w);
	}
	if (w.paused.left)
		status = fail(TOKEN_RECOVERY_FAILED, -w.paused.err,
			      "pid %d: what it had paused may stand still",
			      w.pid);
	unpause_clear(&w.paused);
	close(w.pidfd);
	return status;
}
