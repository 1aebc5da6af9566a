// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: their life, their state, who owns them.
 *
 * Locks, outermost first: relay, gpucr_sessions_lock, notify, lock; data is
 * taken under relay or alone. Only a relay waits for KFD, and only a relay
 * waits for a relay.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "fault.h"
#include "netlink.h"
#include "recover.h"
#include "remap.h"
#include "session.h"
#include "snapshot.h"
#include "task.h"

/* Protects the list and the number of sessions; never held over KFD. */
static DEFINE_MUTEX(gpucr_sessions_lock);
static LIST_HEAD(gpucr_sessions);
static u32 gpucr_num_sessions;
static bool gpucr_draining;

static atomic64_t gpucr_total;
static atomic64_t gpucr_abandoned;
static atomic64_t gpucr_recovered;
static atomic64_t gpucr_recovery_failed;

static void gpucr_session_release(struct kref *ref)
{
	struct gpucr_session *s = container_of(ref, struct gpucr_session, ref);
	struct gpucr_task *t, *next;

	list_for_each_entry_safe(t, next, &s->tasks, node) {
		put_pid(t->tgid);
		if (t->mm)
			mmdrop(t->mm);
		kfree(t);
	}
	kvfree(s->queues);
	gpucr_remap_free_all(&s->remaps);
	if (s->kfd)
		fput(s->kfd);
	put_pid(s->target);
	put_pid(s->owner);
	kfree(s);
}

void gpucr_session_get(struct gpucr_session *s)
{
	kref_get(&s->ref);
}

void gpucr_session_put(struct gpucr_session *s)
{
	kref_put(&s->ref, gpucr_session_release);
}

/**
 * gpucr_session_find() - session by id
 * @id: its id
 * @ack: told why not
 *
 * Return: the session with a reference, or ERR_PTR(-ENOENT).
 */
struct gpucr_session *gpucr_session_find(u64 id, struct netlink_ext_ack *ack)
{
	struct gpucr_session *s;

	mutex_lock(&gpucr_sessions_lock);
	list_for_each_entry(s, &gpucr_sessions, node) {
		if (s->id == id) {
			gpucr_session_get(s);
			mutex_unlock(&gpucr_sessions_lock);
			return s;
		}
	}
	mutex_unlock(&gpucr_sessions_lock);
	NL_SET_ERR_MSG(ack, "there is no session of that id");
	return ERR_PTR(-ENOENT);
}

/* Is the caller part of the process that opened the session? */
bool gpucr_session_owned(struct gpucr_session *s)
{
	bool owned;

	spin_lock(&s->lock);
	owned = s->owner == task_tgid(current);
	spin_unlock(&s->lock);
	return owned;
}

static bool gpucr_session_member(struct gpucr_session *s)
{
	bool member;

	spin_lock(&s->lock);
	member = gpucr_session_task(s, task_tgid(current));
	spin_unlock(&s->lock);
	return member;
}

/**
 * gpucr_session_check_part() - is the caller the owner or a member?
 * @s: the session
 * @ack: told why not
 *
 * Return: 0 or -EPERM.
 */
int gpucr_session_check_part(struct gpucr_session *s,
			     struct netlink_ext_ack *ack)
{
	if (gpucr_session_owned(s) || gpucr_session_member(s))
		return 0;
	NL_SET_ERR_MSG(ack,
		       "the session belongs to another process, and this one has not joined");
	return -EPERM;
}

/* The very file of the session, or one that means its KFD process. */
static bool gpucr_session_held_by(struct gpucr_session *s,
				  const struct file *file)
{
	bool held;

	spin_lock(&s->lock);
	held = file == s->owner_file ||
	       (s->kfd && file->f_op == s->kfd->f_op &&
		file->private_data == s->kfd->private_data);
	spin_unlock(&s->lock);
	return held;
}

/**
 * gpucr_session_check_look() - may the caller see what a session has kept?
 * @s: the session
 * @holder: a file that gives the right to, referenced by the caller; or NULL
 * @ack: told why not
 *
 * Return: 0 for the owner, a member, the target, its tracer and who holds such
 * a file; else -EPERM.
 */
