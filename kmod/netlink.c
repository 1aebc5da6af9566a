// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family: operations that answer with one message, and
 * events. Handlers parse, check the caller, and call down. Those that answer
 * with many messages are in netlink_dump.c.
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>

#include "drmfile.h"
#include "fault.h"
#include "kfdfile.h"
#include "netlink.h"
#include "netlink_gen.h"
#include "queue.h"
#include "recover.h"
#include "remap.h"
#include "session.h"
#include "snapshot.h"
#include "task.h"
#include "version.h"

/* The generator's table has no flags. Ids of processes are not for all. */
static const struct genl_multicast_group gpucr_groups[] = {
	{ .name = GPUCR_MCGRP_EVENTS, .flags = GENL_MCAST_CAP_SYS_ADMIN },
};

struct genl_family gpucr_family __ro_after_init = {
	.name		= GPUCR_FAMILY_NAME,
	.version	= GPUCR_FAMILY_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.split_ops	= gpucr_nl_ops,
	.n_split_ops	= ARRAY_SIZE(gpucr_nl_ops),
	.mcgrps		= gpucr_groups,
	.n_mcgrps	= ARRAY_SIZE(gpucr_groups),
};

static int gpucr_fill_info(struct sk_buff *msg)
{
	const char *helper = gpucr_recover_helper();
	struct gpucr_session_stats stats;
	unsigned int i;

	gpucr_session_stats(&stats);
	if (nla_put_string(msg, GPUCR_A_INFO_MODULE_VERSION, GPUCR_VERSION) ||
	    nla_put_u32(msg, GPUCR_A_INFO_PROTOCOL_VERSION,
			GPUCR_FAMILY_VERSION))
		return -EMSGSIZE;
	for (i = 0; i < ARRAY_SIZE(gpucr_nl_ops); i++)
		if (nla_put_u32(msg, GPUCR_A_INFO_OP, gpucr_nl_ops[i].cmd))
			return -EMSGSIZE;
	for (i = 0; i < gpucr_num_drm_drivers; i++)
		if (nla_put_string(msg, GPUCR_A_INFO_DRIVER,
				   gpucr_drm_drivers[i]))
			return -EMSGSIZE;
	if (nla_put_u32(msg, GPUCR_A_INFO_MAX_OBJECTS, GPUCR_MAX_OBJECTS) ||
	    nla_put_u32(msg, GPUCR_A_INFO_MAX_SESSIONS, GPUCR_MAX_SESSIONS) ||
	    (helper &&
	     nla_put_string(msg, GPUCR_A_INFO_RECOVERY_HELPER, helper)) ||
	    nla_put_u32(msg, GPUCR_A_INFO_SESSIONS_OPEN, stats.open) ||
	    nla_put_u64_64bit(msg, GPUCR_A_INFO_SESSIONS_TOTAL, stats.total,
			      GPUCR_A_INFO_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_INFO_SESSIONS_ABANDONED,
			      stats.abandoned, GPUCR_A_INFO_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_INFO_SESSIONS_RECOVERED,
			      stats.recovered, GPUCR_A_INFO_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_INFO_SESSIONS_RECOVERY_FAILED,
			      stats.recovery_failed, GPUCR_A_INFO_PAD) ||
	    (stats.draining && nla_put_flag(msg, GPUCR_A_INFO_DRAINING)) ||
	    nla_put_u32(msg, GPUCR_A_INFO_MAX_QUEUES, GPUCR_MAX_QUEUES) ||
	    nla_put_u32(msg, GPUCR_A_INFO_MAX_REMAPS, GPUCR_MAX_REMAPS))
		return -EMSGSIZE;
	return 0;
}

