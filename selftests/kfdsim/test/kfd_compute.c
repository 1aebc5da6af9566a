// SPDX-License-Identifier: GPL-2.0-only
/*
 * PM4 compute queues of the simulated KFD, by raw ioctls: what each packet
 * does, how rings, doorbells and updates behave, and that what cannot be
 * executed is an error.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../ktap.h"
#include "kfd_pm4.h"

#define COMPUTE	KFD_IOC_QUEUE_TYPE_COMPUTE
#define SIZE	(1u << 20)
#define COMPLETE KFD_IOC_WAIT_RESULT_COMPLETE

static struct gpu g;
static struct buf sig, mem;	/* event slots; scratch memory */
static uint32_t *words;		/* mem.ptr */

static bool set_up(void)
{
	struct kfd_ioctl_create_event_args ev = {
		.event_type = KFD_IOC_EVENT_SIGNAL, .auto_reset = 1,
	};

	if (!gpu_open(&g, true))
		return false;
	CHECK(buf_make(&g, &sig, GTT, KFD_SIGNAL_EVENT_LIMIT * 8), 0);
	ev.event_page_offset = sig.handle;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_CREATE_EVENT, &ev), 0);
	CHECK(buf_make(&g, &mem, GTT, SIZE), 0);
	words = mem.ptr;
	memset(words, 0, SIZE);
	return true;
}

static bool nops(void)
{
	struct cqueue c;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	pm4_nop(&c.s, 1);
	pm4_nop(&c.s, 2);
	pm4_nop(&c.s, 100);
	pm4_dw(&c.s, PM4_FILLER);
	pm4_acquire(&c.s);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(cqueue_rptr(&c), 111);
	CHECK(queue_progress_at(c.id, 5), 5);
	cqueue_destroy(&g, &c);
	return true;
}

static bool write_data(void)
{
	struct buf vram;
	struct cqueue c;
	unsigned int i;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	CHECK(buf_make(&g, &vram, VRAM, PAGE), 0);
	words[0] = words[2] = 7;
	pm4_write2(&c.s, words, 0x12345678, 0x87654321);
	pm4_write(&c.s, (uint32_t *)vram.ptr + 5, 99);
	/* all to one address: the last stays */
	pm4_dw(&c.s, PM4_HDR(PM4_WRITE_DATA, 7));
	pm4_dw(&c.s, 5 << 8 | 1 << 16);
	pm4_dw(&c.s, (uint32_t)(uintptr_t)&words[4]);
	pm4_dw(&c.s, (uint32_t)((uintptr_t)&words[4] >> 32));
	for (i = 1; i <= 3; i++)
		pm4_dw(&c.s, i);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(words[0], 0x12345678);
	CHECK(words[1], 0x87654321);
	CHECK(words[2], 7);
	CHECK(((uint32_t *)vram.ptr)[5], 99);
	CHECK(((uint32_t *)vram.ptr)[6], 0xa5a5a5a5);
	CHECK(words[4], 3);
	CHECK(words[5], 0);
	/* what a CPU writes is seen, also after the doorbell was taken away */
	sleep_ms(100);
	words[0] = 1;
	pm4_wait(&c.s, words, 3, 1, ~0u);
	pm4_write(&c.s, words, 2);
	cqueue_ring(&c);
	CHECK(wait_value(words, 2), 1);
	cqueue_destroy(&g, &c);
	CHECK(buf_free(&g, &vram), 0);
	return true;
}

