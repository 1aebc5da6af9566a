/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a fault point of the tests does when it is met: hold still until a
 * file is gone, wait, or fail. Shared by the gate and the preloaded library,
 * each of which is loaded by CRIU alone, and inherited by the tasks that it
 * forks: calls are counted over all of them.
 */
#ifndef FIRE_H
#define FIRE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct fire {
	const char *file;	/* made when the point is met */
	int err;		/* fail with it */
	unsigned int delay_ms;
	unsigned int nth;	/* the call that is meant, from 1 */
	unsigned int *calls;	/* shared by all processes */
};

static inline void fire_sleep(unsigned int ms)
{
	struct timespec t = {
		.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000,
	};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* "hold", "error:ERRNO" or "delay:MS"; unset: hold. */
static inline bool fire_parse(struct fire *f, const char *what)
{
	void *p = mmap(NULL, sizeof(*f->calls), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	f->calls = p;
	if (!what || !strcmp(what, "hold"))
		return true;
	if (!strncmp(what, "error:", 6))
		f->err = atoi(what + 6);
	else if (!strncmp(what, "delay:", 6))
		f->delay_ms = atoi(what + 6);
	return f->err > 0 || f->delay_ms > 0;
}

/* The point was passed: 0, or the errno to fail with. */
static inline int fire_pass(struct fire *f)
{
	int fd;

	if (__atomic_add_fetch(f->calls, 1, __ATOMIC_SEQ_CST) != f->nth)
		return 0;
	fd = open(f->file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	if (f->delay_ms)
		fire_sleep(f->delay_ms);
	else if (!f->err)
		while (!access(f->file, F_OK))
			fire_sleep(10);
	return f->err;
}

#endif
