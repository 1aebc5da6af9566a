// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks: who the caller is, what it may do, and what another task holds.
 *
 * The rule for another task's GPU state is KFD's own: the caller is the task,
 * or traces its leader. A task is known by the struct pid of its thread group.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/delay.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "task.h"

/* How long an exec may hold us up: the caller holds generic netlink's lock. */
#define GPUCR_EXEC_TRIES	100
#define GPUCR_EXEC_STEP_MS	10

/**
 * gpucr_caller_capable() - may the sender of a message use the module?
 * @skb: the message
 * @ack: told why not
 *
 * Both the opener of the socket and the caller need the capability in the
 * initial user namespace, so that a privileged program which writes to a
 * socket that it was handed gives nothing away.
 *
 * Return: 0 or -EPERM.
 */
int gpucr_caller_capable(struct sk_buff *skb, struct netlink_ext_ack *ack)
{
	if (netlink_capable(skb, CAP_CHECKPOINT_RESTORE) ||
	    netlink_capable(skb, CAP_SYS_ADMIN))
		return 0;
	NL_SET_ERR_MSG(ack,
		       "needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN in the initial user namespace");
	return -EPERM;
}

/**
 * gpucr_caller_is_process() - is the caller a plain 64-bit process?
 * @ack: told why not
 *
 * KFD works on the caller's own memory and file table and knows no 32-bit
 * callers; kernel threads and io_uring's workers are somebody else.
 *
 * Return: 0 or -EOPNOTSUPP.
 */
int gpucr_caller_is_process(struct netlink_ext_ack *ack)
{
	if ((current->flags & (PF_KTHREAD | PF_IO_WORKER)) || !current->mm) {
		NL_SET_ERR_MSG(ack, "the caller must be a process of its own");
		return -EOPNOTSUPP;
	}
	if (in_compat_syscall()) {
		NL_SET_ERR_MSG(ack, "32-bit callers are not supported");
		return -EOPNOTSUPP;
	}
	return 0;
}

/**
 * gpucr_task_find() - thread group by number
 * @nr: number in the caller's pid namespace
 *
 * Return: its struct pid with a reference, or NULL where no thread group has
 * that number or it is dead.
 */
struct pid *gpucr_task_find(u32 nr)
{
	struct pid *tgid;

	if (!nr || nr > PID_MAX_LIMIT)
		return NULL;
	tgid = find_get_pid(nr);
	if (tgid && gpucr_task_gone(tgid)) {
		put_pid(tgid);
		return NULL;
	}
	return tgid;
}

/**
 * gpucr_task_gone() - have all threads of a group begun to exit?
 * @tgid: the group
 *
 * A zombie is gone: its memory and files are, or will be in a moment.
 *
 * Return: true where nothing runs any more.
 */
bool gpucr_task_gone(struct pid *tgid)
{
	struct task_struct *task;
	bool gone;

	rcu_read_lock();
	task = pid_task(tgid, PIDTYPE_TGID);
	gone = !task || !atomic_read(&task->signal->live);
	rcu_read_unlock();
	return gone;
}

bool gpucr_task_is_caller(struct pid *tgid)
{
	return task_tgid(current) == tgid;
}

/**
 * gpucr_task_traced() - does anybody trace the leader of a thread group?
 * @tgid: the group
 *
 * Return: true where it has a tracer now.
 */
bool gpucr_task_traced(struct pid *tgid)
{
	struct task_struct *task;
	bool traced;

	rcu_read_lock();
	task = pid_task(tgid, PIDTYPE_TGID);
	traced = task && ptrace_parent(task);
	rcu_read_unlock();
	return traced;
}

/**
 * gpucr_task_check_mine() - may the caller see and change a task's GPU state?
 * @tgid: thread group of the task
 * @ack: told why not
 *
 * Return: 0, -ESRCH where it has died, -EPERM where the caller is neither the
 * task nor the thread that traces its leader.
 */
int gpucr_task_check_mine(struct pid *tgid, struct netlink_ext_ack *ack)
{
	struct task_struct *task;
	int err = -ESRCH;

	rcu_read_lock();
	task = pid_task(tgid, PIDTYPE_TGID);
	if (task)
		err = same_thread_group(task, current) ||
		      ptrace_parent(task) == current ? 0 : -EPERM;
	rcu_read_unlock();
	if (err == -ESRCH)
		NL_SET_ERR_MSG(ack, "the task has died");
	if (err == -EPERM)
		NL_SET_ERR_MSG(ack,
			       "the calling thread must trace the task, or be part of it");
	return err;
}

/**
 * gpucr_task_lock_exec() - keep a task from becoming another program
 * @task: the task, referenced by the caller
 * @ack: told why not
 *
 * Return: 0, -EAGAIN where an exec did not end in time, -EINTR on a fatal
 * signal. Undone by gpucr_task_unlock_exec().
 */
int gpucr_task_lock_exec(struct task_struct *task, struct netlink_ext_ack *ack)
{
	int i;

	for (i = 0; i < GPUCR_EXEC_TRIES; i++) {
		if (down_read_trylock(&task->signal->exec_update_lock))
			return 0;
		if (fatal_signal_pending(current))
			return -EINTR;
		msleep(GPUCR_EXEC_STEP_MS);
	}
	NL_SET_ERR_MSG(ack, "the task is busy with an exec; ask again");
	return -EAGAIN;
}

void gpucr_task_unlock_exec(struct task_struct *task)
{
	up_read(&task->signal->exec_update_lock);
}

/* Called under the file table's lock; pointers are compared, never followed. */
static int gpucr_same_open(const void *arg, struct file *file, unsigned int fd)
{
	const struct file *like = arg;

	return file->f_op == like->f_op &&
	       file->private_data == like->private_data;
}

/**
 * gpucr_task_holds() - does a task hold a file that means the same as ours?
 * @task: the task, referenced by the caller
 * @file: a file; the same driver state behind it counts as the same
 *
 * Return: true where the task's table has one.
 */
bool gpucr_task_holds(struct task_struct *task, struct file *file)
{
	bool found;

	/* Keeps the table from being exchanged. */
	task_lock(task);
	found = iterate_fd(task->files, 0, gpucr_same_open, file) != 0;
	task_unlock(task);
	return found;
}
