// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power cuts for a test: a device whose writes are logged by the kernel's
 * dm-log-writes, and what of them a disk may hold when the power goes.
 *
 *	powercut create NAME DATA LOG	/dev/dm-N is printed; DATA, LOG: devices
 *	powercut mark NAME TEXT		a mark in the log
 *	powercut remove NAME
 *	powercut list LOG		number and kind of each entry, marks by name
 *	powercut replay LOG DISK FROM TO SEED
 *
 * replay applies entries FROM to TO - 1 to DISK, where those before FROM must
 * be already. Writes that no later flush covers may be on the disk or not: with
 * a SEED that is not 0 each of them is left out at random, but for those that
 * ask to be there at once (FUA). It prints from where on that may have been: a
 * disk that holds all before that, and no more, is a good start for the next
 * replay.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/dm-ioctl.h>
#include <linux/fs.h>

#define LOG_MAGIC	0x6a736677736872ULL
#define LOG_FLUSH	1
#define LOG_FUA		2
#define LOG_DISCARD	4
#define LOG_MARK	8

#define SECTOR		512
#define MAX_ENTRIES	1000000
#define MAX_WRITE	(64u << 20)

/* On the log device, in its first sector. */
struct log_super {
	uint64_t magic;
	uint64_t version;
	uint64_t nr_entries;
	uint32_t sectorsize;
};

/* A sector each, behind it what was written; a mark's text is in its sector. */
struct log_entry {
	uint64_t sector;
	uint64_t nr_sectors;
	uint64_t flags;
	uint64_t data_len;
};

struct log {
	int fd;
	uint64_t num;
	uint64_t pos;		/* of the next entry */
};

static int fail(const char *what)
{
	fprintf(stderr, "powercut: %s: %s\n", what, strerror(errno));
	return 1;
}

static int dm_call(struct dm_ioctl *dm, unsigned long op, const char *name)
{
	int fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -1;
	dm->version[0] = DM_VERSION_MAJOR;
	snprintf(dm->name, sizeof(dm->name), "%s", name);
	ret = ioctl(fd, op, dm);
	close(fd);
	return ret;
}

static int simple_call(unsigned long op, const char *name, struct dm_ioctl *dm)
{
	memset(dm, 0, sizeof(*dm));
	dm->data_size = sizeof(*dm);
	return dm_call(dm, op, name);
}

static uint64_t sectors_of(const char *dev)
{
	int fd = open(dev, O_RDONLY | O_CLOEXEC);
	uint64_t bytes = 0;

	if (fd < 0)
		return 0;
	if (ioctl(fd, BLKGETSIZE64, &bytes))
		bytes = 0;
	close(fd);
	return bytes / SECTOR;
}

static int load_table(const char *name, const char *data, const char *log)
{
	struct {
		struct dm_ioctl dm;
		struct dm_target_spec spec;
		char params[512];
	} t = {
		.dm.data_size = sizeof(t),
		.dm.data_start = offsetof(typeof(t), spec),
		.dm.target_count = 1,
		.spec.length = sectors_of(data),
		.spec.target_type = "log-writes",
	};

	if (!t.spec.length)
		return -1;
	snprintf(t.params, sizeof(t.params), "%s %s", data, log);
	return dm_call(&t.dm, DM_TABLE_LOAD, name);
}

static int create(const char *name, const char *data, const char *log)
{
	struct dm_ioctl dm;

	if (simple_call(DM_DEV_CREATE, name, &dm))
		return fail("create");
	if (load_table(name, data, log)) {
		fail("table");
		simple_call(DM_DEV_REMOVE, name, &dm);
		return 1;
	}
	/* Without the flag it means resume. */
	if (simple_call(DM_DEV_SUSPEND, name, &dm))
		return fail("resume");
	printf("/dev/dm-%u\n", minor(dm.dev));
	return 0;
}

static int mark(const char *name, const char *text)
{
	struct {
		struct dm_ioctl dm;
		struct dm_target_msg msg;
		char text[256];
	} m = {
		.dm.data_size = sizeof(m),
		.dm.data_start = offsetof(typeof(m), msg),
	};

	snprintf(m.text, sizeof(m.text), "mark %s", text);
	return dm_call(&m.dm, DM_TARGET_MSG, name) ? fail("mark") : 0;
}

static int remove_device(const char *name)
{
	struct dm_ioctl dm;

	return simple_call(DM_DEV_REMOVE, name, &dm) ? fail("remove") : 0;
}

static bool read_at(int fd, void *buf, size_t len, uint64_t pos)
{
	return pread(fd, buf, len, pos) == (ssize_t)len;
}

