/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GPU memory filled by CRIU's own process while the tasks go on with their
 * restore: how the buffers get there, and when it is over.
 *
 * A lane is a pair of sockets, one end with a thread of CRIU's process, the
 * other in CRIU's store of descriptors, which every task reaches whatever its
 * namespaces. A task that has its buffer objects takes a lane and sends their
 * dma-bufs; once they are taken its hook is done. Where anything stands in the
 * way the task fills them itself, and so it may also where only the answer was
 * lost: both would write the same bytes.
 */
#ifndef GPUCR_OVERLAP_H
#define GPUCR_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "content.h"

/*
 * Fills the BOs of a KFD image, whose dma-bufs stay the caller's, in a thread
 * that has none of CRIU's signals. -errno, logged.
 */
typedef int (*overlap_fill_fn)(uint32_t image_id, const int *fds, size_t num,
			       const struct content_watch *watch);

struct overlap_result {
	unsigned int processes;	/* that were filled so */
	uint64_t fill_ms;	/* from the first begin to the last end */
	uint64_t wait_ms;	/* of it in overlap_end() */
};

/* In CRIU, before it forks: lanes for so many. A failure is no overlap. */
void overlap_init(unsigned int num);
/* In CRIU, when the tasks are there: the threads. */
void overlap_start(overlap_fill_fn fill);
/* In a task: are they taken? The dma-bufs stay the caller's either way. */
bool overlap_hand_over(uint32_t image_id, const int *fds, size_t num);
/* In a task, at any time: -errno of the fill that failed first, 0. */
int overlap_error(void);
/*
 * In CRIU, when no task can hand over any more: waits for all fills, or with
 * cancel ends them early. No thread is left. -errno of the one that failed
 * first; what they had to say is logged now. Once; then it is 0.
 */
int overlap_end(bool cancel, struct overlap_result *ret);

#endif