int gpucr_session_check_look(struct gpucr_session *s, const struct file *holder,
			     struct netlink_ext_ack *ack)
{
	if (gpucr_session_owned(s) || gpucr_session_member(s))
		return 0;
	if (s->target && !gpucr_task_check_mine(s->target, NULL))
		return 0;
	if (holder && gpucr_session_held_by(s, holder))
		return 0;
	NL_SET_ERR_MSG(ack,
		       "the caller has no part in the session and holds no file of it");
	return -EPERM;
}

u32 gpucr_session_state(struct gpucr_session *s)
{
	return READ_ONCE(s->state);
}

/**
 * gpucr_session_pausing() - KFD is about to be asked to pause
 * @s: the session, its relay mutex held by the caller
 *
 * Until gpucr_session_change() tells what came of it the session does not end
 * with its owner.
 *
 * Return: false where it has ended already.
 */
bool gpucr_session_pausing(struct gpucr_session *s)
{
	spin_lock(&s->lock);
	s->pausing = !s->ended;
	spin_unlock(&s->lock);
	return s->pausing;
}

/* Number in the namespace given; 0 where it has none there. */
static u32 gpucr_pid_number(struct pid *pid, struct pid_namespace *ns)
{
	return pid ? pid_nr_ns(pid, ns) : 0;
}

static void gpucr_session_tell(struct gpucr_session *s,
			       struct gpucr_session_info *info,
			       struct pid_namespace *ns)
{
	ktime_t now = ktime_get(), paused = s->paused_total;

	lockdep_assert_held(&s->lock);
	if (gpucr_state_paused(s->state))
		paused = ktime_add(paused, ktime_sub(now, s->paused_since));
	info->id = s->id;
	info->age_ms = ktime_to_ms(ktime_sub(now, s->created));
	info->paused_ms = ktime_to_ms(paused);
	info->counts = s->counts;
	info->direction = s->direction;
	info->state = s->state;
	info->error = s->error;
	info->pid = gpucr_pid_number(s->target ?: s->owner, ns);
	info->owner_pid = gpucr_pid_number(s->owner, ns);
	info->tasks = s->num_tasks;
	memcpy(info->owner_comm, s->owner_comm, sizeof(info->owner_comm));
	info->owner_gone = s->owner_gone;
	info->was_paused = s->was_paused;
}

/* Out of the list, and everything that it holds for others let go. */
static void gpucr_session_unlink(struct gpucr_session *s)
{
	bool listed;

	mutex_lock(&gpucr_sessions_lock);
	listed = !list_empty(&s->node);
	if (listed) {
		list_del_init(&s->node);
		gpucr_num_sessions--;
	}
	mutex_unlock(&gpucr_sessions_lock);
	gpucr_watch_stop(s);
	if (listed)
		gpucr_session_put(s);
}

static void gpucr_session_drop_kfd(struct gpucr_session *s)
{
	struct file *kfd;

	spin_lock(&s->lock);
	kfd = s->kfd;
	s->kfd = NULL;
	spin_unlock(&s->lock);
	if (kfd)
		fput(kfd);
}

/*
 * While the queues are stopped the module must stay to set them going.
 * Return: true where the caller must give that reference of the module back,
 * as the last thing that it does.
 */
static bool gpucr_session_set_state(struct gpucr_session *s, u32 state)
{
	bool was = gpucr_state_paused(s->state);
	bool is = gpucr_state_paused(state);

	lockdep_assert_held(&s->lock);
	if (is && !was) {
		__module_get(THIS_MODULE);
		s->paused_since = ktime_get();
		s->was_paused = true;
	}
	if (was && !is)
		s->paused_total = ktime_add(s->paused_total,
					    ktime_sub(ktime_get(),
						      s->paused_since));
	if (state == GPUCR_SESSION_STATE_ABANDONED && state != s->state) {
		s->tries = 0;
		s->next_try = jiffies;
		atomic64_inc(&gpucr_abandoned);
	}
	if (state == GPUCR_SESSION_STATE_RECOVERED && state != s->state)
		atomic64_inc(&gpucr_recovered);
	s->state = state;
	return was && !is;
}

