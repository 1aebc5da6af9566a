// SPDX-License-Identifier: GPL-2.0-only
#include "criuimg.h"

#include <ctype.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "wire.h"

#define MAGIC_COMMON	0x54564319
#define MAGIC_SERVICE	0x55105940
#define MAGIC_INVENTORY	0x58313116	/* alone in its file */
#define MAGIC_FILES	0x56303138
#define MAGIC_FDINFO	0x56213732
#define MAGIC_IDS	0x54432030
#define MAGIC_STATS	0x57093306
#define MAGIC_MM	0x57492820

#define FILE_TYPE_EXT	16
#define ENTRY_MAX	(1u << 20)	/* no entry that is read comes near */
#define FILES_MAX	(1u << 20)
#define MM_MAX		(16u << 20)	/* all mappings of a process */
#define MAPS_MAX	(1u << 20)
#define VMA_EXT_PLUGIN	(UINT32_C(1) << 27)

typedef int (*entry_fn)(struct gpucr_criuimg *c, const uint8_t *data,
			size_t len, void *arg);

/* What a file is, and how long an entry of it can be. */
struct kind {
	uint32_t first, second;	/* magic */
	uint32_t max;
};

static const struct kind kind_inventory = { MAGIC_INVENTORY, 0, ENTRY_MAX };
static const struct kind kind_files = { MAGIC_COMMON, MAGIC_FILES, ENTRY_MAX };
static const struct kind kind_stats = { MAGIC_SERVICE, MAGIC_STATS,
					ENTRY_MAX };
static const struct kind kind_ids = { MAGIC_COMMON, MAGIC_IDS, ENTRY_MAX };
static const struct kind kind_fdinfo = { MAGIC_COMMON, MAGIC_FDINFO,
					 ENTRY_MAX };
static const struct kind kind_mm = { MAGIC_COMMON, MAGIC_MM, MM_MAX };

static int damaged(const char *name, const char *what)
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

static int read_entries(struct gpucr_criuimg *c, FILE *f, const char *name,
			uint32_t max, entry_fn fn, void *arg)
{
	uint32_t len, room = 0;
	uint8_t *buf = NULL;
	int err = 0;
	size_t got;

	while (!err && (got = fread(&len, 1, sizeof(len), f))) {
		len = le32toh(len);
		if (got != sizeof(len))
			err = damaged(name, "it ends within a length");
		else if (len > max)
			err = damaged(name, "an entry is too long");
		else if (!read_entry(f, &buf, &room, len))
			err = damaged(name, "it ends within an entry");
		else if (fn(c, buf, len, arg))
			err = damaged(name, "it cannot be decoded");
	}
	if (!err && ferror(f)) {
		gpucr_err("%s: cannot be read (io-error)", name);
		err = -EIO;
	}
	free(buf);
	return err;
}

static int check_magic(FILE *f, uint32_t first, uint32_t second)
{
	uint32_t magic;

	if (!read_u32(f, &magic) || magic != first)
		return -EBADMSG;
	if (second && (!read_u32(f, &magic) || magic != second))
		return -EBADMSG;
	return 0;
}

/* 0 too where there is no such file; *there tells. */
static int read_image(struct gpucr_criuimg *c, int dir, const char *name,
		      const struct kind *kind, entry_fn fn, void *arg,
		      bool *there)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int err = -errno;
	FILE *f;

	if (fd < 0 && err == -ENOENT)
		return 0;
	if (fd < 0) {
		gpucr_err("%s: cannot be opened: %s (io-error)", name,
			  strerror(-err));
		return err;
	}
	*there = true;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return damaged(name, "not a regular file");
	}
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	if (check_magic(f, kind->first, kind->second))
		err = damaged(name, "not an image of CRIU");
	else
		err = read_entries(c, f, name, kind->max, fn, arg);
	fclose(f);
	return err;
}

static int inventory_entry(struct gpucr_criuimg *c, const uint8_t *data,
			   size_t len, void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len), names;
	int r;

	(void)arg;
	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field != 12 || !w.data)
			continue;
		c->has_plugins = true;
		names = gpucr_wire_of(w.data, w.len);
		while ((r = gpucr_wire_next(&names)) > 0) {
			if (names.field != 12 || !names.data ||
			    c->num_plugins == GPUCR_CRIUIMG_MAX_PLUGINS)
				continue;
			snprintf(c->plugins[c->num_plugins++],
				 sizeof(c->plugins[0]), "%.*s",
				 (int)names.len, (const char *)names.data);
		}
		if (r)
			return r;
	}
	return r;
}

static int file_entry(struct gpucr_criuimg *c, const uint8_t *data, size_t len,
		      void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	uint64_t type = 0, id = 0;
	uint32_t *more;
	int r;

	(void)arg;
	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field == 1)
			type = w.number;
		else if (w.field == 2)
			id = w.number;
	}
	if (r || type != FILE_TYPE_EXT)
		return r;
	if (c->num_ext_ids == FILES_MAX)
		return -EBADMSG;
	more = reallocarray(c->ext_ids, c->num_ext_ids + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->ext_ids = more;
	more[c->num_ext_ids++] = (uint32_t)id;
	return 0;
}

static int fdinfo_entry(struct gpucr_criuimg *c, const uint8_t *data,
			size_t len, void *arg)
{
	struct gpucr_criuimg_fd fd = { .pid = *(uint32_t *)arg }, *more;
	struct gpucr_wire w = gpucr_wire_of(data, len);
	uint64_t type = 0;
	int r;

	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field == 1)
			fd.id = (uint32_t)w.number;
		else if (w.field == 3)
			type = w.number;
		else if (w.field == 4)
			fd.fd = (uint32_t)w.number;
	}
	if (r || type != FILE_TYPE_EXT)
		return r;
	if (c->num_fds == FILES_MAX)
		return -EBADMSG;
	more = reallocarray(c->fds, c->num_fds + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->fds = more;
	more[c->num_fds++] = fd;
	return 0;
}

