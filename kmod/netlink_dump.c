// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family: operations that answer with many messages.
 *
 * Lists are snapshots: .start makes one, under the rights of who asks; what
 * comes later only copies, whoever reads. Relays are dumps of two messages:
 * the first callback runs in sendmsg, under generic netlink's lock, and says
 * that the request is accepted; the second runs in recvmsg, without that
 * lock, and calls KFD.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/pid.h>
#include <net/genetlink.h>

#include "drmfile.h"
#include "netlink.h"
#include "netlink_gen.h"
#include "queue.h"
#include "relay.h"
#include "remap.h"
#include "session.h"
#include "snapshot.h"
#include "task.h"
#include "vma.h"

/* What the callback keeps of a dump: a snapshot or a relay. */
static void **gpucr_dump_state(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(void *) > sizeof(cb->ctx));
	return (void **)cb->ctx;
}

static int gpucr_start_check(struct netlink_callback *cb)
{
	return gpucr_caller_capable(cb->skb, cb->extack) ?:
	       gpucr_caller_is_process(cb->extack);
}

/* For the ack, where a refusal has no sentence of its own. */
static void gpucr_missing(struct netlink_callback *cb, int attr,
			  const char *message)
{
	NL_SET_ERR_ATTR_MISS(cb->extack, NULL, attr);
	if (cb->extack)
		cb->extack->_msg = message;
}

/* The file that an attribute names, referenced. */
static struct file *gpucr_dump_file(struct netlink_callback *cb,
				    struct nlattr *attr)
{
	struct file *file = fget(nla_get_u32(attr));

	if (file)
		return file;
	NL_SET_ERR_MSG(cb->extack, "fd is not an open descriptor");
	NL_SET_BAD_ATTR(cb->extack, attr);
	return ERR_PTR(-EBADF);
}

static int gpucr_keep_snapshot(struct netlink_callback *cb,
			       struct gpucr_snapshot *snap)
{
	if (IS_ERR(snap))
		return PTR_ERR(snap);
	*gpucr_dump_state(cb) = snap;
	return 0;
}

/* Also for a dump that ends before its end; may run in a kernel thread. */
int gpucr_nl_snapshot_done(struct netlink_callback *cb)
{
	gpucr_snapshot_free(*gpucr_dump_state(cb));
	return 0;
}

/*
 * Copies entries for as long as they fit. Only an entry that does not fit an
 * empty message is an error: 6.1 knows no "more to come" by -EMSGSIZE.
 */
static int gpucr_dump_snapshot(struct sk_buff *skb,
			       struct netlink_callback *cb, u8 cmd,
			       int (*fill)(struct sk_buff *msg,
					   const void *entry))
{
	struct gpucr_snapshot *snap = *gpucr_dump_state(cb);
	void *hdr;

	for (; snap->pos < snap->num; snap->pos++) {
		hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid,
				  cb->nlh->nlmsg_seq, &gpucr_family,
				  NLM_F_MULTI, cmd);
		if (!hdr)
			break;
		if (fill(skb, gpucr_snapshot_entry(snap, snap->pos))) {
			genlmsg_cancel(skb, hdr);
			break;
		}
		genlmsg_end(skb, hdr);
	}
	if (skb->len)
		return skb->len;
	return snap->pos < snap->num ? -EMSGSIZE : 0;
}

int gpucr_nl_bo_get_start(struct netlink_callback *cb)
{
	struct nlattr *fd = genl_info_dump(cb)->attrs[GPUCR_A_BO_FD];
	struct gpucr_snapshot *snap;
	struct file *file;
	int err;

	err = gpucr_start_check(cb);
	if (err)
		return err;
	if (!fd) {
		gpucr_missing(cb, GPUCR_A_BO_FD, "fd is missing");
		return -EINVAL;
	}
	file = gpucr_dump_file(cb, fd);
	if (IS_ERR(file))
		return PTR_ERR(file);
	snap = gpucr_bo_snapshot(file, cb->extack);
	fput(file);
	if (IS_ERR(snap))
		NL_SET_BAD_ATTR(cb->extack, fd);
	return gpucr_keep_snapshot(cb, snap);
}