static void gpucr_session_log(const struct gpucr_session_info *info)
{
	if (info->state == GPUCR_SESSION_STATE_ABANDONED)
		pr_notice_ratelimited("session %llx: %s[%u] left process %u paused\n",
				      info->id, info->owner_comm,
				      info->owner_pid, info->pid);
	if (info->state == GPUCR_SESSION_STATE_RECOVERED)
		pr_notice_ratelimited("session %llx: process %u runs again after %llu ms\n",
				      info->id, info->pid, info->paused_ms);
}

/* What the state becomes where the owner can do no more. */
static u32 gpucr_session_orphan_state(u32 state)
{
	if (gpucr_state_paused(state))
		return GPUCR_SESSION_STATE_ABANDONED;
	if (state == GPUCR_SESSION_STATE_UNPAUSED)
		return GPUCR_SESSION_STATE_RECOVERED;
	return state;
}

/* A session in these states needs its KFD file no more. */
static bool gpucr_state_over(u32 state)
{
	return state == GPUCR_SESSION_STATE_UNPAUSED ||
	       state == GPUCR_SESSION_STATE_RECOVERED ||
	       state == GPUCR_SESSION_STATE_FAILED;
}

/**
 * gpucr_session_change() - go to another state
 * @s: the session
 * @state: where an operation led; with the owner gone it becomes ABANDONED or
 *	RECOVERED instead of PAUSED or UNPAUSED
 * @error: what failed, negative, or 0; the first is kept
 * @counts: of a pause, or NULL
 *
 * Sends the event. A session whose owner is gone ends when its target runs.
 * May sleep.
 *
 * Return: false where the session has ended: nothing is changed then.
 */
bool gpucr_session_change(struct gpucr_session *s, u32 state, int error,
			  const struct gpucr_counts *counts)
{
	struct gpucr_session_info info;
	bool changed, over, unpin;

	mutex_lock(&s->notify);
	spin_lock(&s->lock);
	if (s->ended) {
		spin_unlock(&s->lock);
		mutex_unlock(&s->notify);
		return false;
	}
	if (s->owner_gone)
		state = gpucr_session_orphan_state(state);
	changed = state != s->state;
	s->pausing = false;
	unpin = gpucr_session_set_state(s, state);
	if (error && !s->error)
		s->error = -error;
	if (counts)
		s->counts = *counts;
	over = s->owner_gone && !gpucr_state_paused(state);
	s->ended = over;
	gpucr_session_tell(s, &info, &init_pid_ns);
	spin_unlock(&s->lock);
	if (changed) {
		gpucr_session_log(&info);
		gpucr_netlink_event(&info);
	}
	mutex_unlock(&s->notify);

	if (gpucr_state_over(state))
		gpucr_session_drop_kfd(s);
	if (over)
		gpucr_session_unlink(s);
	if (unpin)
		module_put(THIS_MODULE);
	return true;
}

/* Return: true where s was orphaned now; *info tells it. */
static bool gpucr_session_disown(struct gpucr_session *s,
				 const struct file *file,
				 const struct pid *owner,
				 struct gpucr_session_info *info)
{
	lockdep_assert_held(&s->lock);
	if (s->ended || s->owner_gone)
		return false;
	if ((file && s->owner_file != file) || (owner && s->owner != owner))
		return false;
	s->owner_gone = true;
	s->owner_file = NULL;
	if (gpucr_state_paused(s->state))
		gpucr_session_set_state(s, GPUCR_SESSION_STATE_ABANDONED);
	else if (!s->pausing)
		s->ended = true;
	gpucr_session_tell(s, info, &init_pid_ns);
	return true;
}

