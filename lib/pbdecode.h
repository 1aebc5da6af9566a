/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages of unknown origin: what decoding may take is bounded by the length
 * of the encoding.
 */
#ifndef GPUCR_PBDECODE_H
#define GPUCR_PBDECODE_H

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

struct gpucr_pb {
	ProtobufCAllocator alloc;
	size_t left;
	ProtobufCMessage *m;
};

/* NULL where it cannot be decoded. What is returned ends with pb_free(). */
void *gpucr_pb_unpack(struct gpucr_pb *pb, const ProtobufCMessageDescriptor *d,
		      const uint8_t *payload, size_t len);
void gpucr_pb_free(struct gpucr_pb *pb);
/* *ret is free()d. 0 or -ENOMEM. */
int gpucr_pb_pack(const ProtobufCMessage *m, uint8_t **ret, size_t *len);

#endif
