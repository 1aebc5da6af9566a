// SPDX-License-Identifier: GPL-2.0-only
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "log.h"

#define STORE_DEPTH	32
/* Buffered writes are pushed out and dropped from the page cache behind us. */
#define STORE_BEHIND	(UINT64_C(64) << 20)

struct store_write {
	const char *buf;
	size_t len;
	uint64_t pos;
	bool busy;
};

struct gpucr_store {
	struct gpucr_store_config cfg;
	struct io_uring ring;
	bool uring;
	bool direct;
	bool begun;		/* there was a write */
	bool fixed;		/* the buffers are registered */
	struct iovec *buffers;	/* cfg's, copied */
	int err;		/* the first */
	unsigned int busy;
	struct store_write w[STORE_DEPTH];
	uint64_t cached;	/* buffered bytes since the last drop */
};

static int store_fail(struct gpucr_store *s, const char *what, int err)
{
	if (!s->err) {
		s->err = err;
		gpucr_err("%s: %s: %s (%s)", s->cfg.name, what, strerror(-err),
			  err == -ENOSPC || err == -EDQUOT ? "no-space" :
			  "io-error");
	}
	return s->err;
}

static void set_direct(struct gpucr_store *s, bool on)
{
	int flags = fcntl(s->cfg.fd, F_GETFL);

	s->direct = false;
	if (flags < 0)
		return;
	flags = on ? flags | O_DIRECT : flags & ~O_DIRECT;
	if (!fcntl(s->cfg.fd, F_SETFL, flags))
		s->direct = on;
}

static bool is_aligned(const struct store_write *w)
{
	return !(((uintptr_t)w->buf | w->len | w->pos) % GPUCR_STORE_ALIGN);
}

