// SPDX-License-Identifier: GPL-2.0-only
/* The operations of the generic netlink family "gpucr". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nlsock.h"

#define NL_DUMP_TRIES	8

static uint32_t opt_u32(struct nlattr *nla)
{
	return nla ? nla_get_u32(nla) : 0;
}

static uint64_t opt_u64(struct nlattr *nla)
{
	return nla ? nla_get_u64(nla) : 0;
}

static void opt_str(struct nlattr *nla, char *to, size_t size)
{
	to[0] = '\0';
	if (nla)
		nla_strlcpy(to, nla, size);
}

static const struct nla_policy info_policy[GPUCR_A_INFO_MAX + 1] = {
	[GPUCR_A_INFO_MODULE_VERSION] = { .type = NLA_STRING },
	[GPUCR_A_INFO_PROTOCOL_VERSION] = { .type = NLA_U32 },
	[GPUCR_A_INFO_OP] = { .type = NLA_U32 },
	[GPUCR_A_INFO_DRIVER] = { .type = NLA_STRING },
	[GPUCR_A_INFO_MAX_OBJECTS] = { .type = NLA_U32 },
	[GPUCR_A_INFO_MAX_SESSIONS] = { .type = NLA_U32 },
	[GPUCR_A_INFO_RECOVERY_HELPER] = { .type = NLA_STRING },
	[GPUCR_A_INFO_SESSIONS_OPEN] = { .type = NLA_U32 },
	[GPUCR_A_INFO_SESSIONS_TOTAL] = { .type = NLA_U64 },
	[GPUCR_A_INFO_SESSIONS_ABANDONED] = { .type = NLA_U64 },
	[GPUCR_A_INFO_SESSIONS_RECOVERED] = { .type = NLA_U64 },
	[GPUCR_A_INFO_SESSIONS_RECOVERY_FAILED] = { .type = NLA_U64 },
	[GPUCR_A_INFO_DRAINING] = { .type = NLA_FLAG },
	[GPUCR_A_INFO_MAX_QUEUES] = { .type = NLA_U32 },
	[GPUCR_A_INFO_MAX_REMAPS] = { .type = NLA_U32 },
};

static int on_info(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_INFO_MAX + 1], *nla;
	struct gpucr_nl_info *i = arg;
	int rem, ret = gpucr_nl_parse(nlh, tb, GPUCR_A_INFO_MAX, info_policy);

	if (ret)
		return ret;
	opt_str(tb[GPUCR_A_INFO_MODULE_VERSION], i->version,
		sizeof(i->version));
	opt_str(tb[GPUCR_A_INFO_RECOVERY_HELPER], i->helper,
		sizeof(i->helper));
	i->protocol = opt_u32(tb[GPUCR_A_INFO_PROTOCOL_VERSION]);
	i->max_objects = opt_u32(tb[GPUCR_A_INFO_MAX_OBJECTS]);
	i->max_sessions = opt_u32(tb[GPUCR_A_INFO_MAX_SESSIONS]);
	i->sessions_open = opt_u32(tb[GPUCR_A_INFO_SESSIONS_OPEN]);
	i->sessions_total = opt_u64(tb[GPUCR_A_INFO_SESSIONS_TOTAL]);
	i->sessions_abandoned = opt_u64(tb[GPUCR_A_INFO_SESSIONS_ABANDONED]);
	i->sessions_recovered = opt_u64(tb[GPUCR_A_INFO_SESSIONS_RECOVERED]);
	i->sessions_recovery_failed =
		opt_u64(tb[GPUCR_A_INFO_SESSIONS_RECOVERY_FAILED]);
	i->draining = tb[GPUCR_A_INFO_DRAINING];
	i->max_queues = opt_u32(tb[GPUCR_A_INFO_MAX_QUEUES]);
	i->max_remaps = opt_u32(tb[GPUCR_A_INFO_MAX_REMAPS]);
	nlmsg_for_each_attr(nla, nlh, GENL_HDRLEN, rem) {
		if (nla_type(nla) == GPUCR_A_INFO_OP && i->num_ops < 32)
			i->ops[i->num_ops++] = nla_get_u32(nla);
		if (nla_type(nla) == GPUCR_A_INFO_DRIVER && i->num_drivers < 8)
			opt_str(nla, i->drivers[i->num_drivers++], 32);
	}
	return 0;
}

int gpucr_nl_info(struct gpucr_nl *nl, struct gpucr_nl_info *ret)
{
	struct gpucr_nl_request rq;
	int err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_INFO_GET, false);

	memset(ret, 0, sizeof(*ret));
	return err ? err : gpucr_nl_end(nl, &rq, 0, on_info, ret);
}

/* Elements of one kind, as a dump brings them. */
struct nl_array {
	void *at;
	size_t num, max, elem;
};

