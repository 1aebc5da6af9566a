/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_QUEUE_H
#define GPUCR_QUEUE_H

#include <linux/types.h>

struct gpucr_counts;
struct gpucr_session;
struct gpucr_snapshot;
struct netlink_ext_ack;

/* Most queues kept of a session: told by info-get. KFD allows 1024 a process. */
#define GPUCR_MAX_QUEUES	4096

/**
 * struct gpucr_queue - one queue of a checkpoint
 *
 * Members as the attributes of the same names; untrusted numbers, which are
 * only ever told.
 */
struct gpucr_queue {
	u64 ring;
	u64 ring_size;
	u64 read_pointer;
	u64 write_pointer;
	u64 doorbell;
	u64 eop;
	u64 ctx_save;
	u32 queue_id;
	u32 gpu_id;
	u32 type;
	u32 format;
	u32 doorbell_id;
	u32 priority;
	u32 percent;
	u32 sdma_id;
	u32 gws;
	u32 eop_size;
	u32 ctx_save_size;
	u32 mqd_size;
	u32 ctl_stack_size;
	u32 pad;
};

/**
 * struct gpucr_queues - the queues of a checkpoint
 * @num: how many
 * @queues: in the order of the private data
 */
struct gpucr_queues {
	u32 num;
	struct gpucr_queue queues[] __aligned(8);
};

int gpucr_queues_keep(struct gpucr_session *s, u64 priv,
		      const struct gpucr_counts *counts,
		      struct netlink_ext_ack *ack);
struct gpucr_snapshot *gpucr_queue_snapshot(struct gpucr_session *s,
					    struct netlink_ext_ack *ack);

#endif
