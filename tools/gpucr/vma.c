// SPDX-License-Identifier: GPL-2.0-only
/* gpucr vma: device mappings of a process, and what they show. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "args.h"
#include "fail.h"
#include "gpu.h"
#include "module.h"
#include "out.h"
#include "target.h"
#include "task.h"

static void cell_range(struct json_object *row, const char *key, FILE *to)
{
	(void)key;
	/* Both begin with 0x, which a range does without. */
	fprintf(to, "%s-%s",
		json_object_get_string(json_object_object_get(row, "start")) + 2,
		json_object_get_string(json_object_object_get(row, "end")) + 2);
}

static const struct out_column columns[] = {
	{ "RANGE", "start", cell_range, 0 },
	{ "PROT", "prot", out_text, 0 },
	{ "KIND", "kind", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "BO", "share_id", out_text, 0 },
	{ "+OFFSET", "bo_delta", out_text, 0 },
	{ "FD", "fd", out_text, OUT_VERBOSE },
	{ "DEV", "dev", out_text, OUT_VERBOSE },
	{ "PGOFF", "pgoff", out_text, OUT_VERBOSE },
	{ "BO SIZE", "bo_size", out_size, OUT_VERBOSE },
	{ 0 }
};

struct found {
	struct gpucr_nl_vma vma;
	int fd;				/* in the target */
};

struct query {
	struct gpucr_nl *nl;
	const struct args *args;
	const struct target *target;
	struct found *found;
	size_t num;
	size_t asked, refused;
	int refusal;			/* -errno of the last one */
};

static const char *kind_name(uint32_t kind)
{
	static const char * const names[] = {
		[GPUCR_VMA_KIND_UNKNOWN] = "unknown",
		[GPUCR_VMA_KIND_BO] = "bo",
		[GPUCR_VMA_KIND_DMA_BUF] = "dma-buf",
		[GPUCR_VMA_KIND_DOORBELL] = "doorbell",
		[GPUCR_VMA_KIND_MMIO] = "mmio",
		[GPUCR_VMA_KIND_EVENTS] = "events",
		[GPUCR_VMA_KIND_RESERVED] = "reserved",
	};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind]
						       : names[0];
}

static uint32_t gpu_of(const struct gpucr_nl_vma *v)
{
	if (v->gpu_id)
		return v->gpu_id;
	return gpucr_dev_kind(v->dev_major, v->dev_minor) == GPUCR_DEV_KFD ||
	       !v->dev_major ? 0 : gpu_of_minor(v->dev_minor);
}

static void add_bo(struct json_object *row, const struct gpucr_nl_vma *v)
{
	if (!v->share_id) {
		out_add_null(row, "share_id");
		out_add_null(row, "bo_delta");
		out_add_null(row, "bo_size");
		return;
	}
	out_add_fmt(row, "share_id", "%016llx", (unsigned long long)v->share_id);
	out_add_u64(row, "bo_delta", v->bo_delta);
	out_add_u64(row, "bo_size", v->bo_size);
}

static void add_row(const struct found *f)
{
	const struct gpucr_nl_vma *v = &f->vma;
	struct json_object *row = out_row();

	out_add_fmt(row, "start", "0x%llx", (unsigned long long)v->start);
	out_add_fmt(row, "end", "0x%llx", (unsigned long long)v->end);
	out_add_fmt(row, "prot", "%c%c%c%c",
		    v->flags & GPUCR_VMA_FLAGS_READ ? 'r' : '-',
		    v->flags & GPUCR_VMA_FLAGS_WRITE ? 'w' : '-',
		    v->flags & GPUCR_VMA_FLAGS_EXEC ? 'x' : '-',
		    v->flags & GPUCR_VMA_FLAGS_SHARED ? 's' : 'p');
	out_add_str(row, "kind", kind_name(v->kind));
	gpu_add(row, gpu_of(v));
	add_bo(row, v);
	out_add_u64(row, "fd", f->fd);
	out_add_fmt(row, "dev", "%u:%u", v->dev_major, v->dev_minor);
	out_add_fmt(row, "pgoff", "0x%llx", (unsigned long long)v->pgoff);
}

static int keep(struct query *q, const struct gpucr_nl_vma *v, size_t num,
		int fd)
{
	struct found *more;
	size_t i;

	more = reallocarray(q->found, q->num + num + 1, sizeof(*more));
	if (!more)
		return fail(TOKEN_NO_MEMORY, ENOMEM, "pid %d", q->target->pid);
	q->found = more;
	for (i = 0; i < num; i++) {
		q->found[q->num].vma = v[i];
		q->found[q->num++].fd = fd;
	}
	return EXIT_DONE;
}

