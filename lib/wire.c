// SPDX-License-Identifier: GPL-2.0-only
#include "wire.h"

#include <errno.h>

static int wire_varint(struct gpucr_wire *w, uint64_t *ret)
{
	unsigned int shift;

	*ret = 0;
	for (shift = 0; shift < 64; shift += 7) {
		if (w->p == w->end)
			return -EBADMSG;
		*ret |= (uint64_t)(*w->p & 0x7f) << shift;
		if (!(*w->p++ & 0x80))
			return 0;
	}
	return -EBADMSG;
}

static int wire_skip(struct gpucr_wire *w, uint64_t len)
{
	if (len > (uint64_t)(w->end - w->p))
		return -EBADMSG;
	w->data = w->p;
	w->len = len;
	w->p += len;
	return 0;
}

/* 1: a field, 0: the end. */
int gpucr_wire_next(struct gpucr_wire *w)
{
	uint64_t key, len = 0;
	int err;

	if (w->p == w->end)
		return 0;
	w->data = NULL;
	w->number = 0;
	if (wire_varint(w, &key) || key >> 35)
		return -EBADMSG;
	w->field = key >> 3;
	switch (key & 7) {
	case 0:
		err = wire_varint(w, &w->number);
		break;
	case 1:
		err = wire_skip(w, 8);
		w->data = NULL;
		break;
	case 2:
		err = wire_varint(w, &len);
		if (!err)
			err = wire_skip(w, len);
		break;
	case 5:
		err = wire_skip(w, 4);
		w->data = NULL;
		break;
	default:
		err = -EBADMSG;
	}
	return err ? err : 1;
}

struct gpucr_wire gpucr_wire_of(const uint8_t *data, size_t len)
{
	return (struct gpucr_wire){ .p = data, .end = data + len };
}