/* The same user memory registered twice: two GPU addresses, one content. */
static bool same_user_memory(void)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = reserve(PAGE), .size = PAGE, .gpu_id = g.id,
		.flags = USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	struct buf user, twin = { .size = PAGE };
	struct cqueue c;

	CHECK(buf_make(&g, &user, USERPTR, PAGE), 0);
	args.mmap_offset = (uintptr_t)user.ptr;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args), 0);
	twin.handle = args.handle;
	twin.ptr = (void *)(uintptr_t)args.va_addr;
	CHECK(buf_map_gpu(&g, &twin), 0);
	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	pm4_write(&c.s, user.ptr, 1);
	pm4_write(&c.s, (uint32_t *)twin.ptr + 1, 2);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(((uint32_t *)user.ptr)[0], 1);
	CHECK(((uint32_t *)user.ptr)[1], 2);
	cqueue_destroy(&g, &c);
	CHECK(buf_free(&g, &twin), 0);
	CHECK(buf_free(&g, &user), 0);
	return true;
}

static bool release_mem(void)
{
	uint64_t *w = mem.ptr;
	struct cqueue c;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	memset(w, 0xff, 64);
	pm4_release(&c.s, &w[0], 0x1122334455667788, RELEASE_32, 0, 0);
	pm4_release(&c.s, &w[1], 0x1122334455667788, RELEASE_64, 3, 0);
	pm4_release(&c.s, &w[2], 5, RELEASE_NONE, 0, 0);
	pm4_release(&c.s, &w[3], 0, RELEASE_CLOCK, 0, 0);
	pm4_release(&c.s, &w[4], 0, RELEASE_CLOCK, 0, 0);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(w[0], 0xffffffff55667788);
	CHECK(w[1], 0x1122334455667788);
	CHECK(w[2] == ~0ull, 1);
	CHECK(w[3] && w[3] < w[4], 1);
	cqueue_destroy(&g, &c);
	return true;
}

static void signal_event(struct cqueue *c, uint32_t id)
{
	pm4_release(&c->s, (uint64_t *)sig.ptr + id, id, RELEASE_64, 2, id);
}

/* One, eight at once, and an interrupt that is nobody's. */
static bool events(void)
{
	struct kfd_ioctl_create_event_args ev;
	uint32_t ids[8];
	struct cqueue c;
	unsigned int i;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	for (i = 0; i < 8; i++) {
		CHECK(event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &ev), 0);
		ids[i] = ev.event_id;
	}
	CHECK(event_wait(&g, ids, 8, false, 0), KFD_IOC_WAIT_RESULT_TIMEOUT);
	signal_event(&c, ids[3]);
	cqueue_ring(&c);
	CHECK(event_wait(&g, ids + 3, 1, true, 10000), COMPLETE);
	CHECK(event_wait(&g, ids, 8, false, 20), KFD_IOC_WAIT_RESULT_TIMEOUT);
	/* no event has this slot; the queue goes on */
	pm4_release(&c.s, (uint64_t *)sig.ptr + 4000, 1, RELEASE_64, 2, 4000);
	for (i = 0; i < 8; i++)
		signal_event(&c, ids[i]);
	cqueue_ring(&c);
	CHECK(event_wait(&g, ids, 8, true, 10000), COMPLETE);
	/* data without an interrupt wakes nobody */
	pm4_release(&c.s, (uint64_t *)sig.ptr + ids[0], 1, RELEASE_64, 0, ids[0]);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(event_wait(&g, ids, 1, true, 50), KFD_IOC_WAIT_RESULT_TIMEOUT);
	for (i = 0; i < 8; i++)
		CHECK(kfd_call(g.kfd, AMDKFD_IOC_DESTROY_EVENT,
			       &(struct kfd_ioctl_destroy_event_args){
					.event_id = ids[i] }), 0);
	cqueue_destroy(&g, &c);
	return true;
}

/* CPU ticks that the thread of a queue has used, or -1. */
static long runner_ticks(uint32_t qid)
{
	DIR *proc = opendir("/proc");
	char want[32], path[300], name[32];
	struct dirent *d;
	long ret = -1;

	snprintf(want, sizeof(want), "(kfdsim/%d.%u)", getpid(), qid);
	while (proc && ret < 0 && (d = readdir(proc))) {
		unsigned long u = 0, s = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%s/stat", d->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%*d %31s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			   name, &u, &s) == 3 && !strcmp(name, want))
			ret = (long)(u + s);
		fclose(f);
	}
	if (proc)
		closedir(proc);
	return ret;
}