static void *nl_array_add(struct nl_array *a)
{
	if (a->num == a->max) {
		size_t max = a->max ? 2 * a->max : 64;
		void *at = reallocarray(a->at, max, a->elem);

		if (!at)
			return NULL;
		a->at = at;
		a->max = max;
	}
	return memset((char *)a->at + a->elem * a->num++, 0, a->elem);
}

static int nl_array_give(struct nl_array *a, int err, void *ret, size_t *num)
{
	if (err) {
		free(a->at);
		a->at = NULL;
		a->num = 0;
	}
	memcpy(ret, &a->at, sizeof(a->at));
	*num = a->num;
	return err;
}

static const struct nla_policy bo_policy[GPUCR_A_BO_MAX + 1] = {
	[GPUCR_A_BO_HANDLE] = { .type = NLA_U32 },
	[GPUCR_A_BO_SIZE] = { .type = NLA_U64 },
	[GPUCR_A_BO_OFFSET] = { .type = NLA_U64 },
	[GPUCR_A_BO_FLAGS] = { .type = NLA_U32 },
	[GPUCR_A_BO_SHARE_ID] = { .type = NLA_U64 },
	[GPUCR_A_BO_HANDLE_COUNT] = { .type = NLA_U32 },
};

static int on_bo(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_BO_MAX + 1];
	struct gpucr_nl_bo *bo;
	int ret = gpucr_nl_parse(nlh, tb, GPUCR_A_BO_MAX, bo_policy);

	if (ret)
		return ret;
	bo = nl_array_add(arg);
	if (!bo)
		return -ENOMEM;
	bo->handle = opt_u32(tb[GPUCR_A_BO_HANDLE]);
	bo->size = opt_u64(tb[GPUCR_A_BO_SIZE]);
	bo->offset = opt_u64(tb[GPUCR_A_BO_OFFSET]);
	bo->has_offset = tb[GPUCR_A_BO_OFFSET];
	bo->flags = opt_u32(tb[GPUCR_A_BO_FLAGS]);
	bo->share_id = opt_u64(tb[GPUCR_A_BO_SHARE_ID]);
	bo->handle_count = opt_u32(tb[GPUCR_A_BO_HANDLE_COUNT]);
	return 0;
}

int gpucr_nl_bos(struct gpucr_nl *nl, int fd, struct gpucr_nl_bo **ret,
		 size_t *num)
{
	struct nl_array a = { .elem = sizeof(**ret) };
	struct gpucr_nl_request rq;
	int err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_BO_GET, true);

	if (!err)
		err = gpucr_nl_end(nl, &rq,
				   nla_put_u32(rq.msg, GPUCR_A_BO_FD, fd),
				   on_bo, &a);
	return nl_array_give(&a, err, ret, num);
}

static const struct nla_policy vma_policy[GPUCR_A_VMA_MAX + 1] = {
	[GPUCR_A_VMA_START] = { .type = NLA_U64 },
	[GPUCR_A_VMA_END] = { .type = NLA_U64 },
	[GPUCR_A_VMA_PGOFF] = { .type = NLA_U64 },
	[GPUCR_A_VMA_FLAGS] = { .type = NLA_U32 },
	[GPUCR_A_VMA_KIND] = { .type = NLA_U32 },
	[GPUCR_A_VMA_DEV_MAJOR] = { .type = NLA_U32 },
	[GPUCR_A_VMA_DEV_MINOR] = { .type = NLA_U32 },
	[GPUCR_A_VMA_GPU_ID] = { .type = NLA_U32 },
	[GPUCR_A_VMA_SHARE_ID] = { .type = NLA_U64 },
	[GPUCR_A_VMA_BO_SIZE] = { .type = NLA_U64 },
	[GPUCR_A_VMA_BO_DELTA] = { .type = NLA_U64 },
};

