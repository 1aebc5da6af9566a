/* SPDX-License-Identifier: GPL-2.0-only */
/* What backend.c and the two backends share. */
#ifndef GPUCR_BACKEND_OPS_H
#define GPUCR_BACKEND_OPS_H

#include <stdatomic.h>
#include <time.h>

#include "backend.h"
#include "owner.h"

struct gpucr_nl;

struct gpucr_backend {
	const struct gpucr_backend_ops *ops;
	struct gpucr_owner owner;
	dev_t kfd;
	struct rlimit old_limit;	/* of descriptors */
	bool limit_raised;
	struct gpucr_nl *nl;	/* netlink: the owner's socket */
};

struct gpucr_ckpt {
	struct gpucr_backend *be;
	pid_t pid;
	int kfd_fd;
	bool paused;
	bool unpause_failed;	/* said once */
	struct timespec paused_at, unpaused_at;
	uint64_t session;	/* netlink */
	int session_fd;
};

enum gpucr_ledger_state {
	GPUCR_LEDGER_FREE,
	GPUCR_LEDGER_RESTORING,
	GPUCR_LEDGER_RESTORED,
	GPUCR_LEDGER_RESUMED,
	GPUCR_LEDGER_FAILED,
};

/* In memory that all processes of the restore share. */
struct gpucr_ledger_entry {
	_Atomic int state;
	_Atomic int ns_pid;	/* in the innermost pid namespace */
};

struct gpucr_restore {
	struct gpucr_backend *be;
	struct gpucr_ledger_entry *ledger;
	unsigned int max;
	uint64_t session;	/* netlink */
	int session_fd;
	int kfd_fd;		/* the opener's own, for RESUME; -1: not yet */
};

/* Raw operations: no ledger, no state, nothing logged unless said. */
struct gpucr_backend_ops {
	const char *name;
	bool needs_guard;
	int (*open)(struct gpucr_backend *b);
	void (*close)(struct gpucr_backend *b);
	int (*ckpt_open)(struct gpucr_ckpt *c);
	int (*pause)(struct gpucr_ckpt *c, struct gpucr_kfd_counts *ret,
		     bool *was_paused);
	int (*read)(struct gpucr_ckpt *c, struct gpucr_kfd_state *s);
	int (*unpause)(struct gpucr_ckpt *c);
	void (*ckpt_close)(struct gpucr_ckpt *c);
	int (*restore_open)(struct gpucr_restore *r);
	int (*run)(struct gpucr_restore *r, int kfd_fd,
		   struct gpucr_kfd_state *s);
	int (*resume)(struct gpucr_restore *r, pid_t pid);
	void (*restore_close)(struct gpucr_restore *r);
	/* More about the last failure, whose errno is err; may be "". */
	const char *(*why)(struct gpucr_backend *b, int err);
};

extern const struct gpucr_backend_ops gpucr_backend_ioctl;
extern const struct gpucr_backend_ops gpucr_backend_nl;

#endif
