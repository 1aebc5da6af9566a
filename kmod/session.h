/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_SESSION_H
#define GPUCR_SESSION_H

#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <uapi/linux/gpucr.h>

struct file;
struct gpucr_queues;
struct gpucr_snapshot;
struct mm_struct;
struct netlink_ext_ack;
struct pid;
struct pid_namespace;

/* Most sessions at once, and most tasks of one: told by info-get. */
#define GPUCR_MAX_SESSIONS	1024
#define GPUCR_MAX_TASKS		65536

/* What PROCESS_INFO counted. */
struct gpucr_counts {
	u32 num_devices;
	u32 num_bos;
	u32 num_objects;
	u64 priv_size;
};

/**
 * struct gpucr_task - a task that joined a restore session
 * @node: in the session's list
 * @tgid: thread group, referenced
 * @mm: memory that RESTORE filled; NULL before that. Compared, never followed;
 *	referenced, so that no other memory gets its address
 * @resumed: RESUME has been relayed for it
 */
struct gpucr_task {
	struct list_head node;
	struct pid *tgid;
	struct mm_struct *mm;
	bool resumed;
};

/**
 * struct gpucr_session - one checkpoint or restore
 * @ref: the list, the session's file, relays and queued work hold one each
 * @node: in the list of sessions; protected by its lock
 * @id: random, never 0
 * @direction: enum gpucr_direction
 * @target: thread group, referenced; NULL for a restore
 * @created: when
 * @relay: one KFD call at a time; nothing else waits for it
 * @notify: keeps events in the order of the changes that they tell
 * @data: protects @queues, @remaps and @num_remaps; what only tells the state
 *	never takes it
 * @queues: of the last checkpoint; queue.c
 * @remaps: where the BOs of a restore have come to; remap.c
 * @num_remaps: how many
 * @lock: protects what follows, and is never held while anything sleeps
 * @state: enum gpucr_session_state
 * @error: errno of the first operation that failed, positive
 * @owner: thread group that opened it, referenced
 * @owner_comm: its name
 * @owner_file: the session's file; compared, never followed
 * @owner_gone: the file is closed or the thread group dead
 * @pausing: KFD is asked to pause, and may have done so already: a session that
 *	loses its owner now may not end before that is known
 * @ended: no longer in the list, or about to leave it
 * @kfd: KFD file of the target, referenced until its queues run again, the
 *	session ends or the target is gone: it keeps a dead job's memory
 * @paused_since: when the queues stopped; valid while they are
 * @paused_total: how long they were stopped before
 * @was_paused: they were stopped at least once
 * @counts: of the last pause
 * @tasks: struct gpucr_task that joined
 * @num_tasks: how many
 * @tries: runs of the recovery helper for this abandonment
 * @next_try: jiffies before which it is not run again
 * @recovering: it is queued or runs
 * @watch: looks after target and owner; recover.c
 * @recover: runs the helper; recover.c
 */
struct gpucr_session {
	struct kref ref;
	struct list_head node;
	u64 id;
	u32 direction;
	struct pid *target;
	ktime_t created;
	struct mutex relay;	/* KFD calls */
	struct mutex notify;	/* events */
	struct mutex data;	/* the next three */
	struct gpucr_queues *queues;
	struct rb_root remaps;
	u32 num_remaps;

	spinlock_t lock;	/* all that follows */
	u32 state;
	u32 error;
	struct pid *owner;
	char owner_comm[TASK_COMM_LEN];
	const struct file *owner_file;
	bool owner_gone;
	bool pausing;
	bool ended;
	struct file *kfd;
	ktime_t paused_since;
	ktime_t paused_total;
	bool was_paused;
	struct gpucr_counts counts;
	struct list_head tasks;
	u32 num_tasks;
	unsigned int tries;
	unsigned long next_try;
	bool recovering;

	struct delayed_work watch;
	struct work_struct recover;
};

/**
 * struct gpucr_session_info - what session-get and events tell
 *
 * Members as the attributes of the same names.
 */
struct gpucr_session_info {
	u64 id;
	u64 age_ms;
	u64 paused_ms;
	struct gpucr_counts counts;
	u32 direction;
	u32 state;
	u32 error;
	u32 pid;
	u32 owner_pid;
	u32 tasks;
	char owner_comm[TASK_COMM_LEN];
	bool owner_gone;
	bool was_paused;
};

struct gpucr_session_stats {
	u32 open;
	u64 total;
	u64 abandoned;
	u64 recovered;
	u64 recovery_failed;
	bool draining;
};

/* The queues of the target are stopped in these states. */
static inline bool gpucr_state_paused(u32 state)
{
	return state == GPUCR_SESSION_STATE_PAUSED ||
	       state == GPUCR_SESSION_STATE_CHECKPOINTED ||
	       state == GPUCR_SESSION_STATE_ABANDONED;
}

struct gpucr_session *gpucr_session_open(u32 direction, struct pid *target,
					 struct file *kfd,
					 struct netlink_ext_ack *ack);
struct gpucr_session *gpucr_session_find(u64 id, struct netlink_ext_ack *ack);
void gpucr_session_get(struct gpucr_session *s);
void gpucr_session_put(struct gpucr_session *s);
bool gpucr_session_owned(struct gpucr_session *s);
int gpucr_session_check_part(struct gpucr_session *s,
			     struct netlink_ext_ack *ack);
int gpucr_session_check_look(struct gpucr_session *s, const struct file *holder,
			     struct netlink_ext_ack *ack);
u32 gpucr_session_state(struct gpucr_session *s);
bool gpucr_session_pausing(struct gpucr_session *s);
bool gpucr_session_change(struct gpucr_session *s, u32 state, int error,
			  const struct gpucr_counts *counts);
void gpucr_session_orphan(struct gpucr_session *s, const struct file *file,
			  const struct pid *owner);
int gpucr_session_end(struct gpucr_session *s, struct netlink_ext_ack *ack);
int gpucr_session_join(struct gpucr_session *s, struct netlink_ext_ack *ack);
struct gpucr_task *gpucr_session_task(struct gpucr_session *s, struct pid *tgid);
struct gpucr_snapshot *gpucr_session_snapshot(u64 id,
					      struct netlink_ext_ack *ack);
void gpucr_session_stats(struct gpucr_session_stats *stats);
void gpucr_session_unrecovered(void);
void gpucr_session_drain(bool drain);

struct file *gpucr_session_file(struct gpucr_session *s);

#endif
