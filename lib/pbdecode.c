// SPDX-License-Identifier: GPL-2.0-only
#include "pbdecode.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A decoded message is at most a few times longer than its encoding; a
 * hostile one of empty submessages would be fifty times longer.
 */
#define BUDGET_FACTOR	16
#define BUDGET_BASE	65536
#define BUDGET_MAX	(UINT64_C(1) << 30)	/* on top of the length */

/* Freed memory is not given back to the budget: it bounds the work too. */
static void *budget_alloc(void *data, size_t size)
{
	struct gpucr_pb *pb = data;

	if (size > pb->left)
		return NULL;
	pb->left -= size;
	return malloc(size);
}

static void budget_free(void *data, void *p)
{
	(void)data;
	free(p);
}

void *gpucr_pb_unpack(struct gpucr_pb *pb, const ProtobufCMessageDescriptor *d,
		      const uint8_t *payload, size_t len)
{
	pb->left = len * BUDGET_FACTOR + BUDGET_BASE;
	if (pb->left > len + BUDGET_MAX)
		pb->left = len + BUDGET_MAX;
	pb->alloc = (ProtobufCAllocator){
		.alloc = budget_alloc,
		.free = budget_free,
		.allocator_data = pb,
	};
	pb->m = protobuf_c_message_unpack(d, &pb->alloc, len, payload);
	return pb->m;
}

void gpucr_pb_free(struct gpucr_pb *pb)
{
	if (pb->m)
		protobuf_c_message_free_unpacked(pb->m, &pb->alloc);
	pb->m = NULL;
}

int gpucr_pb_pack(const ProtobufCMessage *m, uint8_t **ret, size_t *len)
{
	*len = protobuf_c_message_get_packed_size(m);
	*ret = malloc(*len + 1);
	if (!*ret)
		return -ENOMEM;
	protobuf_c_message_pack(m, *ret);
	return 0;
}
