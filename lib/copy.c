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
/* How long a read is waited for before the engines are looked at again. */
#define GLANCE_NS	UINT64_C(200000)

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
	const struct gpucr_copy_fill *fill;	/* to the GPU */
	const struct gpucr_copy_sink *sink;	/* from the GPU */

	struct gpucr_copy_map *maps;	/* one per BO, made when reached */
	size_t cur;			/* BO that the next byte is in */
	uint64_t cur_offset;
	size_t unmapped;		/* BOs before it are done */
	uint64_t unmapped_pos;		/* end of the last of them */
	uint64_t pos, total;		/* stream */
	uint64_t extent_end;		/* what pos is in, to the GPU */
	bool zero;
	/*
	 * All slots: first those with the engine, oldest first; up to begun
	 * those that wait for their content, on the way to the GPU; then free
	 * ones, in the order in which they are to be used.
	 */
	struct gpucr_copy_slot **order;
	unsigned int running, begun;
};

static int piece_failed(struct pass *p, const char *what, int err)
{
	gpucr_err("GPU 0x%04x, BO %u at 0x%llx: %s: %s (copy-failed)",
		  p->c->cfg.gpu_id, p->bos[p->cur].index,
		  (unsigned long long)p->cur_offset, what, strerror(-err));
	gpucr_copy_note(p->c, p->bos[p->cur].index, p->cur_offset);
	return err;
}