int gpucr_nl_info_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *spoken = info->attrs[GPUCR_A_INFO_PROTOCOL_VERSION];
	struct sk_buff *msg;
	void *hdr;

	if (spoken && nla_get_u32(spoken) != GPUCR_FAMILY_VERSION) {
		NL_SET_ERR_MSG(info->extack,
			       "the module speaks another protocol version");
		NL_SET_BAD_ATTR(info->extack, spoken);
		return -EPROTONOSUPPORT;
	}
	msg = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	hdr = genlmsg_put_reply(msg, info, &gpucr_family, 0,
				GPUCR_CMD_INFO_GET);
	if (!hdr || gpucr_fill_info(msg)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

/* Who may come at all; asked by everything but info-get. */
static int gpucr_doit_check(struct sk_buff *skb, struct genl_info *info)
{
	return gpucr_caller_capable(skb, info->extack) ?:
	       gpucr_caller_is_process(info->extack);
}

/* The KFD file that an attribute names, referenced. */
static struct file *gpucr_attr_kfd(struct nlattr *attr,
				   struct netlink_ext_ack *ack)
{
	struct file *file = fget(nla_get_u32(attr));
	int err = -EBADF;

	if (file && gpucr_kfd_file(file))
		return file;
	if (file) {
		fput(file);
		err = -EINVAL;
		NL_SET_ERR_MSG(ack, "fd is not a KFD file");
	} else {
		NL_SET_ERR_MSG(ack, "fd is not an open descriptor");
	}
	NL_SET_BAD_ATTR(ack, attr);
	return ERR_PTR(err);
}

/* The pid must be ours to touch, and hold what the file means. */
static int gpucr_check_target(struct pid *tgid, struct file *kfd,
			      struct netlink_ext_ack *ack)
{
	struct task_struct *task = get_pid_task(tgid, PIDTYPE_TGID);
	int err;

	if (!task) {
		NL_SET_ERR_MSG(ack, "the task has died");
		return -ESRCH;
	}
	err = gpucr_task_lock_exec(task, ack);
	if (err)
		goto out_task;
	err = gpucr_task_check_mine(tgid, ack);
	if (!err && !gpucr_task_holds(task, kfd)) {
		NL_SET_ERR_MSG(ack, "the task does not hold that KFD file");
		err = -EINVAL;
	}
	gpucr_task_unlock_exec(task);
out_task:
	put_task_struct(task);
	return err;
}

static struct gpucr_session *gpucr_new_checkpoint(struct genl_info *info)
{
	struct nlattr *pid = info->attrs[GPUCR_A_SESSION_PID];
	struct nlattr *fd = info->attrs[GPUCR_A_SESSION_FD];
	struct gpucr_session *s;
	struct pid *tgid;
	struct file *kfd;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, GPUCR_A_SESSION_PID) ||
	    GENL_REQ_ATTR_CHECK(info, GPUCR_A_SESSION_FD)) {
		NL_SET_ERR_MSG(info->extack, "a checkpoint needs pid and fd");
		return ERR_PTR(-EINVAL);
	}
	tgid = gpucr_task_find(nla_get_u32(pid));
	if (!tgid) {
		NL_SET_ERR_MSG(info->extack, "there is no task of that pid");
		NL_SET_BAD_ATTR(info->extack, pid);
		return ERR_PTR(-ESRCH);
	}
	kfd = gpucr_attr_kfd(fd, info->extack);
	if (IS_ERR(kfd)) {
		s = ERR_CAST(kfd);
		goto out_pid;
	}
	err = gpucr_check_target(tgid, kfd, info->extack);
	s = err ? ERR_PTR(err) :
		  gpucr_session_open(GPUCR_DIRECTION_CHECKPOINT, tgid, kfd,
				     info->extack);
	fput(kfd);
out_pid:
	put_pid(tgid);
	return s;
}

static struct gpucr_session *gpucr_new_restore(struct genl_info *info)
{
	struct nlattr *odd = info->attrs[GPUCR_A_SESSION_PID] ?:
			     info->attrs[GPUCR_A_SESSION_FD];

	if (odd) {
		NL_SET_ERR_MSG(info->extack,
			       "a restore takes neither pid nor fd: tasks join");
		NL_SET_BAD_ATTR(info->extack, odd);
		return ERR_PTR(-EINVAL);
	}
	return gpucr_session_open(GPUCR_DIRECTION_RESTORE, NULL, NULL,
				  info->extack);
}

static int gpucr_reply_new(struct genl_info *info,
			   struct gpucr_session *s, int fd)
{
	struct sk_buff *msg;
	void *hdr;

	msg = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	hdr = genlmsg_put_reply(msg, info, &gpucr_family, 0,
				GPUCR_CMD_SESSION_NEW);
	if (!hdr ||
	    nla_put_u64_64bit(msg, GPUCR_A_SESSION_ID, s->id,
			      GPUCR_A_SESSION_PAD) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_SESSION_FD, fd) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_STATE, gpucr_session_state(s))) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

