// SPDX-License-Identifier: GPL-2.0-only
/*
 * Callers that are no plain process: a 32-bit system call, io_uring's worker
 * and its polling thread. KFD works on the memory and files of the current
 * task. (A plain kernel thread cannot be had to send from user space.)
 *
 * Mutation that must turn this red: gpucr_caller_is_process() returns 0.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ktap.h"
#include "raw.h"
#include "ring.h"
#include "util.h"

static struct raw nl;
static struct raw_ans *ans;

/* socketcall(SYS_SENDTO) by int 0x80, with everything below 4 GiB. */
static long send32(int fd, const struct raw_req *q)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)q;
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

/* The same message twice: as a 32-bit call and as a 64-bit one. */
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
	if (!refused(ans, EOPNOTSUPP, "32-bit callers"))
		return 1;
	raw_call(&nl, &q, ans);
	return ans->err ? 2 : 0;
}

static void test_compat(void)
{
	int n = in_child(compat_caller, NULL);

	/* The kernel may have 32-bit calls switched off: a signal then. */
	if (n == 77 || n == -1)
		ktap_skip("this kernel takes no 32-bit system calls");
	else
		ktap_ok(n == 0, "a 32-bit call is refused, the same as a 64-bit one is not (%d)",
			n);
}

static int send_by(struct ring *r, uint8_t flags)
{
	struct raw_req q;
	struct nlmsghdr *h = (struct nlmsghdr *)&q;

	raw_begin(&nl, &q, GPUCR_CMD_SESSION_GET, true);
	if (ring_do(r, IORING_OP_SEND, nl.fd, &q, h->nlmsg_len, flags) < 0)
		ktap_bail("io_uring send");
	raw_recv(&nl, ans);
	return ans->err;
}

static void test_uring(void)
{
	struct ring own, thread;

	if (!ring_open(&own, 0) || !ring_open(&thread, IORING_SETUP_SQPOLL)) {
		ktap_skip("io_uring is off");
		ktap_skip("io_uring is off");
		ktap_skip("io_uring is off");
		return;
	}
	ktap_ok(!send_by(&own, 0),
		"io_uring in the task's own context is let in");
	send_by(&own, IOSQE_ASYNC);
	ktap_ok(refused(ans, EOPNOTSUPP, "process of its own"),
		"io_uring's worker is refused");
	send_by(&thread, 0);
	ktap_ok(refused(ans, EOPNOTSUPP, "process of its own"),
		"io_uring's polling thread is refused");
}

int main(void)
{
	ktap_plan(4);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	test_compat();
	test_uring();
	return ktap_exit();
}