/* It waits as long as need be, does not burn a CPU, and can be destroyed. */
static bool wait_reg_mem(void)
{
	static const uint32_t cases[][4] = {	/* function, ref, no, yes */
		{ 1, 5, 5, 4 }, { 2, 5, 6, 5 }, { 3, 5, 4, 5 },
		{ 4, 5, 5, 6 }, { 5, 5, 4, 5 }, { 6, 5, 5, 6 },
	};
	struct cqueue c;
	unsigned int i;
	long ticks;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	words[1] = 0;
	for (i = 0; i < 6; i++) {
		words[0] = cases[i][2] | 0xff00;
		pm4_wait(&c.s, words, cases[i][0], cases[i][1], 0xff);
		pm4_write(&c.s, &words[1], i + 1);
		cqueue_ring(&c);
		sleep_ms(30);
		CHECK(words[1], i);
		words[0] = cases[i][3] | 0xff00;
		CHECK(wait_value(&words[1], i + 1), 1);
	}
	words[0] = 0;
	pm4_wait(&c.s, words, 3, 1, ~0u);
	cqueue_ring(&c);
	ticks = runner_ticks(c.id);
	CHECK(ticks >= 0, 1);
	sleep_ms(1000);
	ticks = runner_ticks(c.id) - ticks;
	printf("# %ld ticks in a second of waiting\n", ticks);
	CHECK(ticks < sysconf(_SC_CLK_TCK) / 2, 1);
	cqueue_destroy(&g, &c);
	return true;
}

static bool indirect_buffers(void)
{
	struct stream outer = { .dw = words + 1024, .size = 65536 };
	struct stream inner = { .dw = words + 70000, .size = 1024 };
	struct stream last = { .dw = words + 80000, .size = 1024 };
	struct cqueue c;
	unsigned int i;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	memset(words, 0, PAGE);
	pm4_write(&last, &words[3], 4);
	pm4_write(&inner, &words[1], 2);
	pm4_ib(&inner, last.dw, (uint32_t)last.put, true);
	pm4_write(&inner, &words[4], 5);	/* left for good before */
	pm4_write(&outer, &words[0], 1);
	/* longer than what is read at once, and a packet that is */
	for (i = 0; i < 100; i++)
		pm4_write(&outer, &words[8 + i], i + 1);
	pm4_nop(&outer, 5000);
	pm4_ib(&outer, inner.dw, (uint32_t)inner.put, false);
	pm4_write(&outer, &words[2], 3);
	pm4_ib(&c.s, outer.dw, (uint32_t)outer.put, false);
	pm4_write(&c.s, &words[5], 6);
	cqueue_ring(&c);
	CHECK(wait_value(&words[5], 6), 1);
	CHECK(words[0], 1);
	CHECK(words[1], 2);
	CHECK(words[2], 3);
	CHECK(words[3], 4);
	CHECK(words[4], 0);
	for (i = 0; i < 100; i++)
		CHECK(words[8 + i], i + 1);
	/* 2 in the ring, 104 outside the inner ones, 2 and 1 in these */
	CHECK(queue_progress_at(c.id, 109), 109);
	cqueue_destroy(&g, &c);
	return true;
}

static bool dma_data(void)
{
	struct buf src, dst;
	struct cqueue c;
	uint32_t i, *s, *d;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	CHECK(buf_make(&g, &src, VRAM, SIZE), 0);
	CHECK(buf_make(&g, &dst, GTT, SIZE), 0);
	s = src.ptr;
	d = dst.ptr;
	for (i = 0; i < SIZE / 4; i++)
		s[i] = i * 2654435761u;
	pm4_copy(&c.s, dst.ptr, src.ptr, SIZE - 5);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(memcmp(s, d, SIZE - 5), 0);
	CHECK(((uint8_t *)d)[SIZE - 5], 0);
	pm4_fill(&c.s, d + 4, 0xcafe, SIZE / 2);
	cqueue_ring(&c);
	CHECK(cqueue_drained(&c), 1);
	CHECK(d[3], s[3]);
	for (i = 4; i < 4 + SIZE / 8; i++)
		CHECK(d[i], 0xcafe);
	CHECK(d[i], s[i]);
	cqueue_destroy(&g, &c);
	CHECK(buf_free(&g, &src), 0);
	CHECK(buf_free(&g, &dst), 0);
	return true;
}

