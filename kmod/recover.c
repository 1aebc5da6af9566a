// SPDX-License-Identifier: GPL-2.0
/*
 * Looking after sessions: targets that die, owners that die, and the helper
 * that sets an abandoned target going.
 *
 * When the file of a session is closed by a dying owner, the owner still
 * traces the target and has no memory any more: nothing can be called then. A
 * watch comes by until the target has no tracer, and then runs the helper,
 * which becomes the tracer and has UNPAUSE relayed. The verdict is the state
 * of the session, whatever the helper says.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/printk.h>
#include <linux/workqueue.h>

#include "fault.h"
#include "recover.h"
#include "session.h"
#include "task.h"

/* A target that dies frees its memory, and a dead owner is seen, after this. */
#define GPUCR_WATCH_MS		250
/* The same while a target waits for its recovery. */
#define GPUCR_WATCH_SOON_MS	20
#define GPUCR_RECOVER_TRIES	3
#define GPUCR_RECOVER_PAUSE_MS	1000

static char *recovery_helper = "/usr/sbin/gpucr";
module_param(recovery_helper, charp, 0400);
MODULE_PARM_DESC(recovery_helper,
		 "program run as \"session recover id ID\" for an abandoned session; empty: none");

/* Watches never wait for a helper, and helpers run one at a time. */
static struct workqueue_struct *gpucr_watch_wq;
static struct workqueue_struct *gpucr_recover_wq;

const char *gpucr_recover_helper(void)
{
	return recovery_helper && *recovery_helper ? recovery_helper : NULL;
}

static void gpucr_recover_run(struct work_struct *work)
{
	struct gpucr_session *s = container_of(work, struct gpucr_session,
					       recover);
	char id[sizeof("0x") + 16];
	char *argv[6] = { recovery_helper, "session", "recover", "id", id };
	char *envp[3] = { "HOME=/", "PATH=/usr/sbin:/usr/bin:/sbin:/bin" };
	bool give_up;

	snprintf(id, sizeof(id), "0x%llx", s->id);
	if (gpucr_session_state(s) == GPUCR_SESSION_STATE_ABANDONED &&
	    !gpucr_fault(GPUCR_FAULT_HELPER))
		call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
	spin_lock(&s->lock);
	s->recovering = false;
	s->next_try = jiffies + msecs_to_jiffies(GPUCR_RECOVER_PAUSE_MS);
	give_up = s->state == GPUCR_SESSION_STATE_ABANDONED &&
		  s->tries >= GPUCR_RECOVER_TRIES;
	spin_unlock(&s->lock);
	if (give_up) {
		gpucr_session_unrecovered();
		pr_notice_ratelimited("not recovered; run: gpucr session recover id 0x%llx\n",
				      s->id);
	}
	gpucr_session_put(s);
}

/* The target waits: run the helper where it is its turn. */
static void gpucr_recover_try(struct gpucr_session *s)
{
	bool run;

	if (!gpucr_recover_helper() || gpucr_task_traced(s->target))
		return;
	spin_lock(&s->lock);
	run = !s->ended && s->state == GPUCR_SESSION_STATE_ABANDONED &&
	      !s->recovering && s->tries < GPUCR_RECOVER_TRIES &&
	      time_after_eq(jiffies, s->next_try);
	if (run) {
		s->recovering = true;
		s->tries++;
	}
	spin_unlock(&s->lock);
	if (!run)
		return;
	gpucr_session_get(s);
	queue_work(gpucr_recover_wq, &s->recover);
}

static unsigned long gpucr_watch_delay(const struct gpucr_session *s)
{
	bool soon = s->state == GPUCR_SESSION_STATE_ABANDONED &&
		    s->tries < GPUCR_RECOVER_TRIES;

	return msecs_to_jiffies(soon ? GPUCR_WATCH_SOON_MS : GPUCR_WATCH_MS);
}

static void gpucr_watch_target(struct gpucr_session *s)
{
	u32 state = gpucr_session_state(s);

	if (!gpucr_task_gone(s->target)) {
		if (state == GPUCR_SESSION_STATE_ABANDONED)
			gpucr_recover_try(s);
		return;
	}
	if (state != GPUCR_SESSION_STATE_UNPAUSED &&
	    state != GPUCR_SESSION_STATE_FAILED)
		gpucr_session_change(s, GPUCR_SESSION_STATE_FAILED, -ESRCH,
				     NULL);
}

/* A fork of a dead owner may still hold copies of the session's file. */
static void gpucr_watch_owner(struct gpucr_session *s)
{
	struct pid *owner;

	spin_lock(&s->lock);
	owner = get_pid(s->owner);
	spin_unlock(&s->lock);
	if (gpucr_task_gone(owner))
		gpucr_session_orphan(s, NULL, owner);
	put_pid(owner);
}

/* Owns a reference of the session, which it hands on when it comes again. */
static void gpucr_watch_run(struct work_struct *work)
{
	struct gpucr_session *s = container_of(work, struct gpucr_session,
					       watch.work);
	bool again;

	gpucr_watch_target(s);
	gpucr_watch_owner(s);
	spin_lock(&s->lock);
	again = !s->ended && queue_delayed_work(gpucr_watch_wq, &s->watch,
						gpucr_watch_delay(s));
	spin_unlock(&s->lock);
	if (!again)
		gpucr_session_put(s);
}

void gpucr_watch_init(struct gpucr_session *s)
{
	INIT_DELAYED_WORK(&s->watch, gpucr_watch_run);
	INIT_WORK(&s->recover, gpucr_recover_run);
}

/**
 * gpucr_watch_kick() - look after a session, now and from now on
 * @s: a checkpoint session
 */
void gpucr_watch_kick(struct gpucr_session *s)
{
	bool pending = true;

	gpucr_session_get(s);
	spin_lock(&s->lock);
	if (!s->ended)
		pending = mod_delayed_work(gpucr_watch_wq, &s->watch, 1);
	spin_unlock(&s->lock);
	/* Work that was queued has a reference already. */
	if (pending)
		gpucr_session_put(s);
}

/* The session has ended; a watch that runs now does not come again. */
void gpucr_watch_stop(struct gpucr_session *s)
{
	if (cancel_delayed_work(&s->watch))
		gpucr_session_put(s);
}

int gpucr_recover_init(void)
{
	gpucr_watch_wq = alloc_workqueue("gpucr_watch", WQ_UNBOUND, 0);
	if (!gpucr_watch_wq)
		return -ENOMEM;
	gpucr_recover_wq = alloc_ordered_workqueue("gpucr_recover", 0);
	if (!gpucr_recover_wq)
		goto err_watch;
	return 0;

err_watch:
	destroy_workqueue(gpucr_watch_wq);
	return -ENOMEM;
}

/*
 * No session is left: each holds the module by its file or its pause. Work
 * that let the last of them go may still be on its way out.
 */
void gpucr_recover_exit(void)
{
	destroy_workqueue(gpucr_recover_wq);
	destroy_workqueue(gpucr_watch_wq);
}