static int on_vma(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_VMA_MAX + 1];
	struct gpucr_nl_vma *v;
	int ret = gpucr_nl_parse(nlh, tb, GPUCR_A_VMA_MAX, vma_policy);

	if (ret)
		return ret;
	v = nl_array_add(arg);
	if (!v)
		return -ENOMEM;
	v->start = opt_u64(tb[GPUCR_A_VMA_START]);
	v->end = opt_u64(tb[GPUCR_A_VMA_END]);
	v->pgoff = opt_u64(tb[GPUCR_A_VMA_PGOFF]);
	v->flags = opt_u32(tb[GPUCR_A_VMA_FLAGS]);
	v->kind = opt_u32(tb[GPUCR_A_VMA_KIND]);
	v->dev_major = opt_u32(tb[GPUCR_A_VMA_DEV_MAJOR]);
	v->dev_minor = opt_u32(tb[GPUCR_A_VMA_DEV_MINOR]);
	v->gpu_id = opt_u32(tb[GPUCR_A_VMA_GPU_ID]);
	v->share_id = opt_u64(tb[GPUCR_A_VMA_SHARE_ID]);
	v->bo_size = opt_u64(tb[GPUCR_A_VMA_BO_SIZE]);
	v->bo_delta = opt_u64(tb[GPUCR_A_VMA_BO_DELTA]);
	return 0;
}

int gpucr_nl_vmas(struct gpucr_nl *nl, pid_t pid, int fd,
		  struct gpucr_nl_vma **ret, size_t *num)
{
	struct nl_array a = { .elem = sizeof(**ret) };
	struct gpucr_nl_request rq;
	int put, err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_VMA_GET, true);

	if (!err) {
		put = nla_put_u32(rq.msg, GPUCR_A_VMA_PID, pid);
		if (!put && fd >= 0)
			put = nla_put_u32(rq.msg, GPUCR_A_VMA_FD, fd);
		err = gpucr_nl_end(nl, &rq, put, on_vma, &a);
	}
	return nl_array_give(&a, err, ret, num);
}

static const struct nla_policy session_policy[GPUCR_A_SESSION_MAX + 1] = {
	[GPUCR_A_SESSION_ID] = { .type = NLA_U64 },
	[GPUCR_A_SESSION_PID] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_DIRECTION] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_SESSION_FD] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_STATE] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_OWNER_PID] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_OWNER_COMM] = { .type = NLA_STRING },
	[GPUCR_A_SESSION_OWNER_GONE] = { .type = NLA_FLAG },
	[GPUCR_A_SESSION_AGE_MS] = { .type = NLA_U64 },
	[GPUCR_A_SESSION_PAUSED_MS] = { .type = NLA_U64 },
	[GPUCR_A_SESSION_ERROR] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_NUM_DEVICES] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_NUM_BOS] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_NUM_OBJECTS] = { .type = NLA_U32 },
	[GPUCR_A_SESSION_PRIV_SIZE] = { .type = NLA_U64 },
	[GPUCR_A_SESSION_TASKS] = { .type = NLA_U32 },
};

struct nl_new_session {
	uint64_t id;
	int fd;
};

static int on_session_new(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_SESSION_MAX + 1];
	struct nl_new_session *s = arg;
	int ret = gpucr_nl_parse(nlh, tb, GPUCR_A_SESSION_MAX, session_policy);

	if (ret)
		return ret;
	if (!tb[GPUCR_A_SESSION_ID] || !tb[GPUCR_A_SESSION_SESSION_FD])
		return -EBADMSG;
	s->id = nla_get_u64(tb[GPUCR_A_SESSION_ID]);
	s->fd = (int)nla_get_u32(tb[GPUCR_A_SESSION_SESSION_FD]);
	return 0;
}