/* Packets for the next piece of the current BO into the slot. */
static int add_piece(struct pass *p, struct gpucr_copy_slot *s, uint64_t max)
{
	const struct gpucr_copy_bo *bo = &p->bos[p->cur];
	uint64_t len = bo->size - p->cur_offset;
	struct gpucr_copy_map *m = &p->maps[p->cur];
	int err = 0;

	if (!m->bo)
		err = gpucr_copy_map(p->c, bo, m);
	if (err)
		return piece_failed(p, "cannot be mapped for SDMA", err);
	if (len > max)
		len = max;
	if (p->zero)
		err = gpucr_copy_slot_zero(p->c, s, m, p->cur_offset, len);
	else
		err = gpucr_copy_slot_add(p->c, s, m, p->cur_offset, len,
					  p->to_gpu);
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

/* How much of what comes next the slot can take. */
static uint64_t next_room(struct pass *p, const struct gpucr_copy_slot *s)
{
	uint64_t left, room;

	if (p->pos == p->extent_end)
		p->extent_end += p->to_gpu ?
			p->fill->extent(p->fill->arg, p->pos,
					p->total - p->pos, &p->zero) :
			p->total - p->pos;
	left = p->extent_end - p->pos;
	room = gpucr_copy_slot_room(p->c, s, p->zero);
	return left < room ? left : room;
}

/* Packets for a slot's worth of the stream. */
static int prepare_slot(struct pass *p, struct gpucr_copy_slot *s)
{
	uint64_t room = 1;
	int err = 0;

	if (p->sink)
		err = p->sink->settle(p->sink->arg, s->mem,
				      p->c->cfg.slot_size);
	if (err)
		return err;
	gpucr_copy_slot_reset(s);
	s->pos = p->pos;
	s->first_bo = p->bos[p->cur].index;
	s->first_offset = p->cur_offset;
	while (!err && room && p->pos < p->total) {
		room = next_room(p, s);
		if (room)
			err = add_piece(p, s, room);
	}
	return err;
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
	unmap_until(p, s->pos + s->span);
	if (p->to_gpu)
		return 0;
	return p->sink->put(p->sink->arg, s->pos, s->mem, s->len);
}

static bool is_stopped(const struct gpucr_copy *c)
{
	return c->cfg.stop && __atomic_load_n(c->cfg.stop, __ATOMIC_RELAXED);
}

static bool is_needed(const struct pass *p, const struct gpucr_copy_slot *s)
{
	return p->sink && p->sink->needs(p->sink->arg, s->mem,
					 p->c->cfg.slot_size);
}

/* The slot that is to be used next, if there is one. */
static struct gpucr_copy_slot *next_free(const struct pass *p)
{
	return p->begun < p->c->cfg.slots ? p->order[p->begun] : NULL;
}

/* Is there one that the storage does not need? It is next then. */
static bool find_free(struct pass *p)
{
	unsigned int i, next = p->begun;

	for (i = next; i < p->c->cfg.slots; i++) {
		struct gpucr_copy_slot *s = p->order[i];

		if (is_needed(p, s))
			continue;
		memmove(p->order + next + 1, p->order + next,
			(i - next) * sizeof(*p->order));
		p->order[next] = s;
		return true;
	}
	return false;
}

static int start_next(struct pass *p)
{
	struct gpucr_copy_slot *s = next_free(p);
	int err = prepare_slot(p, s);

	if (!err)
		err = gpucr_copy_slot_submit(p->c, s);
	p->begun += !err;
	p->running += !err;
	return err;
}

/* fn for each extent of the slot. */
static int each_extent(const struct pass *p, const struct gpucr_copy_slot *s,
		       gpucr_copy_fn fn)
{
	uint64_t pos = s->pos, end = s->pos + s->span;
	void *arg = p->fill->arg;
	char *mem = s->mem;
	int err = 0;

	while (pos < end && !err) {
		bool zero;
		uint64_t len = p->fill->extent(arg, pos, end - pos, &zero);

		err = fn(arg, pos, zero ? NULL : mem, len);
		pos += len;
		mem += zero ? 0 : len;
	}
	return err;
}

/* Every slot that is free gets its packets, and its content is asked for. */
static int begin_fills(struct pass *p)
{
	struct gpucr_copy_slot *s;
	int err = 0;

	while (!err && p->pos < p->total && (s = next_free(p))) {
		err = prepare_slot(p, s);
		if (!err)
			err = each_extent(p, s, p->fill->begin);
		p->begun += !err;
	}
	return err;
}

/* The next slot's content, checked, to the engine. */
static int feed_next(struct pass *p)
{
	struct gpucr_copy_slot *s = p->order[p->running];
	int err = each_extent(p, s, p->fill->source);

	if (!err)
		err = gpucr_copy_slot_submit(p->c, s);
	p->running += !err;
	return err;
}

/* It is used again after all others. */
static int finish_oldest(struct pass *p)
{
	struct gpucr_copy_slot *s = p->order[0];
	unsigned int last = p->c->cfg.slots - 1;
	int err = finish_slot(p, s);

	memmove(p->order, p->order + 1, last * sizeof(*p->order));
	p->order[last] = s;
	p->running--;
	p->begun--;
	return err;
}

static bool is_oldest_done(const struct pass *p)
{
	return p->running && gpucr_copy_slot_is_done(p->order[0]);
}

static int finish_done(struct pass *p)
{
	int err = 0;

	while (!err && is_oldest_done(p))
		err = finish_oldest(p);
	return err;
}

/*
 * The engine gets what is at hand, then the storage. Else the storage is waited
 * for, which has work then, and with nothing more to start the engine.
 */
static int from_gpu_step(struct pass *p)
{
	/* Half of the slots are for the storage, which works on its own. */
	unsigned int most = p->c->cfg.slots < 2 ? 1 : p->c->cfg.slots / 2;
	bool may_start = p->pos < p->total && p->running < most;

	if (may_start && find_free(p))
		return start_next(p);
	if (may_start && !is_oldest_done(p))
		return start_next(p);
	return finish_oldest(p);
}

static int from_gpu(struct pass *p)
{
	int err = 0;

	while (!err && (p->pos < p->total || p->running))
		err = is_stopped(p->c) ? -ECANCELED : from_gpu_step(p);
	return err ? err : p->sink->settle(p->sink->arg, NULL, 0);
}

/* What the engine is done with is filled anew, as soon as that is seen. */
static int begin_all(struct pass *v, size_t num)
{
	size_t i;
	int err = 0;

	for (i = 0; i < num && !err; i++) {
		err = is_stopped(v[i].c) ? -ECANCELED : finish_done(&v[i]);
		if (!err)
			err = begin_fills(&v[i]);
	}
	return err;
}

static bool waits(const struct pass *p)
{
	return p->running < p->begun;
}

/* What has been read to the engines. *any: something was. */
static int feed_ready(struct pass *v, size_t num, bool *any)
{
	size_t i;
	int err = 0;

	for (i = 0; i < num && !err; i++) {
		if (!waits(&v[i]) || !v[i].fill->ready(v[i].fill->arg, 0))
			continue;
		err = feed_next(&v[i]);
		*any = true;
	}
	return err;
}

/* The GPU whose engine is out of work first. NULL: none gets more now. */
static struct pass *most_urgent(struct pass *v, size_t num)
{
	struct pass *p = NULL;
	size_t i;

	for (i = 0; i < num; i++) {
		if (waits(&v[i]) && (!p || v[i].running < p->running))
			p = &v[i];
	}
	return p;
}

/* All storage and engines have work when this one thread waits. */
static int to_gpus_round(struct pass *v, size_t num, bool *any)
{
	struct pass *p;
	size_t i;
	int err = begin_all(v, num);

	*any = false;
	if (!err)
		err = feed_ready(v, num, any);
	if (err || *any)
		return err;
	p = most_urgent(v, num);
	*any = p;
	/* Not long: what an engine is done with meanwhile is to be read to. */
	if (p)
		return p->fill->ready(p->fill->arg, GLANCE_NS) ? feed_next(p) : 0;
	for (i = 0; i < num && !*any; i++) {
		if (!v[i].running)
			continue;
		err = finish_oldest(&v[i]);
		*any = true;
	}
	return err;
}

static int to_gpus(struct pass *v, size_t num)
{
	bool any = true;
	int err = 0;

	while (!err && any)
		err = to_gpus_round(v, num, &any);
	return err;
}

static int begin_pass(struct pass *p)
{
	size_t i;

	if (p->c->stuck)
		return -EIO;
	for (i = 0; i < p->num; i++)
		p->total += p->bos[i].size;
	p->maps = calloc(p->num + 1, sizeof(*p->maps));
	p->order = calloc(p->c->cfg.slots, sizeof(*p->order));
	if (!p->maps || !p->order)
		return -ENOMEM;
	for (i = 0; i < p->c->cfg.slots; i++)
		p->order[i] = &p->c->slots[i];
	return 0;
}

/* The engine must be done with memory and BOs before they go. */
static void end_pass(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->running; i++) {
		if (gpucr_copy_slot_wait(p->c, p->order[i]))
			p->c->stuck = true;
	}
	for (i = p->unmapped; p->maps && i < p->num; i++)
		gpucr_copy_unmap(&p->maps[i]);
	free(p->maps);
	free(p->order);
}

