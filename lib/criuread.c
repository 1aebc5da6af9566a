// SPDX-License-Identifier: GPL-2.0-only
#include "criuread.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

int gpucr_criu_damaged(const char *name, const char *what)
{
	gpucr_err("%s: %s (image-damaged); restore another checkpoint", name,
		  what);
	return -EBADMSG;
}

static bool read_u32(FILE *f, uint32_t *ret)
{
	if (fread(ret, sizeof(*ret), 1, f) != 1)
		return false;
	*ret = le32toh(*ret);
	return true;
}

/* The next len bytes of the file, in a buffer that grows; NULL: too few. */
static uint8_t *read_entry(FILE *f, uint8_t **buf, uint32_t *room, uint32_t len)
{
	uint8_t *more;

	if (len > *room || !*buf) {
		more = realloc(*buf, len + 1);
		if (!more)
			return NULL;
		*buf = more;
		*room = len;
	}
	return !len || fread(*buf, len, 1, f) == 1 ? *buf : NULL;
}

static int read_entries(FILE *f, const char *name, uint32_t max,
			gpucr_criu_entry fn, void *ctx, void *arg)
{
	uint32_t len, room = 0;
	uint8_t *buf = NULL;
	int err = 0;
	size_t got;

	while (!err && (got = fread(&len, 1, sizeof(len), f))) {
		len = le32toh(len);
		if (got != sizeof(len))
			err = gpucr_criu_damaged(name, "it ends within a length");
		else if (len > max)
			err = gpucr_criu_damaged(name, "an entry is too long");
		else if (!read_entry(f, &buf, &room, len))
			err = gpucr_criu_damaged(name, "it ends within an entry");
		else if (fn(ctx, buf, len, arg))
			err = gpucr_criu_damaged(name, "it cannot be decoded");
	}
	if (!err && ferror(f)) {
		gpucr_err("%s: cannot be read (io-error)", name);
		err = -EIO;
	}
	free(buf);
	return err;
}

static bool magic_fits(FILE *f, const struct gpucr_criukind *kind)
{
	uint32_t magic;

	if (!read_u32(f, &magic) || magic != kind->first)
		return false;
	return !kind->second ||
	       (read_u32(f, &magic) && (magic == kind->second ||
					kind->second == GPUCR_CRIU_ANY));
}

static int open_file(int dir, const char *name, FILE **ret)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int err = -errno;

	if (fd < 0) {
		if (err != -ENOENT)
			gpucr_err("%s: cannot be opened: %s (io-error)", name,
				  strerror(-err));
		return err;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return gpucr_criu_damaged(name, "not a regular file");
	}
	*ret = fdopen(fd, "r");
	if (*ret)
		return 0;
	close(fd);
	return -ENOMEM;
}

int gpucr_criu_read(int dir, const char *name,
		    const struct gpucr_criukind *kind, gpucr_criu_entry fn,
		    void *ctx, void *arg, bool *there)
{
	FILE *f = NULL;
	int err = open_file(dir, name, &f);

	if (err == -ENOENT)
		return 0;
	*there = true;
	if (err)
		return err;
	if (magic_fits(f, kind))
		err = read_entries(f, name, kind->max, fn, ctx, arg);
	else
		err = gpucr_criu_damaged(name, "not an image of CRIU");
	fclose(f);
	return err;
}
