// SPDX-License-Identifier: GPL-2.0-only
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "store.h"

/* How often a write that waits for the streamer looks at what stops it. */
#define LOOK_MS	100

static gpucr_stream_open_fn open_file;

void gpucr_stream_set(gpucr_stream_open_fn open)
{
	open_file = open;
}

bool gpucr_stream_on(void)
{
	return open_file != NULL;
}

int gpucr_stream_open(const char *name)
{
	int fd = open_file(name);

	if (fd < 0) {
		if (fd != -ENOENT)
			gpucr_err("%s: the image streamer does not open it: %s (stream-lost); look at the streamer",
				  name, strerror(-fd));
		return fd;
	}
	/* A streamer that hangs must not keep us for ever. */
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		int err = -errno;

		gpucr_err("%s: fcntl on the image streamer's pipe: %s (stream-lost)",
			  name, strerror(-err));
		close(fd);
		return err;
	}
	return fd;
}

/* Until the pipe can be used, or whatever is to end the wait. */
static int wait_for(int fd, short events, const int *stop)
{
	uint64_t end = gpucr_now_ms() + GPUCR_STORE_DEADLINE_MS;
	struct pollfd p = { .fd = fd, .events = events };

	do {
		if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED))
			return -ECANCELED;
		if (poll(&p, 1, LOOK_MS) > 0)
			return 0;
	} while (gpucr_now_ms() < end);
	return -ETIMEDOUT;
}

static int write_failed(const char *name, int err)
{
	if (err == -ETIMEDOUT)
		gpucr_err("%s: the image streamer takes nothing for %u s (io-timeout); it hangs, or what is behind it",
			  name, GPUCR_STORE_DEADLINE_MS / 1000);
	else if (err != -ECANCELED)
		gpucr_err("%s: the image streamer has gone: %s (stream-lost); look at what ended it",
			  name, strerror(-err));
	return err;
}

int gpucr_stream_write(int fd, const char *name, const void *buf, size_t len,
		       const int *stop)
{
	const char *p = buf;
	int err = 0;

	while (len && !err) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EAGAIN)
			err = wait_for(fd, POLLOUT, stop);
		else if (n < 0 && errno != EINTR)
			err = -errno;
		if (n <= 0)
			continue;
		p += n;
		len -= n;
	}
	return err ? write_failed(name, err) : 0;
}

int gpucr_stream_read(int fd, void *buf, size_t len)
{
	char *p = buf;
	int err = 0;

	while (len && !err) {
		ssize_t n = read(fd, p, len);

		if (!n)
			return -EBADMSG;
		if (n < 0 && errno == EAGAIN)
			err = wait_for(fd, POLLIN, NULL);
		else if (n < 0 && errno != EINTR)
			err = -errno;
		if (n < 0)
			continue;
		p += n;
		len -= n;
	}
	return err;
}

int gpucr_stream_end(int fd)
{
	char more;
	int err = gpucr_stream_read(fd, &more, 1);

	if (err == -EBADMSG)
		return 0;
	return err ? err : -EBADMSG;
}