/* Many times round a small ring, packets across its end. */
static bool ring_wraps(void)
{
	struct cqueue c;
	unsigned int i;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	words[0] = 0;
	for (i = 1; i <= 300; i++) {
		pm4_nop(&c.s, 1 + i % 97);
		pm4_write2(&c.s, words, i, ~i);
		cqueue_ring(&c);
		if (!wait_value(words, i))
			return false;
		CHECK(words[1], ~i);
		CHECK(cqueue_drained(&c), 1);
	}
	CHECK(c.s.put > 10 * c.s.size, 1);
	CHECK(queue_progress_at(c.id, 600), 600);
	cqueue_destroy(&g, &c);
	return true;
}

/* More compute queues than the GPU has, with SDMA queues beside them. */
static bool oversubscribe(void)
{
	enum { N = 65, SDMA = 16, ROUNDS = 100 };
	static struct cqueue c[N];
	static struct queue s[SDMA];
	unsigned int i, r;

	CHECK(topo_value("num_cp_queues") < N, 1);
	memset(words, 0, PAGE);
	for (i = 0; i < N; i++)
		CHECK(cqueue_make(&g, &c[i], COMPUTE, PAGE), 0);
	for (i = 0; i < SDMA; i++)
		CHECK(queue_make(&g, &s[i], KFD_IOC_QUEUE_TYPE_SDMA), 0);
	for (r = 1; r <= ROUNDS; r++) {
		for (i = 0; i < N; i++) {
			pm4_write(&c[i].s, &words[i], r);
			cqueue_ring(&c[i]);
		}
		for (i = 0; i < SDMA; i++) {
			put_fence(&s[i], &words[N + i], r);
			queue_ring(&s[i]);
		}
	}
	for (i = 0; i < N + SDMA; i++)
		CHECK(wait_value(&words[i], ROUNDS), 1);
	for (i = 0; i < N; i++) {
		CHECK(queue_progress_at(c[i].id, ROUNDS), ROUNDS);
		cqueue_destroy(&g, &c[i]);
	}
	for (i = 0; i < SDMA; i++)
		queue_destroy(&g, &s[i]);
	return true;
}