/**
 * gpucr_session_orphan() - the owner can do no more
 * @s: the session
 * @file: the session's file, which was closed; or NULL
 * @owner: the thread group that has died; or NULL
 *
 * A paused target makes the session ABANDONED and its recovery begin; while a
 * pause is under way its outcome decides; any other session ends. Does nothing
 * where @file or @owner are no longer the session's. Runs in a dying process
 * too. May sleep.
 */
void gpucr_session_orphan(struct gpucr_session *s, const struct file *file,
			  const struct pid *owner)
{
	struct gpucr_session_info info;
	bool orphan, paused, ended;

	mutex_lock(&s->notify);
	spin_lock(&s->lock);
	orphan = gpucr_session_disown(s, file, owner, &info);
	ended = orphan && s->ended;
	spin_unlock(&s->lock);
	paused = orphan && gpucr_state_paused(info.state);
	if (paused) {
		gpucr_session_log(&info);
		gpucr_netlink_event(&info);
	}
	mutex_unlock(&s->notify);

	if (paused) {
		gpucr_watch_kick(s);
	} else if (ended) {
		gpucr_session_drop_kfd(s);
		gpucr_session_unlink(s);
	}
}

/**
 * gpucr_session_end() - end a session at its owner's wish
 * @s: the session
 * @ack: told why not
 *
 * Return: 0, -EPERM where the caller is not the owner, -EBUSY where the
 * target is paused or an operation runs.
 */
int gpucr_session_end(struct gpucr_session *s, struct netlink_ext_ack *ack)
{
	int err = 0;

	if (!gpucr_session_owned(s)) {
		NL_SET_ERR_MSG(ack, "only the owner ends a session");
		return -EPERM;
	}
	if (!mutex_trylock(&s->relay)) {
		NL_SET_ERR_MSG(ack, "an operation of the session is running");
		return -EBUSY;
	}
	spin_lock(&s->lock);
	if (gpucr_state_paused(s->state))
		err = -EBUSY;
	else
		s->ended = true;
	spin_unlock(&s->lock);
	mutex_unlock(&s->relay);
	if (err) {
		NL_SET_ERR_MSG(ack, "the target is paused: unpause it first");
		return err;
	}
	gpucr_session_drop_kfd(s);
	gpucr_session_unlink(s);
	return 0;
}

static struct gpucr_session *gpucr_session_alloc(u32 direction,
						 struct pid *target,
						 struct file *kfd)
{
	struct gpucr_session *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);

	if (!s)
		return NULL;
	kref_init(&s->ref);
	INIT_LIST_HEAD(&s->node);
	INIT_LIST_HEAD(&s->tasks);
	mutex_init(&s->relay);
	mutex_init(&s->notify);
	mutex_init(&s->data);
	s->remaps = RB_ROOT;
	spin_lock_init(&s->lock);
	s->direction = direction;
	s->target = get_pid(target);
	s->kfd = kfd ? get_file(kfd) : NULL;
	s->owner = get_pid(task_tgid(current));
	get_task_comm(s->owner_comm, current->group_leader);
	s->created = ktime_get();
	gpucr_watch_init(s);
	return s;
}

/* A session that still answers for the KFD process behind the file. */
static struct gpucr_session *gpucr_session_rival(const struct file *kfd)
{
	struct gpucr_session *s;
	bool same;

	lockdep_assert_held(&gpucr_sessions_lock);
	list_for_each_entry(s, &gpucr_sessions, node) {
		spin_lock(&s->lock);
		same = !s->ended && s->kfd &&
		       s->kfd->private_data == kfd->private_data;
		spin_unlock(&s->lock);
		if (same)
			return s;
	}
	return NULL;
}

/*
 * The new session's owner takes over an abandoned one of the same target.
 * Return: false where it is not abandoned (any more).
 */
static bool gpucr_session_adopt(struct gpucr_session *s,
				struct gpucr_session *new)
{
	struct gpucr_session_info info;
	bool adopted;