/* What is written must not push others' files out of memory. */
static void drop_behind(struct gpucr_store *s, size_t len)
{
	if (s->direct)
		return;
	s->cached += len;
	if (s->cached < STORE_BEHIND)
		return;
	s->cached = 0;
	sync_file_range(s->cfg.fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE |
			SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	posix_fadvise(s->cfg.fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* len bytes of w are written. */
static void advance(struct gpucr_store *s, struct store_write *w, size_t len)
{
	w->buf += len;
	w->pos += len;
	w->len -= len;
	drop_behind(s, len);
	/* The rest of a short write need not be aligned. */
	if (w->len && s->direct && !is_aligned(w))
		set_direct(s, false);
}

static int write_now(struct gpucr_store *s, struct store_write *w)
{
	while (w->len) {
		ssize_t n = pwrite(s->cfg.fd, w->buf, w->len, w->pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EINVAL && s->direct) {
			set_direct(s, false);
			continue;
		}
		if (n <= 0)
			return store_fail(s, "write", n ? -errno : -EIO);
		advance(s, w, n);
	}
	return 0;
}

/* Index of the registered buffer that holds it, or -1. */
static int fixed_buffer(const struct gpucr_store *s,
			const struct store_write *w)
{
	size_t i;

	for (i = 0; s->fixed && i < s->cfg.num_buffers; i++) {
		const char *base = s->buffers[i].iov_base;
		size_t size = s->buffers[i].iov_len;

		if (w->buf >= base && w->buf + w->len <= base + size)
			return i;
	}
	return -1;
}

/*
 * Spares pinning them for each write; not everybody may. All of that memory is
 * made now: with the first write, when its owner works with the rest already.
 */
static void register_buffers(struct gpucr_store *s)
{
	if (s->begun)
		return;
	s->begun = true;
	s->fixed = s->buffers &&
		   !io_uring_register_buffers(&s->ring, s->buffers,
					      s->cfg.num_buffers);
}

static int submit(struct gpucr_store *s, struct store_write *w)
{
	/* There is one for each write. */
	struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);
	int fixed = fixed_buffer(s, w);
	int err;

	if (fixed >= 0)
		io_uring_prep_write_fixed(sqe, s->cfg.fd, w->buf, w->len,
					  w->pos, fixed);
	else
		io_uring_prep_write(sqe, s->cfg.fd, w->buf, w->len, w->pos);
	io_uring_sqe_set_data(sqe, w);
	do {
		err = io_uring_submit(&s->ring);
	} while (err == -EINTR || err == -EAGAIN);
	if (err >= 0)
		return 0;
	w->busy = false;
	s->busy--;
	return store_fail(s, "io_uring", err);
}

/* The kernel is done with w, wholly or in part. */
static int complete(struct gpucr_store *s, struct store_write *w, int res)
{
	if (res == -EINVAL && s->direct) {
		set_direct(s, false);
		res = -EAGAIN;
	}
	if (res > 0)
		advance(s, w, res);
	if (w->len && (res > 0 || res == -EAGAIN || res == -EINTR) && !s->err)
		return submit(s, w);
	w->busy = false;
	s->busy--;
	return res > 0 ? 0 : store_fail(s, "write", res ? res : -EIO);
}

static void take(struct gpucr_store *s, struct io_uring_cqe *cqe)
{
	struct store_write *w = io_uring_cqe_get_data(cqe);
	int res = cqe->res;

	io_uring_cqe_seen(&s->ring, cqe);
	complete(s, w, res);
}

static int reap(struct gpucr_store *s)
{
	struct __kernel_timespec limit = {
		.tv_sec = s->cfg.deadline_ms / 1000,
		.tv_nsec = s->cfg.deadline_ms % 1000 * 1000000LL,
	};
	struct io_uring_cqe *cqe;
	int err;

	do {
		err = io_uring_wait_cqe_timeout(&s->ring, &cqe, &limit);
	} while (err == -EINTR);
	if (err == -ETIME) {
		if (!s->err)
			gpucr_err("%s: no write was finished for %u s (io-timeout); the storage hangs or is very busy",
				  s->cfg.name, s->cfg.deadline_ms / 1000);
		s->err = s->err ?: -ETIMEDOUT;
		return -ETIMEDOUT;
	}
	if (err) {
		store_fail(s, "io_uring", err);
		return err;
	}
	take(s, cqe);
	return 0;
}

static struct store_write *free_write(struct gpucr_store *s)
{
	size_t i;

	for (i = 0; i < STORE_DEPTH; i++) {
		if (!s->w[i].busy)
			return &s->w[i];
	}
	return NULL;
}

int gpucr_store_write(struct gpucr_store *s, const void *buf, size_t len,
		      uint64_t pos)
{
	struct store_write *w;

	while (!s->err && s->busy == STORE_DEPTH) {
		if (reap(s))
			break;
	}
	w = s->err ? NULL : free_write(s);
	if (!w)
		return s->err;
	*w = (struct store_write){ .buf = buf, .len = len, .pos = pos };
	if (s->direct && !is_aligned(w))
		set_direct(s, false);
	if (!s->uring)
		return write_now(s, w);
	register_buffers(s);
	w->busy = true;
	s->busy++;
	return submit(s, w);
}

static bool in_use(const struct gpucr_store *s, const char *buf, size_t len)
{
	size_t i;

	for (i = 0; i < STORE_DEPTH; i++) {
		const struct store_write *w = &s->w[i];

		if (w->busy && (!buf || (w->buf < buf + len &&
					 buf < w->buf + w->len)))
			return true;
	}
	return false;
}

bool gpucr_store_needs(struct gpucr_store *s, const void *buf, size_t len)
{
	struct io_uring_cqe *cqe;

	while (s->busy && !io_uring_peek_cqe(&s->ring, &cqe))
		take(s, cqe);
	return in_use(s, buf, len);
}

int gpucr_store_settle(struct gpucr_store *s, const void *buf, size_t len)
{
	while (s->busy && in_use(s, buf, len)) {
		if (reap(s))
			break;
	}
	return s->err;
}

static void keep_buffers(struct gpucr_store *s)
{
	size_t len = s->cfg.num_buffers * sizeof(*s->buffers);

	s->buffers = malloc(len);
	if (s->buffers)
		memcpy(s->buffers, s->cfg.buffers, len);
}

/*
 * A file that grows by every write has them done one after the other. Where
 * room is short, or is memory, only what is stored may be taken, not what
 * zeros would have needed.
 */
static void preallocate(struct gpucr_store *s)
{
	uint64_t want = s->cfg.expect;
	struct statfs st;

	if (!want || fstatfs(s->cfg.fd, &st) || st.f_type == TMPFS_MAGIC ||
	    st.f_type == RAMFS_MAGIC ||
	    (uint64_t)st.f_bavail * st.f_bsize < want + want / 20)
		return;
	/* Part of it may have been given, and would be kept. */
	if (fallocate(s->cfg.fd, 0, 0, want) && ftruncate(s->cfg.fd, 0))
		gpucr_dbg("%s: ftruncate: %s", s->cfg.name, strerror(errno));
}

int gpucr_store_open(const struct gpucr_store_config *cfg,
		     struct gpucr_store **ret)
{
	struct gpucr_store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	preallocate(s);
	if (cfg->direct)
		set_direct(s, true);
	if (cfg->uring)
		s->uring = !io_uring_queue_init(STORE_DEPTH, &s->ring, 0);
	if (s->uring && cfg->num_buffers)
		keep_buffers(s);
	if (cfg->uring && !s->uring)
		gpucr_info("%s: io_uring cannot be used here, writes are done one by one",
			   cfg->name);
	*ret = s;
	return 0;
}

void gpucr_store_close(struct gpucr_store *s)
{
	if (!s)
		return;
	if (s->uring) {
		gpucr_store_settle(s, NULL, 0);
		io_uring_queue_exit(&s->ring);
	}
	free(s->buffers);
	free(s);
}

const char *gpucr_store_how(const struct gpucr_store *s)
{
	if (s->uring)
		return s->direct ? "io_uring, direct" : "io_uring, buffered";
	return s->direct ? "one by one, direct" : "one by one, buffered";
}
