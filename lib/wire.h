/* SPDX-License-Identifier: GPL-2.0-only */
/* Protobuf's wire format, as far as CRIU's images need it. */
#ifndef GPUCR_WIRE_H
#define GPUCR_WIRE_H

#include <stddef.h>
#include <stdint.h>

struct gpucr_wire {
	const uint8_t *p, *end;
	uint32_t field;
	uint64_t number;	/* of a varint or fixed field */
	const uint8_t *data;	/* NULL: it is a number */
	size_t len;
};

struct gpucr_wire gpucr_wire_of(const uint8_t *data, size_t len);
/* 1: a field, 0: the end; -EBADMSG. */
int gpucr_wire_next(struct gpucr_wire *w);

#endif
