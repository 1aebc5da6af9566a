// SPDX-License-Identifier: GPL-2.0-only
#include "imgfile.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checksum.h"
#include "log.h"
#include "stream.h"
#include "streamlist.h"

/* Of a file whose length nobody has told, so much is asked for at first. */
#define TAKE_STEP	((size_t)64 << 10)

/* On disk, little endian. */
struct img_header {
	char magic[8];
	uint32_t version;
	uint32_t kind;
	uint64_t payload_len;
	uint64_t payload_xxh3;
	uint64_t header_xxh3;	/* of all before it */
};

_Static_assert(sizeof(struct img_header) == GPUCR_IMG_HEADER, "layout");
_Static_assert(offsetof(struct img_header, header_xxh3) == 32, "layout");

static int out_failed(const struct gpucr_outfile *o, const char *what)
{
	int err = -errno;

	gpucr_err("%s: %s: %s (%s)", o->name, what, strerror(-err),
		  err == -ENOSPC || err == -EDQUOT ? "no-space" : "io-error");
	return err;
}

static int begin(struct gpucr_outfile *o, int dir, const char *name)
{
	memset(o, 0, sizeof(*o));
	o->dir = dir;
	o->fd = -1;
	if ((size_t)snprintf(o->name, sizeof(o->name), "%s", name) >=
	    sizeof(o->name))
		return -ENAMETOOLONG;
	snprintf(o->tmp, sizeof(o->tmp), "%s.tmp", name);
	return 0;
}

int gpucr_outfile_on_pipe(struct gpucr_outfile *o, int fd, const char *name)
{
	int err = begin(o, -1, name);

	if (err) {
		close(fd);
		return err;
	}
	o->fd = fd;
	o->pipe = true;
	return 0;
}

static int create_pipe(struct gpucr_outfile *o, const char *name)
{
	int fd = gpucr_stream_open(name);

	return fd < 0 ? fd : gpucr_outfile_on_pipe(o, fd, name);
}

int gpucr_outfile_create(struct gpucr_outfile *o, int dir, const char *name)
{
	int err = begin(o, dir, name);

	if (err)
		return err;
	if (gpucr_stream_on())
		return create_pipe(o, name);
	/* What a killed dump left. */
	unlinkat(dir, o->tmp, 0);
	o->fd = openat(dir, o->tmp,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       0600);
	if (o->fd < 0)
		return out_failed(o, "cannot be created");
	/* The umask may have taken bits away. */
	if (!fchmod(o->fd, 0600))
		return 0;
	err = out_failed(o, "fchmod");
	gpucr_outfile_abort(o);
	return err;
}

static int write_pipe(struct gpucr_outfile *o, const void *buf, size_t len,
		      uint64_t pos)
{
	int err;

	if (pos != o->pos)
		return -ESPIPE;
	err = gpucr_stream_write(o->fd, o->name, buf, len, o->stop);
	o->pos += err ? 0 : len;
	return err;
}