static int stats_entry(struct gpucr_criuimg *c, const uint8_t *data,
		       size_t len, void *arg)
{
	uint32_t *to[] = { NULL, &c->freezing_us, &c->frozen_us,
			   &c->memdump_us, &c->memwrite_us };
	struct gpucr_wire w = gpucr_wire_of(data, len), d;
	int r;

	(void)arg;
	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field != 1 || !w.data)
			continue;
		d = gpucr_wire_of(w.data, w.len);
		while ((r = gpucr_wire_next(&d)) > 0)
			if (d.field >= 1 && d.field <= 4 && !d.data)
				*to[d.field] = (uint32_t)d.number;
		if (r)
			return r;
	}
	return r;
}

/* Which table of descriptors the task has, to *arg. */
static int ids_entry(struct gpucr_criuimg *c, const uint8_t *data, size_t len,
		     void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	int r;

	(void)c;
	while ((r = gpucr_wire_next(&w)) > 0)
		if (w.field == 2)
			*(uint32_t *)arg = (uint32_t)w.number;
	return r;
}

/* pid of ids-<pid>.img, or 0. */
static uint32_t pid_of_name(const char *name)
{
	char again[64];
	unsigned long pid;

	if (strncmp(name, "ids-", 4) || !isdigit((unsigned char)name[4]))
		return 0;
	pid = strtoul(name + 4, NULL, 10);
	snprintf(again, sizeof(again), "ids-%lu.img", pid);
	return pid > INT32_MAX || strcmp(again, name) ? 0 : (uint32_t)pid;
}

static int read_task(struct gpucr_criuimg *c, int dir, const char *name,
		     uint32_t pid)
{
	bool there = false;
	uint32_t files = 0;
	char fdinfo[64];
	int err;

	err = read_image(c, dir, name, &kind_ids, ids_entry, &files, &there);
	if (err)
		return err;
	snprintf(fdinfo, sizeof(fdinfo), "fdinfo-%u.img", files);
	return read_image(c, dir, fdinfo, &kind_fdinfo, fdinfo_entry, &pid,
			  &there);
}

static int read_tasks(struct gpucr_criuimg *c, int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	uint32_t pid;
	int err = 0;

	if (!d) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (de = readdir(d))) {
		pid = pid_of_name(de->d_name);
		if (pid)
			err = read_task(c, dir, de->d_name, pid);
	}
	closedir(d);
	return err;
}

static int compare_fds(const void *a, const void *b)
{
	const struct gpucr_criuimg_fd *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->fd < y->fd ? -1 : x->fd > y->fd;
}

int gpucr_criuimg_read(int dir, struct gpucr_criuimg *ret)
{
	int err;

	memset(ret, 0, sizeof(*ret));
	err = read_image(ret, dir, "inventory.img", &kind_inventory,
			 inventory_entry, NULL, &ret->has_inventory);
	if (!err)
		err = read_image(ret, dir, "files.img", &kind_files,
				 file_entry, NULL, &ret->has_files);
	if (!err)
		err = read_image(ret, dir, "stats-dump", &kind_stats,
				 stats_entry, NULL, &ret->has_stats);
	if (!err)
		err = read_tasks(ret, dir);
	if (ret->num_fds)
		qsort(ret->fds, ret->num_fds, sizeof(*ret->fds), compare_fds);
	return err;
}

int gpucr_criuimg_read_plugins(int dir, struct gpucr_criuimg *ret)
{
	memset(ret, 0, sizeof(*ret));
	return read_image(ret, dir, "inventory.img", &kind_inventory,
			  inventory_entry, NULL, &ret->has_inventory);
}

struct maps {
	struct gpucr_criuimg_map *v;
	size_t num;
};

static int add_map(struct maps *m, const uint8_t *data, size_t len)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	struct gpucr_criuimg_map map = { 0 }, *more;
	uint64_t status = 0;
	int r;

	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field == 1)
			map.start = w.number;
		else if (w.field == 2)
			map.end = w.number;
		else if (w.field == 3)
			map.offset = w.number;
		else if (w.field == 7)
			status = w.number;
	}
	if (r || !(status & VMA_EXT_PLUGIN))
		return r;
	if (m->num == MAPS_MAX)
		return -EBADMSG;
	more = reallocarray(m->v, m->num + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	m->v = more;
	m->v[m->num++] = map;
	return 0;
}

static int mm_entry(struct gpucr_criuimg *c, const uint8_t *data, size_t len,
		    void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	int r = 0, err = 0;

	(void)c;
	while (!err && (r = gpucr_wire_next(&w)) > 0)
		if (w.field == 14 && w.data)
			err = add_map(arg, w.data, w.len);
	return err ? err : r;
}

int gpucr_criuimg_maps(int dir, uint32_t pid, struct gpucr_criuimg_map **ret,
		       size_t *num)
{
	struct maps m = { 0 };
	bool there = false;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "mm-%u.img", pid);
	err = read_image(NULL, dir, name, &kind_mm, mm_entry, &m, &there);
	if (!err && !there) {
		gpucr_err("%s: it is missing (image-incomplete); restore another checkpoint",
			  name);
		err = -ENODATA;
	}
	if (err) {
		free(m.v);
		return err;
	}
	*ret = m.v;
	*num = m.num;
	return 0;
}

void gpucr_criuimg_clear(struct gpucr_criuimg *c)
{
	free(c->ext_ids);
	free(c->fds);
	memset(c, 0, sizeof(*c));
}