static int gpucr_fill_bo(struct sk_buff *msg, const void *entry)
{
	const struct gpucr_bo *bo = entry;

	if ((bo->handle &&
	     nla_put_u32(msg, GPUCR_A_BO_HANDLE, bo->handle)) ||
	    nla_put_u64_64bit(msg, GPUCR_A_BO_SIZE, bo->size,
			      GPUCR_A_BO_PAD) ||
	    (bo->offset &&
	     nla_put_u64_64bit(msg, GPUCR_A_BO_OFFSET, bo->offset,
			       GPUCR_A_BO_PAD)) ||
	    nla_put_u32(msg, GPUCR_A_BO_FLAGS, bo->flags) ||
	    nla_put_u64_64bit(msg, GPUCR_A_BO_SHARE_ID, bo->share_id,
			      GPUCR_A_BO_PAD) ||
	    nla_put_u32(msg, GPUCR_A_BO_HANDLE_COUNT, bo->handle_count))
		return -EMSGSIZE;
	return 0;
}

int gpucr_nl_bo_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return gpucr_dump_snapshot(skb, cb, GPUCR_CMD_BO_GET, gpucr_fill_bo);
}

static struct gpucr_snapshot *gpucr_vma_start(struct netlink_callback *cb,
					      struct nlattr *pid,
					      struct file *only)
{
	struct gpucr_snapshot *snap;
	struct pid *tgid;

	tgid = gpucr_task_find(nla_get_u32(pid));
	if (!tgid) {
		NL_SET_ERR_MSG(cb->extack, "there is no task of that pid");
		NL_SET_BAD_ATTR(cb->extack, pid);
		return ERR_PTR(-ESRCH);
	}
	snap = gpucr_vma_snapshot(tgid, only, cb->extack);
	put_pid(tgid);
	return snap;
}

int gpucr_nl_vma_get_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;
	struct nlattr *pid = attrs[GPUCR_A_VMA_PID];
	struct nlattr *fd = attrs[GPUCR_A_VMA_FD];
	struct gpucr_snapshot *snap;
	struct file *only = NULL;
	int err;

	err = gpucr_start_check(cb);
	if (err)
		return err;
	if (!pid) {
		gpucr_missing(cb, GPUCR_A_VMA_PID, "pid is missing");
		return -EINVAL;
	}
	if (fd) {
		only = gpucr_dump_file(cb, fd);
		if (IS_ERR(only))
			return PTR_ERR(only);
	}
	snap = gpucr_vma_start(cb, pid, only);
	if (only)
		fput(only);
	return gpucr_keep_snapshot(cb, snap);
}

static int gpucr_fill_vma_bo(struct sk_buff *msg, const struct gpucr_vma *v)
{
	if (nla_put_u64_64bit(msg, GPUCR_A_VMA_SHARE_ID, v->share_id,
			      GPUCR_A_VMA_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_VMA_BO_SIZE, v->bo_size,
			      GPUCR_A_VMA_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_VMA_BO_DELTA, v->bo_delta,
			      GPUCR_A_VMA_PAD))
		return -EMSGSIZE;
	return 0;
}

static int gpucr_fill_vma(struct sk_buff *msg, const void *entry)
{
	const struct gpucr_vma *v = entry;

	if (nla_put_u64_64bit(msg, GPUCR_A_VMA_START, v->start,
			      GPUCR_A_VMA_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_VMA_END, v->end,
			      GPUCR_A_VMA_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_VMA_PGOFF, v->pgoff,
			      GPUCR_A_VMA_PAD) ||
	    nla_put_u32(msg, GPUCR_A_VMA_FLAGS, v->flags) ||
	    nla_put_u32(msg, GPUCR_A_VMA_KIND, v->kind) ||
	    nla_put_u32(msg, GPUCR_A_VMA_DEV_MAJOR, v->major) ||
	    nla_put_u32(msg, GPUCR_A_VMA_DEV_MINOR, v->minor) ||
	    (v->gpu_id && nla_put_u32(msg, GPUCR_A_VMA_GPU_ID, v->gpu_id)))
		return -EMSGSIZE;
	return v->bo_size ? gpucr_fill_vma_bo(msg, v) : 0;
}

int gpucr_nl_vma_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return gpucr_dump_snapshot(skb, cb, GPUCR_CMD_VMA_GET, gpucr_fill_vma);
}