int gpucr_nl_session_new_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct gpucr_session *s;
	struct file *file;
	int err, fd;

	err = gpucr_doit_check(skb, info);
	if (err)
		return err;
	if (GENL_REQ_ATTR_CHECK(info, GPUCR_A_SESSION_DIRECTION)) {
		NL_SET_ERR_MSG(info->extack, "direction is missing");
		return -EINVAL;
	}
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	if (nla_get_u32(info->attrs[GPUCR_A_SESSION_DIRECTION]) ==
	    GPUCR_DIRECTION_RESTORE)
		s = gpucr_new_restore(info);
	else
		s = gpucr_new_checkpoint(info);
	if (IS_ERR(s)) {
		err = PTR_ERR(s);
		goto err_fd;
	}
	file = gpucr_session_file(s);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto err_fd;
	}
	err = gpucr_fault(GPUCR_FAULT_SESSION_REPLY) ?:
	      gpucr_reply_new(info, s, fd);
	if (err)
		goto err_file;
	/* Nothing can fail any more. */
	fd_install(fd, file);
	return 0;

err_file:
	fput(file);
err_fd:
	put_unused_fd(fd);
	return err;
}

/* The session that an attribute of the request names, referenced. */
static struct gpucr_session *gpucr_attr_session(struct genl_info *info,
						int attr)
{
	struct nlattr *id = info->attrs[attr];
	struct gpucr_session *s;

	if (GENL_REQ_ATTR_CHECK(info, attr)) {
		NL_SET_ERR_MSG(info->extack, "id is missing");
		return ERR_PTR(-EINVAL);
	}
	s = gpucr_session_find(nla_get_u64(id), info->extack);
	if (IS_ERR(s))
		NL_SET_BAD_ATTR(info->extack, id);
	return s;
}

int gpucr_nl_session_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct gpucr_session *s;
	int err;

	err = gpucr_doit_check(skb, info);
	if (err)
		return err;
	s = gpucr_attr_session(info, GPUCR_A_SESSION_ID);
	if (IS_ERR(s))
		return PTR_ERR(s);
	err = gpucr_session_end(s, info->extack);
	gpucr_session_put(s);
	return err;
}

int gpucr_nl_session_join_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct gpucr_session *s;
	struct file *kfd;
	int err;

	err = gpucr_doit_check(skb, info);
	if (err)
		return err;
	if (GENL_REQ_ATTR_CHECK(info, GPUCR_A_SESSION_FD)) {
		NL_SET_ERR_MSG(info->extack, "fd is missing");
		return -EINVAL;
	}
	s = gpucr_attr_session(info, GPUCR_A_SESSION_ID);
	if (IS_ERR(s))
		return PTR_ERR(s);
	kfd = gpucr_attr_kfd(info->attrs[GPUCR_A_SESSION_FD], info->extack);
	if (IS_ERR(kfd)) {
		err = PTR_ERR(kfd);
		goto out_session;
	}
	err = gpucr_session_join(s, info->extack);
	fput(kfd);
out_session:
	gpucr_session_put(s);
	return err;
}

int gpucr_nl_session_drain_doit(struct sk_buff *skb, struct genl_info *info)
{
	int err;

	err = gpucr_doit_check(skb, info);
	if (err)
		return err;
	if (!netlink_capable(skb, CAP_SYS_ADMIN)) {
		NL_SET_ERR_MSG(info->extack,
			       "needs CAP_SYS_ADMIN in the initial user namespace");
		return -EPERM;
	}
	if (GENL_REQ_ATTR_CHECK(info, GPUCR_A_SESSION_DRAIN)) {
		NL_SET_ERR_MSG(info->extack, "drain is missing");
		return -EINVAL;
	}
	gpucr_session_drain(nla_get_u32(info->attrs[GPUCR_A_SESSION_DRAIN]));
	return 0;
}

/* The session of a request about offsets, which the caller has a part in. */
static struct gpucr_session *gpucr_remap_session(struct sk_buff *skb,
						 struct genl_info *info)
{
	struct gpucr_session *s;
	int err;

