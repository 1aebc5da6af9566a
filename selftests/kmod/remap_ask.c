// SPDX-License-Identifier: GPL-2.0-only
/* Questions about offsets, as wrong as a test likes. */
#include "remap_ask.h"

uint64_t or_zero(uint64_t v)
{
	return v == ZERO ? 0 : v;
}

int ask(struct raw *r, struct raw_ans *a, const struct ask *k)
{
	bool dump = k->cmd == GPUCR_CMD_REMAP_GET;
	struct raw_req q;

	raw_begin(r, &q, k->cmd, dump);
	raw_put_u64(&q, GPUCR_A_REMAP_ID, k->id);
	if (k->holder >= 0)
		raw_put_u32(&q, GPUCR_A_REMAP_HOLDER_FD, k->holder);
	if (k->fd >= 0)
		raw_put_u32(&q, GPUCR_A_REMAP_FD, k->fd);
	if (k->image_pid)
		raw_put_u32(&q, GPUCR_A_REMAP_IMAGE_PID, or_zero(k->image_pid));
	if (k->gpu)
		raw_put_u32(&q, GPUCR_A_REMAP_GPU_ID, or_zero(k->gpu));
	if (!dump)
		raw_put_u64(&q, GPUCR_A_REMAP_OLD_PGOFF, k->old);
	if (k->size)
		raw_put_u64(&q, GPUCR_A_REMAP_SIZE, or_zero(k->size));
	if (k->cmd == GPUCR_CMD_REMAP_SET)
		raw_put_u64(&q, GPUCR_A_REMAP_NEW_PGOFF, k->new);
	raw_call(r, &q, a);
	return a->err;
}

struct ask ask_of(uint8_t cmd, uint64_t id)
{
	return (struct ask) { .cmd = cmd, .id = id, .fd = -1, .holder = -1 };
}

size_t ask_entries(struct raw *r, struct raw_ans *a, uint64_t id,
		   uint32_t image_pid)
{
	struct ask k = ask_of(GPUCR_CMD_REMAP_GET, id);

	k.image_pid = image_pid;
	return ask(r, a, &k) ? (size_t)-1 : a->num;
}
