// SPDX-License-Identifier: GPL-2.0-only
/* Memory, queues and events of the simulated KFD, by raw ioctls. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "../../ktap.h"
#include "kfd_lib.h"

#define VRAM	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
#define GTT	KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define SIZE	(256u << 10)

static struct gpu g;

static bool version(void)
{
	struct kfd_ioctl_get_version_args v = { 0 };

	CHECK(kfd_call(g.kfd, AMDKFD_IOC_GET_VERSION, &v), 0);
	CHECK(v.major_version, 1);
	CHECK(v.minor_version >= 11, 1);
	return true;
}

static bool apertures(void)
{
	struct kfd_process_device_apertures ap[2] = { 0 };
	struct kfd_ioctl_get_process_apertures_new_args args = { 0 };

	CHECK(kfd_call(g.kfd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args), 0);
	CHECK(args.num_of_nodes, 1);
	args.kfd_process_device_apertures_ptr = (uintptr_t)ap;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args), 0);
	CHECK(ap[0].gpu_id, g.id);
	CHECK(ap[0].gpuvm_limit >= (1ull << 47) - 1, 1);
	return true;
}

/* Nothing survives in new memory, and both kinds can be mapped. */
static bool memory(void)
{
	static const uint32_t kinds[] = { VRAM, GTT };
	struct buf b;
	unsigned int i, j;

	for (i = 0; i < 2; i++) {
		CHECK(buf_make(&g, &b, kinds[i], SIZE), 0);
		for (j = 0; j < SIZE; j += 4093)
			CHECK(((uint8_t *)b.ptr)[j], i ? 0 : 0xa5);
		memset(b.ptr, 0x11, SIZE);
		CHECK(buf_free(&g, &b), 0);
	}
	return true;
}

static bool memory_refusals(void)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args a = {
		.va_addr = reserve(SIZE), .gpu_id = g.id, .flags = GTT,
	};
	struct kfd_ioctl_free_memory_of_gpu_args f = { .handle = ~0ull };
	struct buf b;

	CHECK(kfd_call(g.kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a), -EINVAL);
	a.size = SIZE;
	a.gpu_id = g.id + 1;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a), -EINVAL);
	a.gpu_id = g.id;
	a.flags = 0;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a), -EINVAL);
	a.flags = VRAM;
	a.size = 1ull << 40;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a), -ENOMEM);
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &f), -EINVAL);
	CHECK(buf_make(&g, &b, GTT, SIZE), 0);
	f.handle = b.handle;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &f), -EBUSY);
	CHECK(buf_free(&g, &b), 0);
	return true;
}

static void fill(void *ptr, size_t size, uint32_t seed)
{
	uint32_t *p = ptr;
	size_t i;

	for (i = 0; i < size / 4; i++)
		p[i] = seed + (uint32_t)i * 2654435761u;
}

/* Copy src to dst through a queue, wait for the event of the trap. */
static bool copy_and_wait(struct queue *q, struct buf *src, struct buf *dst,
			  struct buf *sig, uint32_t event)
{
	static uint32_t seq;

	fill(src->ptr, SIZE, ++seq);
	put_copy(q, src->ptr, dst->ptr, SIZE);
	put_fence(q, (uint64_t *)sig->ptr + event, 1);
	put_trap(q, event);
	queue_ring(q);
	CHECK(event_wait(&g, &event, 1, true, 10000),
	      KFD_IOC_WAIT_RESULT_COMPLETE);
	CHECK(memcmp(src->ptr, dst->ptr, SIZE), 0);
	return true;
}

static struct buf sig;

static bool event_page(void)
{
	struct kfd_ioctl_create_event_args ev = {
		.event_type = KFD_IOC_EVENT_SIGNAL, .auto_reset = 1,
	};
	struct kfd_ioctl_free_memory_of_gpu_args f = { 0 };

	CHECK(buf_make(&g, &sig, GTT, KFD_SIGNAL_EVENT_LIMIT * 8), 0);
	ev.event_page_offset = sig.handle;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_CREATE_EVENT, &ev), 0);
	CHECK(((uint64_t *)sig.ptr)[ev.event_slot_index] == ~0ull, 1);
	f.handle = sig.handle;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &f), -EPERM);
	return true;
}

