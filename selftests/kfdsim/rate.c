// SPDX-License-Identifier: GPL-2.0
/*
 * How fast copies are. By themselves they go at the machine's speed; a rate
 * gives them the shape of a device that is slower than that.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include "kfdsim_drm.h"

#define SHORTEST_NS	200000	/* shorter debts are paid with the next ones */

static unsigned int copy_mbps;
module_param(copy_mbps, uint, 0644);
MODULE_PARM_DESC(copy_mbps, "10^6 bytes per second that the copies of one GPU get together; 0: no limit");

/**
 * kfdsim_rate_wait() - have the engines of a GPU be busy with bytes
 * @gpu: whose
 * @bytes: copied just now
 *
 * May sleep, with none of our locks held.
 */
void kfdsim_rate_wait(struct kfdsim_gpu *gpu, u64 bytes)
{
	unsigned int rate = READ_ONCE(copy_mbps);
	u64 now, until;

	if (!rate)
		return;
	now = ktime_get_ns();
	spin_lock(&gpu->rate_lock);
	until = max(now, gpu->rate_free) + div_u64(bytes * 1000, rate);
	gpu->rate_free = until;
	spin_unlock(&gpu->rate_lock);
	if (until - now >= SHORTEST_NS)
		fsleep(div_u64(until - now, NSEC_PER_USEC));
}
