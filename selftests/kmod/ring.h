/* SPDX-License-Identifier: GPL-2.0-only */
/* Just enough of io_uring to have somebody else send and receive. */
#ifndef GPUCR_RING_H
#define GPUCR_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/io_uring.h>

struct ring {
	int fd;
	char *sq, *cq;
	struct io_uring_sqe *sqe;
	struct io_uring_params p;
};

/* flags: IORING_SETUP_*. false: io_uring is off. */
bool ring_open(struct ring *r, uint32_t flags);
/* One operation with a buffer; flags: IOSQE_*. Returns its result. */
int ring_do(struct ring *r, uint8_t opcode, int fd, void *buf, size_t len,
	    uint8_t flags);

#endif