bool gpucr_copy_failed_at(const struct gpucr_copy *c,
			  struct gpucr_copy_place *ret)
{
	*ret = c->place;
	return c->failed;
}

unsigned int gpucr_copy_buffers(const struct gpucr_copy *c, struct iovec *v,
				unsigned int max)
{
	unsigned int i;

	for (i = 0; i < c->cfg.slots && i < max; i++) {
		v[i].iov_base = c->slots[i].mem;
		v[i].iov_len = c->cfg.slot_size;
	}
	return i;
}

int gpucr_copy_from_gpu(struct gpucr_copy *c, const struct gpucr_copy_bo *bos,
			size_t num, const struct gpucr_copy_sink *sink)
{
	struct pass p = {
		.c = c, .bos = bos, .num = num, .sink = sink,
	};
	int err = begin_pass(&p);

	if (!err)
		err = from_gpu(&p);
	end_pass(&p);
	return err;
}

int gpucr_copy_to_gpus(const struct gpucr_copy_fill *fills, size_t num)
{
	struct pass *v = calloc(num + 1, sizeof(*v));
	size_t i, begun;
	int err = 0;

	if (!v)
		return -ENOMEM;
	for (begun = 0; begun < num && !err; begun++) {
		const struct gpucr_copy_fill *f = &fills[begun];

		v[begun] = (struct pass){
			.c = f->c, .bos = f->bos, .num = f->num,
			.to_gpu = true, .fill = f,
		};
		err = begin_pass(&v[begun]);
	}
	if (!err)
		err = to_gpus(v, num);
	for (i = 0; i < begun; i++)
		end_pass(&v[i]);
	free(v);
	return err;
}
