// SPDX-License-Identifier: GPL-2.0-only
#include "backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backend_ops.h"
#include "log.h"
#include "task.h"

/* Between two UNPAUSEs, doubled each time, and in all. */
#define UNPAUSE_WAIT_MS	50
#define UNPAUSE_ALL_MS	6000

static int open_with(const struct gpucr_backend_ops *ops,
		     struct gpucr_backend *b)
{
	b->ops = ops;
	return ops->open(b);
}

static int open_choice(struct gpucr_backend *b,
		       enum gpucr_backend_choice choice)
{
	int err;

	if (choice == GPUCR_BACKEND_IOCTL)
		return open_with(&gpucr_backend_ioctl, b);
	err = open_with(&gpucr_backend_nl, b);
	if (!err)
		return 0;
	if (choice == GPUCR_BACKEND_NETLINK) {
		gpucr_err("backend netlink: the gpucr module does not answer: %s (no-module); load it, or set backend to auto or ioctl",
			  strerror(-err));
		return err;
	}
	if (err == -EPROTO || err == -EPROTONOSUPPORT)
		gpucr_warn("the gpucr module speaks another protocol: using KFD's ioctls");
	return open_with(&gpucr_backend_ioctl, b);
}

int gpucr_backend_open(enum gpucr_backend_choice choice, dev_t kfd,
		       struct gpucr_backend **ret)
{
	struct gpucr_backend *b;
	int err;

	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->kfd = kfd;
	err = gpucr_owner_init(&b->owner);
	if (err)
		goto err_free;
	err = open_choice(b, choice);
	if (err)
		goto err_owner;
	gpucr_info("backend %s", b->ops->name);
	*ret = b;
	return 0;

err_owner:
	gpucr_owner_fini(&b->owner);
err_free:
	free(b);
	return err;
}

void gpucr_backend_close(struct gpucr_backend *b)
{
	if (!b)
		return;
	if (gpucr_owner_is_self(&b->owner)) {
		b->ops->close(b);
		if (b->limit_raised)
			gpucr_kfd_room_restore(&b->old_limit);
	}
	gpucr_owner_fini(&b->owner);
	free(b);
}

const char *gpucr_backend_name(const struct gpucr_backend *b)
{
	return b->ops->name;
}

bool gpucr_backend_needs_guard(const struct gpucr_backend *b)
{
	return b->ops->needs_guard;
}

const char *gpucr_backend_why(struct gpucr_backend *b, int err)
{
	const char *text = b->ops->why(b, err);

	return text && *text ? text : "no more is known";
}

int gpucr_ckpt_open(struct gpucr_backend *b, pid_t pid, int kfd_fd,
		    struct gpucr_ckpt **ret)
{
	struct gpucr_ckpt *c;
	int err;

	if (!gpucr_owner_is_self(&b->owner))
		return -EPERM;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->be = b;
	c->pid = pid;
	c->kfd_fd = kfd_fd;
	c->session_fd = -1;
	err = b->ops->ckpt_open(c);
	if (err) {
		gpucr_dbg("pid %d: no checkpoint session: %s: %s", pid,
			  strerror(-err), gpucr_backend_why(b, err));
		free(c);
		return err;
	}
	*ret = c;
	return 0;
}

int gpucr_ckpt_pause(struct gpucr_ckpt *c, struct gpucr_kfd_counts *ret,
		     bool *was_paused)
{
	int err;

	if (!gpucr_owner_is_self(&c->be->owner))
		return -EPERM;
	if (c->paused)
		return -EALREADY;
	*was_paused = false;
	err = c->be->ops->pause(c, ret, was_paused);
	if (err) {
		if (err != -ENODEV)
			gpucr_err("pid %d: its queues cannot be stopped: %s (%s) (pause-failed)",
				  c->pid, strerror(-err), gpucr_backend_why(c->be, err));
		return err;
	}
	c->paused = true;
	clock_gettime(CLOCK_MONOTONIC, &c->paused_at);
	gpucr_info("pid %d: paused, %u devices, %u BOs, %u objects, %llu bytes of private data",
		   c->pid, ret->num_devices, ret->num_bos, ret->num_objects,
		   (unsigned long long)ret->priv_size);
	return 0;
}

/* The limit stays up while dma-bufs are open: numbers below it may be taken. */
static int make_room(struct gpucr_backend *b, uint32_t num_bos)
{
	struct rlimit old;
	int err = gpucr_kfd_room(num_bos, &old);

	if (!err && !b->limit_raised) {
		b->old_limit = old;
		b->limit_raised = true;
	}
	return err;
}

