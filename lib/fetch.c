// SPDX-License-Identifier: GPL-2.0-only
#include "fetch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/aio_abi.h>

struct fetch {
	struct iocb cb;
	bool used, done;
	int64_t res;
};

struct gpucr_fetch {
	aio_context_t ctx;
	bool stuck;
	struct fetch v[GPUCR_FETCH_DEPTH];
};

struct gpucr_fetch *gpucr_fetch_open(void)
{
	struct gpucr_fetch *f = calloc(1, sizeof(*f));

	if (f && syscall(SYS_io_setup, GPUCR_FETCH_DEPTH, &f->ctx)) {
		free(f);
		return NULL;
	}
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
	return id;
}

ssize_t gpucr_fetch_end(struct gpucr_fetch *f, int id,
			unsigned int deadline_ms)
{
	struct timespec t = {
		.tv_sec = deadline_ms / 1000,
		.tv_nsec = deadline_ms % 1000 * 1000000L,
	};
	struct io_event ev;
	long n;

	while (!f->v[id].done) {
		n = syscall(SYS_io_getevents, f->ctx, 1, 1, &ev, &t);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != 1) {
			f->stuck = true;
			return n ? -errno : -ETIMEDOUT;
		}
		f->v[ev.data].res = ev.res;
		f->v[ev.data].done = true;
	}
	f->v[id].used = false;
	return f->v[id].res;
}
