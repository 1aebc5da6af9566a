/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pausing, reading, filling and resuming KFD processes, by the gpucr module
 * (netlink) or by KFD's own ioctls. Same rules for both:
 *
 *  - UNPAUSE before PROCESS_INFO, and PROCESS_INFO once: some kernels count
 *    every PROCESS_INFO as one more eviction, and undo one.
 *  - RESUME once, only for a process that restored at least one device through
 *    this object, and never again after a failure: a stray RESUME corrupts
 *    memory or oopses.
 *
 * A checkpoint object is used by the process, and the thread, that made it:
 * the tracer of the target. In a forked child its functions do nothing. A
 * restore object is made in one process, filled by its descendants, resumed
 * in the first. Failures are -errno and logged, except where said.
 */
#ifndef GPUCR_BACKEND_H
#define GPUCR_BACKEND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kfd.h"
#include "opt.h"

struct gpucr_backend;

/*
 * GPUCR_BACKEND_AUTO takes the module where it answers; an explicit choice
 * never falls back. kfd: KFD's device number.
 */
int gpucr_backend_open(enum gpucr_backend_choice choice, dev_t kfd,
		       struct gpucr_backend **ret);
void gpucr_backend_close(struct gpucr_backend *b);
const char *gpucr_backend_name(const struct gpucr_backend *b);
/* Does a pause outlive its caller, with nobody to undo it? */
bool gpucr_backend_needs_guard(const struct gpucr_backend *b);
/* More about a failure that was just returned; never NULL. */
const char *gpucr_backend_why(struct gpucr_backend *b, int err);

/* One KFD process being read. */
struct gpucr_ckpt;

/*
 * pid owns the KFD process behind kfd_fd, which stays open and the caller's
 * until gpucr_ckpt_close(). Not logged: -EBUSY where the process has a
 * checkpoint object already (netlink only), -EINVAL where pid and file do not
 * belong together.
 */
int gpucr_ckpt_open(struct gpucr_backend *b, pid_t pid, int kfd_fd,
		    struct gpucr_ckpt **ret);
/*
 * Stops the queues. *was_paused: they were stopped already; they are stopped
 * once now. -ENODEV, not logged: the process has no GPU.
 */
int gpucr_ckpt_pause(struct gpucr_ckpt *c, struct gpucr_kfd_counts *ret,
		     bool *was_paused);
/* Fills s, allocated for the counts of the pause. Its dma-bufs get CLOEXEC. */
int gpucr_ckpt_read(struct gpucr_ckpt *c, struct gpucr_kfd_state *s);
/*
 * 0 also where it is not paused. Where KFD refuses it is asked again for a few
 * seconds; the object counts as paused after a failure.
 */
int gpucr_ckpt_unpause(struct gpucr_ckpt *c);
bool gpucr_ckpt_is_paused(const struct gpucr_ckpt *c);
/* How long the queues were, or are, stopped. */
uint64_t gpucr_ckpt_paused_ms(const struct gpucr_ckpt *c);
/* Leave the pause to another object of the same KFD process. */
void gpucr_ckpt_forget_pause(struct gpucr_ckpt *c);
/* Unpauses first, where that is due. */
void gpucr_ckpt_close(struct gpucr_ckpt *c);

/* KFD processes being filled. */
struct gpucr_restore;

/* max: how many processes may be filled. */
int gpucr_restore_open(struct gpucr_backend *b, unsigned int max,
		       struct gpucr_restore **ret);
/* In the task: fill the caller's own KFD process. dma-bufs get CLOEXEC. */
int gpucr_restore_run(struct gpucr_restore *r, int kfd_fd,
		      struct gpucr_kfd_state *s);
/*
 * In the opener: let pid go. -ENOENT, not logged: it was not filled through
 * this object. -EALREADY: it was resumed, or tried, before.
 */
int gpucr_restore_resume(struct gpucr_restore *r, pid_t pid);
/* Processes filled and not yet resumed. */
unsigned int gpucr_restore_pending(const struct gpucr_restore *r);
void gpucr_restore_close(struct gpucr_restore *r);

#endif
