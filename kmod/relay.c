// SPDX-License-Identifier: GPL-2.0
/*
 * Relays: KFD's CRIU operations on behalf of a session, in the caller's own
 * context.
 *
 * What a relay guards: an operation comes in a state that it makes sense in,
 * from a task that KFD would obey; a pause counts once; RESUME goes to KFD
 * once, and only for a task whose RESTORE this session saw succeed, since a
 * stray one ends in memory corruption (KFD's eviction counter never comes
 * back).
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kfd_ioctl.h>
#include <linux/netlink.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "fault.h"
#include "kfdfile.h"
#include "queue.h"
#include "relay.h"
#include "remap.h"
#include "task.h"

/**
 * gpucr_relay_new() - prepare an operation
 * @op: which
 * @id: of the session
 * @ack: told why not
 *
 * Return: the relay, its other inputs zero, or an error pointer: -ENOENT,
 * -ENOMEM.
 */
struct gpucr_relay *gpucr_relay_new(enum gpucr_relay_op op, u64 id,
				    struct netlink_ext_ack *ack)
{
	struct gpucr_session *s = gpucr_session_find(id, ack);
	int err = gpucr_fault(GPUCR_FAULT_RELAY);
	struct gpucr_relay *r;

	if (IS_ERR(s))
		return ERR_CAST(s);
	r = err ? NULL : kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r) {
		gpucr_session_put(s);
		return ERR_PTR(err ?: -ENOMEM);
	}
	r->op = op;
	r->session = s;
	r->asker = get_task_pid(current, PIDTYPE_PID);
	return r;
}

void gpucr_relay_free(struct gpucr_relay *r)
{
	put_pid(r->asker);
	gpucr_session_put(r->session);
	kfree(r);
}

static bool gpucr_relay_restores(const struct gpucr_relay *r)
{
	return r->op == GPUCR_RELAY_RESTORE || r->op == GPUCR_RELAY_RESUME;
}

static int gpucr_relay_check_direction(const struct gpucr_relay *r,
				       struct netlink_ext_ack *ack)
{
	u32 needed = gpucr_relay_restores(r) ? GPUCR_DIRECTION_RESTORE :
					       GPUCR_DIRECTION_CHECKPOINT;

	if (r->session->direction == needed)
		return 0;
	if (needed == GPUCR_DIRECTION_RESTORE)
		NL_SET_ERR_MSG(ack, "the session is for a checkpoint");
	else
		NL_SET_ERR_MSG(ack, "the session is for a restore");
	return -EINVAL;
}

/* The owner; a member for its own part; anybody fit for an abandoned one. */
static int gpucr_relay_check_who(const struct gpucr_relay *r,
				 struct netlink_ext_ack *ack)
{
	struct gpucr_session *s = r->session;
	bool member;

	spin_lock(&s->lock);
	member = gpucr_session_task(s, task_tgid(current));
	spin_unlock(&s->lock);
	if (r->op == GPUCR_RELAY_RESTORE && !member) {
		NL_SET_ERR_MSG(ack, "the task has not joined the session");
		return -EPERM;
	}
	if (gpucr_session_owned(s) || member)
		return 0;
	if (r->op == GPUCR_RELAY_UNPAUSE &&
	    gpucr_session_state(s) == GPUCR_SESSION_STATE_ABANDONED)
		return 0;
	NL_SET_ERR_MSG(ack, "the session belongs to another process");
	return -EPERM;
}

static int gpucr_relay_check_state(const struct gpucr_relay *r,
				   struct netlink_ext_ack *ack)
{
	u32 state = gpucr_session_state(r->session);
	bool paused = gpucr_state_paused(state);

	switch (r->op) {
	case GPUCR_RELAY_PAUSE:
		if (state == GPUCR_SESSION_STATE_NEW || paused)
			return 0;
		NL_SET_ERR_MSG(ack, "the session is over: open a new one");
		return -EINVAL;
	case GPUCR_RELAY_CHECKPOINT:
	case GPUCR_RELAY_UNPAUSE:
		if (paused)
			return 0;
		NL_SET_ERR_MSG(ack, "the target is not paused by this session");
		return -EINVAL;
	case GPUCR_RELAY_RESTORE:
		if (state == GPUCR_SESSION_STATE_NEW ||
		    state == GPUCR_SESSION_STATE_RESTORING ||
		    state == GPUCR_SESSION_STATE_RESTORED)
			return 0;
		NL_SET_ERR_MSG(ack, "the session has failed or resumes already");
		return -EINVAL;
	case GPUCR_RELAY_RESUME:
		if (state != GPUCR_SESSION_STATE_FAILED)
			return 0;
		NL_SET_ERR_MSG(ack, "the session has failed");
		return -EINVAL;
	}
	return -EINVAL;
}