int gpucr_nl_session_new(struct gpucr_nl *nl, enum gpucr_direction direction,
			 pid_t pid, int kfd_fd, uint64_t *id, int *fd)
{
	struct nl_new_session s = { .fd = -1 };
	struct gpucr_nl_request rq;
	int put, err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_SESSION_NEW, false);

	*id = 0;
	*fd = -1;
	if (err)
		return err;
	put = nla_put_u32(rq.msg, GPUCR_A_SESSION_DIRECTION, direction);
	if (!put && direction == GPUCR_DIRECTION_CHECKPOINT)
		put = nla_put_u32(rq.msg, GPUCR_A_SESSION_PID, pid);
	if (!put && direction == GPUCR_DIRECTION_CHECKPOINT)
		put = nla_put_u32(rq.msg, GPUCR_A_SESSION_FD, kfd_fd);
	err = gpucr_nl_end(nl, &rq, put, on_session_new, &s);
	if (!err && s.fd < 0)
		err = -EBADMSG;
	if (err && s.fd >= 0)
		close(s.fd);
	if (err)
		return err;
	*id = s.id;
	*fd = s.fd;
	return 0;
}

int gpucr_nl_session_join(struct gpucr_nl *nl, uint64_t id, int kfd_fd)
{
	struct gpucr_nl_request rq;
	int put, err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_SESSION_JOIN, false);

	if (err)
		return err;
	put = nla_put_u64(rq.msg, GPUCR_A_SESSION_ID, id);
	if (!put)
		put = nla_put_u32(rq.msg, GPUCR_A_SESSION_FD, kfd_fd);
	return gpucr_nl_end(nl, &rq, put, NULL, NULL);
}

int gpucr_nl_session_del(struct gpucr_nl *nl, uint64_t id)
{
	struct gpucr_nl_request rq;
	int err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_SESSION_DEL, false);

	if (err)
		return err;
	return gpucr_nl_end(nl, &rq,
			    nla_put_u64(rq.msg, GPUCR_A_SESSION_ID, id),
			    NULL, NULL);
}

static int on_session(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_SESSION_MAX + 1];
	struct gpucr_nl_session *s;
	int ret = gpucr_nl_parse(nlh, tb, GPUCR_A_SESSION_MAX, session_policy);

	if (ret)
		return ret;
	s = nl_array_add(arg);
	if (!s)
		return -ENOMEM;
	s->id = opt_u64(tb[GPUCR_A_SESSION_ID]);
	s->pid = opt_u32(tb[GPUCR_A_SESSION_PID]);
	s->direction = opt_u32(tb[GPUCR_A_SESSION_DIRECTION]);
	s->state = opt_u32(tb[GPUCR_A_SESSION_STATE]);
	s->owner_pid = opt_u32(tb[GPUCR_A_SESSION_OWNER_PID]);
	opt_str(tb[GPUCR_A_SESSION_OWNER_COMM], s->owner_comm,
		sizeof(s->owner_comm));
	s->owner_gone = tb[GPUCR_A_SESSION_OWNER_GONE];
	s->age_ms = opt_u64(tb[GPUCR_A_SESSION_AGE_MS]);
	s->paused_ms = opt_u64(tb[GPUCR_A_SESSION_PAUSED_MS]);
	s->was_paused = tb[GPUCR_A_SESSION_PAUSED_MS];
	s->error = opt_u32(tb[GPUCR_A_SESSION_ERROR]);
	s->num_devices = opt_u32(tb[GPUCR_A_SESSION_NUM_DEVICES]);
	s->num_bos = opt_u32(tb[GPUCR_A_SESSION_NUM_BOS]);
	s->num_objects = opt_u32(tb[GPUCR_A_SESSION_NUM_OBJECTS]);
	s->priv_size = opt_u64(tb[GPUCR_A_SESSION_PRIV_SIZE]);
	s->tasks = opt_u32(tb[GPUCR_A_SESSION_TASKS]);
	return 0;
}

int gpucr_nl_sessions(struct gpucr_nl *nl, uint64_t id,
		      struct gpucr_nl_session **ret, size_t *num)
{
	struct nl_array a = { .elem = sizeof(**ret) };
	struct gpucr_nl_request rq;
	int put, err, tries = NL_DUMP_TRIES;

	do {
		a.num = 0;
		err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_SESSION_GET, true);
		if (err)
			break;
		put = id ? nla_put_u64(rq.msg, GPUCR_A_SESSION_ID, id) : 0;
		err = gpucr_nl_end(nl, &rq, put, on_session, &a);
	} while (err == -EINTR && --tries);
	return nl_array_give(&a, err, ret, num);
}