int gpucr_ckpt_read(struct gpucr_ckpt *c, struct gpucr_kfd_state *s)
{
	int err;

	if (!gpucr_owner_is_self(&c->be->owner))
		return -EPERM;
	if (!c->paused)
		return -EINVAL;
	err = make_room(c->be, s->n.num_bos);
	if (err)
		return err;
	err = c->be->ops->read(c, s);
	if (err) {
		gpucr_err("pid %d: CHECKPOINT of %u devices, %u BOs, %u objects: %s (%s) (checkpoint-failed)",
			  c->pid, s->n.num_devices, s->n.num_bos,
			  s->n.num_objects, strerror(-err),
			  gpucr_backend_why(c->be, err));
		return err;
	}
	gpucr_kfd_state_set_cloexec(s);
	return 0;
}

/*
 * A target that stands still is the worst outcome, and asking KFD again does
 * no harm: where the queues run it answers EINVAL.
 */
static int ask_unpause(struct gpucr_ckpt *c)
{
	unsigned int wait_ms = UNPAUSE_WAIT_MS, waited = 0;
	int err;

	err = c->be->ops->unpause(c);
	while (err && waited < UNPAUSE_ALL_MS && !gpucr_task_is_gone(c->pid)) {
		const struct timespec wait = {
			.tv_sec = wait_ms / 1000,
			.tv_nsec = wait_ms % 1000 * 1000000L,
		};

		gpucr_dbg("pid %d: UNPAUSE: %s; asking again", c->pid,
			  strerror(-err));
		nanosleep(&wait, NULL);
		waited += wait_ms;
		wait_ms *= 2;
		err = c->be->ops->unpause(c);
		if (err == -EINVAL)
			err = 0;
	}
	return err;
}

int gpucr_ckpt_unpause(struct gpucr_ckpt *c)
{
	int err;

	if (!gpucr_owner_is_self(&c->be->owner))
		return -EPERM;
	if (!c->paused)
		return 0;
	err = ask_unpause(c);
	clock_gettime(CLOCK_MONOTONIC, &c->unpaused_at);
	if (err && !gpucr_task_is_gone(c->pid)) {
		/* It counts as paused: whoever ends this asks once more. */
		if (!c->unpause_failed)
			gpucr_err("pid %d: its queues cannot be set going again: %s (%s) (unpause-failed); its GPU work stands still: run gpucr session recover pid %d when criu has ended",
				  c->pid, strerror(-err),
				  gpucr_backend_why(c->be, err), c->pid);
		c->unpause_failed = true;
		return err;
	}
	c->paused = false;
	if (err)
		gpucr_info("pid %d: ended while it was paused", c->pid);
	else
		gpucr_info("pid %d: unpaused after %llu ms", c->pid,
			   (unsigned long long)gpucr_ckpt_paused_ms(c));
	return 0;
}

bool gpucr_ckpt_is_paused(const struct gpucr_ckpt *c)
{
	return c->paused;
}

void gpucr_ckpt_forget_pause(struct gpucr_ckpt *c)
{
	c->paused = false;
}

uint64_t gpucr_ckpt_paused_ms(const struct gpucr_ckpt *c)
{
	struct timespec now = c->unpaused_at;

	if (c->paused)
		clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - c->paused_at.tv_sec) * 1000 +
	       (now.tv_nsec - c->paused_at.tv_nsec) / 1000000;
}

void gpucr_ckpt_close(struct gpucr_ckpt *c)
{
	if (!c)
		return;
	if (gpucr_owner_is_self(&c->be->owner)) {
		gpucr_ckpt_unpause(c);
		c->be->ops->ckpt_close(c);
	}
	free(c);
}

static size_t ledger_bytes(unsigned int max)
{
	return (size_t)max * sizeof(struct gpucr_ledger_entry);
}