/* An array of the caller: it is there where it has to be, and in user space. */
static bool gpucr_relay_array_ok(u64 address, u64 num, u64 size)
{
	u64 bytes;

	if (!num)
		return true;
	if (check_mul_overflow(num, size, &bytes) || !address)
		return false;
	return access_ok((void __user *)(uintptr_t)address, bytes);
}

static int gpucr_relay_check_arrays(const struct gpucr_relay *r,
				    struct netlink_ext_ack *ack)
{
	const struct gpucr_counts *c = &r->counts;

	if (r->op != GPUCR_RELAY_CHECKPOINT && r->op != GPUCR_RELAY_RESTORE)
		return 0;
	if (!c->num_devices || !c->priv_size) {
		NL_SET_ERR_MSG(ack, "there are no devices or no private data");
		return -EINVAL;
	}
	if (!gpucr_relay_array_ok(r->devices, c->num_devices,
				  sizeof(struct kfd_criu_device_bucket)) ||
	    !gpucr_relay_array_ok(r->bos, c->num_bos,
				  sizeof(struct kfd_criu_bo_bucket)) ||
	    !gpucr_relay_array_ok(r->priv, c->priv_size, 1)) {
		NL_SET_ERR_MSG(ack, "a buffer is not in the caller's memory");
		return -EFAULT;
	}
	return 0;
}

/* Is this still the program that restored? Its memory may be another's now. */
static bool gpucr_relay_same_mm(struct pid *tgid, const struct mm_struct *mm)
{
	struct task_struct *task = get_pid_task(tgid, PIDTYPE_TGID);
	bool same;

	if (!task)
		return false;
	task_lock(task);
	same = mm && task->mm == mm;
	task_unlock(task);
	put_task_struct(task);
	return same;
}

/*
 * The ledger. Where take is set the right to resume is used up, so that of
 * two callers one goes through.
 */
static int gpucr_relay_ledger(const struct gpucr_relay *r, bool take,
			      struct netlink_ext_ack *ack)
{
	struct gpucr_session *s = r->session;
	const struct mm_struct *mm = NULL;
	struct gpucr_task *t;
	struct pid *tgid;
	bool resumed = false, same;

	tgid = gpucr_task_find(r->pid);
	if (!tgid) {
		NL_SET_ERR_MSG(ack, "there is no task of that pid");
		return -ESRCH;
	}
	spin_lock(&s->lock);
	t = gpucr_session_task(s, tgid);
	if (t) {
		mm = t->mm;
		resumed = t->resumed;
	}
	spin_unlock(&s->lock);
	same = gpucr_relay_same_mm(tgid, mm);
	if (same && take) {
		spin_lock(&s->lock);
		resumed = t->resumed;
		t->resumed = true;
		spin_unlock(&s->lock);
	}
	put_pid(tgid);
	if (!same) {
		NL_SET_ERR_MSG(ack,
			       "the task has not restored a device through this session");
		return -ENODEV;
	}
	if (resumed) {
		NL_SET_ERR_MSG(ack, "the task was resumed already");
		return -EALREADY;
	}
	return 0;
}

/**
 * gpucr_relay_check() - may this operation go to KFD now?
 * @r: the operation, its inputs set
 * @ack: told why not
 *
 * Asked when the request comes, so that refusals come at once, and again
 * right before the call.
 *
 * Return: 0 or a negative errno.
 */
int gpucr_relay_check(struct gpucr_relay *r, struct netlink_ext_ack *ack)
{
	int err;

	err = gpucr_caller_is_process(ack) ?:
	      gpucr_relay_check_direction(r, ack) ?:
	      gpucr_relay_check_who(r, ack) ?:
	      gpucr_relay_check_state(r, ack) ?:
	      gpucr_relay_check_arrays(r, ack);
	if (err)
		return err;
	if (!gpucr_relay_restores(r))
		return gpucr_task_check_mine(r->session->target, ack);
	if (r->op == GPUCR_RELAY_RESUME)
		return gpucr_relay_ledger(r, false, ack);
	return 0;
}

