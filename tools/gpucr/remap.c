// SPDX-License-Identifier: GPL-2.0-only
/* gpucr remap: where the BOs of a restore have come to. */
#include <stdlib.h>
#include <unistd.h>

#include "gpu.h"
#include "holder.h"
#include "out.h"

static const struct out_column columns[] = {
	{ "PID", "image_pid", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "OLD", "old_offset", out_text, 0 },
	{ "NEW", "new_offset", out_text, 0 },
	{ "SIZE", "size", out_size, 0 },
	{ "NODE", "node", out_text, 0 },
	{ "BY", "source", out_text, OUT_VERBOSE },
	{ 0 }
};

struct answer {
	const struct holder_question *q;
	struct gpucr_nl_remap *remaps;
	size_t num;
};

static int ask(int holder, void *arg)
{
	struct answer *a = arg;
	const struct args *args = a->q->args;
	uint32_t image_pid = args->has[KEY_PID] ?
			     (uint32_t)args->value[KEY_PID] : 0;

	return gpucr_nl_remaps(a->q->nl, a->q->s.id, holder, image_pid,
			       &a->remaps, &a->num);
}

static void add_row(const struct gpucr_nl_remap *r)
{
	unsigned long long page = sysconf(_SC_PAGESIZE);
	struct json_object *row = out_row();

	out_add_u64(row, "image_pid", r->image_pid);
	gpu_add(row, r->gpu_id);
	out_add_fmt(row, "old_offset", "0x%llx", r->old_pgoff * page);
	out_add_fmt(row, "new_offset", "0x%llx", r->new_pgoff * page);
	out_add_u64(row, "size", r->size);
	out_add_fmt(row, "node", "renderD%u", r->dev_minor);
	out_add_str(row, "source",
		    r->source == GPUCR_REMAP_SOURCE_SET ? "set" : "restore");
}

static int add_rows(struct holder_question *q)
{
	struct answer a = { .q = q };
	int err = holder_ask(&q->s, false, ask, &a);
	size_t i;

	for (i = 0; !err && i < a.num; i++)
		add_row(&a.remaps[i]);
	free(a.remaps);
	return err;
}

static int remap_show(const struct args *args)
{
	return holder_show(args, columns, add_rows);
}

static const struct command commands[] = {
	{ "show", KEY(KEY_SESSION), KEY(KEY_PID), remap_show },
	{ 0 }
};

const struct object remap_object = {
	"remap", "where buffer objects of a restore have come to", commands,
};