	err = gpucr_doit_check(skb, info);
	if (err)
		return ERR_PTR(err);
	s = gpucr_attr_session(info, GPUCR_A_REMAP_ID);
	if (IS_ERR(s))
		return s;
	err = gpucr_session_check_part(s, info->extack);
	if (!err)
		return s;
	gpucr_session_put(s);
	return ERR_PTR(err);
}

/* The key that a request names, and its size where it has one. */
static int gpucr_remap_key(struct genl_info *info, struct gpucr_remap *r)
{
	struct nlattr **attrs = info->attrs;

	if (GENL_REQ_ATTR_CHECK(info, GPUCR_A_REMAP_IMAGE_PID) ||
	    GENL_REQ_ATTR_CHECK(info, GPUCR_A_REMAP_GPU_ID) ||
	    GENL_REQ_ATTR_CHECK(info, GPUCR_A_REMAP_OLD_PGOFF)) {
		NL_SET_ERR_MSG(info->extack,
			       "image-pid, gpu-id or old-pgoff is missing");
		return -EINVAL;
	}
	r->image_pid = nla_get_u32(attrs[GPUCR_A_REMAP_IMAGE_PID]);
	r->gpu_id = nla_get_u32(attrs[GPUCR_A_REMAP_GPU_ID]);
	r->old_pgoff = nla_get_u64(attrs[GPUCR_A_REMAP_OLD_PGOFF]);
	if (attrs[GPUCR_A_REMAP_SIZE])
		r->size = nla_get_u64(attrs[GPUCR_A_REMAP_SIZE]);
	return 0;
}

/* The DRM file that fd names, referenced; its state in *df. */
static struct file *gpucr_remap_file(struct genl_info *info,
				     struct drm_file **df)
{
	struct nlattr *attr = info->attrs[GPUCR_A_REMAP_FD];
	struct file *file = fget(nla_get_u32(attr));
	int err = -EBADF;

	if (file) {
		*df = gpucr_drm_check(file, info->extack);
		if (!IS_ERR(*df))
			return file;
		err = PTR_ERR(*df);
		fput(file);
	} else {
		NL_SET_ERR_MSG(info->extack, "fd is not an open descriptor");
	}
	NL_SET_BAD_ATTR(info->extack, attr);
	return ERR_PTR(err);
}

static int gpucr_remap_set_from(struct genl_info *info, struct gpucr_session *s)
{
	struct gpucr_remap r = {};
	struct drm_file *df;
	struct file *file;
	int err;

	err = gpucr_remap_key(info, &r);
	if (err)
		return err;
	if (GENL_REQ_ATTR_CHECK(info, GPUCR_A_REMAP_FD) ||
	    GENL_REQ_ATTR_CHECK(info, GPUCR_A_REMAP_SIZE) ||
	    GENL_REQ_ATTR_CHECK(info, GPUCR_A_REMAP_NEW_PGOFF)) {
		NL_SET_ERR_MSG(info->extack, "fd, size or new-pgoff is missing");
		return -EINVAL;
	}
	r.new_pgoff = nla_get_u64(info->attrs[GPUCR_A_REMAP_NEW_PGOFF]);
	file = gpucr_remap_file(info, &df);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = gpucr_remap_set(s, df, &r, info->extack);
	fput(file);
	return err;
}

int gpucr_nl_remap_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct gpucr_session *s = gpucr_remap_session(skb, info);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = gpucr_remap_set_from(info, s);
	gpucr_session_put(s);
	return err;
}