/* The file to call: the target's, or the caller's own. */
static struct file *gpucr_relay_file(struct gpucr_relay *r,
				     struct netlink_ext_ack *ack)
{
	struct gpucr_session *s = r->session;
	struct file *file;

	if (!gpucr_relay_restores(r)) {
		spin_lock(&s->lock);
		file = s->kfd ? get_file(s->kfd) : NULL;
		spin_unlock(&s->lock);
		if (file)
			return file;
		NL_SET_ERR_MSG(ack, "the session has let go of the target");
		return ERR_PTR(-ESRCH);
	}
	file = fget(r->kfd_fd);
	if (!file) {
		NL_SET_ERR_MSG(ack, "kfd-fd is not an open descriptor");
		return ERR_PTR(-EBADF);
	}
	if (gpucr_kfd_file(file))
		return file;
	fput(file);
	NL_SET_ERR_MSG(ack, "kfd-fd is not a KFD file");
	return ERR_PTR(-EINVAL);
}

/* point is met before the call, the one that follows it after a success. */
static int gpucr_relay_kfd(struct gpucr_relay *r, struct file *kfd, u32 op,
			   struct kfd_ioctl_criu_args *args,
			   enum gpucr_fault_point point)
{
	int err = gpucr_fault(point);

	if (err)
		return err;
	*args = (struct kfd_ioctl_criu_args) {
		.op = op,
		.pid = r->pid,
		.devices = r->devices,
		.bos = r->bos,
		.priv_data = r->priv,
		.priv_data_size = r->counts.priv_size,
		.num_devices = r->counts.num_devices,
		.num_bos = r->counts.num_bos,
		.num_objects = r->counts.num_objects,
	};
	return gpucr_kfd_criu(kfd, args) ?: gpucr_fault(point + 1);
}

/* KFD tells the number that the target has in its innermost namespace. */
static bool gpucr_relay_pid_agrees(struct gpucr_relay *r)
{
	struct pid *tgid = r->session->target;

	return pid_nr_ns(tgid, ns_of_pid(tgid)) == r->pid;
}

/* Return: true where the queues run, or there are none. */
static bool gpucr_relay_undo_pause(struct gpucr_relay *r, struct file *kfd)
{
	struct kfd_ioctl_criu_args args;
	struct gpucr_counts counts = r->counts;
	int err;

	memset(&r->counts, 0, sizeof(r->counts));
	err = gpucr_relay_kfd(r, kfd, KFD_CRIU_OP_UNPAUSE, &args,
			      GPUCR_FAULT_UNDO);
	r->counts = counts;
	return !err || err == -EINVAL || err == -ENODEV || err == -ESRCH;
}

/* Where the pause cannot be undone the session answers for it. */
static int gpucr_relay_fail_pause(struct gpucr_relay *r, struct file *kfd,
				  int err)
{
	u32 state = gpucr_relay_undo_pause(r, kfd) ?
		    GPUCR_SESSION_STATE_FAILED : GPUCR_SESSION_STATE_PAUSED;

	gpucr_session_change(r->session, state, err, NULL);
	return err;
}

static int gpucr_relay_too_late(struct netlink_ext_ack *ack)
{
	NL_SET_ERR_MSG(ack, "the session was ended meanwhile");
	return -ECANCELED;
}

/*
 * UNPAUSE first: where somebody left the target paused it is healed, and KFDs
 * that count pauses count one. "Not paused" is the normal answer.
 */
static int gpucr_relay_pause(struct gpucr_relay *r, struct file *kfd,
			     struct netlink_ext_ack *ack)
{
	struct kfd_ioctl_criu_args args;
	int err;