	mutex_lock(&s->notify);
	spin_lock(&s->lock);
	adopted = !s->ended && s->state == GPUCR_SESSION_STATE_ABANDONED;
	if (adopted) {
		swap(s->owner, new->owner);
		memcpy(s->owner_comm, new->owner_comm, sizeof(s->owner_comm));
		s->owner_gone = false;
		gpucr_session_set_state(s, GPUCR_SESSION_STATE_PAUSED);
	}
	gpucr_session_tell(s, &info, &init_pid_ns);
	spin_unlock(&s->lock);
	if (adopted)
		gpucr_netlink_event(&info);
	mutex_unlock(&s->notify);
	return adopted;
}

/* Random, so that nobody joins by guessing; unique among the open ones. */
static u64 gpucr_session_new_id(void)
{
	struct gpucr_session *s;
	u64 id;

	lockdep_assert_held(&gpucr_sessions_lock);
again:
	id = get_random_u64();
	if (!id)
		goto again;
	list_for_each_entry(s, &gpucr_sessions, node)
		if (s->id == id)
			goto again;
	return id;
}

/* Return: the session with a reference: new, or the adopted one. */
static struct gpucr_session *gpucr_session_insert(struct gpucr_session *new,
						  struct netlink_ext_ack *ack)
{
	struct gpucr_session *s;

	mutex_lock(&gpucr_sessions_lock);
	s = new->kfd ? gpucr_session_rival(new->kfd) : NULL;
	if (s && gpucr_session_adopt(s, new)) {
		/* Also while draining: somebody is there to end it. */
		gpucr_session_get(s);
	} else if (gpucr_draining) {
		NL_SET_ERR_MSG(ack,
			       "the module is being upgraded and takes no new sessions");
		s = ERR_PTR(-EAGAIN);
	} else if (s) {
		NL_SET_ERR_MSG(ack, "the KFD process has a session already");
		s = ERR_PTR(-EBUSY);
	} else if (gpucr_num_sessions >= GPUCR_MAX_SESSIONS) {
		NL_SET_ERR_MSG(ack, "too many sessions are open");
		s = ERR_PTR(-EMFILE);
	} else {
		s = new;
		s->id = gpucr_session_new_id();
		gpucr_session_get(s);
		list_add_tail(&s->node, &gpucr_sessions);
		gpucr_num_sessions++;
		atomic64_inc(&gpucr_total);
	}
	mutex_unlock(&gpucr_sessions_lock);
	return s;
}

/**
 * gpucr_session_open() - make a session, or adopt an abandoned one
 * @direction: enum gpucr_direction
 * @target: thread group to checkpoint; NULL for a restore
 * @kfd: KFD file of the target; NULL for a restore
 * @ack: told why not
 *
 * The caller is the owner, and has checked that it may be.
 *
 * Return: the session with a reference for its file, or an error pointer:
 * -EBUSY where the KFD process has a session, -EAGAIN while the module is
 * drained, -EMFILE, -ENOMEM.
 */
struct gpucr_session *gpucr_session_open(u32 direction, struct pid *target,
					 struct file *kfd,
					 struct netlink_ext_ack *ack)
{
	struct gpucr_session *new, *s;
	int err;

	err = gpucr_fault(GPUCR_FAULT_SESSION_NEW);
	if (err)
		return ERR_PTR(err);
	new = gpucr_session_alloc(direction, target, kfd);
	if (!new)
		return ERR_PTR(-ENOMEM);
	s = gpucr_session_insert(new, ack);
	if (s != new) {
		gpucr_session_put(new);
		return s;
	}
	if (target)
		gpucr_watch_kick(s);
	return s;
}

/**
 * gpucr_session_task() - record of a task that joined
 * @s: the session, its lock held by the caller
 * @tgid: thread group
 *
 * Return: the record, valid as long as the session, or NULL.
 */
struct gpucr_task *gpucr_session_task(struct gpucr_session *s, struct pid *tgid)
{
	struct gpucr_task *t;

	lockdep_assert_held(&s->lock);
	list_for_each_entry(t, &s->tasks, node)
		if (t->tgid == tgid)
			return t;
	return NULL;
}

