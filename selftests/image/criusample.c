// SPDX-License-Identifier: GPL-2.0-only
#include "criusample.h"

#include <stdio.h>
#include <string.h>

#include "sample.h"

/* A message or file under construction. */
struct buf {
	uint8_t p[4096];
	size_t len;
};

static void byte(struct buf *b, uint64_t v)
{
	if (b->len < sizeof(b->p))
		b->p[b->len++] = (uint8_t)v;
}

static void u32(struct buf *b, uint32_t v)
{
	int i;

	for (i = 0; i < 32; i += 8)
		byte(b, v >> i & 0xff);
}

static void varint(struct buf *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		byte(b, (v & 0x7f) | 0x80);
	byte(b, v);
}

static void number(struct buf *b, unsigned int field, uint64_t v)
{
	varint(b, field << 3);
	varint(b, v);
}

static void bytes(struct buf *b, unsigned int field, const void *data,
		  size_t len)
{
	const uint8_t *p = data;

	varint(b, field << 3 | 2);
	varint(b, len);
	while (len--)
		byte(b, *p++);
}

static void entry(struct buf *file, const struct buf *m)
{
	size_t i;

	u32(file, (uint32_t)m->len);
	for (i = 0; i < m->len; i++)
		byte(file, m->p[i]);
}

static int write_buf(int dir, const char *name, const struct buf *b)
{
	return sample_write(dir, name, b->p, b->len);
}

static int inventory(int dir, const char *const *plugins)
{
	struct buf f = { .len = 0 }, m = { .len = 0 }, names = { .len = 0 };

	u32(&f, 0x58313116);
	number(&m, 1, 2);
	if (plugins) {
		for (; *plugins; plugins++)
			bytes(&names, 12, *plugins, strlen(*plugins));
		bytes(&m, 12, names.p, names.len);
	}
	entry(&f, &m);
	return write_buf(dir, "inventory.img", &f);
}

static int files(int dir, const uint32_t *ids, size_t num)
{
	struct buf f = { .len = 0 };
	size_t i;

	u32(&f, 0x54564319);
	u32(&f, 0x56303138);
	for (i = 0; i <= num; i++) {
		struct buf m = { .len = 0 };

		number(&m, 1, i < num ? 16 : 1);
		number(&m, 2, i < num ? ids[i] : 4000);
		bytes(&m, i < num ? 15 : 3, "\x08\x01", 2);
		entry(&f, &m);
	}
	return write_buf(dir, "files.img", &f);
}

static int task(int dir, const uint32_t *ids, size_t num, uint32_t pid)
{
	struct buf f = { .len = 0 }, m = { .len = 0 }, d = { .len = 0 };
	char name[32];
	size_t i;

	u32(&f, 0x54564319);
	u32(&f, 0x54432030);
	number(&m, 1, 1);
	number(&m, 2, 5);
	entry(&f, &m);
	snprintf(name, sizeof(name), "ids-%u.img", pid);
	if (write_buf(dir, name, &f))
		return -1;
	u32(&d, 0x54564319);
	u32(&d, 0x56213732);
	for (i = 0; i < num; i++) {
		struct buf e = { .len = 0 };

		number(&e, 1, ids[i]);
		number(&e, 2, 0);
		number(&e, 3, 16);
		number(&e, 4, i + 3);
		entry(&d, &e);
	}
	return write_buf(dir, "fdinfo-5.img", &d);
}

/* A file of one entry, whose second magic number nobody asks for. */
static int single(int dir, const char *kind, uint32_t id, const struct buf *m)
{
	struct buf f = { .len = 0 };
	char name[32];

	u32(&f, 0x54564319);
	u32(&f, 0x4711);
	entry(&f, m);
	snprintf(name, sizeof(name), "%s-%u.img", kind, id);
	return write_buf(dir, name, &f);
}

static int pstree(int dir, uint32_t pid)
{
	struct buf f = { .len = 0 }, m = { .len = 0 };

	u32(&f, 0x54564319);
	u32(&f, 0x50273030);
	number(&m, 1, pid);
	number(&m, 2, 0);
	number(&m, 5, pid);
	number(&m, 5, pid + 1);
	entry(&f, &m);
	return write_buf(dir, "pstree.img", &f);
}

/*
 * Two pages are there, one as CRIU 4.1 says it and one as 4.2 does; two more
 * are zeros or a parent's.
 */
static int memory(int dir, uint32_t pid)
{
	struct buf f = { .len = 0 }, m = { .len = 0 };
	static const uint8_t pages[2 * 4096];
	char name[32];
	unsigned int i;

	u32(&f, 0x54564319);
	u32(&f, 0x56084025);
	number(&m, 1, 1);
	entry(&f, &m);
	for (i = 0; i < 4; i++) {
		m.len = 0;
		number(&m, 1, 0x400000 + 0x10000 * i);
		number(&m, 2, i == 3 ? 0 : 1);
		number(&m, 4, i < 2 ? i : 4);
		if (i == 3)
			number(&m, 5, 1);
		entry(&f, &m);
	}
	snprintf(name, sizeof(name), "pagemap-%u.img", pid);
	return write_buf(dir, name, &f) ||
	       sample_write(dir, "pages-1.img", pages, sizeof(pages));
}

/* What a restore of the task needs beside its files. */
static int rest(int dir, uint32_t pid)
{
	struct buf core = { .len = 0 }, some = { .len = 0 };

	bytes(&core, 3, "\x08\x01", 2);
	number(&some, 1, 1);
	return pstree(dir, pid) || single(dir, "core", pid, &core) ||
	       single(dir, "core", pid + 1, &some) ||
	       single(dir, "fs", pid, &some) ||
	       single(dir, "mm", pid, &some) || memory(dir, pid);
}

static int stats(int dir)
{
	struct buf f = { .len = 0 }, m = { .len = 0 }, d = { .len = 0 };
	unsigned int i;

	u32(&f, 0x55105940);
	u32(&f, 0x57093306);
	for (i = 1; i <= 4; i++)
		number(&d, i, i * 1000);
	bytes(&m, 1, d.p, d.len);
	entry(&f, &m);
	return write_buf(dir, "stats-dump", &f);
}

int criusample_write(int dir, const char *const *plugins, const uint32_t *ids,
		     size_t num, uint32_t pid)
{
	return inventory(dir, plugins) || files(dir, ids, num) ||
	       task(dir, ids, num, pid) || rest(dir, pid) || stats(dir) ?
	       -1 : 0;
}

int criusample_mm(int dir, uint32_t pid, const struct gpucr_img_vma *v,
		  size_t num)
{
	struct buf f = { .len = 0 }, m = { .len = 0 };
	char name[32];
	size_t i;

	u32(&f, 0x54564319);
	u32(&f, 0x57492820);
	number(&m, 1, 0x400000);
	for (i = 0; i <= num; i++) {
		struct buf e = { .len = 0 };

		/* The last one is of no plugin. */
		number(&e, 1, i < num ? v[i].start : 0x1000);
		number(&e, 2, i < num ? v[i].end : 0x2000);
		number(&e, 3, i < num ? v[i].offset : 0);
		number(&e, 7, i < num ? UINT32_C(1) << 27 : 1);
		bytes(&m, 14, e.p, e.len);
	}
	entry(&f, &m);
	snprintf(name, sizeof(name), "mm-%u.img", pid);
	return write_buf(dir, name, &f);
}