int gpucr_restore_open(struct gpucr_backend *b, unsigned int max,
		       struct gpucr_restore **ret)
{
	struct gpucr_restore *r;
	int err;

	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->be = b;
	r->max = max;
	r->session_fd = -1;
	r->kfd_fd = -1;
	r->ledger = mmap(NULL, ledger_bytes(max), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->ledger == MAP_FAILED) {
		err = -errno;
		goto err_free;
	}
	err = b->ops->restore_open(r);
	if (err && !*gpucr_log_first_error())
		gpucr_err("no restore session: %s (%s) (session-failed)",
			  strerror(-err), gpucr_backend_why(b, err));
	if (err)
		goto err_ledger;
	*ret = r;
	return 0;

err_ledger:
	munmap(r->ledger, ledger_bytes(max));
err_free:
	free(r);
	return err;
}

static struct gpucr_ledger_entry *ledger_claim(struct gpucr_restore *r)
{
	struct gpucr_ledger_entry *e;
	int self = getpid();
	unsigned int i;

	for (i = 0; i < r->max; i++) {
		int free_state = GPUCR_LEDGER_FREE;

		e = &r->ledger[i];
		if (atomic_compare_exchange_strong(&e->state, &free_state,
						   GPUCR_LEDGER_RESTORING)) {
			atomic_store(&e->ns_pid, self);
			return e;
		}
		/* Same number: this process, or one in another namespace. */
		if (atomic_load(&e->ns_pid) == self) {
			gpucr_err("pid %d is filled a second time, or twice in two pid namespaces (restore-twice)",
				  self);
			return NULL;
		}
	}
	gpucr_err("more KFD processes than images (restore-twice)");
	return NULL;
}

int gpucr_restore_run(struct gpucr_restore *r, int kfd_fd,
		      struct gpucr_kfd_state *s)
{
	struct gpucr_ledger_entry *e = ledger_claim(r);
	struct rlimit old;
	int err;

	if (!e)
		return -EALREADY;
	err = gpucr_kfd_room(s->n.num_bos, &old);
	if (!err) {
		err = r->be->ops->run(r, kfd_fd, s);
		gpucr_kfd_room_restore(&old);
		if (err)
			gpucr_err("RESTORE of %u devices, %u BOs, %u objects: %s (%s) (restore-failed)",
				  s->n.num_devices, s->n.num_bos,
				  s->n.num_objects, strerror(-err),
				  gpucr_backend_why(r->be, err));
	}
	if (err || !s->n.num_devices) {
		atomic_store(&e->state, GPUCR_LEDGER_FAILED);
		return err ? err : -ENODEV;
	}
	gpucr_kfd_state_set_cloexec(s);
	atomic_store(&e->state, GPUCR_LEDGER_RESTORED);
	return 0;
}

static struct gpucr_ledger_entry *ledger_find(struct gpucr_restore *r,
					      int ns_pid)
{
	unsigned int i;

	for (i = 0; i < r->max; i++) {
		struct gpucr_ledger_entry *e = &r->ledger[i];

		if (atomic_load(&e->state) >= GPUCR_LEDGER_RESTORED &&
		    atomic_load(&e->ns_pid) == ns_pid)
			return e;
	}
	return NULL;
}

int gpucr_restore_resume(struct gpucr_restore *r, pid_t pid)
{
	int restored = GPUCR_LEDGER_RESTORED;
	struct gpucr_ledger_entry *e;
	struct gpucr_task t;
	int err;

	if (!gpucr_owner_is_self(&r->be->owner))
		return -EPERM;
	err = gpucr_task_read(pid, &t);
	if (err)
		return err == -ESRCH ? -ENOENT : err;
	e = ledger_find(r, t.ns_pid);
	if (!e)
		return -ENOENT;
	/* Marked first: whatever happens, there is no second RESUME. */
	if (!atomic_compare_exchange_strong(&e->state, &restored,
					    GPUCR_LEDGER_RESUMED))
		return -EALREADY;
	err = r->be->ops->resume(r, pid);
	if (err)
		gpucr_err("pid %d: RESUME: %s (%s) (resume-failed)", pid,
			  strerror(-err), gpucr_backend_why(r->be, err));
	else
		gpucr_info("pid %d: resumed", pid);
	return err;
}

unsigned int gpucr_restore_pending(const struct gpucr_restore *r)
{
	unsigned int i, n = 0;

	for (i = 0; i < r->max; i++)
		n += atomic_load(&r->ledger[i].state) == GPUCR_LEDGER_RESTORED;
	return n;
}

void gpucr_restore_close(struct gpucr_restore *r)
{
	if (!r)
		return;
	if (gpucr_owner_is_self(&r->be->owner))
		r->be->ops->restore_close(r);
	munmap(r->ledger, ledger_bytes(r->max));
	free(r);
}