/**
 * gpucr_session_join() - make the calling task a member of a restore
 * @s: the session
 * @ack: told why not
 *
 * Return: 0 (also where it has joined before), -EINVAL where the session is
 * no restore, -ESHUTDOWN where it has failed or ended, -ENOSPC, -ENOMEM.
 */
int gpucr_session_join(struct gpucr_session *s, struct netlink_ext_ack *ack)
{
	struct gpucr_task *t;
	int err;

	if (s->direction != GPUCR_DIRECTION_RESTORE) {
		NL_SET_ERR_MSG(ack, "only a restore session has members");
		return -EINVAL;
	}
	err = gpucr_fault(GPUCR_FAULT_JOIN);
	if (err)
		return err;
	t = kzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	if (!t)
		return -ENOMEM;
	t->tgid = get_pid(task_tgid(current));
	spin_lock(&s->lock);
	if (s->ended || s->state == GPUCR_SESSION_STATE_FAILED) {
		err = -ESHUTDOWN;
	} else if (gpucr_session_task(s, t->tgid)) {
		err = -EEXIST;
	} else if (s->num_tasks >= GPUCR_MAX_TASKS) {
		err = -ENOSPC;
	} else {
		list_add_tail(&t->node, &s->tasks);
		s->num_tasks++;
	}
	spin_unlock(&s->lock);
	if (!err)
		return 0;
	put_pid(t->tgid);
	kfree(t);
	if (err == -ESHUTDOWN)
		NL_SET_ERR_MSG(ack, "the session has failed or ended");
	if (err == -ENOSPC)
		NL_SET_ERR_MSG(ack, "too many tasks have joined");
	return err == -EEXIST ? 0 : err;
}

/**
 * gpucr_session_snapshot() - all sessions, or one
 * @id: which; 0: all
 * @ack: told why not
 *
 * Process ids are told as the caller's namespace has them.
 *
 * Return: a snapshot of struct gpucr_session_info, or an error pointer:
 * -ENOENT, -ENOMEM.
 */
struct gpucr_snapshot *gpucr_session_snapshot(u64 id,
					      struct netlink_ext_ack *ack)
{
	struct pid_namespace *ns = task_active_pid_ns(current);
	struct gpucr_snapshot *snap;
	struct gpucr_session *s;

	mutex_lock(&gpucr_sessions_lock);
	snap = gpucr_snapshot_alloc(gpucr_num_sessions,
				    sizeof(struct gpucr_session_info));
	if (!snap) {
		mutex_unlock(&gpucr_sessions_lock);
		return ERR_PTR(-ENOMEM);
	}
	list_for_each_entry(s, &gpucr_sessions, node) {
		if (id && s->id != id)
			continue;
		spin_lock(&s->lock);
		gpucr_session_tell(s, gpucr_snapshot_add(snap), ns);
		spin_unlock(&s->lock);
	}
	mutex_unlock(&gpucr_sessions_lock);
	if (id && !snap->num) {
		gpucr_snapshot_free(snap);
		NL_SET_ERR_MSG(ack, "there is no session of that id");
		return ERR_PTR(-ENOENT);
	}
	return snap;
}

void gpucr_session_stats(struct gpucr_session_stats *stats)
{
	mutex_lock(&gpucr_sessions_lock);
	stats->open = gpucr_num_sessions;
	stats->draining = gpucr_draining;
	mutex_unlock(&gpucr_sessions_lock);
	stats->total = atomic64_read(&gpucr_total);
	stats->abandoned = atomic64_read(&gpucr_abandoned);
	stats->recovered = atomic64_read(&gpucr_recovered);
	stats->recovery_failed = atomic64_read(&gpucr_recovery_failed);
}

/* The helper was given up. */
void gpucr_session_unrecovered(void)
{
	atomic64_inc(&gpucr_recovery_failed);
}

/*
 * Once it returns no session is made any more, or they are made again. What is
 * abandoned may still be adopted, which makes none.
 */
void gpucr_session_drain(bool drain)
{
	mutex_lock(&gpucr_sessions_lock);
	gpucr_draining = drain;
	mutex_unlock(&gpucr_sessions_lock);
}