static int update(struct cqueue *c, const void *ring, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = (uintptr_t)ring,
		.queue_id = c->id,
		.ring_size = c->s.size * 4,
		.queue_percentage = percent,
		.queue_priority = 7,
	};

	return kfd_call(g.kfd, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

/* No ring, or no share: stopped; with both it goes on where it was. */
static bool disabled(bool by_ring)
{
	struct cqueue c;

	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	pm4_write(&c.s, words, 1);
	cqueue_ring(&c);
	CHECK(wait_value(words, 1), 1);
	CHECK(update(&c, by_ring ? NULL : c.ring.ptr, by_ring ? 100 : 0), 0);
	pm4_write(&c.s, words, 2);
	cqueue_ring(&c);
	sleep_ms(200);
	CHECK(words[0], 1);
	CHECK(queue_progress_at(c.id, 1), 1);
	CHECK(update(&c, c.ring.ptr, 100), 0);
	CHECK(wait_value(words, 2), 1);
	CHECK(queue_progress_at(c.id, 2), 2);
	cqueue_destroy(&g, &c);
	return true;
}

/* A GPU rings: SDMA and PM4 write to the doorbell of a queue that sleeps. */
static bool gpu_doorbell(void)
{
	struct buf bell;
	struct queue sdma;
	struct cqueue c, other;
	const uint64_t *at;

	CHECK(buf_alloc(&g, &bell, KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL |
			KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, DOORBELLS), 0);
	CHECK(buf_map_gpu(&g, &bell), 0);
	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	CHECK(cqueue_make(&g, &other, COMPUTE, PAGE), 0);
	CHECK(queue_make(&g, &sdma, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	at = (uint64_t *)bell.ptr + ((char *)c.doorbell - (char *)c.doorbells) / 8;
	sleep_ms(100);
	pm4_write2(&c.s, words, 0x12345678, 0x87654321);
	put_fence(&sdma, at, (uint32_t)c.s.put);
	queue_ring(&sdma);
	CHECK(wait_value(words, 0x12345678), 1);
	CHECK(words[1], 0x87654321);
	/* nobody but the GPU can have woken the first one */
	words[8] = 0;
	pm4_write(&c.s, words, 3);
	pm4_wait(&other.s, &words[8], 3, 1, ~0u);
	pm4_release(&other.s, at, c.s.put, RELEASE_64, 0, 0);
	cqueue_ring(&other);
	sleep_ms(200);
	words[8] = 1;
	CHECK(wait_value(words, 3), 1);
	cqueue_destroy(&g, &c);
	cqueue_destroy(&g, &other);
	queue_destroy(&g, &sdma);
	CHECK(buf_free(&g, &bell), 0);
	return true;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A megapacket, an interrupt each 1024: no sleep per packet. */
static bool many_packets(void)
{
	enum { ROUNDS = 1024, EACH = 1024 };
	struct kfd_ioctl_create_event_args ev;
	double start = now();
	struct cqueue c;
	unsigned int i, r;

	CHECK(event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &ev), 0);
	CHECK(cqueue_make(&g, &c, COMPUTE, RING_SIZE), 0);
	for (r = 0; r < ROUNDS; r++) {
		for (i = 0; i < EACH; i++)
			pm4_write(&c.s, &words[i], r);
		signal_event(&c, ev.event_id);
		cqueue_ring(&c);
		CHECK(event_wait(&g, &ev.event_id, 1, true, 10000), COMPLETE);
		CHECK(words[EACH - 1], r);
	}
	printf("# %.0f packets a second\n", ROUNDS * (EACH + 1) / (now() - start));
	CHECK(queue_progress_at(c.id, ROUNDS * (EACH + 1)), ROUNDS * (EACH + 1));
	cqueue_destroy(&g, &c);
	return true;
}

/* A queue with something in its ring that is an error, and one packet after. */
static bool wrong(const char *what, const uint32_t *dw, unsigned int n, int error)
{
	struct kfd_ioctl_create_event_args ev;
	struct cqueue c;
	unsigned int i;

	CHECK(event_make(&g, KFD_IOC_EVENT_HW_EXCEPTION, true, &ev), 0);
	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	words[0] = 0;
	pm4_write(&c.s, &words[1], 77);
	for (i = 0; i < n; i++)
		pm4_dw(&c.s, dw[i]);
	pm4_write(&c.s, words, 1);
	cqueue_ring(&c);
	if (event_wait(&g, &ev.event_id, 1, true, 10000) != COMPLETE ||
	    cqueue_error(&c) != error) {
		printf("# %s: error %d, not %d\n", what, cqueue_error(&c), error);
		return false;
	}
	sleep_ms(20);
	CHECK(words[0], 0);
	CHECK(queue_progress_at(c.id, 1), 1);
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_DESTROY_EVENT,
		       &(struct kfd_ioctl_destroy_event_args){
				.event_id = ev.event_id }), 0);
	cqueue_destroy(&g, &c);
	return true;
}

/* Never ignored, also where it is hidden in a buffer. */
static bool dispatch(void)
{
	static const uint32_t direct[] = {
		PM4_HDR(PM4_DISPATCH, 5), 1, 1, 1, 1,
	};
	static const uint32_t indirect[] = { PM4_HDR(0x16, 3), 0, 0 };
	const uint32_t hidden[] = {
		PM4_HDR(PM4_IB, 4), (uint32_t)(uintptr_t)(words + 64),
		(uint32_t)((uintptr_t)words >> 32), 5 | 1 << 23,
	};

	memcpy(words + 64, direct, sizeof(direct));
	return wrong("direct", direct, 5, EOPNOTSUPP) &&
	       wrong("indirect", indirect, 3, EOPNOTSUPP) &&
	       wrong("hidden", hidden, 4, EOPNOTSUPP);
}

static bool wrong_packets(void)
{
	static const uint32_t unknown[] = { PM4_HDR(0xf2, 3), 0, 0 };
	static const uint32_t sh_reg[] = { PM4_HDR(PM4_SET_SH_REG, 3), 0x240, 0 };
	static const uint32_t type0[] = { 0x00000240, 0 };
	static const uint32_t to_reg[] = {
		PM4_HDR(PM4_WRITE_DATA, 5), 0, 0x240, 0, 1,
	};
	static const uint32_t wait_reg[] = {
		PM4_HDR(PM4_WAIT_REG_MEM, 7), 3, 0x240, 0, 0, 0, 4,
	};
	static const uint32_t chain[] = {
		PM4_HDR(PM4_IB, 4), 0, 0, 4 | 1 << 20 | 1 << 23,
	};
	/* a buffer that calls itself: nested too deep */
	const uint32_t self[] = {
		PM4_HDR(PM4_IB, 4), (uint32_t)(uintptr_t)(words + 64),
		(uint32_t)((uintptr_t)words >> 32), 4 | 1 << 23,
	};

	memcpy(words + 64, self, sizeof(self));
	return wrong("unknown", unknown, 3, EINVAL) &&
	       wrong("sh_reg", sh_reg, 3, EINVAL) &&
	       wrong("type0", type0, 2, EINVAL) &&
	       wrong("to_reg", to_reg, 5, EINVAL) &&
	       wrong("wait_reg", wait_reg, 7, EINVAL) &&
	       wrong("chain", chain, 4, EINVAL) &&
	       wrong("self", self, 4, EINVAL);
}

/* Outside every mapping: the event says where; nothing after it runs. */
static bool fault(void)
{
	struct kfd_ioctl_create_event_args ev;
	struct kfd_event_data data = { 0 };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)&data, .num_events = 1,
		.wait_for_all = 1, .timeout = 10000,
	};
	const uint64_t nowhere = 0x7ff000003000;
	struct cqueue c;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		CHECK(event_make(&g, KFD_IOC_EVENT_MEMORY, true, &ev), 0);
		CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
		words[0] = 0;
		if (i == 0)
			pm4_write(&c.s, (void *)nowhere, 1);
		else if (i == 1)
			pm4_ib(&c.s, (void *)nowhere, 16, false);
		else
			pm4_copy(&c.s, (void *)nowhere, mem.ptr, 64);
		pm4_write(&c.s, words, 1);
		cqueue_ring(&c);
		data.event_id = ev.event_id;
		CHECK(kfd_call(g.kfd, AMDKFD_IOC_WAIT_EVENTS, &args), 0);
		CHECK(args.wait_result, COMPLETE);
		CHECK(data.memory_exception_data.va, nowhere);
		CHECK(cqueue_error(&c), EFAULT);
		CHECK(words[0], 0);
		CHECK(kfd_call(g.kfd, AMDKFD_IOC_DESTROY_EVENT,
			       &(struct kfd_ioctl_destroy_event_args){
					.event_id = ev.event_id }), 0);
		cqueue_destroy(&g, &c);
	}
	return true;
}

