// SPDX-License-Identifier: GPL-2.0-only
/* gpucr bo: buffer objects that a process may map. */
#include <errno.h>
#include <stdlib.h>

#include "args.h"
#include "fail.h"
#include "gpu.h"
#include "module.h"
#include "out.h"
#include "target.h"

static const struct out_column columns[] = {
	{ "FD", "fd", out_text, 0 },
	{ "HANDLE", "handle", out_text, 0 },
	{ "SIZE", "size", out_size, 0 },
	{ "OFFSET", "offset", out_text, 0 },
	{ "SHARE", "share_id", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "HANDLES", "handles", out_text, OUT_VERBOSE },
	{ "FLAGS", "flags", out_list, 0 },
	{ 0 }
};

struct query {
	struct gpucr_nl *nl;
	const struct args *args;
	const struct target *target;
	size_t asked, refused;
	int refusal;			/* -errno of the last one */
};

static void add_flag(struct json_object *list, uint32_t flags, uint32_t flag,
		     const char *name)
{
	if (flags & flag)
		json_object_array_add(list, json_object_new_string(name));
}

static void add_row(const struct gpucr_nl_bo *bo, const struct gpucr_proc_fd *f,
		    uint32_t gpu)
{
	struct json_object *row = out_row(), *flags;

	out_add_u64(row, "fd", f->fd);
	gpu_add(row, gpu);
	if (bo->handle)
		out_add_u64(row, "handle", bo->handle);
	else
		out_add_null(row, "handle");
	out_add_u64(row, "size", bo->size);
	if (bo->has_offset)
		out_add_fmt(row, "offset", "0x%llx",
			    (unsigned long long)bo->offset);
	else
		out_add_null(row, "offset");
	out_add_fmt(row, "share_id", "%016llx",
		    (unsigned long long)bo->share_id);
	out_add_u64(row, "handles", bo->handle_count);
	flags = out_add_array(row, "flags");
	add_flag(flags, bo->flags, GPUCR_BO_FLAGS_IMPORTED, "imported");
	add_flag(flags, bo->flags, GPUCR_BO_FLAGS_EXPORTED, "exported");
	add_flag(flags, bo->flags, GPUCR_BO_FLAGS_MAPPED_ONLY, "mapped-only");
}

/* Can another file or device reach it? */
static bool is_shared(const struct gpucr_nl_bo *bo)
{
	return bo->handle_count > 1 ||
	       bo->flags & (GPUCR_BO_FLAGS_IMPORTED | GPUCR_BO_FLAGS_EXPORTED);
}

static int add_file(const struct gpucr_proc_fd *f, int copy, void *arg)
{
	struct query *q = arg;
	uint32_t gpu = gpu_of_minor(f->dev_minor);
	struct gpucr_nl_bo *bos;
	size_t i, num;
	int err;

	q->asked++;
	err = gpucr_nl_bos(q->nl, copy, &bos, &num);
	if (err == -EOPNOTSUPP && !q->args->has[KEY_FD]) {
		q->refused++;
		q->refusal = err;
		out_warn("driver-unknown", "fd %d: %s", f->fd,
			 module_sentence(q->nl, err));
		return EXIT_DONE;
	}
	if (err)
		return module_fail(q->nl, err, "pid %d (%s) fd %d",
				   q->target->pid, q->target->comm, f->fd);
	for (i = 0; i < num; i++)
		if (!q->args->has[KEY_SHARED] || is_shared(&bos[i]))
			add_row(&bos[i], f, gpu);
	free(bos);
	return EXIT_DONE;
}

static int show(struct query *q)
{
	const struct target *t = q->target;
	int status;

	status = target_for_each_file(t, q->args, 1u << GPUCR_DEV_RENDER |
				      1u << GPUCR_DEV_PRIMARY, add_file, q);
	if (!status)
		status = target_check_alive(t);
	if (!status && q->refused && q->refused == q->asked)
		return module_fail(q->nl, q->refusal, "pid %d (%s)", t->pid,
				   t->comm);
	if (!status && !q->asked)
		out_warn("no-gpu-file", "pid %d (%s) has no DRM file open%s",
			 t->pid, t->comm,
			 q->args->has[KEY_GPU] ? " of that GPU" : "");
	return status;
}

static int bo_show(const struct args *args)
{
	struct query q = { .args = args };
	struct target t;
	int status;

	status = target_open_asked(&t, &q.nl, args);
	if (status)
		return status;
	q.target = &t;
	status = show(&q);
	target_close(&t);
	gpucr_nl_close(q.nl);
	return status ? status : out_finish(columns);
}

static const struct command commands[] = {
	{ "show", KEY(KEY_PID), KEY(KEY_FD) | KEY(KEY_GPU) | KEY(KEY_SHARED),
	  bo_show },
	{ 0 }
};

const struct object bo_object = {
	"bo", "buffer objects that a process may map", commands,
};