static const struct nla_policy relay_policy[GPUCR_A_RELAY_MAX + 1] = {
	[GPUCR_A_RELAY_ID] = { .type = NLA_U64 },
	[GPUCR_A_RELAY_PID] = { .type = NLA_U32 },
	[GPUCR_A_RELAY_NUM_DEVICES] = { .type = NLA_U32 },
	[GPUCR_A_RELAY_NUM_BOS] = { .type = NLA_U32 },
	[GPUCR_A_RELAY_PRIV_SIZE] = { .type = NLA_U64 },
	[GPUCR_A_RELAY_NUM_OBJECTS] = { .type = NLA_U32 },
	[GPUCR_A_RELAY_PHASE] = { .type = NLA_U32 },
	[GPUCR_A_RELAY_ERROR] = { .type = NLA_U32 },
	[GPUCR_A_RELAY_MESSAGE] = { .type = NLA_STRING },
	[GPUCR_A_RELAY_STATE] = { .type = NLA_U32 },
	[GPUCR_A_RELAY_KEPT] = { .type = NLA_U32 },
	[GPUCR_A_RELAY_KEPT_ERROR] = { .type = NLA_U32 },
};

struct nl_relay_answer {
	struct gpucr_nl_relay *r;
	bool done;
	uint32_t error;
	char message[256];
};

static int on_relay(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_RELAY_MAX + 1];
	struct nl_relay_answer *a = arg;
	struct gpucr_nl_relay *r = a->r;
	int ret = gpucr_nl_parse(nlh, tb, GPUCR_A_RELAY_MAX, relay_policy);

	if (ret)
		return ret;
	if (!tb[GPUCR_A_RELAY_PHASE])
		return -EBADMSG;
	if (tb[GPUCR_A_RELAY_STATE])
		r->state = nla_get_u32(tb[GPUCR_A_RELAY_STATE]);
	if (nla_get_u32(tb[GPUCR_A_RELAY_PHASE]) == GPUCR_RELAY_PHASE_ACCEPTED) {
		r->called = true;
		return 0;
	}
	a->done = true;
	a->error = opt_u32(tb[GPUCR_A_RELAY_ERROR]);
	opt_str(tb[GPUCR_A_RELAY_MESSAGE], a->message, sizeof(a->message));
	r->kept = opt_u32(tb[GPUCR_A_RELAY_KEPT]);
	r->kept_error = -(int)opt_u32(tb[GPUCR_A_RELAY_KEPT_ERROR]);
	if (a->error || r->cmd != GPUCR_CMD_SESSION_PAUSE)
		return 0;
	r->pid = opt_u32(tb[GPUCR_A_RELAY_PID]);
	r->num_devices = opt_u32(tb[GPUCR_A_RELAY_NUM_DEVICES]);
	r->num_bos = opt_u32(tb[GPUCR_A_RELAY_NUM_BOS]);
	r->num_objects = opt_u32(tb[GPUCR_A_RELAY_NUM_OBJECTS]);
	r->priv_size = opt_u64(tb[GPUCR_A_RELAY_PRIV_SIZE]);
	return 0;
}

static int nl_put_address(struct nl_msg *msg, int attr, const void *p)
{
	return nla_put_u64(msg, attr, (uintptr_t)p);
}

static int nl_put_buffers(struct nl_msg *m, const struct gpucr_nl_relay *r)
{
	return nl_put_address(m, GPUCR_A_RELAY_DEVICES, r->devices) ||
	       nla_put_u32(m, GPUCR_A_RELAY_NUM_DEVICES, r->num_devices) ||
	       nl_put_address(m, GPUCR_A_RELAY_BOS, r->bos) ||
	       nla_put_u32(m, GPUCR_A_RELAY_NUM_BOS, r->num_bos) ||
	       nl_put_address(m, GPUCR_A_RELAY_PRIV, r->priv) ||
	       nla_put_u64(m, GPUCR_A_RELAY_PRIV_SIZE, r->priv_size) ||
	       nla_put_u32(m, GPUCR_A_RELAY_NUM_OBJECTS, r->num_objects);
}

