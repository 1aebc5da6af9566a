// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Fault points
 *
 * For tests only: setting the parameter taints the kernel. It is a list of
 * POINT:ERRNO[,COUNT], separated by blanks or semicolons; the point fails COUNT
 * times (1) with that errno, a name or a number. Each setting replaces the one
 * before; an empty one ends all. Reading tells of each point the errno, how
 * often it is still to fail, and how often it has.
 *
 * Points of KFD's calls come in pairs: NAME, KFD is not called; NAME-after, KFD
 * was called and has succeeded, and its answer is lost. What a fault leads to:
 *
 * =================  ======================================================
 * session-new        refused; no session
 * session-file       refused; no session, no descriptor
 * session-reply      refused; no session, no descriptor
 * join               refused; no member
 * snapshot           any list is refused, with ENOMEM
 * event              the event is lost; the state is as it should be
 * helper             the recovery helper does not start; tried again
 * relay              the operation is refused; the state is as before
 * args               as NAME for the KFD call that comes next
 * heal               pause fails; the session is as before, the target runs
 * pause              pause fails; FAILED, the target runs
 * undo               of a pause that fails: PAUSED, unpause is due
 * checkpoint         as before: PAUSED or CHECKPOINTED
 * unpause            as before: PAUSED or CHECKPOINTED; may be repeated
 * restore            FAILED; the task that restored is of no use
 * resume             FAILED; resumed is not tried again
 * queue-keep         the checkpoint succeeds, kept-error tells
 * remap-read         the restore succeeds, no offsets, kept-error tells
 * remap-fill         the restore succeeds, one offset less, kept-error tells
 * remap-set          refused
 * =================  ======================================================
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "fault.h"

#define GPUCR_FAULT_MAX_COUNT	1000000

static const char *const gpucr_fault_names[GPUCR_FAULT_POINTS] = {
	[GPUCR_FAULT_SESSION_NEW] = "session-new",
	[GPUCR_FAULT_SESSION_FILE] = "session-file",
	[GPUCR_FAULT_SESSION_REPLY] = "session-reply",
	[GPUCR_FAULT_JOIN] = "join",
	[GPUCR_FAULT_SNAPSHOT] = "snapshot",
	[GPUCR_FAULT_EVENT] = "event",
	[GPUCR_FAULT_HELPER] = "helper",
	[GPUCR_FAULT_RELAY] = "relay",
	[GPUCR_FAULT_ARGS] = "args",
	[GPUCR_FAULT_HEAL] = "heal",
	[GPUCR_FAULT_HEAL_AFTER] = "heal-after",
	[GPUCR_FAULT_PAUSE] = "pause",
	[GPUCR_FAULT_PAUSE_AFTER] = "pause-after",
	[GPUCR_FAULT_UNDO] = "undo",
	[GPUCR_FAULT_UNDO_AFTER] = "undo-after",
	[GPUCR_FAULT_CHECKPOINT] = "checkpoint",
	[GPUCR_FAULT_CHECKPOINT_AFTER] = "checkpoint-after",
	[GPUCR_FAULT_UNPAUSE] = "unpause",
	[GPUCR_FAULT_UNPAUSE_AFTER] = "unpause-after",
	[GPUCR_FAULT_RESTORE] = "restore",
	[GPUCR_FAULT_RESTORE_AFTER] = "restore-after",
	[GPUCR_FAULT_RESUME] = "resume",
	[GPUCR_FAULT_RESUME_AFTER] = "resume-after",
	[GPUCR_FAULT_QUEUE_KEEP] = "queue-keep",
	[GPUCR_FAULT_REMAP_READ] = "remap-read",
	[GPUCR_FAULT_REMAP_FILL] = "remap-fill",
	[GPUCR_FAULT_REMAP_SET] = "remap-set",
};

static const struct {
	const char *name;
	int number;
} gpucr_errnos[] = {
	{ "EAGAIN", EAGAIN }, { "EBUSY", EBUSY }, { "EFAULT", EFAULT },
	{ "EINTR", EINTR }, { "EINVAL", EINVAL }, { "EIO", EIO },
	{ "EMFILE", EMFILE }, { "ENODEV", ENODEV }, { "ENOMEM", ENOMEM },
	{ "ENOSPC", ENOSPC }, { "EPERM", EPERM }, { "ESRCH", ESRCH },
	{ "ETIME", ETIME }, { "ETIMEDOUT", ETIMEDOUT },
};

/**
 * struct gpucr_fault_state - what a point is to do
 * @number: errno
 * @left: how often it is still to fail
 * @fired: how often it has, since the module was loaded
 */