static int gpucr_reply_resolved(struct genl_info *info,
				const struct gpucr_resolved *res)
{
	struct sk_buff *msg;
	void *hdr;

	msg = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	hdr = genlmsg_put_reply(msg, info, &gpucr_family, 0,
				GPUCR_CMD_REMAP_RESOLVE);
	if (!hdr || nla_put_u32(msg, GPUCR_A_REMAP_KIND, res->kind) ||
	    nla_put_u64_64bit(msg, GPUCR_A_REMAP_NEW_PGOFF, res->new_pgoff,
			      GPUCR_A_REMAP_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_REMAP_DELTA, res->delta,
			      GPUCR_A_REMAP_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_REMAP_SIZE, res->size,
			      GPUCR_A_REMAP_PAD) ||
	    nla_put_u32(msg, GPUCR_A_REMAP_DEV_MINOR, res->minor)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

static int gpucr_remap_resolve_from(struct genl_info *info,
				    struct gpucr_session *s)
{
	struct gpucr_resolved res;
	struct gpucr_remap key = {};
	struct drm_file *df = NULL;
	struct file *file = NULL;
	int err;

	err = gpucr_remap_key(info, &key);
	if (err)
		return err;
	if (info->attrs[GPUCR_A_REMAP_FD]) {
		file = gpucr_remap_file(info, &df);
		if (IS_ERR(file))
			return PTR_ERR(file);
	}
	err = gpucr_remap_resolve(s, df, &key, &res, info->extack);
	if (file)
		fput(file);
	return err ?: gpucr_reply_resolved(info, &res);
}

int gpucr_nl_remap_resolve_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct gpucr_session *s = gpucr_remap_session(skb, info);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = gpucr_remap_resolve_from(info, s);
	gpucr_session_put(s);
	return err;
}

static int gpucr_fill_counts(struct sk_buff *msg,
			     const struct gpucr_counts *counts)
{
	if (nla_put_u32(msg, GPUCR_A_SESSION_NUM_DEVICES,
			counts->num_devices) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_NUM_BOS, counts->num_bos) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_NUM_OBJECTS,
			counts->num_objects) ||
	    nla_put_u64_64bit(msg, GPUCR_A_SESSION_PRIV_SIZE,
			      counts->priv_size, GPUCR_A_SESSION_PAD))
		return -EMSGSIZE;
	return 0;
}

/**
 * gpucr_netlink_fill_session() - the attributes of a session
 * @msg: message, its header put
 * @info: the session
 *
 * Return: 0 or -EMSGSIZE.
 */
int gpucr_netlink_fill_session(struct sk_buff *msg,
			       const struct gpucr_session_info *info)
{
	if (nla_put_u64_64bit(msg, GPUCR_A_SESSION_ID, info->id,
			      GPUCR_A_SESSION_PAD) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_PID, info->pid) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_DIRECTION, info->direction) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_STATE, info->state) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_OWNER_PID, info->owner_pid) ||
	    nla_put_string(msg, GPUCR_A_SESSION_OWNER_COMM,
			   info->owner_comm) ||
	    (info->owner_gone &&
	     nla_put_flag(msg, GPUCR_A_SESSION_OWNER_GONE)) ||
	    nla_put_u64_64bit(msg, GPUCR_A_SESSION_AGE_MS, info->age_ms,
			      GPUCR_A_SESSION_PAD) ||
	    (info->was_paused &&
	     nla_put_u64_64bit(msg, GPUCR_A_SESSION_PAUSED_MS, info->paused_ms,
			       GPUCR_A_SESSION_PAD)) ||
	    (info->error &&
	     nla_put_u32(msg, GPUCR_A_SESSION_ERROR, info->error)) ||
	    gpucr_fill_counts(msg, &info->counts) ||
	    nla_put_u32(msg, GPUCR_A_SESSION_TASKS, info->tasks))
		return -EMSGSIZE;
	return 0;
}

/**
 * gpucr_netlink_event() - tell listeners of a session's change
 * @info: the session, process ids as the initial namespace has them
 *
 * Sent in the initial network namespace only, whatever namespace the session
 * was made in: sessions are the host's affair. May sleep. A message that
 * cannot be made is lost; session-get tells the state.
 */
void gpucr_netlink_event(const struct gpucr_session_info *info)
{
	struct sk_buff *msg;
	void *hdr;

	if (gpucr_fault(GPUCR_FAULT_EVENT))
		return;
	if (!genl_has_listeners(&gpucr_family, &init_net, 0))
		return;
	msg = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!msg)
		return;
	hdr = genlmsg_put(msg, 0, 0, &gpucr_family, 0, GPUCR_CMD_SESSION_NTF);
	if (!hdr || gpucr_netlink_fill_session(msg, info)) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_end(msg, hdr);
	genlmsg_multicast_netns(&gpucr_family, &init_net, msg, 0, 0,
				GFP_KERNEL);
}

int __init gpucr_netlink_init(void)
{
	return genl_register_family(&gpucr_family);
}

void gpucr_netlink_exit(void)
{
	genl_unregister_family(&gpucr_family);
}