int gpucr_outfile_write(struct gpucr_outfile *o, const void *buf, size_t len,
			uint64_t pos)
{
	const char *p = buf;

	if (o->pipe)
		return write_pipe(o, buf, len, pos);
	while (len) {
		ssize_t n = pwrite(o->fd, p, len, pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return out_failed(o, "write");
		if (!n) {
			errno = EIO;
			return out_failed(o, "write");
		}
		p += n;
		pos += n;
		len -= n;
	}
	return 0;
}

static void close_file(struct gpucr_outfile *o)
{
	close(o->fd);
	o->fd = -1;
}

int gpucr_outfile_commit(struct gpucr_outfile *o)
{
	int err = 0;

	if (o->pipe) {
		close_file(o);
		return 0;
	}
	if (fsync(o->fd))
		err = out_failed(o, "fsync");
	else if (renameat(o->dir, o->tmp, o->dir, o->name))
		err = out_failed(o, "rename");
	if (err) {
		gpucr_outfile_abort(o);
		return err;
	}
	close_file(o);
	/* The name too; some filesystems cannot, and then need not. */
	fsync(o->dir);
	return 0;
}

void gpucr_outfile_abort(struct gpucr_outfile *o)
{
	if (o->fd < 0)
		return;
	if (!o->pipe)
		unlinkat(o->dir, o->tmp, 0);
	close_file(o);
}

static void fill_header(struct img_header *h, enum gpucr_img_kind kind,
			const void *payload, size_t len)
{
	memcpy(h->magic, GPUCR_IMG_MAGIC, sizeof(h->magic));
	h->version = htole32(GPUCR_IMG_VERSION);
	h->kind = htole32(kind);
	h->payload_len = htole64(len);
	h->payload_xxh3 = htole64(gpucr_checksum(payload, len));
	h->header_xxh3 = htole64(gpucr_checksum(h, offsetof(struct img_header,
							    header_xxh3)));
}

static int write_file(int dir, const char *name, enum gpucr_img_kind kind,
		      const void *payload, size_t len)
{
	struct gpucr_outfile o;
	struct img_header h;
	int err;

	if (len > GPUCR_IMG_MAX - sizeof(h)) {
		gpucr_err("%s: %zu bytes are too many for a manifest (too-big)",
			  name, len);
		return -EFBIG;
	}
	fill_header(&h, kind, payload, len);
	err = gpucr_outfile_create(&o, dir, name);
	if (err)
		return err;
	err = gpucr_outfile_write(&o, &h, sizeof(h), 0);
	if (!err)
		err = gpucr_outfile_write(&o, payload, len, sizeof(h));
	if (err) {
		gpucr_outfile_abort(&o);
		return err;
	}
	return gpucr_outfile_commit(&o);
}

int gpucr_imgfile_write(int dir, const char *name, enum gpucr_img_kind kind,
			const void *payload, size_t len)
{
	int err = write_file(dir, name, kind, payload, len);

	if (err || !gpucr_stream_on() || kind == GPUCR_IMG_RECORD)
		return err;
	return gpucr_streamlist_add(name, kind);
}

int gpucr_pread_all(int fd, void *buf, size_t len, uint64_t pos)
{
	char *p = buf;

	while (len) {
		ssize_t n = pread(fd, p, len, pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EBADMSG;
		p += n;
		pos += n;
		len -= n;
	}
	return 0;
}

static int damaged(const char *name, const char *what)
{
	gpucr_err("%s: %s (image-damaged); restore another checkpoint", name,
		  what);
	return -EBADMSG;
}

/* What the first bytes and the length of the file tell. */
static int check_header(const char *name, enum gpucr_img_kind kind,
			const struct img_header *h, uint64_t size)
{
	if (memcmp(h->magic, GPUCR_IMG_MAGIC, sizeof(h->magic)))
		return damaged(name, "not an image of gpucr");
	if (le32toh(h->version) != GPUCR_IMG_VERSION) {
		gpucr_err("%s: format %u, this program reads format %u (image-format)",
			  name, le32toh(h->version), GPUCR_IMG_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (le64toh(h->header_xxh3) !=
	    gpucr_checksum(h, offsetof(struct img_header, header_xxh3)))
		return damaged(name, "its header's checksum is wrong");
	if (le32toh(h->kind) != kind)
		return damaged(name, "it is an image of another kind");
	if (le64toh(h->payload_len) != size - sizeof(*h))
		return damaged(name, "its length is not the one it states");
	return 0;
}

int gpucr_imgfile_check(const char *name, enum gpucr_img_kind kind,
			const uint8_t *file, uint64_t size)
{
	struct img_header h;
	int err;

	if (size < sizeof(h))
		return damaged(name, "shorter than its header");
	memcpy(&h, file, sizeof(h));
	err = check_header(name, kind, &h, size);
	if (err)
		return err;
	if (le64toh(h.payload_xxh3) !=
	    gpucr_checksum(file + sizeof(h), size - sizeof(h)))
		return damaged(name, "its checksum is wrong");
	return 0;
}

/* The header first: a long file that is none of ours costs nothing. */
static int peek_header(int fd, const char *name, enum gpucr_img_kind kind,
		       uint64_t size)
{
	struct img_header h;
	int err = gpucr_pread_all(fd, &h, sizeof(h), 0);

	if (!err)
		return check_header(name, kind, &h, size);
	gpucr_err("%s: read: %s (io-error)", name, strerror(-err));
	return err;
}

static int read_whole(int fd, const char *name, enum gpucr_img_kind kind,
		      uint8_t **ret, uint64_t *size)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return damaged(name, "not a regular file");
	if (st.st_size < GPUCR_IMG_HEADER)
		return damaged(name, "shorter than its header");
	if ((uint64_t)st.st_size > GPUCR_IMG_MAX)
		return damaged(name, "longer than any manifest");
	err = peek_header(fd, name, kind, st.st_size);
	if (err)
		return err;
	*ret = malloc(st.st_size);
	if (!*ret)
		return -ENOMEM;
	err = gpucr_pread_all(fd, *ret, st.st_size, 0);
	if (err) {
		gpucr_err("%s: read: %s (io-error)", name, strerror(-err));
		free(*ret);
		return err;
	}
	*size = st.st_size;
	return 0;
}

/*
 * The rest of a file of which have bytes are there, of size in all. Memory is
 * taken as content comes: what a head states is not known to be true.
 */
static int take_rest(int fd, uint8_t **file, size_t have, size_t size)
{
	size_t room = have;
	uint8_t *more;
	int err = 0;

	while (!err && have < size) {
		room = room < TAKE_STEP ? TAKE_STEP : 2 * room;
		room = room < size ? room : size;
		more = realloc(*file, room);
		if (!more)
			return -ENOMEM;
		*file = more;
		err = gpucr_stream_read(fd, more + have, room - have);
		have = room;
	}
	return err;
}

/* Its end, not its length, is known to a streamer. */
static int take_whole(int fd, const char *name, enum gpucr_img_kind kind,
		      uint8_t **ret, uint64_t *size)
{
	struct img_header h;
	uint64_t len;
	int err = gpucr_stream_read(fd, &h, sizeof(h));

	if (err == -EBADMSG)
		return damaged(name, "shorter than its header");
	len = le64toh(h.payload_len);
	if (!err)
		err = check_header(name, kind, &h, len + sizeof(h));
	if (err)
		return err;
	if (len > GPUCR_IMG_MAX - sizeof(h))
		return damaged(name, "longer than any manifest");
	*ret = malloc(sizeof(h));
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, &h, sizeof(h));
	*size = sizeof(h) + len;
	err = take_rest(fd, ret, sizeof(h), *size);
	if (!err)
		err = gpucr_stream_end(fd);
	if (err)
		free(*ret);
	if (err == -EBADMSG)
		damaged(name, "its length is not the one it states");
	return err;
}

/* The payload of a file that is in memory, which becomes it. */
static int unwrap(const char *name, enum gpucr_img_kind kind, uint8_t *file,
		  uint64_t size, uint8_t **payload, size_t *len)
{
	int err = gpucr_imgfile_check(name, kind, file, size);

	if (err) {
		free(file);
		return err;
	}
	*len = size - GPUCR_IMG_HEADER;
	memmove(file, file + GPUCR_IMG_HEADER, *len);
	*payload = file;
	return 0;
}

int gpucr_imgfile_take(const char *name, enum gpucr_img_kind kind,
		       uint8_t **payload, size_t *len)
{
	uint8_t *file = NULL;
	uint64_t size = 0;
	int err, fd = gpucr_stream_open(name);

	if (fd < 0)
		return fd;
	err = take_whole(fd, name, kind, &file, &size);
	close(fd);
	if (!err)
		return unwrap(name, kind, file, size, payload, len);
	if (err != -EBADMSG && err != -EPROTONOSUPPORT && err != -ENOMEM)
		gpucr_err("%s: read: %s (stream-lost)", name, strerror(-err));
	return err;
}

int gpucr_imgfile_read(int dir, const char *name, enum gpucr_img_kind kind,
		       uint8_t **payload, size_t *len)
{
	uint8_t *file = NULL;
	uint64_t size = 0;
	int fd, err;

	if (gpucr_stream_on())
		return gpucr_streamlist_get(name, kind, payload, len);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		err = -errno;
		if (err != -ENOENT)
			gpucr_err("%s: cannot be opened: %s (io-error)", name,
				  strerror(-err));
		return err;
	}
	err = read_whole(fd, name, kind, &file, &size);
	close(fd);
	if (err)
		return err;
	return unwrap(name, kind, file, size, payload, len);
}
