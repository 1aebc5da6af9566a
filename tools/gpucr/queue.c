// SPDX-License-Identifier: GPL-2.0-only
/* gpucr queue: of a live process, by KFD's sysfs; of a checkpoint, by session. */
#include <stdlib.h>

#include "args.h"
#include "fail.h"
#include "gpu.h"
#include "holder.h"
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

static const struct out_column session_columns[] = {
	{ "QID", "qid", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "TYPE", "type", out_text, 0 },
	{ "RING", "ring_size", out_size, 0 },
	{ "PRIO", "priority", out_text, 0 },
	{ "PERCENT", "percent", out_text, 0 },
	{ "MQD", "mqd_size", out_size, 0 },
	{ "STACK", "ctl_stack_size", out_size, 0 },
	{ "FORMAT", "format", out_text, OUT_VERBOSE },
	{ "AT", "ring", out_text, OUT_VERBOSE },
	{ "DOORBELL", "doorbell", out_text, OUT_VERBOSE },
	{ 0 }
};

struct answer {
	const struct holder_question *q;
	struct gpucr_nl_queue *queues;
	size_t num;
};

static int ask(int holder, void *arg)
{
	struct answer *a = arg;

	return gpucr_nl_queues(a->q->nl, a->q->s.id, holder, &a->queues,
			       &a->num);
}

static void add_hex(struct json_object *row, const char *key, uint64_t value)
{
	out_add_fmt(row, key, "0x%llx", (unsigned long long)value);
}

static void add_session_row(const struct gpucr_nl_queue *q)
{
	struct json_object *row = out_row();

	out_add_u64(row, "qid", q->qid);
	gpu_add(row, q->gpu_id);
	out_add_str(row, "type", gpucr_kfd_queue_type(q->type));
	out_add_str(row, "format", q->format == GPUCR_QUEUE_FORMAT_AQL ?
		    "aql" : "pm4");
	add_hex(row, "ring", q->ring);
	out_add_u64(row, "ring_size", q->ring_size);
	add_hex(row, "read_pointer", q->read_pointer);
	add_hex(row, "write_pointer", q->write_pointer);
	add_hex(row, "doorbell", q->doorbell);
	out_add_u64(row, "doorbell_id", q->doorbell_id);
	out_add_u64(row, "priority", q->priority);
	out_add_u64(row, "percent", q->percent);
	out_add_u64(row, "sdma_id", q->sdma_id);
	out_add_u64(row, "gws", q->gws);
	add_hex(row, "eop", q->eop);
	out_add_u64(row, "eop_size", q->eop_size);
	add_hex(row, "ctx_save", q->ctx_save);
	out_add_u64(row, "ctx_save_size", q->ctx_save_size);
	out_add_u64(row, "mqd_size", q->mqd_size);
	out_add_u64(row, "ctl_stack_size", q->ctl_stack_size);
}

static int add_session_rows(struct holder_question *q)
{
	struct answer a = { .q = q };
	int err = holder_ask(&q->s, true, ask, &a);
	size_t i;

	for (i = 0; !err && i < a.num; i++)
		if (args_gpu_matches(q->args, a.queues[i].gpu_id))
			add_session_row(&a.queues[i]);
	free(a.queues);
	return err;
}

static int queue_of_process(const struct args *args)
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

static int queue_show(const struct args *args)
{
	if (args->has[KEY_PID] && args->has[KEY_SESSION])
		return fail(TOKEN_USAGE, 0, "show: pid or session, not both");
	if (args->has[KEY_SESSION])
		return holder_show(args, session_columns, add_session_rows);
	if (args->has[KEY_PID])
		return queue_of_process(args);
	return fail(TOKEN_USAGE, 0, "show: pid N or session ID is missing");
}

static const struct command commands[] = {
	{ "show", 0, KEY(KEY_PID) | KEY(KEY_GPU) | KEY(KEY_SESSION), queue_show },
	{ 0 }
};

const struct object queue_object = {
	"queue", "user queues of a process or a checkpoint", commands,
};