static bool log_open(struct log *l, const char *path)
{
	struct log_super s;

	l->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0 || !read_at(l->fd, &s, sizeof(s), 0))
		return false;
	l->num = le64toh(s.nr_entries);
	l->pos = SECTOR;
	errno = EINVAL;
	return le64toh(s.magic) == LOG_MAGIC &&
	       le32toh(s.sectorsize) == SECTOR && l->num <= MAX_ENTRIES;
}

/* The next entry, and where its data is. */
static bool log_next(struct log *l, struct log_entry *e, uint64_t *data)
{
	if (!read_at(l->fd, e, sizeof(*e), l->pos))
		return false;
	e->sector = le64toh(e->sector);
	e->nr_sectors = le64toh(e->nr_sectors);
	e->flags = le64toh(e->flags);
	e->data_len = le64toh(e->data_len);
	*data = l->pos + (e->flags & LOG_MARK ? sizeof(*e) : SECTOR);
	errno = EINVAL;
	if (e->nr_sectors > MAX_WRITE / SECTOR)
		return false;
	l->pos += SECTOR;
	if (!(e->flags & LOG_DISCARD))
		l->pos += e->nr_sectors * SECTOR;
	return true;
}

static int list(const char *path)
{
	struct log_entry e;
	struct log l;
	uint64_t i, data;

	if (!log_open(&l, path))
		return fail(path);
	for (i = 0; i < l.num; i++) {
		char text[256] = "";

		if (!log_next(&l, &e, &data))
			return fail(path);
		if (e.flags & LOG_MARK && e.data_len < sizeof(text) &&
		    !read_at(l.fd, text, e.data_len, data))
			return fail(path);
		printf("%llu%s%s%s %llu %s\n", (unsigned long long)i,
		       e.flags & LOG_FLUSH ? " flush" : "",
		       e.flags & LOG_FUA ? " fua" : "",
		       e.flags & LOG_MARK ? " mark" : " write",
		       (unsigned long long)e.nr_sectors, text);
	}
	return 0;
}

static bool apply(const struct log *l, int disk, const struct log_entry *e,
		  uint64_t data)
{
	size_t len = e->nr_sectors * SECTOR;
	char *buf;
	bool good;

	/* What a discarded sector holds is anything, so what it held too. */
	if (!len || e->flags & (LOG_DISCARD | LOG_MARK))
		return true;
	buf = malloc(len);
	if (!buf)
		return false;
	good = read_at(l->fd, buf, len, data) &&
	       pwrite(disk, buf, len, e->sector * SECTOR) == (ssize_t)len;
	free(buf);
	return good;
}

static bool coin(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 63;
}

/* The entry behind the last flush before to: what is before it is there. */
static bool find_safe(const char *path, uint64_t to, uint64_t *safe)
{
	struct log_entry e;
	struct log l;
	uint64_t i, data;
	bool good;

	*safe = 0;
	good = log_open(&l, path);
	for (i = 0; good && i < to; i++) {
		good = log_next(&l, &e, &data);
		if (good && e.flags & LOG_FLUSH)
			*safe = i;
	}
	if (l.fd >= 0)
		close(l.fd);
	return good;
}

static int replay(const char *path, const char *image, uint64_t from,
		  uint64_t to, uint64_t seed)
{
	uint64_t i, data, safe, lost = 0;
	int disk = open(image, O_WRONLY | O_CLOEXEC);
	struct log_entry e;
	struct log l;

	if (disk < 0)
		return fail(image);
	if (!log_open(&l, path) || to > l.num || !find_safe(path, to, &safe))
		return fail(path);
	for (i = 0; i < to; i++) {
		if (!log_next(&l, &e, &data))
			return fail(path);
		if (i < from)
			continue;
		if (i >= safe && !(e.flags & (LOG_FUA | LOG_FLUSH)) && seed &&
		    coin(&seed)) {
			lost++;
			continue;
		}
		if (!apply(&l, disk, &e, data))
			return fail("apply");
	}
	close(disk);
	printf("safe %llu lost %llu\n", (unsigned long long)safe,
	       (unsigned long long)lost);
	return 0;
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
	const char *op = argc > 1 ? argv[1] : "";

	if (!strcmp(op, "create") && argc == 5)
		return create(argv[2], argv[3], argv[4]);
	if (!strcmp(op, "mark") && argc == 4)
		return mark(argv[2], argv[3]);
	if (!strcmp(op, "remove") && argc == 3)
		return remove_device(argv[2]);
	if (!strcmp(op, "list") && argc == 3)
		return list(argv[2]);
	if (!strcmp(op, "replay") && argc == 7)
		return replay(argv[2], argv[3], number(argv[4]),
			      number(argv[5]), number(argv[6]));
	fprintf(stderr, "usage: powercut create|mark|remove|list|replay ...\n");
	return 2;
}
