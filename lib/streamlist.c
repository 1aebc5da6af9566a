// SPDX-License-Identifier: GPL-2.0-only
#include "streamlist.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* An image has a manifest for each GPU file of its processes. */
#define LIST_MAX	65536

struct entry {
	char name[NAME_MAX];
	enum gpucr_img_kind kind;
	uint8_t *payload;
	size_t len;
};

static struct {
	struct entry *v;
	size_t num;
	unsigned int written;
} list;

/* Payload of a record, little endian; the name follows. */
struct record {
	uint32_t kind;
	char name[NAME_MAX];
};

static void record_name(char *name, size_t size, unsigned int number)
{
	snprintf(name, size, "gpucr-stream-%u.img", number);
}

int gpucr_streamlist_add(const char *name, enum gpucr_img_kind kind)
{
	struct record r = { .kind = htole32(kind) };
	size_t len = strlen(name);
	char own[NAME_MAX];
	int err;

	if (len >= sizeof(r.name))
		return -ENAMETOOLONG;
	memcpy(r.name, name, len);
	record_name(own, sizeof(own), list.written + 1);
	err = gpucr_imgfile_write(-1, own, GPUCR_IMG_RECORD, &r,
				  offsetof(struct record, name) + len);
	list.written += !err;
	return err;
}

static int damaged(const char *name, const char *what)
{
	gpucr_err("%s: %s (image-damaged); restore another checkpoint", name,
		  what);
	return -EBADMSG;
}

/* Name and kind of the manifest that a record is of. */
static int parse(const char *own, const uint8_t *payload, size_t len,
		 struct entry *e)
{
	size_t head = offsetof(struct record, name);
	uint32_t kind;

	memset(e, 0, sizeof(*e));
	if (len <= head || len - head >= sizeof(e->name) ||
	    memchr(payload + head, 0, len - head))
		return damaged(own, "it names no manifest");
	memcpy(&kind, payload, sizeof(kind));
	e->kind = le32toh(kind);
	memcpy(e->name, payload + head, len - head);
	if (e->kind != GPUCR_IMG_KFD && e->kind != GPUCR_IMG_RENDER)
		return damaged(own, "it names a manifest of an unknown kind");
	return 0;
}

/* Record and manifest of that number. -ENOENT, not logged: there is none. */
static int read_entry(unsigned int number, struct entry *e)
{
	uint8_t *payload;
	char own[NAME_MAX];
	size_t len;
	int err;

	record_name(own, sizeof(own), number);
	err = gpucr_imgfile_take(own, GPUCR_IMG_RECORD, &payload, &len);
	if (err)
		return err;
	err = parse(own, payload, len, e);
	free(payload);
	if (err)
		return err;
	err = gpucr_imgfile_take(e->name, e->kind, &e->payload, &e->len);
	if (err != -ENOENT)
		return err;
	gpucr_err("%s: the image streamer does not have it (image-incomplete); restore another checkpoint",
		  e->name);
	return -EBADMSG;
}

int gpucr_streamlist_read(void)
{
	struct entry *more;
	int err = 0;

	gpucr_streamlist_clear();
	while (!err && list.num < LIST_MAX) {
		more = reallocarray(list.v, list.num + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		list.v = more;
		err = read_entry(list.num + 1, &list.v[list.num]);
		list.num += !err;
	}
	if (!err)
		return damaged("gpucr-stream-*", "there are too many records");
	return err == -ENOENT && list.num ? 0 : err;
}

const char *gpucr_streamlist_name(size_t i)
{
	return i < list.num ? list.v[i].name : NULL;
}

int gpucr_streamlist_get(const char *name, enum gpucr_img_kind kind,
			 uint8_t **payload, size_t *len)
{
	const struct entry *e = list.v;

	for (; e < list.v + list.num; e++) {
		if (e->kind != kind || strcmp(e->name, name))
			continue;
		*payload = malloc(e->len + 1);
		if (!*payload)
			return -ENOMEM;
		memcpy(*payload, e->payload, e->len);
		*len = e->len;
		return 0;
	}
	return -ENOENT;
}

void gpucr_streamlist_clear(void)
{
	while (list.num)
		free(list.v[--list.num].payload);
	free(list.v);
	memset(&list, 0, sizeof(list));
}
