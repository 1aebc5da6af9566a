// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection. A point is armed by a line in debugfs; an armed point may
 * sleep, hang until a signal, and fail with a chosen error.
 */
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>
#include "kfdsim_kfd.h"

/**
 * struct fault - one point
 * @name: as in kfdsim_fault()
 * @armed: all below is valid
 * @errno_: returned as its negative; 0: only the delay or the hang
 * @delay_ms: sleep first
 * @hang: then wait for a signal or a "clear"
 * @nth: calls up to this one, from 1, that pass
 * @count: how often it fires; 0: until cleared
 * @pid: only for this thread group, in the initial namespace; 0: all
 * @calls: calls since armed
 * @fired: how often it has fired
 */
struct fault {
	const char *name;
	bool armed;
	u32 errno_;
	u32 delay_ms;
	u32 hang;
	u32 nth;
	u32 count;
	u32 pid;
	u32 calls;
	u32 fired;
};

static struct fault faults[] = {
	{ .name = "criu-process-info" },
	{ .name = "criu-count" },
	{ .name = "criu-checkpoint" },
	{ .name = "criu-unpause" },
	{ .name = "criu-restore" },
	{ .name = "criu-resume" },
	{ .name = "alloc-memory" },
	{ .name = "map-memory" },
	{ .name = "create-queue" },
	{ .name = "cs-submit" },
	{ .name = "bo-create" },
	{ .name = "fence-never" },
	{ .name = "copy-partial" },
};

static DEFINE_SPINLOCK(fault_lock);
static DECLARE_WAIT_QUEUE_HEAD(fault_wq);
static unsigned int fault_generation;	/* changed by every "clear" */
static bool fault_any;			/* cheap test of the usual case */

static struct fault *fault_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (!strcmp(faults[i].name, name))
			return &faults[i];
	return NULL;
}

/* Does this call fire? Copies what to do; fault_lock held. */
static bool fault_take(const char *point, struct fault *todo)
{
	struct fault *f = fault_find(point);

	if (!f || !f->armed)
		return false;
	if (f->pid && f->pid != current->tgid)
		return false;
	if (++f->calls < f->nth)
		return false;
	if (f->count && f->fired >= f->count)
		return false;
	f->fired++;
	*todo = *f;
	return true;
}

static bool fault_cleared(unsigned int generation)
{
	return READ_ONCE(fault_generation) != generation;
}

int kfdsim_fault(const char *point)
{
	unsigned int generation;
	struct fault todo;
	bool fires;

	if (!READ_ONCE(fault_any))
		return 0;
	spin_lock(&fault_lock);
	fires = fault_take(point, &todo);
	generation = fault_generation;
	spin_unlock(&fault_lock);
	if (!fires)
		return 0;
	if (todo.delay_ms &&
	    msleep_interruptible(todo.delay_ms) && fatal_signal_pending(current))
		return -EINTR;
	if (todo.hang &&
	    wait_event_interruptible(fault_wq, fault_cleared(generation)))
		return -EINTR;
	return -(int)todo.errno_;
}

/* One key=value of an arming line. */
static int fault_parse(struct fault *f, const char *key, const char *value)
{
	u32 n;

	if (kstrtou32(value, 0, &n))
		return -EINVAL;
	if (!strcmp(key, "errno") && n && n <= MAX_ERRNO)
		f->errno_ = n;
	else if (!strcmp(key, "delay_ms") && n <= 600000)
		f->delay_ms = n;
	else if (!strcmp(key, "hang") && n <= 1)
		f->hang = n;
	else if (!strcmp(key, "nth") && n)
		f->nth = n;
	else if (!strcmp(key, "count"))
		f->count = n;
	else if (!strcmp(key, "pid"))
		f->pid = n;
	else
		return -EINVAL;
	return 0;
}

static void fault_clear_all(void)
{
	unsigned int i;

	spin_lock(&fault_lock);
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		faults[i] = (struct fault){ .name = faults[i].name };
	WRITE_ONCE(fault_any, false);
	WRITE_ONCE(fault_generation, fault_generation + 1);
	spin_unlock(&fault_lock);
	wake_up_all(&fault_wq);
}

static int fault_arm(char *line)
{
	struct fault new = { .armed = true, .nth = 1 };
	struct fault *f = NULL;
	char *word, *value;

	while ((word = strsep(&line, " \t"))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (!value)
			return -EINVAL;
		*value++ = 0;
		if (!strcmp(word, "point")) {
			f = fault_find(value);
			if (!f)
				return -EINVAL;
		} else if (fault_parse(&new, word, value)) {
			return -EINVAL;
		}
	}
	if (!f)
		return -EINVAL;
	if (!new.errno_ && !new.delay_ms && !new.hang)
		new.errno_ = EIO;
	new.name = f->name;
	spin_lock(&fault_lock);
	*f = new;
	WRITE_ONCE(fault_any, true);
	spin_unlock(&fault_lock);
	return 0;
}

/** kfdsim_fault_write() - obey one line, which is changed; 0 or -EINVAL */
ssize_t kfdsim_fault_write(char *line)
{
	line = strim(line);
	if (!strcmp(line, "clear")) {
		fault_clear_all();
		return 0;
	}
	return fault_arm(line);
}

/** kfdsim_fault_show() - list the points and what is armed */
void kfdsim_fault_show(struct seq_file *m)
{
	unsigned int i;

	spin_lock(&fault_lock);
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		const struct fault *f = &faults[i];

		seq_printf(m, "point=%s", f->name);
		if (f->armed)
			seq_printf(m, " errno=%u delay_ms=%u hang=%u nth=%u count=%u pid=%u fired=%u",
				   f->errno_, f->delay_ms, f->hang, f->nth,
				   f->count, f->pid, f->fired);
		seq_putc(m, '\n');
	}
	spin_unlock(&fault_lock);
}

void kfdsim_fault_exit(void)
{
	fault_clear_all();
}