static int nl_put_relay(struct nl_msg *m, const struct gpucr_nl_relay *r)
{
	int put = nla_put_u64(m, GPUCR_A_RELAY_ID, r->id);

	if (!put && (r->cmd == GPUCR_CMD_SESSION_RESTORE ||
		     r->cmd == GPUCR_CMD_SESSION_RESUME))
		put = nla_put_u32(m, GPUCR_A_RELAY_KFD_FD, r->kfd_fd);
	if (!put && r->cmd == GPUCR_CMD_SESSION_RESUME)
		put = nla_put_u32(m, GPUCR_A_RELAY_PID, r->pid);
	if (!put && (r->cmd == GPUCR_CMD_SESSION_CHECKPOINT ||
		     r->cmd == GPUCR_CMD_SESSION_RESTORE))
		put = nl_put_buffers(m, r);
	if (!put && r->cmd == GPUCR_CMD_SESSION_RESTORE && r->image_pid)
		put = nla_put_u32(m, GPUCR_A_RELAY_IMAGE_PID, r->image_pid);
	return put;
}

int gpucr_nl_relay(struct gpucr_nl *nl, struct gpucr_nl_relay *r)
{
	struct nl_relay_answer a = { .r = r };
	struct gpucr_nl_request rq;
	int err;

	r->called = false;
	r->kept = 0;
	r->kept_error = 0;
	if (r->cmd < GPUCR_CMD_SESSION_PAUSE || r->cmd > GPUCR_CMD_SESSION_RESUME)
		return -EINVAL;
	err = gpucr_nl_begin(nl, &rq, r->cmd, true);
	if (err)
		return err;
	err = gpucr_nl_end(nl, &rq, nl_put_relay(rq.msg, r), on_relay, &a);
	if (a.done && a.error) {
		gpucr_nl_set_error(nl, a.message, strlen(a.message));
		return -(int)a.error;
	}
	if (r->kept_error)
		gpucr_nl_set_error(nl, a.message, strlen(a.message));
	return err || a.done ? err : -EPROTO;
}

int gpucr_nl_session_drain(struct gpucr_nl *nl, bool drain)
{
	struct gpucr_nl_request rq;
	int err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_SESSION_DRAIN, false);

	if (err)
		return err;
	return gpucr_nl_end(nl, &rq,
			    nla_put_u32(rq.msg, GPUCR_A_SESSION_DRAIN, drain),
			    NULL, NULL);
}

static const struct nla_policy queue_policy[GPUCR_A_QUEUE_MAX + 1] = {
	[GPUCR_A_QUEUE_QUEUE_ID] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_GPU_ID] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_TYPE] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_FORMAT] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_RING] = { .type = NLA_U64 },
	[GPUCR_A_QUEUE_RING_SIZE] = { .type = NLA_U64 },
	[GPUCR_A_QUEUE_READ_POINTER] = { .type = NLA_U64 },
	[GPUCR_A_QUEUE_WRITE_POINTER] = { .type = NLA_U64 },
	[GPUCR_A_QUEUE_DOORBELL] = { .type = NLA_U64 },
	[GPUCR_A_QUEUE_DOORBELL_ID] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_PRIORITY] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_PERCENT] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_SDMA_ID] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_GWS] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_EOP] = { .type = NLA_U64 },
	[GPUCR_A_QUEUE_EOP_SIZE] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_CTX_SAVE] = { .type = NLA_U64 },
	[GPUCR_A_QUEUE_CTX_SAVE_SIZE] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_MQD_SIZE] = { .type = NLA_U32 },
	[GPUCR_A_QUEUE_CTL_STACK_SIZE] = { .type = NLA_U32 },
};

