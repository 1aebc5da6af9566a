// SPDX-License-Identifier: GPL-2.0-only
/* gpucr queue: user queues of a live process, by KFD's sysfs. */
#include "args.h"
#include "fail.h"
#include "gpu.h"
#include "kfdtarget.h"
#include "out.h"

static const struct out_column columns[] = {
	{ "QID", "qid", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "TYPE", "type", out_text, 0 },
	{ "RING", "ring_size", out_size, 0 },
	{ "EVICTED-MS", "evicted_us", out_ms, 0 },
	{ 0 }
};

static void add_row(const struct gpucr_kfd_proc *p,
		    const struct gpucr_kfd_queue *q)
{
	struct json_object *row = out_row();
	size_t i;

	out_add_u64(row, "qid", q->qid);
	gpu_add(row, q->gpu_id);
	out_add_str(row, "type", gpucr_kfd_queue_type(q->type));
	out_add_u64(row, "ring_size", q->size);
	out_add_null(row, "evicted_us");
	for (i = 0; i < p->num_gpus; i++)
		if (p->gpus[i].gpu_id == q->gpu_id)
			out_add_u64(row, "evicted_us",
				    p->gpus[i].evicted_ms * 1000);
}

static int queue_show(const struct args *args)
{
	struct gpucr_kfd_proc p;
	int status;
	size_t i;

	status = kfd_target_read((pid_t)args->value[KEY_PID], &p);
	if (status)
		return status;
	status = gpu_check(args);
	for (i = 0; !status && i < p.num_queues; i++)
		if (args_gpu_matches(args, p.queues[i].gpu_id))
			add_row(&p, &p.queues[i]);
	gpucr_kfd_proc_clear(&p);
	return status ? status : out_finish(columns);
}

static const struct command commands[] = {
	{ "show", KEY(KEY_PID), KEY(KEY_GPU), queue_show },
	{ 0 }
};

const struct object queue_object = {
	"queue", "user queues of a process", commands,
};
