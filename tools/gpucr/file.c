// SPDX-License-Identifier: GPL-2.0-only
/* gpucr file: KFD and DRM descriptors of a process, and who shares them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "fail.h"
#include "gpu.h"
#include "out.h"
#include "target.h"

static void cell_also_in(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *list = json_object_object_get(row, key);
	size_t i, num = json_object_array_length(list);

	if (!num)
		fputc('-', to);
	for (i = 0; i < num; i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		fprintf(to, "%s%s fd %s", i ? ", " : "",
			json_object_get_string(json_object_object_get(o, "pid")),
			json_object_get_string(json_object_object_get(o, "fd")));
	}
}

static const struct out_column columns[] = {
	{ "FD", "fd", out_text, 0 },
	{ "KIND", "kind", out_text, 0 },
	{ "DRIVER", "driver", out_text, 0 },
	{ "DEV", "dev", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "ALSO IN", "also_in", cell_also_in, 0 },
	{ 0 }
};

static const char *kind_name(enum gpucr_dev_kind kind)
{
	switch (kind) {
	case GPUCR_DEV_KFD:
		return "kfd";
	case GPUCR_DEV_RENDER:
		return "render";
	case GPUCR_DEV_PRIMARY:
		return "primary";
	default:
		return "other";
	}
}

struct everyone {
	struct gpucr_proc_fd *fds;
	size_t num, hidden;
};

static void add_sharers(struct json_object *row, const struct gpucr_proc_fd *f,
			const struct everyone *all)
{
	struct json_object *list = out_add_array(row, "also_in"), *o;
	size_t i;

	for (i = 0; i < all->num; i++) {
		const struct gpucr_proc_fd *g = &all->fds[i];

		if ((g->pid == f->pid && g->fd == f->fd) ||
		    gpucr_proc_same_file(f, g) != 1)
			continue;
		o = json_object_new_object();
		if (!o || json_object_array_add(list, o))
			return;
		out_add_u64(o, "pid", g->pid);
		out_add_u64(o, "fd", g->fd);
	}
}

static void add_row(const struct gpucr_proc_fd *f, const struct everyone *all)
{
	struct json_object *row = out_row();
	char driver[64];

	if (f->kind == GPUCR_DEV_KFD)
		gpu_driver(driver, sizeof(driver));
	else
		gpucr_dev_driver(f->dev_minor, driver, sizeof(driver));
	out_add_u64(row, "fd", f->fd);
	out_add_str(row, "kind", kind_name(f->kind));
	out_add_str(row, "driver", driver);
	out_add_fmt(row, "dev", "%u:%u", f->dev_major, f->dev_minor);
	gpu_add(row, f->kind == GPUCR_DEV_KFD ? 0 : gpu_of_minor(f->dev_minor));
	add_sharers(row, f, all);
}

static int file_show(const struct args *args)
{
	struct everyone all = { 0 };
	struct target t;
	int status, err;
	size_t i, rows = 0;

	status = target_open(&t, (pid_t)args->value[KEY_PID]);
	if (status)
		return status;
	err = gpucr_proc_all_fds(&all.fds, &all.num, &all.hidden);
	if (err)
		out_warn("sharers-unknown", "who shares the files is not known: %s",
			 strerror(-err));
	else if (all.hidden)
		out_warn("sharers-unknown", "%zu processes cannot be looked into; they may share the files",
			 all.hidden);
	for (i = 0; i < t.num_fds; i++) {
		if (t.fds[i].kind == GPUCR_DEV_DMA_BUF ||
		    (args->has[KEY_FD] &&
		     args->value[KEY_FD] != (uint64_t)t.fds[i].fd))
			continue;
		add_row(&t.fds[i], &all);
		rows++;
	}
	free(all.fds);
	status = target_check_alive(&t);
	if (!status && args->has[KEY_FD] && !rows)
		status = fail(TOKEN_NO_GPU_FILE, 0,
			      "pid %d (%s): fd %s is not open or not a GPU file",
			      t.pid, t.comm, args->text[KEY_FD]);
	target_close(&t);
	return status ? status : out_finish(columns);
}

static const struct command commands[] = {
	{ "show", KEY(KEY_PID), KEY(KEY_FD), file_show },
	{ 0 }
};

const struct object file_object = {
	"file", "KFD and DRM files that a process has open", commands,
};
