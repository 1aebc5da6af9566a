// SPDX-License-Identifier: GPL-2.0-only
#include "criuimg.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "criuread.h"
#include "log.h"
#include "wire.h"

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

static const struct gpucr_criukind kind_inventory = { MAGIC_INVENTORY, 0, ENTRY_MAX };
static const struct gpucr_criukind kind_files = { GPUCR_CRIU_COMMON, MAGIC_FILES, ENTRY_MAX };
static const struct gpucr_criukind kind_stats = { MAGIC_SERVICE, MAGIC_STATS,
					ENTRY_MAX };
static const struct gpucr_criukind kind_ids = { GPUCR_CRIU_COMMON, MAGIC_IDS, ENTRY_MAX };
static const struct gpucr_criukind kind_fdinfo = { GPUCR_CRIU_COMMON, MAGIC_FDINFO,
					 ENTRY_MAX };
static const struct gpucr_criukind kind_mm = { GPUCR_CRIU_COMMON, MAGIC_MM, MM_MAX };

static int inventory_entry(void *ctx, const uint8_t *data, size_t len,
			   void *arg)
{
	struct gpucr_criuimg *c = ctx;
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

static int file_entry(void *ctx, const uint8_t *data, size_t len,
		      void *arg)
{
	struct gpucr_criuimg *c = ctx;
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

static int fdinfo_entry(void *ctx, const uint8_t *data, size_t len,
			void *arg)
{
	struct gpucr_criuimg *c = ctx;
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

static int stats_entry(void *ctx, const uint8_t *data, size_t len,
		       void *arg)
{
	struct gpucr_criuimg *c = ctx;
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
static int ids_entry(void *ctx, const uint8_t *data, size_t len,
		     void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	int r;

	(void)ctx;
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

	err = gpucr_criu_read(dir, name, &kind_ids, ids_entry, NULL, &files,
			      &there);
	if (err)
		return err;
	snprintf(fdinfo, sizeof(fdinfo), "fdinfo-%u.img", files);
	return gpucr_criu_read(dir, fdinfo, &kind_fdinfo, fdinfo_entry, c, &pid,
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
	err = gpucr_criu_read(dir, "inventory.img", &kind_inventory,
			      inventory_entry, ret, NULL, &ret->has_inventory);
	if (!err)
		err = gpucr_criu_read(dir, "files.img", &kind_files,
				      file_entry, ret, NULL, &ret->has_files);
	if (!err)
		err = gpucr_criu_read(dir, "stats-dump", &kind_stats,
				      stats_entry, ret, NULL, &ret->has_stats);
	if (!err)
		err = read_tasks(ret, dir);
	if (ret->num_fds)
		qsort(ret->fds, ret->num_fds, sizeof(*ret->fds), compare_fds);
	return err;
}

int gpucr_criuimg_read_plugins(int dir, struct gpucr_criuimg *ret)
{
	memset(ret, 0, sizeof(*ret));
	return gpucr_criu_read(dir, "inventory.img", &kind_inventory,
			       inventory_entry, ret, NULL,
			       &ret->has_inventory);
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

static int mm_entry(void *ctx, const uint8_t *data, size_t len,
		    void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	int r = 0, err = 0;

	(void)ctx;
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
	err = gpucr_criu_read(dir, name, &kind_mm, mm_entry, NULL, &m, &there);
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
