// SPDX-License-Identifier: GPL-2.0-only
/*
 * Callers that are no plain process: a 32-bit system call, and io_uring's
 * worker. KFD works on the memory and files of the current task.
 *
 * Mutation that must turn this red: gpucr_caller_is_process() returns 0.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/io_uring.h>

#include "../ktap.h"
#include "raw.h"
#include "util.h"

static struct raw nl;
static struct raw_ans *ans;

/* socketcall(SYS_SENDTO) by int 0x80, with everything below 4 GiB. */
static long send32(int fd, struct raw_req *q)
{
	struct nlmsghdr *h = (struct nlmsghdr *)q;
	uint32_t *args;
	long ret;
	char *low;

	low = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return -errno;
	args = (uint32_t *)low;
	memcpy(low + 4096, h, h->nlmsg_len);
	args[0] = fd;
	args[1] = (uint32_t)(uintptr_t)(low + 4096);
	args[2] = h->nlmsg_len;
	args[3] = 0;
	args[4] = 0;
	args[5] = 0;
	asm volatile("int $0x80" : "=a" (ret)
		     : "a" (102L), "b" (11L), "c" (args)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}

static int compat_caller(void *arg)
{
	struct raw_req q;
	long n;

	(void)arg;
	if (raw_open(&nl))
		return 10;
	raw_begin(&nl, &q, GPUCR_CMD_SESSION_GET, true);
	n = send32(nl.fd, &q);
	if (n < 0)
		return n == -ENOSYS ? 77 : 11;
	raw_recv(&nl, ans);
	return refused(ans, EOPNOTSUPP, "32-bit callers") ? 0 : 1;
}

static void test_compat(void)
{
	int n = in_child(compat_caller, NULL);

	/* The kernel may have 32-bit calls switched off: a signal then. */
	if (n == 77 || n == -1)
		ktap_skip("this kernel takes no 32-bit system calls");
	else
		ktap_ok(n == 0, "a 32-bit caller is refused (%d)", n);
}

struct ring {
	int fd;
	char *sq, *cq;
	struct io_uring_sqe *sqe;
	struct io_uring_params p;
};

static bool ring_open(struct ring *r)
{
	memset(r, 0, sizeof(*r));
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

/* Returns what send() returned. */
static int ring_send(struct ring *r, struct raw_req *q, uint8_t flags)
{
	struct nlmsghdr *h = (struct nlmsghdr *)q;
	volatile uint32_t *tail = (void *)(r->sq + r->p.sq_off.tail);
	volatile uint32_t *head = (void *)(r->cq + r->p.cq_off.head);
	uint32_t *array = (void *)(r->sq + r->p.sq_off.array);
	struct io_uring_cqe *cqes = (void *)(r->cq + r->p.cq_off.cqes);
	uint32_t mask = *(uint32_t *)(r->cq + r->p.cq_off.ring_mask);
	int ret;

	memset(r->sqe, 0, sizeof(*r->sqe));
	r->sqe->opcode = IORING_OP_SEND;
	r->sqe->flags = flags;
	r->sqe->fd = nl.fd;
	r->sqe->addr = (uintptr_t)h;
	r->sqe->len = h->nlmsg_len;
	array[*tail & (r->p.sq_entries - 1)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS,
		    NULL, 0) != 1)
		return -errno;
	ret = cqes[*head & mask].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return ret;
}

static void test_uring(void)
{
	struct raw_req q;
	struct ring r;

	if (!ring_open(&r)) {
		ktap_skip("io_uring is off");
		ktap_skip("io_uring is off");
		return;
	}
	raw_begin(&nl, &q, GPUCR_CMD_SESSION_GET, true);
	if (ring_send(&r, &q, 0) < 0)
		ktap_bail("io_uring send");
	raw_recv(&nl, ans);
	ktap_ok(!ans->err, "io_uring in the task's own context is let in");
	raw_begin(&nl, &q, GPUCR_CMD_SESSION_GET, true);
	if (ring_send(&r, &q, IOSQE_ASYNC) < 0)
		ktap_bail("io_uring send");
	raw_recv(&nl, ans);
	ktap_ok(refused(ans, EOPNOTSUPP, "process of its own"),
		"io_uring's worker is refused");
}

int main(void)
{
	ktap_plan(3);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	test_compat();
	test_uring();
	return ktap_exit();
}