int gpucr_nl_session_get_start(struct netlink_callback *cb)
{
	struct nlattr *id = genl_info_dump(cb)->attrs[GPUCR_A_SESSION_ID];
	struct gpucr_snapshot *snap;
	int err;

	err = gpucr_start_check(cb);
	if (err)
		return err;
	if (id && !nla_get_u64(id)) {
		NL_SET_ERR_MSG(cb->extack, "there is no session of that id");
		NL_SET_BAD_ATTR(cb->extack, id);
		return -ENOENT;
	}
	snap = gpucr_session_snapshot(id ? nla_get_u64(id) : 0, cb->extack);
	if (id && IS_ERR(snap))
		NL_SET_BAD_ATTR(cb->extack, id);
	return gpucr_keep_snapshot(cb, snap);
}

static int gpucr_fill_session(struct sk_buff *msg, const void *entry)
{
	return gpucr_netlink_fill_session(msg, entry);
}

int gpucr_nl_session_get_dumpit(struct sk_buff *skb,
				struct netlink_callback *cb)
{
	return gpucr_dump_snapshot(skb, cb, GPUCR_CMD_SESSION_GET,
				   gpucr_fill_session);
}

/*
 * The session that a request asks about, referenced; the caller may see what
 * it has kept.
 */
static struct gpucr_session *gpucr_look_session(struct netlink_callback *cb,
						struct nlattr *id,
						struct nlattr *holder)
{
	struct file *file = NULL;
	struct gpucr_session *s;
	int err;

	s = gpucr_session_find(nla_get_u64(id), cb->extack);
	if (IS_ERR(s)) {
		NL_SET_BAD_ATTR(cb->extack, id);
		return s;
	}
	if (holder) {
		file = gpucr_dump_file(cb, holder);
		err = PTR_ERR_OR_ZERO(file);
		if (err)
			goto err_session;
	}
	err = gpucr_session_check_look(s, file, cb->extack);
	if (file)
		fput(file);
	if (!err)
		return s;
err_session:
	gpucr_session_put(s);
	return ERR_PTR(err);
}

int gpucr_nl_queue_get_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;
	struct gpucr_snapshot *snap;
	struct gpucr_session *s;
	int err;

	err = gpucr_start_check(cb);
	if (err)
		return err;
	if (!attrs[GPUCR_A_QUEUE_ID]) {
		gpucr_missing(cb, GPUCR_A_QUEUE_ID, "id is missing");
		return -EINVAL;
	}
	s = gpucr_look_session(cb, attrs[GPUCR_A_QUEUE_ID],
			       attrs[GPUCR_A_QUEUE_HOLDER_FD]);
	if (IS_ERR(s))
		return PTR_ERR(s);
	snap = gpucr_queue_snapshot(s, cb->extack);
	gpucr_session_put(s);
	return gpucr_keep_snapshot(cb, snap);
}

static int gpucr_fill_queue_areas(struct sk_buff *msg,
				  const struct gpucr_queue *q)
{
	if (nla_put_u64_64bit(msg, GPUCR_A_QUEUE_RING, q->ring,
			      GPUCR_A_QUEUE_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_QUEUE_RING_SIZE, q->ring_size,
			      GPUCR_A_QUEUE_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_QUEUE_READ_POINTER, q->read_pointer,
			      GPUCR_A_QUEUE_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_QUEUE_WRITE_POINTER,
			      q->write_pointer, GPUCR_A_QUEUE_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_QUEUE_DOORBELL, q->doorbell,
			      GPUCR_A_QUEUE_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_QUEUE_EOP, q->eop,
			      GPUCR_A_QUEUE_PAD) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_EOP_SIZE, q->eop_size) ||
	    nla_put_u64_64bit(msg, GPUCR_A_QUEUE_CTX_SAVE, q->ctx_save,
			      GPUCR_A_QUEUE_PAD) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_CTX_SAVE_SIZE, q->ctx_save_size) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_MQD_SIZE, q->mqd_size) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_CTL_STACK_SIZE, q->ctl_stack_size))
		return -EMSGSIZE;
	return 0;
}

