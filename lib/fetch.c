// SPDX-License-Identifier: GPL-2.0-only
#include "fetch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/aio_abi.h>

#include "clock.h"

struct fetch {
	struct iocb cb;
	bool used, done;
	int64_t res;
	uint64_t end_ns;	/* when it is given up */
};

struct gpucr_fetch {
	aio_context_t ctx;
	uint64_t deadline_ns;
	bool stuck;
	struct fetch v[GPUCR_FETCH_DEPTH];
};

struct gpucr_fetch *gpucr_fetch_open(unsigned int deadline_ms)
{
	struct gpucr_fetch *f = calloc(1, sizeof(*f));

	if (f && syscall(SYS_io_setup, GPUCR_FETCH_DEPTH, &f->ctx)) {
		free(f);
		return NULL;
	}
	if (f)
		f->deadline_ns = deadline_ms * UINT64_C(1000000);
	return f;
}

void gpucr_fetch_close(struct gpucr_fetch *f)
{
	if (!f)
		return;
	/* It would wait for the storage that hangs. */
	if (!f->stuck)
		syscall(SYS_io_destroy, f->ctx);
	free(f);
}

int gpucr_fetch_begin(struct gpucr_fetch *f, int fd, void *buf, size_t len,
		      uint64_t pos)
{
	struct iocb *cb;
	int id;

	for (id = 0; id < GPUCR_FETCH_DEPTH && f->v[id].used; id++)
		;
	if (id == GPUCR_FETCH_DEPTH)
		return -EBUSY;
	cb = &f->v[id].cb;
	*cb = (struct iocb){
		.aio_data = id,
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = fd,
		.aio_buf = (uintptr_t)buf,
		.aio_nbytes = len,
		.aio_offset = (int64_t)pos,
	};
	if (syscall(SYS_io_submit, f->ctx, 1, &cb) != 1)
		return -errno;
	f->v[id].used = true;
	f->v[id].done = false;
	f->v[id].end_ns = gpucr_now_ns() + f->deadline_ns;
	return id;
}

/* The next reads that are done, of any file. -ETIMEDOUT: none in time. */
static int take_events(struct gpucr_fetch *f, uint64_t wait_ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(wait_ns / 1000000000),
		.tv_nsec = (long)(wait_ns % 1000000000),
	};
	struct io_event ev[8];
	long i, n;

	n = syscall(SYS_io_getevents, f->ctx, 1, 8, ev, &t);
	for (i = 0; i < n; i++) {
		f->v[ev[i].data].res = ev[i].res;
		f->v[ev[i].data].done = true;
	}
	return n < 0 ? -errno : n ? 0 : -ETIMEDOUT;
}

/* How long it may yet take. */
static uint64_t left_ns(const struct gpucr_fetch *f, int id)
{
	uint64_t now = gpucr_now_ns();

	return f->v[id].end_ns > now ? f->v[id].end_ns - now : 0;
}

bool gpucr_fetch_is_done(struct gpucr_fetch *f, int id, uint64_t wait_ns)
{
	if (!f->v[id].done)
		take_events(f, wait_ns);
	return f->v[id].done || !left_ns(f, id);
}

ssize_t gpucr_fetch_end(struct gpucr_fetch *f, int id)
{
	while (!f->v[id].done) {
		int err = take_events(f, left_ns(f, id));

		if (!err || err == -EINTR)
			continue;
		f->stuck = true;
		return err;
	}
	f->v[id].used = false;
	return f->v[id].res;
}