/* libhsakmt's sizes are the GPU's; what a queue needs is held by it. */
static bool save_area(void)
{
	bool checked = !personality_is("6.1");
	struct kfd_ioctl_create_queue_args args;
	uint32_t stack, area;
	uint64_t total;
	struct cqueue c;

	area_sizes(&stack, &area, &total);
	if (checked) {
		CHECK(topo_value("ctl_stack_size"), stack);
		CHECK(topo_value("cwsr_size"), area);
	}
	CHECK(cqueue_prepare(&g, &c, COMPUTE, PAGE, &args), 0);
	if (checked) {
		args.ctl_stack_size -= PAGE;
		CHECK(cqueue_create(&g, &c, &args), -EINVAL);
		args.ctl_stack_size += PAGE;
		args.ctx_save_restore_size -= PAGE;
		CHECK(cqueue_create(&g, &c, &args), -EINVAL);
		args.ctx_save_restore_size += PAGE;
		args.ctx_save_restore_address += PAGE;
		CHECK(cqueue_create(&g, &c, &args), -EINVAL);
		args.ctx_save_restore_address -= PAGE;
	}
	CHECK(cqueue_create(&g, &c, &args), 0);
	if (checked) {
		CHECK(buf_free(&g, &c.eop), -EBUSY);
		CHECK(buf_free(&g, &c.ring), -EBUSY);
	}
	cqueue_destroy(&g, &c);
	return true;
}