static int gpucr_fill_queue(struct sk_buff *msg, const void *entry)
{
	const struct gpucr_queue *q = entry;

	if (nla_put_u32(msg, GPUCR_A_QUEUE_QUEUE_ID, q->queue_id) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_GPU_ID, q->gpu_id) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_TYPE, q->type) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_FORMAT, q->format) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_DOORBELL_ID, q->doorbell_id) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_PRIORITY, q->priority) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_PERCENT, q->percent) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_SDMA_ID, q->sdma_id) ||
	    nla_put_u32(msg, GPUCR_A_QUEUE_GWS, q->gws))
		return -EMSGSIZE;
	return gpucr_fill_queue_areas(msg, q);
}

int gpucr_nl_queue_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return gpucr_dump_snapshot(skb, cb, GPUCR_CMD_QUEUE_GET,
				   gpucr_fill_queue);
}

int gpucr_nl_remap_get_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;
	struct nlattr *pid = attrs[GPUCR_A_REMAP_IMAGE_PID];
	struct gpucr_snapshot *snap;
	struct gpucr_session *s;
	int err;

	err = gpucr_start_check(cb);
	if (err)
		return err;
	if (!attrs[GPUCR_A_REMAP_ID]) {
		gpucr_missing(cb, GPUCR_A_REMAP_ID, "id is missing");
		return -EINVAL;
	}
	if (pid && !nla_get_u32(pid)) {
		NL_SET_ERR_MSG(cb->extack, "image-pid is 0");
		NL_SET_BAD_ATTR(cb->extack, pid);
		return -EINVAL;
	}
	s = gpucr_look_session(cb, attrs[GPUCR_A_REMAP_ID],
			       attrs[GPUCR_A_REMAP_HOLDER_FD]);
	if (IS_ERR(s))
		return PTR_ERR(s);
	snap = gpucr_remap_snapshot(s, pid ? nla_get_u32(pid) : 0, cb->extack);
	gpucr_session_put(s);
	return gpucr_keep_snapshot(cb, snap);
}

static int gpucr_fill_remap(struct sk_buff *msg, const void *entry)
{
	const struct gpucr_remap *r = entry;

	if (nla_put_u32(msg, GPUCR_A_REMAP_IMAGE_PID, r->image_pid) ||
	    nla_put_u32(msg, GPUCR_A_REMAP_GPU_ID, r->gpu_id) ||
	    nla_put_u64_64bit(msg, GPUCR_A_REMAP_OLD_PGOFF, r->old_pgoff,
			      GPUCR_A_REMAP_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_REMAP_SIZE, r->size,
			      GPUCR_A_REMAP_PAD) ||
	    nla_put_u64_64bit(msg, GPUCR_A_REMAP_NEW_PGOFF, r->new_pgoff,
			      GPUCR_A_REMAP_PAD) ||
	    nla_put_u32(msg, GPUCR_A_REMAP_DEV_MINOR, r->minor) ||
	    nla_put_u32(msg, GPUCR_A_REMAP_SOURCE, r->source))
		return -EMSGSIZE;
	return 0;
}

int gpucr_nl_remap_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return gpucr_dump_snapshot(skb, cb, GPUCR_CMD_REMAP_GET,
				   gpucr_fill_remap);
}

/* Makes the relay that a request names; its inputs are for the caller. */
static struct gpucr_relay *gpucr_relay_begin(struct netlink_callback *cb,
					     enum gpucr_relay_op op)
{
	struct nlattr *id = genl_info_dump(cb)->attrs[GPUCR_A_RELAY_ID];
	struct gpucr_relay *r;
	int err;

	err = gpucr_start_check(cb);
	if (err)
		return ERR_PTR(err);
	if (!id) {
		gpucr_missing(cb, GPUCR_A_RELAY_ID, "id is missing");
		return ERR_PTR(-EINVAL);
	}
	r = gpucr_relay_new(op, nla_get_u64(id), cb->extack);
	if (IS_ERR(r))
		NL_SET_BAD_ATTR(cb->extack, id);
	return r;
}

/* Owns r. */
static int gpucr_relay_accept(struct netlink_callback *cb,
			      struct gpucr_relay *r)
{
	int err = gpucr_relay_check(r, cb->extack);

	if (err) {
		gpucr_relay_free(r);
		return err;
	}
	*gpucr_dump_state(cb) = r;
	return 0;
}

static int gpucr_relay_refuse(struct netlink_callback *cb,
			      struct gpucr_relay *r, int attr,
			      const char *message)
{
	gpucr_missing(cb, attr, message);
	gpucr_relay_free(r);
	return -EINVAL;
}