static bool queue_copies(void)
{
	struct kfd_ioctl_create_event_args ev;
	struct buf src, dst;
	struct queue q;
	unsigned int i;
	long before;

	CHECK(event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &ev), 0);
	CHECK(buf_make(&g, &src, GTT, SIZE), 0);
	CHECK(buf_make(&g, &dst, VRAM, SIZE), 0);
	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	for (i = 0; i < 20; i++) {
		if (!copy_and_wait(&q, &src, &dst, &sig, ev.event_id))
			return false;
		/* let the doorbell be taken away, then ring it again */
		if (i % 8 == 7)
			sleep_ms(100);
	}
	before = queue_progress(getpid(), q.id, NULL, NULL);
	CHECK(before, 60);
	CHECK(*(volatile uint64_t *)q.rptr.ptr, q.put);
	queue_destroy(&g, &q);
	CHECK(buf_free(&g, &src), 0);
	CHECK(buf_free(&g, &dst), 0);
	return true;
}

/* More packets than the ring holds, some across its end. */
static bool ring_wraps(void)
{
	struct buf fence;
	struct queue q;
	unsigned int i;

	CHECK(buf_make(&g, &fence, GTT, PAGE), 0);
	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	for (i = 1; i <= 50; i++) {
		put_nop(&q, 1021);
		put_nop(&q, 1500);
		put_fence(&q, fence.ptr, i);
		queue_ring(&q);
		if (!wait_value(fence.ptr, i))
			return false;
	}
	queue_destroy(&g, &q);
	CHECK(buf_free(&g, &fence), 0);
	return true;
}

static bool userptr(void)
{
	struct buf src, dst, fence;
	struct queue q;

	CHECK(buf_make(&g, &src, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, SIZE), 0);
	CHECK(buf_make(&g, &dst, VRAM, SIZE), 0);
	CHECK(buf_make(&g, &fence, GTT, PAGE), 0);
	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	fill(src.ptr, SIZE, 7);
	put_copy(&q, src.ptr, dst.ptr, SIZE);
	put_fence(&q, fence.ptr, 1);
	queue_ring(&q);
	if (!wait_value(fence.ptr, 1))
		return false;
	CHECK(memcmp(src.ptr, dst.ptr, SIZE), 0);
	/* other pages at the same place: the queue is stopped, and goes on */
	CHECK(madvise(src.ptr, SIZE, MADV_DONTNEED), 0);
	fill(src.ptr, SIZE, 8);
	put_copy(&q, src.ptr, dst.ptr, SIZE);
	put_fence(&q, fence.ptr, 2);
	queue_ring(&q);
	if (!wait_value(fence.ptr, 2))
		return false;
	CHECK(memcmp(src.ptr, dst.ptr, SIZE), 0);
	CHECK(stat_value("corruption"), 0);
	queue_destroy(&g, &q);
	CHECK(buf_free(&g, &dst), 0);
	CHECK(buf_free(&g, &src), 0);
	CHECK(buf_free(&g, &fence), 0);
	return true;
}

static bool memory_fault(void)
{
	struct kfd_ioctl_create_event_args ev;
	struct queue q;
	int error = 0;

	CHECK(event_make(&g, KFD_IOC_EVENT_MEMORY, false, &ev), 0);
	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	put_fence(&q, (void *)0x7ff000000000, 1);
	queue_ring(&q);
	CHECK(event_wait(&g, &ev.event_id, 1, true, 10000),
	      KFD_IOC_WAIT_RESULT_COMPLETE);
	sleep_ms(20);
	queue_progress(getpid(), q.id, NULL, &error);
	CHECK(error, EFAULT);
	queue_destroy(&g, &q);
	return true;
}

