// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two simulated GPUs of one process: memory of one that the other reaches, by
 * a mapping and by a dma-buf, and no longer when that is undone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../../ktap.h"
#include "kfd_pm4.h"

#define NODE2	"/sys/devices/virtual/kfd/kfd/topology/nodes/2/gpu_id"
#define SIZE	(1u << 20)
#define COMPLETE KFD_IOC_WAIT_RESULT_COMPLETE

static struct gpu one, two;	/* of one /dev/kfd */

static bool set_up(void)
{
	struct kfd_ioctl_acquire_vm_args acquire = { 0 };
	unsigned int id = 0;
	FILE *f;

	if (!gpu_open(&one, true))
		return false;
	f = fopen(NODE2, "re");
	CHECK(f && fscanf(f, "%u", &id) == 1, 1);
	fclose(f);
	two = (struct gpu){ .kfd = one.kfd, .id = id };
	two.drm = open("/dev/dri/renderD129", O_RDWR | O_CLOEXEC);
	acquire.drm_fd = (uint32_t)two.drm;
	acquire.gpu_id = two.id;
	CHECK(kfd_call(two.kfd, AMDKFD_IOC_ACQUIRE_VM, &acquire), 0);
	/* each GPU's node is its own */
	acquire.drm_fd = (uint32_t)one.drm;
	CHECK(kfd_call(two.kfd, AMDKFD_IOC_ACQUIRE_VM, &acquire), -EBUSY);
	return true;
}

static int unmap(const struct gpu *g, const struct buf *b)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args args = {
		.handle = b->handle,
		.device_ids_array_ptr = (uintptr_t)&g->id,
		.n_devices = 1,
	};

	return kfd_call(g->kfd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &args);
}

static void fill(const struct buf *b, uint32_t seed)
{
	uint32_t *p = b->ptr;

	for (size_t i = 0; i < b->size / 4; i++)
		p[i] = seed + (uint32_t)i * 2654435761u;
}

