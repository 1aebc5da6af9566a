// SPDX-License-Identifier: GPL-2.0-only
/* The backend that asks the gpucr module. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_ops.h"
#include "log.h"
#include "nl.h"

/* Of the last failure in a task, whose socket is closed by then. */
static char task_why[256];

static int nl_open_backend(struct gpucr_backend *b)
{
	struct gpucr_nl_info info;
	int err;

	err = gpucr_nl_open(&b->nl);
	if (err)
		return err;
	err = gpucr_nl_info(b->nl, &info);
	if (!err && info.protocol != GPUCR_FAMILY_VERSION)
		err = -EPROTONOSUPPORT;
	if (err) {
		gpucr_nl_close(b->nl);
		b->nl = NULL;
	}
	return err;
}

static void nl_close_backend(struct gpucr_backend *b)
{
	gpucr_nl_close(b->nl);
}

/* By a socket of its own: the sentence on the last refusal stays. */
static bool is_draining(void)
{
	struct gpucr_nl_info info = { 0 };
	struct gpucr_nl *nl;

	if (gpucr_nl_open(&nl))
		return false;
	if (gpucr_nl_info(nl, &info))
		info.draining = false;
	gpucr_nl_close(nl);
	return info.draining;
}

/* EAGAIN has other reasons, of a moment; this one is the administrator's. */
static int nl_session_new(struct gpucr_nl *nl, enum gpucr_direction direction,
			  pid_t pid, int kfd_fd, uint64_t *id, int *fd)
{
	int err = gpucr_nl_session_new(nl, direction, pid, kfd_fd, id, fd);

	if (err == -EAGAIN && is_draining())
		gpucr_err("no session: %s (module-draining)",
			  gpucr_nl_error(nl));
	return err;
}

static int nl_ckpt_open(struct gpucr_ckpt *c)
{
	int err;

	err = nl_session_new(c->be->nl, GPUCR_DIRECTION_CHECKPOINT, c->pid,
			     c->kfd_fd, &c->session, &c->session_fd);
	return err == -EEXIST ? -EBUSY : err;
}

static int nl_pause(struct gpucr_ckpt *c, struct gpucr_kfd_counts *ret,
		    bool *was_paused)
{
	struct gpucr_nl_relay r = {
		.cmd = GPUCR_CMD_SESSION_PAUSE,
		.id = c->session,
		.kfd_fd = -1,
	};
	int err;

	*was_paused = false;
	err = gpucr_nl_relay(c->be->nl, &r);
	if (err)
		return err;
	ret->pid = r.pid;
	ret->num_devices = r.num_devices;
	ret->num_bos = r.num_bos;
	ret->num_objects = r.num_objects;
	ret->priv_size = r.priv_size;
	return 0;
}

static void fill_relay(struct gpucr_nl_relay *r, uint32_t cmd, uint64_t id,
		       int kfd_fd, struct gpucr_kfd_state *s)
{
	*r = (struct gpucr_nl_relay){
		.cmd = cmd,
		.id = id,
		.kfd_fd = kfd_fd,
		.devices = s->devices,
		.num_devices = s->n.num_devices,
		.bos = s->bos,
		.num_bos = s->n.num_bos,
		.priv = s->priv,
		.priv_size = s->n.priv_size,
		.num_objects = s->n.num_objects,
	};
}

static int nl_read(struct gpucr_ckpt *c, struct gpucr_kfd_state *s)
{
	struct gpucr_nl_relay r;

	fill_relay(&r, GPUCR_CMD_SESSION_CHECKPOINT, c->session, -1, s);
	return gpucr_nl_relay(c->be->nl, &r);
}

static int nl_unpause(struct gpucr_ckpt *c)
{
	struct gpucr_nl_relay r = {
		.cmd = GPUCR_CMD_SESSION_UNPAUSE,
		.id = c->session,
		.kfd_fd = -1,
	};

	return gpucr_nl_relay(c->be->nl, &r);
}

static void nl_ckpt_close(struct gpucr_ckpt *c)
{
	/* By name too: a fork may hold a copy of the descriptor for long. */
	gpucr_nl_session_del(c->be->nl, c->session);
	if (c->session_fd >= 0)
		close(c->session_fd);
}

static int nl_restore_open(struct gpucr_restore *r)
{
	return nl_session_new(r->be->nl, GPUCR_DIRECTION_RESTORE, 0, -1,
			      &r->session, &r->session_fd);
}

static int nl_run(struct gpucr_restore *r, int kfd_fd,
		  struct gpucr_kfd_state *s)
{
	struct gpucr_nl_relay rl;
	struct gpucr_nl *nl;
	int err;

	/* A socket of the task's own, closed before the hook returns. */
	err = gpucr_nl_open(&nl);
	if (err)
		return err;
	err = gpucr_nl_session_join(nl, r->session, kfd_fd);
	if (!err) {
		fill_relay(&rl, GPUCR_CMD_SESSION_RESTORE, r->session, kfd_fd,
			   s);
		rl.image_pid = s->image_pid;
		err = gpucr_nl_relay(nl, &rl);
	}
	/* The table is for whoever looks on; this restore has its own. */
	if (!err && rl.kept_error)
		gpucr_info("the module keeps %u of %u offsets: %s", rl.kept,
			   s->n.num_bos, gpucr_nl_error(nl));
	else if (!err && s->image_pid)
		gpucr_info("the module keeps %u offsets of image pid %u",
			   rl.kept, s->image_pid);
	if (err)
		snprintf(task_why, sizeof(task_why), "%s", gpucr_nl_error(nl));
	gpucr_nl_close(nl);
	return err;
}

static int nl_resume(struct gpucr_restore *r, pid_t pid)
{
	struct gpucr_nl_relay rl = {
		.cmd = GPUCR_CMD_SESSION_RESUME,
		.id = r->session,
		.pid = pid,
	};

	if (r->kfd_fd < 0)
		r->kfd_fd = gpucr_kfd_open(r->be->kfd);
	if (r->kfd_fd < 0)
		return r->kfd_fd;
	rl.kfd_fd = r->kfd_fd;
	return gpucr_nl_relay(r->be->nl, &rl);
}

static void nl_restore_close(struct gpucr_restore *r)
{
	if (r->kfd_fd >= 0)
		close(r->kfd_fd);
	gpucr_nl_session_del(r->be->nl, r->session);
	if (r->session_fd >= 0)
		close(r->session_fd);
}

static const char *nl_why(struct gpucr_backend *b, int err)
{
	(void)err;
	if (!gpucr_owner_is_self(&b->owner))
		return task_why;
	return b->nl ? gpucr_nl_error(b->nl) : "";
}

const struct gpucr_backend_ops gpucr_backend_nl = {
	.name = "netlink",
	.open = nl_open_backend,
	.close = nl_close_backend,
	.ckpt_open = nl_ckpt_open,
	.pause = nl_pause,
	.read = nl_read,
	.unpause = nl_unpause,
	.ckpt_close = nl_ckpt_close,
	.restore_open = nl_restore_open,
	.run = nl_run,
	.resume = nl_resume,
	.restore_close = nl_restore_close,
	.why = nl_why,
};