static bool events(void)
{
	struct kfd_ioctl_create_event_args a, b;
	struct kfd_ioctl_set_event_args set;
	struct kfd_ioctl_destroy_event_args destroy;
	uint32_t ids[2];

	CHECK(event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &a), 0);
	CHECK(event_make(&g, KFD_IOC_EVENT_SIGNAL, false, &b), 0);
	ids[0] = a.event_id;
	ids[1] = b.event_id;
	CHECK(event_wait(&g, ids, 2, false, 0), KFD_IOC_WAIT_RESULT_TIMEOUT);
	CHECK(event_wait(&g, ids, 2, false, 50), KFD_IOC_WAIT_RESULT_TIMEOUT);
	set.event_id = ids[0];
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_SET_EVENT, &set), 0);
	CHECK(event_wait(&g, ids, 2, false, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
	/* consumed: it resets itself */
	CHECK(event_wait(&g, ids, 2, false, 0), KFD_IOC_WAIT_RESULT_TIMEOUT);
	set.event_id = ids[1];
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_SET_EVENT, &set), 0);
	CHECK(event_wait(&g, ids, 2, true, 10), KFD_IOC_WAIT_RESULT_TIMEOUT);
	CHECK(event_wait(&g, ids + 1, 1, true, 0), KFD_IOC_WAIT_RESULT_COMPLETE);
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_RESET_EVENT, &set), 0);
	CHECK(event_wait(&g, ids + 1, 1, true, 0), KFD_IOC_WAIT_RESULT_TIMEOUT);
	destroy.event_id = ids[0];
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_DESTROY_EVENT, &destroy), 0);
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_DESTROY_EVENT, &destroy), -EINVAL);
	CHECK(event_wait(&g, ids, 1, true, 0), -EINVAL);
	return true;
}

/* What a queue uses cannot be freed before it; 6.1 does not know that rule. */
static bool queue_buffers_held(void)
{
	bool held = !personality_is("6.1");
	struct queue q;

	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA_XGMI), 0);
	if (stat_value("queues") != 1)
		return failed("queues", stat_value("queues"), 1);
	CHECK(buf_free(&g, &q.ring), held ? -EBUSY : 0);
	queue_destroy(&g, &q);
	return true;
}

static bool foreign_file(void)
{
	struct kfd_ioctl_get_version_args v = { 0 };
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		int ok = kfd_call(g.kfd, AMDKFD_IOC_GET_VERSION, &v) == -EBADF;

		_exit(ok ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	CHECK(status, 0);
	CHECK(kfd_call(g.kfd, _IOWR('K', 0xf0, int), &v), -ENOTTY);
	return true;
}

static void keep_busy(void)
{
	struct buf src, dst;
	struct gpu mine;
	struct queue q;

	if (!gpu_open(&mine, true) ||
	    buf_make(&mine, &src, GTT, 4u << 20) ||
	    buf_make(&mine, &dst, VRAM, 4u << 20) ||
	    queue_make(&mine, &q, KFD_IOC_QUEUE_TYPE_SDMA))
		_exit(1);
	for (;;) {
		if (q.put - *(volatile uint64_t *)q.rptr.ptr < RING_SIZE / 2)
			put_copy(&q, src.ptr, dst.ptr, 4u << 20);
		queue_ring(&q);
	}
}

/* SIGKILL amid copies: everything is gone within two seconds. */
static bool kill_frees(void)
{
	long bos = stat_value("bos"), processes = stat_value("processes");
	unsigned int i;
	pid_t pid = fork();

	if (!pid)
		keep_busy();
	for (i = 0; i < 500 && queue_progress(pid, 0, NULL, NULL) < 3; i++)
		sleep_ms(10);
	CHECK(queue_progress(pid, 0, NULL, NULL) >= 3, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (i = 0; i < 500 && (stat_value("bos") != bos ||
				stat_value("processes") != processes); i++)
		sleep_ms(10);
	CHECK(stat_value("bos"), bos);
	CHECK(stat_value("processes"), processes);
	CHECK(stat_value("queues"), 0);
	return true;
}

int main(void)
{
	ktap_plan(14);
	ktap_ok(gpu_open(&g, true), "open");
	ktap_ok(version(), "version");
	ktap_ok(apertures(), "apertures");
	ktap_ok(memory(), "memory");
	ktap_ok(memory_refusals(), "memory_refusals");
	ktap_ok(event_page(), "event_page");
	ktap_ok(events(), "events");
	ktap_ok(queue_copies(), "queue_copies");
	ktap_ok(ring_wraps(), "ring_wraps");
	ktap_ok(userptr(), "userptr");
	ktap_ok(memory_fault(), "memory_fault");
	ktap_ok(queue_buffers_held(), "queue_buffers_held");
	ktap_ok(foreign_file(), "foreign_file");
	ktap_ok(kill_frees(), "kill_frees");
	gpu_close(&g);
	return ktap_exit();
}