static int gpucr_relay_start_plain(struct netlink_callback *cb,
				   enum gpucr_relay_op op)
{
	struct gpucr_relay *r = gpucr_relay_begin(cb, op);

	return IS_ERR(r) ? PTR_ERR(r) : gpucr_relay_accept(cb, r);
}

int gpucr_nl_session_pause_start(struct netlink_callback *cb)
{
	return gpucr_relay_start_plain(cb, GPUCR_RELAY_PAUSE);
}

int gpucr_nl_session_unpause_start(struct netlink_callback *cb)
{
	return gpucr_relay_start_plain(cb, GPUCR_RELAY_UNPAUSE);
}

static u32 gpucr_attr_u32(struct nlattr *attr)
{
	return attr ? nla_get_u32(attr) : 0;
}

static u64 gpucr_attr_u64(struct nlattr *attr)
{
	return attr ? nla_get_u64(attr) : 0;
}

/* Absent means none; what has to be there is checked with the rest. */
static void gpucr_relay_read_arrays(struct gpucr_relay *r,
				    struct nlattr **attrs)
{
	r->devices = gpucr_attr_u64(attrs[GPUCR_A_RELAY_DEVICES]);
	r->bos = gpucr_attr_u64(attrs[GPUCR_A_RELAY_BOS]);
	r->priv = gpucr_attr_u64(attrs[GPUCR_A_RELAY_PRIV]);
	r->counts.num_devices =
		gpucr_attr_u32(attrs[GPUCR_A_RELAY_NUM_DEVICES]);
	r->counts.num_bos = gpucr_attr_u32(attrs[GPUCR_A_RELAY_NUM_BOS]);
	r->counts.num_objects =
		gpucr_attr_u32(attrs[GPUCR_A_RELAY_NUM_OBJECTS]);
	r->counts.priv_size = gpucr_attr_u64(attrs[GPUCR_A_RELAY_PRIV_SIZE]);
}

int gpucr_nl_session_checkpoint_start(struct netlink_callback *cb)
{
	struct gpucr_relay *r = gpucr_relay_begin(cb, GPUCR_RELAY_CHECKPOINT);

	if (IS_ERR(r))
		return PTR_ERR(r);
	gpucr_relay_read_arrays(r, genl_info_dump(cb)->attrs);
	return gpucr_relay_accept(cb, r);
}

int gpucr_nl_session_restore_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;
	struct gpucr_relay *r = gpucr_relay_begin(cb, GPUCR_RELAY_RESTORE);

	if (IS_ERR(r))
		return PTR_ERR(r);
	if (!attrs[GPUCR_A_RELAY_KFD_FD])
		return gpucr_relay_refuse(cb, r, GPUCR_A_RELAY_KFD_FD,
					  "kfd-fd is missing");
	r->kfd_fd = nla_get_u32(attrs[GPUCR_A_RELAY_KFD_FD]);
	gpucr_relay_read_arrays(r, attrs);
	r->image_pid = gpucr_attr_u32(attrs[GPUCR_A_RELAY_IMAGE_PID]);
	if (attrs[GPUCR_A_RELAY_IMAGE_PID] && !r->image_pid)
		return gpucr_relay_refuse(cb, r, GPUCR_A_RELAY_IMAGE_PID,
					  "image-pid is 0");
	return gpucr_relay_accept(cb, r);
}

int gpucr_nl_session_resume_start(struct netlink_callback *cb)
{
	struct nlattr **attrs = genl_info_dump(cb)->attrs;
	struct gpucr_relay *r = gpucr_relay_begin(cb, GPUCR_RELAY_RESUME);

	if (IS_ERR(r))
		return PTR_ERR(r);
	if (!attrs[GPUCR_A_RELAY_KFD_FD])
		return gpucr_relay_refuse(cb, r, GPUCR_A_RELAY_KFD_FD,
					  "kfd-fd is missing");
	if (!attrs[GPUCR_A_RELAY_PID])
		return gpucr_relay_refuse(cb, r, GPUCR_A_RELAY_PID,
					  "pid is missing");
	r->kfd_fd = nla_get_u32(attrs[GPUCR_A_RELAY_KFD_FD]);
	r->pid = nla_get_u32(attrs[GPUCR_A_RELAY_PID]);
	return gpucr_relay_accept(cb, r);
}

