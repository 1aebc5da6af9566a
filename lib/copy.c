// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stream of BOs, cut into slots. What a slot and an SDMA submission are is
 * in copyslot.c.
 */
#include "copy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "copyslot.h"
#include "log.h"

#define SLOT_UNIT	((size_t)2 << 20)

void gpucr_copy_size(struct gpucr_copy_config *cfg, unsigned int slots,
		     size_t slot_size, uint64_t limit)
{
	if (limit) {
		while (slot_size > SLOT_UNIT && slots * slot_size > limit)
			slot_size /= 2;
		while (slots > 1 && slots * slot_size > limit)
			slots--;
	}
	cfg->slots = slots;
	cfg->slot_size = slot_size;
}

/* One pass over the BOs. */
struct pass {
	struct gpucr_copy *c;
	const struct gpucr_copy_bo *bos;
	size_t num;
	bool to_gpu;
	gpucr_copy_fn fn;
	void *arg;

	struct gpucr_copy_map *maps;	/* one per BO, made when reached */
	size_t cur;			/* BO that the next byte is in */
	uint64_t cur_offset;
	size_t unmapped;		/* BOs before it are done */
	uint64_t unmapped_pos;		/* end of the last of them */
	uint64_t pos, total;		/* stream */
};

static int piece_failed(struct pass *p, const char *what, int err)
{
	gpucr_err("GPU 0x%04x, BO %u at 0x%llx: %s: %s (copy-failed)",
		  p->c->cfg.gpu_id, p->bos[p->cur].index,
		  (unsigned long long)p->cur_offset, what, strerror(-err));
	return err;
}

/* Packets for the next piece of the current BO into the slot. */
static int add_piece(struct pass *p, struct gpucr_copy_slot *s)
{
	const struct gpucr_copy_bo *bo = &p->bos[p->cur];
	uint64_t len = bo->size - p->cur_offset;
	int err = 0;

	if (!p->maps[p->cur].bo)
		err = gpucr_copy_map(p->c, bo, &p->maps[p->cur]);
	if (err)
		return piece_failed(p, "cannot be mapped for SDMA", err);
	if (len > p->c->cfg.slot_size - s->len)
		len = p->c->cfg.slot_size - s->len;
	err = gpucr_copy_slot_add(p->c, s, &p->maps[p->cur], p->cur_offset,
				  len, p->to_gpu);
	if (err)
		return piece_failed(p, "no room for its packets", err);
	p->cur_offset += len;
	p->pos += len;
	if (p->cur_offset == bo->size) {
		p->cur++;
		p->cur_offset = 0;
	}
	return 0;
}

/* A slot's worth of the stream: packets made, data in place, handed over. */
static int start_slot(struct pass *p, struct gpucr_copy_slot *s)
{
	size_t first = p->cur;
	uint64_t offset = p->cur_offset;
	int err = 0;

	gpucr_copy_slot_reset(s);
	s->pos = p->pos;
	s->first_bo = p->bos[first].index;
	s->first_offset = offset;
	while (!err && p->pos < p->total && s->len < p->c->cfg.slot_size)
		err = add_piece(p, s);
	if (!err && p->to_gpu)
		err = p->fn(p->arg, s->pos, s->mem, s->len);
	if (err)
		return err;
	return gpucr_copy_slot_submit(p->c, s);
}

/* BOs that end at or before pos have been copied. */
static void unmap_until(struct pass *p, uint64_t pos)
{
	while (p->unmapped < p->num &&
	       p->unmapped_pos + p->bos[p->unmapped].size <= pos) {
		gpucr_copy_unmap(&p->maps[p->unmapped]);
		p->unmapped_pos += p->bos[p->unmapped++].size;
	}
}

static int finish_slot(struct pass *p, struct gpucr_copy_slot *s)
{
	int err;

	err = gpucr_copy_slot_wait(p->c, s);
	if (err)
		return err;
	unmap_until(p, s->pos + s->len);
	if (p->to_gpu)
		return 0;
	return p->fn(p->arg, s->pos, s->mem, s->len);
}

static int run_pass(struct pass *p)
{
	struct gpucr_copy *c = p->c;
	unsigned int head = 0, tail = 0, n = c->cfg.slots;
	int err = 0;

	/* head - tail slots are with the engine, oldest first. */
	while (!err && (p->pos < p->total || head != tail)) {
		if (p->pos < p->total && head - tail < n) {
			err = start_slot(p, &c->slots[head % n]);
			head += !err;
		} else {
			err = finish_slot(p, &c->slots[tail % n]);
			tail++;
		}
	}
	/* The engine must be done with memory and BOs before they go. */
	for (; tail != head; tail++) {
		if (gpucr_copy_slot_wait(c, &c->slots[tail % n]))
			c->stuck = true;
	}
	return err;
}

static int copy_pass(struct pass *p)
{
	size_t i;
	int err;

	if (p->c->stuck)
		return -EIO;
	for (i = 0; i < p->num; i++)
		p->total += p->bos[i].size;
	if (!p->total)
		return 0;
	p->maps = calloc(p->num, sizeof(*p->maps));
	if (!p->maps)
		return -ENOMEM;
	err = run_pass(p);
	for (i = p->unmapped; i < p->num; i++)
		gpucr_copy_unmap(&p->maps[i]);
	free(p->maps);
	return err;
}

int gpucr_copy_from_gpu(struct gpucr_copy *c, const struct gpucr_copy_bo *bos,
			size_t num, gpucr_copy_fn sink, void *arg)
{
	struct pass p = {
		.c = c, .bos = bos, .num = num, .fn = sink, .arg = arg,
	};

	return copy_pass(&p);
}

int gpucr_copy_to_gpu(struct gpucr_copy *c, const struct gpucr_copy_bo *bos,
		      size_t num, gpucr_copy_fn source, void *arg)
{
	struct pass p = {
		.c = c, .bos = bos, .num = num, .to_gpu = true, .fn = source,
		.arg = arg,
	};

	return copy_pass(&p);
}