/* Who enabled the runtime hears of an error from the queue itself. */
static bool error_payload(void)
{
	struct kfd_ioctl_runtime_enable_args enable = { .mode_mask = 1 };
	struct kfd_ioctl_create_event_args ev, hw;
	volatile uint64_t *payload = mem.ptr;
	struct cqueue c;

	if (personality_is("6.1")) {	/* does not know it */
		CHECK(kfd_call(g.kfd, AMDKFD_IOC_RUNTIME_ENABLE, &enable), -ENOTTY);
		return true;
	}
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_RUNTIME_ENABLE, &enable), 0);
	CHECK(event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &ev), 0);
	CHECK(event_make(&g, KFD_IOC_EVENT_HW_EXCEPTION, true, &hw), 0);
	CHECK(cqueue_make(&g, &c, COMPUTE, PAGE), 0);
	*payload = 0;
	((uint64_t *)c.area.ptr)[3] = (uintptr_t)payload;
	((uint32_t *)c.area.ptr)[8] = ev.event_id;
	pm4_dw(&c.s, PM4_HDR(PM4_DISPATCH, 5));
	pm4_nop(&c.s, 4);
	cqueue_ring(&c);
	CHECK(event_wait(&g, &ev.event_id, 1, true, 10000), COMPLETE);
	CHECK(*payload, 1ull << 17);
	CHECK(cqueue_error(&c), EOPNOTSUPP);
	CHECK(event_wait(&g, &hw.event_id, 1, true, 0),
	      KFD_IOC_WAIT_RESULT_TIMEOUT);
	cqueue_destroy(&g, &c);
	return true;
}

static bool by_ring(void)
{
	return disabled(true);
}

static bool by_percent(void)
{
	return disabled(false);
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ set_up, "set_up" },
		{ nops, "nops" },
		{ write_data, "write_data" },
		{ same_user_memory, "same_user_memory" },
		{ release_mem, "release_mem" },
		{ events, "events" },
		{ wait_reg_mem, "wait_reg_mem" },
		{ indirect_buffers, "indirect_buffers" },
		{ dma_data, "dma_data" },
		{ ring_wraps, "ring_wraps" },
		{ oversubscribe, "oversubscribe" },
		{ by_ring, "disabled_by_ring" },
		{ by_percent, "disabled_by_percent" },
		{ gpu_doorbell, "gpu_doorbell" },
		{ many_packets, "many_packets" },
		{ dispatch, "dispatch" },
		{ wrong_packets, "wrong_packets" },
		{ fault, "fault" },
		{ save_area, "save_area" },
		{ error_payload, "error_payload" },
	};

	ktap_cases(cases, sizeof(cases) / sizeof(cases[0]));
	gpu_close(&g);
	return ktap_exit();
}