static int on_queue(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_QUEUE_MAX + 1];
	struct gpucr_nl_queue *q;
	int ret = gpucr_nl_parse(nlh, tb, GPUCR_A_QUEUE_MAX, queue_policy);

	if (ret)
		return ret;
	q = nl_array_add(arg);
	if (!q)
		return -ENOMEM;
	q->qid = opt_u32(tb[GPUCR_A_QUEUE_QUEUE_ID]);
	q->gpu_id = opt_u32(tb[GPUCR_A_QUEUE_GPU_ID]);
	q->type = opt_u32(tb[GPUCR_A_QUEUE_TYPE]);
	q->format = opt_u32(tb[GPUCR_A_QUEUE_FORMAT]);
	q->ring = opt_u64(tb[GPUCR_A_QUEUE_RING]);
	q->ring_size = opt_u64(tb[GPUCR_A_QUEUE_RING_SIZE]);
	q->read_pointer = opt_u64(tb[GPUCR_A_QUEUE_READ_POINTER]);
	q->write_pointer = opt_u64(tb[GPUCR_A_QUEUE_WRITE_POINTER]);
	q->doorbell = opt_u64(tb[GPUCR_A_QUEUE_DOORBELL]);
	q->doorbell_id = opt_u32(tb[GPUCR_A_QUEUE_DOORBELL_ID]);
	q->priority = opt_u32(tb[GPUCR_A_QUEUE_PRIORITY]);
	q->percent = opt_u32(tb[GPUCR_A_QUEUE_PERCENT]);
	q->sdma_id = opt_u32(tb[GPUCR_A_QUEUE_SDMA_ID]);
	q->gws = opt_u32(tb[GPUCR_A_QUEUE_GWS]);
	q->eop = opt_u64(tb[GPUCR_A_QUEUE_EOP]);
	q->eop_size = opt_u32(tb[GPUCR_A_QUEUE_EOP_SIZE]);
	q->ctx_save = opt_u64(tb[GPUCR_A_QUEUE_CTX_SAVE]);
	q->ctx_save_size = opt_u32(tb[GPUCR_A_QUEUE_CTX_SAVE_SIZE]);
	q->mqd_size = opt_u32(tb[GPUCR_A_QUEUE_MQD_SIZE]);
	q->ctl_stack_size = opt_u32(tb[GPUCR_A_QUEUE_CTL_STACK_SIZE]);
	return 0;
}

int gpucr_nl_queues(struct gpucr_nl *nl, uint64_t id, int holder,
		    struct gpucr_nl_queue **ret, size_t *num)
{
	struct nl_array a = { .elem = sizeof(**ret) };
	struct gpucr_nl_request rq;
	int put, err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_QUEUE_GET, true);

	if (!err) {
		put = nla_put_u64(rq.msg, GPUCR_A_QUEUE_ID, id);
		if (!put && holder >= 0)
			put = nla_put_u32(rq.msg, GPUCR_A_QUEUE_HOLDER_FD,
					  holder);
		err = gpucr_nl_end(nl, &rq, put, on_queue, &a);
	}
	return nl_array_give(&a, err, ret, num);
}

static const struct nla_policy remap_policy[GPUCR_A_REMAP_MAX + 1] = {
	[GPUCR_A_REMAP_IMAGE_PID] = { .type = NLA_U32 },
	[GPUCR_A_REMAP_GPU_ID] = { .type = NLA_U32 },
	[GPUCR_A_REMAP_OLD_PGOFF] = { .type = NLA_U64 },
	[GPUCR_A_REMAP_SIZE] = { .type = NLA_U64 },
	[GPUCR_A_REMAP_NEW_PGOFF] = { .type = NLA_U64 },
	[GPUCR_A_REMAP_KIND] = { .type = NLA_U32 },
	[GPUCR_A_REMAP_DELTA] = { .type = NLA_U64 },
	[GPUCR_A_REMAP_DEV_MINOR] = { .type = NLA_U32 },
	[GPUCR_A_REMAP_SOURCE] = { .type = NLA_U32 },
};

static int on_remap(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_REMAP_MAX + 1];
	struct gpucr_nl_remap *r;
	int ret = gpucr_nl_parse(nlh, tb, GPUCR_A_REMAP_MAX, remap_policy);

	if (ret)
		return ret;
	r = nl_array_add(arg);
	if (!r)
		return -ENOMEM;
	r->image_pid = opt_u32(tb[GPUCR_A_REMAP_IMAGE_PID]);
	r->gpu_id = opt_u32(tb[GPUCR_A_REMAP_GPU_ID]);
	r->old_pgoff = opt_u64(tb[GPUCR_A_REMAP_OLD_PGOFF]);
	r->size = opt_u64(tb[GPUCR_A_REMAP_SIZE]);
	r->new_pgoff = opt_u64(tb[GPUCR_A_REMAP_NEW_PGOFF]);
	r->dev_minor = opt_u32(tb[GPUCR_A_REMAP_DEV_MINOR]);
	r->source = opt_u32(tb[GPUCR_A_REMAP_SOURCE]);
	return 0;
}

