// SPDX-License-Identifier: GPL-2.0-only
/* gpucr ps: GPU processes, by KFD's sysfs and the module's sessions. */
#include <errno.h>
#include <stdlib.h>

#include "args.h"
#include "fail.h"
#include "gpu.h"
#include "kfdtarget.h"
#include "module.h"
#include "out.h"
#include "session.h"

static void cell_gpus(struct json_object *row, const char *key, FILE *to)
{
	out_text(row, key, to);
	fputc('/', to);
	out_text(row, "gpus", to);
}

static void cell_state(struct json_object *row, const char *key, FILE *to)
{
	out_text(row, key, to);
	if (json_object_object_get(row, "session")) {
		fputs(" by ", to);
		out_text(row, "session", to);
	}
}

static const struct out_column columns[] = {
	{ "PID", "pid", out_text, 0 },
	{ "COMM", "comm", out_text, 0 },
	{ "GPUS", "gpus_used", cell_gpus, 0 },
	{ "VRAM", "vram", out_size, 0 },
	{ "QUEUES", "queues", out_text, 0 },
	{ "STATE", "state", cell_state, 0 },
	{ 0 }
};

struct sessions {
	bool known;
	struct gpucr_nl_session *at;
	size_t num;
};

/* Without the module, or the right to ask it, the state stays unknown. */
static int read_sessions(struct sessions *s)
{
	struct gpucr_nl *nl;
	int err, status;

	status = module_open_if_loaded(&nl);
	if (status || !nl)
		return status;
	err = gpucr_nl_sessions(nl, 0, &s->at, &s->num);
	if (!err)
		s->known = true;
	else if (backend == BACKEND_NETLINK)
		status = module_fail(nl, err, "sessions");
	else
		out_warn("state-unknown", "who is paused is not known: %s",
			 module_sentence(nl, err));
	gpucr_nl_close(nl);
	return status;
}

static bool uses_gpu(const struct gpucr_kfd_proc *p,
		     const struct gpucr_kfd_gpu *g)
{
	size_t i;

	if (g->vram)
		return true;
	for (i = 0; i < p->num_queues; i++)
		if (p->queues[i].gpu_id == g->gpu_id)
			return true;
	return false;
}

static void add_state(struct json_object *row, pid_t pid,
		      const struct sessions *s)
{
	size_t i;

	if (!s->known) {
		out_add_null(row, "state");
		out_add_null(row, "session");
		return;
	}
	for (i = 0; i < s->num; i++)
		if (s->at[i].pid == (uint32_t)pid &&
		    session_holds_paused(&s->at[i]))
			break;
	out_add_str(row, "state", i < s->num ? "paused" : "running");
	if (i < s->num)
		out_add_fmt(row, "session", "%llx",
			    (unsigned long long)s->at[i].id);
	else
		out_add_null(row, "session");
}

static void add_row(const struct gpucr_kfd_proc *p, const struct sessions *s)
{
	struct json_object *row = out_row();
	uint64_t vram = 0, used = 0;
	char comm[16] = "";
	size_t i;

	for (i = 0; i < p->num_gpus; i++) {
		vram += p->gpus[i].vram;
		used += uses_gpu(p, &p->gpus[i]);
	}
	/* Elsewhere the number would name another process. */
	if (gpucr_proc_initial_pidns())
		gpucr_proc_comm(p->pid, comm, sizeof(comm));
	out_add_u64(row, "pid", p->pid);
	out_add_str(row, "comm", comm);
	out_add_u64(row, "gpus_used", used);
	out_add_u64(row, "gpus", gpu_count());
	out_add_u64(row, "vram", vram);
	out_add_u64(row, "queues", p->num_queues);
	add_state(row, p->pid, s);
}

static int add_all(const struct sessions *s)
{
	struct gpucr_kfd_proc p;
	size_t i, num;
	pid_t *pids;
	int err;

	err = gpucr_kfd_proc_list(&pids, &num);
	if (err)
		return kfd_absent(err);
	for (i = 0; i < num; i++) {
		/* One that ends between list and look is simply not there. */
		if (gpucr_kfd_proc_read(pids[i], &p))
			continue;
		add_row(&p, s);
		gpucr_kfd_proc_clear(&p);
	}
	free(pids);
	return EXIT_DONE;
}

static int ps_show(const struct args *args)
{
	struct sessions s = { 0 };
	struct gpucr_kfd_proc p;
	int status;

	status = read_sessions(&s);
	if (!status && args->has[KEY_PID]) {
		status = kfd_target_read((pid_t)args->value[KEY_PID], &p);
		if (!status) {
			add_row(&p, &s);
			gpucr_kfd_proc_clear(&p);
		}
	} else if (!status) {
		status = add_all(&s);
	}
	free(s.at);
	if (!status && !gpucr_proc_initial_pidns())
		out_warn("other-pid-namespace", "pids are those of the host's pid namespace");
	return status ? status : out_finish(columns);
}

static const struct command commands[] = {
	{ "show", 0, KEY(KEY_PID), ps_show },
	{ 0 }
};

const struct object ps_object = {
	"ps", "GPU processes", commands,
};
