// SPDX-License-Identifier: GPL-2.0-only
/* Just enough of io_uring to have somebody else send and receive. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring.h"

bool ring_open(struct ring *r, uint32_t flags)
{
	memset(r, 0, sizeof(*r));
	r->p.flags = flags;
	r->p.sq_thread_idle = 1000;
	r->fd = syscall(SYS_io_uring_setup, 4, &r->p);
	if (r->fd < 0)
		return false;
	r->sq = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		     IORING_OFF_SQ_RING);
	r->cq = r->p.features & IORING_FEAT_SINGLE_MMAP ? r->sq :
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		     IORING_OFF_CQ_RING);
	r->sqe = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		      IORING_OFF_SQES);
	return r->sq != MAP_FAILED && r->cq != MAP_FAILED &&
	       r->sqe != MAP_FAILED;
}

int ring_do(struct ring *r, uint8_t opcode, int fd, void *buf, size_t len,
	    uint8_t flags)
{
	volatile uint32_t *tail = (void *)(r->sq + r->p.sq_off.tail);
	volatile uint32_t *head = (void *)(r->cq + r->p.cq_off.head);
	uint32_t *array = (void *)(r->sq + r->p.sq_off.array);
	struct io_uring_cqe *cqes = (void *)(r->cq + r->p.cq_off.cqes);
	uint32_t mask = *(uint32_t *)(r->cq + r->p.cq_off.ring_mask);
	bool thread = r->p.flags & IORING_SETUP_SQPOLL;
	int ret;

	memset(r->sqe, 0, sizeof(*r->sqe));
	r->sqe->opcode = opcode;
	r->sqe->flags = flags;
	r->sqe->fd = fd;
	r->sqe->addr = (uintptr_t)buf;
	r->sqe->len = len;
	array[*tail & (r->p.sq_entries - 1)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_SEQ_CST);
	/* The kernel's own thread may be asleep. */
	if (syscall(SYS_io_uring_enter, r->fd, thread ? 0 : 1, 1,
		    IORING_ENTER_GETEVENTS |
		    (thread ? IORING_ENTER_SQ_WAKEUP : 0), NULL, 0) < 0)
		return -errno;
	ret = cqes[*head & mask].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return ret;
}