int gpucr_nl_relay_done(struct netlink_callback *cb)
{
	gpucr_relay_free(*gpucr_dump_state(cb));
	return 0;
}

static int gpucr_fill_result(struct sk_buff *msg, const struct gpucr_relay *r)
{
	if (nla_put_u32(msg, GPUCR_A_RELAY_ERROR, -r->error) ||
	    (r->message &&
	     nla_put_string(msg, GPUCR_A_RELAY_MESSAGE, r->message)) ||
	    nla_put_u32(msg, GPUCR_A_RELAY_STATE,
			gpucr_session_state(r->session)) ||
	    (r->keeps && nla_put_u32(msg, GPUCR_A_RELAY_KEPT, r->kept)) ||
	    (r->kept_error &&
	     nla_put_u32(msg, GPUCR_A_RELAY_KEPT_ERROR, -r->kept_error)))
		return -EMSGSIZE;
	if (r->op != GPUCR_RELAY_PAUSE || r->error)
		return 0;
	if (nla_put_u32(msg, GPUCR_A_RELAY_PID, r->pid) ||
	    nla_put_u32(msg, GPUCR_A_RELAY_NUM_DEVICES,
			r->counts.num_devices) ||
	    nla_put_u32(msg, GPUCR_A_RELAY_NUM_BOS, r->counts.num_bos) ||
	    nla_put_u32(msg, GPUCR_A_RELAY_NUM_OBJECTS,
			r->counts.num_objects) ||
	    nla_put_u64_64bit(msg, GPUCR_A_RELAY_PRIV_SIZE,
			      r->counts.priv_size, GPUCR_A_RELAY_PAD))
		return -EMSGSIZE;
	return 0;
}

static int gpucr_relay_answer(struct sk_buff *skb, struct netlink_callback *cb,
			      const struct gpucr_relay *r, u8 cmd, u32 phase)
{
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &gpucr_family, NLM_F_MULTI, cmd);
	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, GPUCR_A_RELAY_ID, r->session->id,
			      GPUCR_A_RELAY_PAD) ||
	    nla_put_u32(skb, GPUCR_A_RELAY_PHASE, phase) ||
	    (phase == GPUCR_RELAY_PHASE_DONE && gpucr_fill_result(skb, r))) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return skb->len;
}

/*
 * Only the asking thread may go on, from the first callback to the last. In
 * the first it is in sendmsg, or in a recvmsg; while it is in sendmsg no later
 * one can be its own. So the call is never made under generic netlink's lock.
 */
static int gpucr_relay_dumpit(struct sk_buff *skb, struct netlink_callback *cb,
			      u8 cmd)
{
	struct gpucr_relay *r = *gpucr_dump_state(cb);

	if (r->calls++ > 1)
		return 0;
	if (task_pid(current) != r->asker) {
		/* Nothing comes after this. */
		r->calls = 2;
		r->error = -EPERM;
		r->message = "the reader is not the thread that asked";
		return gpucr_relay_answer(skb, cb, r, cmd,
					  GPUCR_RELAY_PHASE_DONE);
	}
	if (r->calls == 1)
		return gpucr_relay_answer(skb, cb, r, cmd,
					  GPUCR_RELAY_PHASE_ACCEPTED);
	gpucr_relay_call(r);
	return gpucr_relay_answer(skb, cb, r, cmd, GPUCR_RELAY_PHASE_DONE);
}

int gpucr_nl_session_pause_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb)
{
	return gpucr_relay_dumpit(skb, cb, GPUCR_CMD_SESSION_PAUSE);
}

int gpucr_nl_session_checkpoint_dumpit(struct sk_buff *skb,
				       struct netlink_callback *cb)
{
	return gpucr_relay_dumpit(skb, cb, GPUCR_CMD_SESSION_CHECKPOINT);
}

int gpucr_nl_session_unpause_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	return gpucr_relay_dumpit(skb, cb, GPUCR_CMD_SESSION_UNPAUSE);
}

int gpucr_nl_session_restore_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb)
{
	return gpucr_relay_dumpit(skb, cb, GPUCR_CMD_SESSION_RESTORE);
}

int gpucr_nl_session_resume_dumpit(struct sk_buff *skb,
				   struct netlink_callback *cb)
{
	return gpucr_relay_dumpit(skb, cb, GPUCR_CMD_SESSION_RESUME);
}
