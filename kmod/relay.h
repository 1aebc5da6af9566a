/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_RELAY_H
#define GPUCR_RELAY_H

#include <linux/types.h>

#include "session.h"

struct netlink_ext_ack;

enum gpucr_relay_op {
	GPUCR_RELAY_PAUSE,
	GPUCR_RELAY_CHECKPOINT,
	GPUCR_RELAY_UNPAUSE,
	GPUCR_RELAY_RESTORE,
	GPUCR_RELAY_RESUME,
};

/**
 * struct gpucr_relay - one KFD operation through a session
 * @op: which
 * @session: referenced
 * @asker: thread that sent the request, referenced; only it may have the call
 *	made
 * @calls: callbacks of the dump so far
 * @kfd_fd: the caller's own KFD file; restore and resume
 * @pid: resume: number of the task, in the caller's namespace. After a pause:
 *	the target's, as KFD told
 * @devices: address in the caller's memory
 * @bos: address in the caller's memory
 * @priv: address in the caller's memory
 * @counts: what lies there; after a pause: what KFD counted
 * @image_pid: restore: the task's pid in the image; 0: keep no offsets
 * @keeps: @kept is told
 * @kept: queues or offsets that the session has kept
 * @kept_error: why not all of them, negative, or 0
 * @error: 0 or a negative errno
 * @message: constant sentence on @error or @kept_error, or NULL
 *
 * Owned by the dump; netlink serialises all use.
 */
struct gpucr_relay {
	enum gpucr_relay_op op;
	struct gpucr_session *session;
	struct pid *asker;
	unsigned int calls;
	u32 kfd_fd;
	u32 pid;
	u64 devices;
	u64 bos;
	u64 priv;
	struct gpucr_counts counts;
	u32 image_pid;
	bool keeps;
	u32 kept;
	int kept_error;
	int error;
	const char *message;
};

struct gpucr_relay *gpucr_relay_new(enum gpucr_relay_op op, u64 id,
				    struct netlink_ext_ack *ack);
void gpucr_relay_free(struct gpucr_relay *r);
int gpucr_relay_check(struct gpucr_relay *r, struct netlink_ext_ack *ack);
void gpucr_relay_call(struct gpucr_relay *r);

#endif