/* SDMA and compute of the second GPU on memory of the first, both ways. */
static bool peer_access(void)
{
	struct buf here, there, fence;
	struct cqueue c;
	struct queue q;

	CHECK(buf_make(&one, &here, VRAM, SIZE), 0);
	CHECK(buf_make(&two, &there, VRAM, SIZE), 0);
	CHECK(buf_make(&two, &fence, GTT, PAGE), 0);
	CHECK(buf_map_gpu(&two, &here), 0);
	CHECK(queue_make(&two, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	CHECK(cqueue_make(&two, &c, KFD_IOC_QUEUE_TYPE_COMPUTE, PAGE), 0);
	fill(&here, 1);
	put_copy(&q, here.ptr, there.ptr, SIZE);
	put_fence(&q, fence.ptr, 1);
	queue_ring(&q);
	CHECK(wait_value(fence.ptr, 1), 1);
	CHECK(memcmp(here.ptr, there.ptr, SIZE), 0);
	fill(&there, 2);
	pm4_copy(&c.s, here.ptr, there.ptr, SIZE);
	pm4_write(&c.s, (uint32_t *)here.ptr + 5, 77);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(((uint32_t *)here.ptr)[5], 77);
	((uint32_t *)here.ptr)[5] = ((uint32_t *)there.ptr)[5];
	CHECK(memcmp(here.ptr, there.ptr, SIZE), 0);
	queue_destroy(&two, &q);
	cqueue_destroy(&two, &c);
	CHECK(buf_free(&two, &fence), 0);
	CHECK(buf_free(&two, &there), 0);
	CHECK(unmap(&two, &here), 0);
	CHECK(buf_free(&one, &here), 0);
	return true;
}

/* Unmapped from one of the two, it is a fault there and works here. */
static bool unmapped_from_one(void)
{
	struct kfd_ioctl_create_event_args ev;
	struct cqueue a, b;
	struct buf mem;
	int error = 0;

	CHECK(event_make(&two, KFD_IOC_EVENT_MEMORY, true, &ev), 0);
	CHECK(buf_make(&one, &mem, VRAM, PAGE), 0);
	CHECK(buf_map_gpu(&two, &mem), 0);
	CHECK(cqueue_make(&one, &a, KFD_IOC_QUEUE_TYPE_COMPUTE, PAGE), 0);
	CHECK(cqueue_make(&two, &b, KFD_IOC_QUEUE_TYPE_COMPUTE, PAGE), 0);
	pm4_write(&b.s, mem.ptr, 1);
	cqueue_ring(&b);
	CHECK(wait_value(mem.ptr, 1), 1);
	CHECK(unmap(&two, &mem), 0);
	pm4_write(&a.s, mem.ptr, 2);
	cqueue_ring(&a);
	CHECK(wait_value(mem.ptr, 2), 1);
	pm4_write(&b.s, mem.ptr, 3);
	cqueue_ring(&b);
	CHECK(event_wait(&two, &ev.event_id, 1, true, 10000), COMPLETE);
	CHECK(cqueue_error(&b), EFAULT);
	CHECK(*(uint32_t *)mem.ptr, 2);
	queue_progress(getpid(), a.id, NULL, &error);
	CHECK(error, 0);
	cqueue_destroy(&one, &a);
	cqueue_destroy(&two, &b);
	CHECK(buf_free(&one, &mem), 0);
	return true;
}

/* The same bytes by a dma-buf, at another address, after the maker let go. */
static bool dma_buf(void)
{
	struct kfd_ioctl_export_dmabuf_args ex = { .flags = O_CLOEXEC };
	struct kfd_ioctl_import_dmabuf_args im = { .va_addr = reserve(SIZE) };
	struct kfd_ioctl_get_dmabuf_info_args info = { 0 };
	struct buf mem, twin = { .size = SIZE };
	struct buf out;
	struct cqueue c;

	CHECK(buf_make(&one, &mem, VRAM, SIZE), 0);
	fill(&mem, 3);
	ex.handle = mem.handle;
	if (personality_is("6.1")) {	/* does not know it */
		CHECK(kfd_call(one.kfd, AMDKFD_IOC_EXPORT_DMABUF, &ex), -ENOTTY);
		CHECK(buf_free(&one, &mem), 0);
		return true;
	}
	CHECK(kfd_call(one.kfd, AMDKFD_IOC_EXPORT_DMABUF, &ex), 0);
	info.dmabuf_fd = ex.dmabuf_fd;
	CHECK(kfd_call(one.kfd, AMDKFD_IOC_GET_DMABUF_INFO, &info), 0);
	CHECK(info.gpu_id, one.id);
	im.gpu_id = two.id;
	im.dmabuf_fd = ex.dmabuf_fd;
	CHECK(kfd_call(two.kfd, AMDKFD_IOC_IMPORT_DMABUF, &im), 0);
	close((int)ex.dmabuf_fd);
	twin.handle = im.handle;
	twin.ptr = (void *)(uintptr_t)im.va_addr;
	CHECK(buf_map_gpu(&two, &twin), 0);
	CHECK(buf_make(&two, &out, GTT, SIZE), 0);
	CHECK(cqueue_make(&two, &c, KFD_IOC_QUEUE_TYPE_COMPUTE, PAGE), 0);
	pm4_write(&c.s, (uint32_t *)twin.ptr + 9, 9);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(((uint32_t *)mem.ptr)[9], 9);
	CHECK(buf_free(&one, &mem), 0);
	pm4_copy(&c.s, out.ptr, twin.ptr, SIZE);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(((uint32_t *)out.ptr)[9], 9);
	CHECK(((uint32_t *)out.ptr)[10], 3 + 10 * 2654435761u);
	CHECK(buf_free(&two, &twin), 0);
	cqueue_destroy(&two, &c);
	CHECK(buf_free(&two, &out), 0);
	return true;
}

/* A barrier on one GPU waits for the other's. */
static bool signals_between(void)
{
	struct cqueue a, b;
	struct signal *s;
	struct buf mem;
	unsigned int i;

	CHECK(buf_make(&one, &mem, GTT, PAGE), 0);
	CHECK(buf_map_gpu(&two, &mem), 0);
	s = mem.ptr;
	CHECK(cqueue_make(&one, &a, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, PAGE), 0);
	CHECK(cqueue_make(&two, &b, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, PAGE), 0);
	for (i = 0; i < 50; i++) {
		struct signal *first = &s[0];

		signal_init(&s[0], 1);
		signal_init(&s[1], 1);
		aql_barrier(&b, false, &first, 1, &s[1]);
		cqueue_ring(&b);
		CHECK(s[1].value, 1);
		aql_barrier(&a, false, NULL, 0, first);
		cqueue_ring(&a);
		CHECK(signal_wait(&s[1], 0), 1);
	}
	cqueue_destroy(&one, &a);
	cqueue_destroy(&two, &b);
	CHECK(unmap(&two, &mem), 0);
	CHECK(buf_free(&one, &mem), 0);
	return true;
}

int main(void)
{
	ktap_plan(5);
	ktap_ok(set_up(), "set_up");
	ktap_ok(peer_access(), "peer_access");
	ktap_ok(unmapped_from_one(), "unmapped_from_one");
	ktap_ok(dma_buf(), "dma_buf");
	ktap_ok(signals_between(), "signals_between");
	return ktap_exit();
}