	err = gpucr_relay_kfd(r, kfd, KFD_CRIU_OP_UNPAUSE, &args,
			      GPUCR_FAULT_HEAL);
	if (err && err != -EINVAL) {
		NL_SET_ERR_MSG(ack, "KFD could not be asked to unpause first");
		gpucr_session_change(r->session,
				     gpucr_session_state(r->session), err, NULL);
		return err;
	}
	if (!gpucr_session_pausing(r->session))
		return gpucr_relay_too_late(ack);
	err = gpucr_relay_kfd(r, kfd, KFD_CRIU_OP_PROCESS_INFO, &args,
			      GPUCR_FAULT_PAUSE);
	if (err) {
		/* KFD may have stopped them before it failed to say so. */
		if (err == -ENODEV)
			NL_SET_ERR_MSG(ack, "the target uses no GPU");
		else
			NL_SET_ERR_MSG(ack, "KFD could not stop the queues");
		return gpucr_relay_fail_pause(r, kfd, err);
	}
	r->pid = args.pid;
	r->counts.num_devices = args.num_devices;
	r->counts.num_bos = args.num_bos;
	r->counts.num_objects = args.num_objects;
	r->counts.priv_size = args.priv_data_size;
	if (!gpucr_relay_pid_agrees(r)) {
		NL_SET_ERR_MSG(ack, "the KFD file is another task's");
		return gpucr_relay_fail_pause(r, kfd, -EINVAL);
	}
	if (gpucr_session_change(r->session, GPUCR_SESSION_STATE_PAUSED, 0,
				 &r->counts) &&
	    gpucr_session_state(r->session) != GPUCR_SESSION_STATE_ABANDONED)
		return 0;
	/* Its owner is gone. Where this fails it is the helper's turn. */
	if (gpucr_relay_undo_pause(r, kfd))
		gpucr_session_change(r->session, GPUCR_SESSION_STATE_UNPAUSED,
				     0, NULL);
	return gpucr_relay_too_late(ack);
}

/* A failure leaves the target paused and the session in its state. */
static int gpucr_relay_checkpoint(struct gpucr_relay *r, struct file *kfd,
				  struct netlink_ext_ack *ack)
{
	struct kfd_ioctl_criu_args args;
	u32 state = GPUCR_SESSION_STATE_CHECKPOINTED;
	int err, kept;

	err = gpucr_relay_kfd(r, kfd, KFD_CRIU_OP_CHECKPOINT, &args,
			      GPUCR_FAULT_CHECKPOINT);
	if (err) {
		NL_SET_ERR_MSG(ack, "KFD could not checkpoint the target");
		state = gpucr_session_state(r->session);
	} else {
		kept = gpucr_queues_keep(r->session, r->priv, &r->counts, ack);
		r->keeps = true;
		r->kept = max(kept, 0);
		r->kept_error = min(kept, 0);
	}
	gpucr_session_change(r->session, state, err, NULL);
	return err;
}

static int gpucr_relay_unpause(struct gpucr_relay *r, struct file *kfd,
			       struct netlink_ext_ack *ack)
{
	struct kfd_ioctl_criu_args args;
	u32 state = GPUCR_SESSION_STATE_UNPAUSED;
	int err;

	err = gpucr_relay_kfd(r, kfd, KFD_CRIU_OP_UNPAUSE, &args,
			      GPUCR_FAULT_UNPAUSE);
	/* Not paused: somebody was faster, and the queues run. */
	if (err == -EINVAL)
		err = 0;
	if (err) {
		NL_SET_ERR_MSG(ack, "KFD could not set the queues going");
		state = gpucr_session_state(r->session);
	}
	gpucr_session_change(r->session, state, err, NULL);
	return err;
}

/* What could not be kept fails nothing: the task maps what it maps. */
static void gpucr_relay_keep_offsets(struct gpucr_relay *r,
				     const struct gpucr_remap_buckets *b,
				     struct netlink_ext_ack *ack)
{
	r->keeps = true;
	r->kept_error = PTR_ERR_OR_ZERO(b);
	if (!r->kept_error)
		r->kept_error = gpucr_remap_fill(r->session, r->image_pid, b,
						 &r->kept, ack);
}

/* Into the ledger: the caller, with its memory as it is now. */
static void gpucr_relay_enter(struct gpucr_session *s)
{
	struct mm_struct *mm = current->mm;
	struct gpucr_task *t;

	mmgrab(mm);
	spin_lock(&s->lock);
	t = gpucr_session_task(s, task_tgid(current));
	swap(t->mm, mm);
	t->resumed = false;
	spin_unlock(&s->lock);
	if (mm)
		mmdrop(mm);
}