static int add_file(const struct gpucr_proc_fd *f, int copy, void *arg)
{
	struct query *q = arg;
	struct gpucr_nl_vma *vmas;
	int err, status;
	size_t num;

	err = gpucr_nl_vmas(q->nl, q->target->pid, copy, &vmas, &num);
	/* A dma-buf may be of anything: those of no GPU are passed over. */
	if (f->kind == GPUCR_DEV_DMA_BUF && !q->args->has[KEY_FD] &&
	    (err == -EINVAL || err == -EOPNOTSUPP))
		return EXIT_DONE;
	q->asked += f->kind != GPUCR_DEV_DMA_BUF;
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
	status = keep(q, vmas, num, f->fd);
	free(vmas);
	return status;
}

static int compare(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return (x->vma.start > y->vma.start) - (x->vma.start < y->vma.start);
}

static bool matches(const struct args *args, const struct gpucr_nl_vma *v)
{
	if (!args_gpu_matches(args, gpu_of(v)))
		return false;
	return !args->has[KEY_ADDR] || (args->value[KEY_ADDR] >= v->start &&
					args->value[KEY_ADDR] < v->end);
}

/* found is sorted and without overlaps. */
static bool is_found(const struct query *q, uint64_t addr)
{
	size_t low = 0, high = q->num;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct gpucr_nl_vma *v = &q->found[mid].vma;

		if (addr < v->start)
			high = mid;
		else if (addr >= v->end)
			low = mid + 1;
		else
			return true;
	}
	return false;
}

/*
 * A mapping outlives its descriptor, and without one only a tracer may ask:
 * say so rather than let it be missed.
 */
static void warn_unreachable(const struct query *q)
{
	struct gpucr_task_map *maps;
	size_t i, num, missed = 0;
	uint64_t first = 0;

	if (q->args->has[KEY_FD] || q->args->has[KEY_GPU] ||
	    gpucr_task_device_maps(q->target->pid, &maps, &num))
		return;
	for (i = 0; i < num; i++) {
		if (gpucr_dev_kind(major(maps[i].rdev), minor(maps[i].rdev)) ==
		    GPUCR_DEV_OTHER || is_found(q, maps[i].start))
			continue;
		if (!missed++)
			first = maps[i].start;
	}
	free(maps);
	if (missed)
		out_warn("mapping-without-fd", "%zu mappings, the first at %llx, belong to no open descriptor and are not shown",
			 missed, (unsigned long long)first);
}

static int show(struct query *q)
{
	const struct target *t = q->target;
	int status;
	size_t i;

	status = target_for_each_file(t, q->args, 1u << GPUCR_DEV_KFD |
				      1u << GPUCR_DEV_RENDER |
				      1u << GPUCR_DEV_PRIMARY |
				      1u << GPUCR_DEV_DMA_BUF, add_file, q);
	if (!status)
		status = target_check_alive(t);
	if (status)
		return status;
	if (q->refused && q->refused == q->asked)
		return module_fail(q->nl, q->refusal, "pid %d (%s)", t->pid,
				   t->comm);
	if (!q->asked && !q->num && !q->args->has[KEY_FD])
		out_warn("no-gpu-file", "pid %d (%s) has no KFD or DRM file open%s",
			 t->pid, t->comm,
			 q->args->has[KEY_GPU] ? " of that GPU" : "");
	if (q->num)
		qsort(q->found, q->num, sizeof(*q->found), compare);
	for (i = 0; i < q->num; i++)
		if (matches(q->args, &q->found[i].vma))
			add_row(&q->found[i]);
	if (!q->refused)
		warn_unreachable(q);
	return EXIT_DONE;
}

static int vma_show(const struct args *args)
{
	struct query q = { .args = args };
	struct target t;
	int status;

	status = target_open_asked(&t, &q.nl, args);
	if (status)
		return status;
	q.target = &t;
	status = show(&q);
	free(q.found);
	target_close(&t);
	gpucr_nl_close(q.nl);
	return status ? status : out_finish(columns);
}

static const struct command commands[] = {
	{ "show", KEY(KEY_PID), KEY(KEY_FD) | KEY(KEY_GPU) | KEY(KEY_ADDR),
	  vma_show },
	{ 0 }
};

const struct object vma_object = {
	"vma", "device mappings of a process, and what they show", commands,
};