struct gpucr_fault_state {
	unsigned int number;
	unsigned int left;
	unsigned int fired;
};

static DEFINE_SPINLOCK(gpucr_fault_lock);	/* protects what follows */
static struct gpucr_fault_state gpucr_faults[GPUCR_FAULT_POINTS];
/* Points with something left; read without the lock, to be quick. */
unsigned int gpucr_faults_armed;

/* The slow part of gpucr_fault(). */
int gpucr_fault_fire(enum gpucr_fault_point point)
{
	struct gpucr_fault_state *f = &gpucr_faults[point];
	int err = 0;

	spin_lock(&gpucr_fault_lock);
	if (f->left) {
		err = -(int)f->number;
		f->fired++;
		if (!--f->left)
			WRITE_ONCE(gpucr_faults_armed, gpucr_faults_armed - 1);
	}
	spin_unlock(&gpucr_fault_lock);
	if (err)
		pr_notice("fault at %s: %d\n", gpucr_fault_names[point], err);
	return err;
}

static int gpucr_fault_errno(const char *text, unsigned int *number)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(gpucr_errnos); i++) {
		if (!strcmp(gpucr_errnos[i].name, text)) {
			*number = gpucr_errnos[i].number;
			return 0;
		}
	}
	if (kstrtouint(text, 10, number) || !*number || *number > 133)
		return -EINVAL;
	return 0;
}

/* One POINT:ERRNO[,COUNT] into the states. */
static int gpucr_fault_parse(char *text, struct gpucr_fault_state *states)
{
	char *point = strsep(&text, ":");
	char *number = strsep(&text, ",");
	struct gpucr_fault_state f = { .left = 1 };
	int i;

	i = match_string(gpucr_fault_names, GPUCR_FAULT_POINTS, point);
	if (i < 0 || !number || gpucr_fault_errno(number, &f.number))
		return -EINVAL;
	if (text && (kstrtouint(text, 10, &f.left) || !f.left ||
		     f.left > GPUCR_FAULT_MAX_COUNT))
		return -EINVAL;
	states[i] = f;
	return 0;
}

static void gpucr_fault_set_all(const struct gpucr_fault_state *states)
{
	unsigned int i, armed = 0;

	spin_lock(&gpucr_fault_lock);
	for (i = 0; i < GPUCR_FAULT_POINTS; i++) {
		gpucr_faults[i].number = states[i].number;
		gpucr_faults[i].left = states[i].left;
		armed += states[i].left != 0;
	}
	WRITE_ONCE(gpucr_faults_armed, armed);
	spin_unlock(&gpucr_fault_lock);
}

static void gpucr_fault_list(const char *wrong)
{
	unsigned int i;

	pr_notice("fault \"%s\": not POINT:ERRNO[,COUNT] with one of these points:\n",
		  wrong);
	for (i = 0; i < GPUCR_FAULT_POINTS; i++)
		pr_notice("fault point %s\n", gpucr_fault_names[i]);
}

/* All or nothing. Serialised by the parameters' own lock. */
static int gpucr_fault_param_set(const char *value,
				 const struct kernel_param *kp)
{
	struct gpucr_fault_state states[GPUCR_FAULT_POINTS] = {};
	char *copy, *rest, *one;
	int err = 0;

	copy = kstrdup(value ?: "", GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = copy;
	while (!err && (one = strsep(&rest, "; \t\n"))) {
		if (!*one)
			continue;
		err = gpucr_fault_parse(one, states);
		if (err)
			gpucr_fault_list(one);
	}
	if (!err)
		gpucr_fault_set_all(states);
	kfree(copy);
	return err;
}

static int gpucr_fault_param_get(char *buffer, const struct kernel_param *kp)
{
	struct gpucr_fault_state f;
	int i, len = 0;

	for (i = 0; i < GPUCR_FAULT_POINTS; i++) {
		spin_lock(&gpucr_fault_lock);
		f = gpucr_faults[i];
		spin_unlock(&gpucr_fault_lock);
		len += scnprintf(buffer + len, PAGE_SIZE - len, "%s %u %u %u\n",
				 gpucr_fault_names[i], f.number, f.left,
				 f.fired);
	}
	return len;
}

static const struct kernel_param_ops gpucr_fault_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = gpucr_fault_param_set,
	.get = gpucr_fault_param_get,
};

module_param_cb_unsafe(fault, &gpucr_fault_ops, NULL, 0600);
MODULE_PARM_DESC(fault, "for tests: POINT:ERRNO[,COUNT] ..., see the source");