int gpucr_nl_remaps(struct gpucr_nl *nl, uint64_t id, int holder,
		    uint32_t image_pid, struct gpucr_nl_remap **ret,
		    size_t *num)
{
	struct nl_array a = { .elem = sizeof(**ret) };
	struct gpucr_nl_request rq;
	int put, err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_REMAP_GET, true);

	if (!err) {
		put = nla_put_u64(rq.msg, GPUCR_A_REMAP_ID, id);
		if (!put && holder >= 0)
			put = nla_put_u32(rq.msg, GPUCR_A_REMAP_HOLDER_FD,
					  holder);
		if (!put && image_pid)
			put = nla_put_u32(rq.msg, GPUCR_A_REMAP_IMAGE_PID,
					  image_pid);
		err = gpucr_nl_end(nl, &rq, put, on_remap, &a);
	}
	return nl_array_give(&a, err, ret, num);
}

/* What remap-set and remap-resolve have in common. */
static int nl_put_remap(struct nl_msg *m, uint64_t id, int fd,
			const struct gpucr_nl_remap *r)
{
	return nla_put_u64(m, GPUCR_A_REMAP_ID, id) ||
	       (fd >= 0 && nla_put_u32(m, GPUCR_A_REMAP_FD, fd)) ||
	       nla_put_u32(m, GPUCR_A_REMAP_IMAGE_PID, r->image_pid) ||
	       nla_put_u32(m, GPUCR_A_REMAP_GPU_ID, r->gpu_id) ||
	       nla_put_u64(m, GPUCR_A_REMAP_OLD_PGOFF, r->old_pgoff) ||
	       (r->size && nla_put_u64(m, GPUCR_A_REMAP_SIZE, r->size));
}

int gpucr_nl_remap_set(struct gpucr_nl *nl, uint64_t id, int fd,
		       const struct gpucr_nl_remap *r)
{
	struct gpucr_nl_request rq;
	int put, err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_REMAP_SET, false);

	if (err)
		return err;
	put = nl_put_remap(rq.msg, id, fd, r) ||
	      nla_put_u64(rq.msg, GPUCR_A_REMAP_NEW_PGOFF, r->new_pgoff);
	return gpucr_nl_end(nl, &rq, put, NULL, NULL);
}

static int on_resolved(struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[GPUCR_A_REMAP_MAX + 1];
	struct gpucr_nl_resolved *r = arg;
	int ret = gpucr_nl_parse(nlh, tb, GPUCR_A_REMAP_MAX, remap_policy);

	if (ret)
		return ret;
	if (!tb[GPUCR_A_REMAP_KIND] || !tb[GPUCR_A_REMAP_NEW_PGOFF])
		return -EBADMSG;
	r->kind = nla_get_u32(tb[GPUCR_A_REMAP_KIND]);
	r->new_pgoff = nla_get_u64(tb[GPUCR_A_REMAP_NEW_PGOFF]);
	r->delta = opt_u64(tb[GPUCR_A_REMAP_DELTA]);
	r->size = opt_u64(tb[GPUCR_A_REMAP_SIZE]);
	r->dev_minor = opt_u32(tb[GPUCR_A_REMAP_DEV_MINOR]);
	return 0;
}

int gpucr_nl_remap_resolve(struct gpucr_nl *nl, uint64_t id, int fd,
			   const struct gpucr_nl_remap *key,
			   struct gpucr_nl_resolved *ret)
{
	struct gpucr_nl_request rq;
	int err = gpucr_nl_begin(nl, &rq, GPUCR_CMD_REMAP_RESOLVE, false);

	memset(ret, 0, sizeof(*ret));
	if (err)
		return err;
	return gpucr_nl_end(nl, &rq, nl_put_remap(rq.msg, id, fd, key),
			    on_resolved, ret);
}