static int gpucr_relay_restore(struct gpucr_relay *r, struct file *kfd,
			       struct netlink_ext_ack *ack)
{
	struct gpucr_remap_buckets *buckets = NULL;
	struct gpucr_session *s = r->session;
	struct kfd_ioctl_criu_args args;
	int err;

	/* A task restored for a session that is gone could not be resumed. */
	if (!gpucr_session_change(s, GPUCR_SESSION_STATE_RESTORING, 0, NULL))
		return gpucr_relay_too_late(ack);
	if (r->image_pid)
		buckets = gpucr_remap_read(r->devices, r->bos, &r->counts, ack);
	err = gpucr_relay_kfd(r, kfd, KFD_CRIU_OP_RESTORE, &args,
			      GPUCR_FAULT_RESTORE);
	if (!err && r->image_pid)
		gpucr_relay_keep_offsets(r, buckets, ack);
	gpucr_remap_buckets_free(buckets);
	if (err) {
		NL_SET_ERR_MSG(ack, "KFD could not restore the task");
		gpucr_session_change(s, GPUCR_SESSION_STATE_FAILED, err, NULL);
		return err;
	}
	gpucr_relay_enter(s);
	gpucr_session_change(s, GPUCR_SESSION_STATE_RESTORED, 0, NULL);
	return 0;
}

/* Has every task that restored been resumed? */
static bool gpucr_relay_all_resumed(struct gpucr_session *s)
{
	struct gpucr_task *t;
	bool all = true;

	spin_lock(&s->lock);
	list_for_each_entry(t, &s->tasks, node)
		if (t->mm && !t->resumed)
			all = false;
	spin_unlock(&s->lock);
	return all;
}

static int gpucr_relay_resume(struct gpucr_relay *r, struct file *kfd,
			      struct netlink_ext_ack *ack)
{
	struct gpucr_session *s = r->session;
	struct kfd_ioctl_criu_args args;
	int err;

	err = gpucr_relay_ledger(r, true, ack);
	if (err)
		return err;
	err = gpucr_relay_kfd(r, kfd, KFD_CRIU_OP_RESUME, &args,
			      GPUCR_FAULT_RESUME);
	if (err) {
		NL_SET_ERR_MSG(ack, "KFD could not resume the task");
		gpucr_session_change(s, GPUCR_SESSION_STATE_FAILED, err, NULL);
		return err;
	}
	if (gpucr_relay_all_resumed(s))
		gpucr_session_change(s, GPUCR_SESSION_STATE_RESUMED, 0, NULL);
	return 0;
}

static int gpucr_relay_run(struct gpucr_relay *r, struct file *kfd,
			   struct netlink_ext_ack *ack)
{
	switch (r->op) {
	case GPUCR_RELAY_PAUSE:
		return gpucr_relay_pause(r, kfd, ack);
	case GPUCR_RELAY_CHECKPOINT:
		return gpucr_relay_checkpoint(r, kfd, ack);
	case GPUCR_RELAY_UNPAUSE:
		return gpucr_relay_unpause(r, kfd, ack);
	case GPUCR_RELAY_RESTORE:
		return gpucr_relay_restore(r, kfd, ack);
	case GPUCR_RELAY_RESUME:
		return gpucr_relay_resume(r, kfd, ack);
	}
	return -EINVAL;
}

/* The session's state may have changed since the request: check it again. */
static int gpucr_relay_locked(struct gpucr_relay *r,
			      struct netlink_ext_ack *ack)
{
	struct file *kfd;
	int err;

	err = gpucr_relay_check(r, ack);
	if (err)
		return err;
	kfd = gpucr_relay_file(r, ack);
	if (IS_ERR(kfd))
		return PTR_ERR(kfd);
	err = gpucr_relay_run(r, kfd, ack);
	fput(kfd);
	return err;
}

/**
 * gpucr_relay_call() - have KFD do it
 * @r: the operation; its error, message, pid and counts are filled
 *
 * The caller is the asker, in recvmsg: no lock of generic netlink is held.
 * Sleeps as long as KFD does.
 */
void gpucr_relay_call(struct gpucr_relay *r)
{
	struct netlink_ext_ack ack = {};

	r->error = mutex_lock_killable(&r->session->relay);
	if (r->error) {
		r->message = "interrupted before KFD was called";
		return;
	}
	r->error = gpucr_relay_locked(r, &ack);
	mutex_unlock(&r->session->relay);
	r->message = ack._msg;
}
