// SPDX-License-Identifier: GPL-2.0-only
/*
 * What AMD's own KFD test suite asks for that needs no shader, at its limits:
 * all events, all of VRAM, many copies, a copy stopped in its middle, a rate.
 * The README has the table. 20 s.
 *
 * Tried with the simulator broken on purpose: GWS. Not the others.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

#include "kfd_lib.h"
#include "../../ktap.h"

#define VRAM	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
#define GTT	KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define USERPTR	KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
#define MB	(1u << 20)
#define COPIES	20000
#define RATE	"/sys/module/kfdsim/parameters/copy_mbps"

static struct gpu g;
static struct queue q;
static struct buf sig;

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
	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

/* Wait until the ring has room for so many bytes more. */
static bool room(uint32_t bytes)
{
	volatile uint64_t *rptr = q.rptr.ptr;
	uint64_t end = now_ms() + 30000;

	while (q.put + bytes - *rptr > RING_SIZE) {
		queue_ring(&q);
		if (now_ms() > end)
			return failed("room in the ring", 0, bytes);
		sched_yield();
	}
	return true;
}

static void signal_event(uint32_t id)
{
	put_fence(&q, (uint64_t *)sig.ptr + id, 1);
	put_trap(&q, id);
}

/* Wait for n events; how many of them are told. */
static int wait_many(const uint32_t *ids, uint32_t n, bool all, uint32_t ms,
		     uint32_t *result)
{
	struct kfd_event_data *data = calloc(n, sizeof(*data));
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)data,
		.num_events = n,
		.wait_for_all = all,
		.timeout = ms,
	};
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++)
		data[i].event_id = ids[i];
	ret = kfd_call(g.kfd, AMDKFD_IOC_WAIT_EVENTS, &args);
	*result = args.wait_result;
	free(data);
	return ret;
}

static uint32_t ids[KFD_SIGNAL_EVENT_LIMIT];
static uint32_t num_ids;

/* As many as there are slots, one being the set-up's; then one too many. */
static bool max_events(void)
{
	struct kfd_ioctl_create_event_args ev;
	int ret;

	while (!(ret = event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &ev)) &&
	       num_ids < KFD_SIGNAL_EVENT_LIMIT)
		ids[num_ids++] = ev.event_id;
	CHECK(ret, -ENOSPC);
	/* slot 0 is never given; one is the set-up's */
	CHECK(num_ids, KFD_SIGNAL_EVENT_LIMIT - 2);
	return true;
}

static bool signal_all(void)
{
	uint32_t i, result;

	for (i = 0; i < num_ids; i++) {
		if (!room(64))
			return false;
		signal_event(ids[i]);
	}
	queue_ring(&q);
	CHECK(wait_many(ids, num_ids, true, 60000, &result), 0);
	CHECK(result, KFD_IOC_WAIT_RESULT_COMPLETE);
	/* each told once */
	CHECK(wait_many(ids, num_ids, false, 0, &result), 0);
	CHECK(result, KFD_IOC_WAIT_RESULT_TIMEOUT);
	return true;
}

/* 64 of them, first with one missing: a wait in vain takes the others' signals. */
static bool wait_for_all(void)
{
	uint32_t i, result;

	for (i = 0; i < 63; i++)
		signal_event(ids[i]);
	queue_ring(&q);
	CHECK(wait_many(ids, 64, true, 300, &result), 0);
	CHECK(result, KFD_IOC_WAIT_RESULT_TIMEOUT);
	for (i = 0; i < 64; i++)
		signal_event(ids[i]);
	queue_ring(&q);
	CHECK(wait_many(ids, 64, true, 30000, &result), 0);
	CHECK(result, KFD_IOC_WAIT_RESULT_COMPLETE);
	return true;
}

/* Interrupts of events that are gone harm nobody. */
static bool invalid_events(void)
{
	struct kfd_ioctl_destroy_event_args d;
	uint32_t i, result;

	for (i = 64; i < num_ids; i++) {
		d.event_id = ids[i];
		CHECK(kfd_call(g.kfd, AMDKFD_IOC_DESTROY_EVENT, &d), 0);
	}
	for (i = 64; i < num_ids; i++) {
		if (!room(64))
			return false;
		signal_event(ids[i]);
	}
	signal_event(ids[5]);
	queue_ring(&q);
	CHECK(wait_many(ids + 5, 1, true, 30000, &result), 0);
	CHECK(result, KFD_IOC_WAIT_RESULT_COMPLETE);
	return true;
}

static uint64_t available(void)
{
	struct kfd_ioctl_get_available_memory_args a = { .gpu_id = g.id };

	return kfd_call(g.kfd, AMDKFD_IOC_AVAILABLE_MEMORY, &a) ? 0 : a.available;
}

/* Everything, then nothing more, then as before. */
static bool vram_full(void)
{
	uint64_t before = available(), all = before & ~(uint64_t)(2 * MB - 1);
	struct buf big, more;

	if (before < 64 * MB)
		return failed("available", before, 64 * MB);
	CHECK(buf_alloc(&g, &big, VRAM, all), 0);
	if (available() >= 4 * MB)
		return failed("available when full", available(), 0);
	CHECK(buf_alloc(&g, &more, VRAM, 64 * MB), -ENOMEM);
	CHECK(buf_map_gpu(&g, &big), 0);
	CHECK(buf_free(&g, &big), 0);
	CHECK(available() == before, 1);
	CHECK(buf_make(&g, &more, VRAM, 64 * MB), 0);
	CHECK(buf_free(&g, &more), 0);
	return true;
}

/* A file opened again is the same process: what one made the other frees. */
static bool opened_twice(void)
{
	struct kfd_ioctl_free_memory_of_gpu_args f;
	int second = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	struct buf b;

	if (second < 0)
		return failed("open", -errno, 0);
	CHECK(buf_alloc(&g, &b, VRAM, MB), 0);
	f.handle = b.handle;
	CHECK(kfd_call(second, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &f), 0);
	close(second);
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &f), -EINVAL);
	return true;
}

static bool clocks(void)
{
	struct kfd_ioctl_get_clock_counters_args a = { .gpu_id = g.id }, b;

	b = a;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_GET_CLOCK_COUNTERS, &a), 0);
	sleep_ms(100);
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_GET_CLOCK_COUNTERS, &b), 0);
	CHECK(b.gpu_clock_counter > a.gpu_clock_counter, 1);
	CHECK(b.cpu_clock_counter - a.cpu_clock_counter >= 100000000, 1);
	CHECK(b.system_clock_counter > a.system_clock_counter, 1);
	return true;
}

static struct buf shared_user;

static void *register_user(void *ret)
{
	struct buf b = shared_user;
	int i;

	for (i = 0; i < 50 && !*(int *)ret; i++) {
		struct kfd_ioctl_free_memory_of_gpu_args f;
		struct kfd_ioctl_alloc_memory_of_gpu_args a = {
			.va_addr = reserve(b.size),
			.size = b.size,
			.gpu_id = g.id,
			.flags = USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
			.mmap_offset = (uintptr_t)b.ptr,
		};

		*(int *)ret = kfd_call(g.kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a);
		f.handle = a.handle;
		if (!*(int *)ret)
			*(int *)ret = kfd_call(g.kfd,
					       AMDKFD_IOC_FREE_MEMORY_OF_GPU, &f);
		munmap((void *)(uintptr_t)a.va_addr, b.size);
	}
	return NULL;
}

/* The same pages by several threads at once, at other GPU addresses. */
static bool userptr_threads(void)
{
	pthread_t t[4];
	int ret[4] = { 0 };
	int i;

	shared_user.size = MB;
	shared_user.ptr = mmap(NULL, MB, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, register_user, &ret[i]), 0);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < 4; i++)
		CHECK(ret[i], 0);
	munmap(shared_user.ptr, MB);
	return true;
}

/* Small ones, in order: the last of them is what stays. */
static bool many_copies(void)
{
	long packets = stat_value("sdma_packets");
	struct buf a, b;
	uint32_t i;

	CHECK(buf_make(&g, &a, VRAM, MB), 0);
	CHECK(buf_make(&g, &b, GTT, MB), 0);
	for (i = 0; i < MB / 4; i++)
		((uint32_t *)a.ptr)[i] = i;
	memset(b.ptr, 0, MB);
	for (i = 0; i < COPIES; i++) {
		if (!room(256))
			return false;
		put_copy(&q, (char *)a.ptr + i * 16 % MB,
			 (char *)b.ptr + i * 16 % MB, 16);
	}
	put_fence(&q, (uint64_t *)sig.ptr, 77);
	queue_ring(&q);
	if (!wait_value(sig.ptr, 77))
		return false;
	CHECK(memcmp(a.ptr, b.ptr, COPIES * 16 % MB), 0);
	CHECK(stat_value("sdma_packets") - packets >= COPIES, 1);
	CHECK(buf_free(&g, &a), 0);
	CHECK(buf_free(&g, &b), 0);
	return true;
}

static bool set_rate(unsigned int mbps)
{
	FILE *f = fopen(RATE, "we");

	if (!f)
		return failed("open copy_mbps", -errno, 0);
	fprintf(f, "%u", mbps);
	return !fclose(f);
}

static int set_percent(unsigned int percent)
{
	struct kfd_ioctl_update_queue_args u = {
		.ring_base_address = (uintptr_t)q.ring.ptr,
		.queue_id = q.id,
		.ring_size = RING_SIZE,
		.queue_percentage = percent,
		.queue_priority = 7,
	};

	return kfd_call(g.kfd, AMDKFD_IOC_UPDATE_QUEUE, &u);
}

/* Bytes at the front that are v. */
static size_t front(const unsigned char *p, size_t n, unsigned char v)
{
	size_t i = 0;

	while (i < n && p[i] == v)
		i++;
	return i;
}

/* Between 100 ms and the end of a copy that takes a second. */
static bool stopped_in_the_middle(void)
{
	struct buf a, b;
	size_t at, still;

	CHECK(buf_make(&g, &a, VRAM, 4 * MB), 0);
	CHECK(buf_make(&g, &b, VRAM, 4 * MB), 0);
	memset(a.ptr, 0x11, 4 * MB);
	memset(b.ptr, 0x22, 4 * MB);
	if (!set_rate(4))
		return false;
	put_copy(&q, a.ptr, b.ptr, 4 * MB);
	put_fence(&q, (uint64_t *)sig.ptr, 88);
	queue_ring(&q);
	sleep_ms(300);
	CHECK(set_percent(0), 0);
	at = front(b.ptr, 4 * MB, 0x11);
	sleep_ms(300);
	still = front(b.ptr, 4 * MB, 0x11);
	/* half-written, and nothing beyond the place where it stopped */
	CHECK(at > 0 && at < 4 * MB, 1);
	CHECK(still, at);
	CHECK(front((unsigned char *)b.ptr + at, 4 * MB - at, 0x22), 4 * MB - at);
	if (!set_rate(0))
		return false;
	CHECK(set_percent(100), 0);
	if (!wait_value(sig.ptr, 88))
		return false;
	CHECK(memcmp(a.ptr, b.ptr, 4 * MB), 0);
	CHECK(buf_free(&g, &a), 0);
	CHECK(buf_free(&g, &b), 0);
	return true;
}

static bool rate(void)
{
	struct buf a, b;
	uint64_t start, took;

	CHECK(buf_make(&g, &a, VRAM, 2 * MB), 0);
	CHECK(buf_make(&g, &b, VRAM, 2 * MB), 0);
	if (!set_rate(5))
		return false;
	start = now_ms();
	put_copy(&q, a.ptr, b.ptr, 2 * MB);
	put_fence(&q, (uint64_t *)sig.ptr, 99);
	queue_ring(&q);
	if (!wait_value(sig.ptr, 99) || !set_rate(0))
		return false;
	took = now_ms() - start;
	ktap_note("2 MiB at 5 MB/s took %lu ms", (unsigned long)took);
	/* 419 ms; a slow machine may take longer */
	CHECK(took >= 400, 1);
	CHECK(buf_free(&g, &a), 0);
	CHECK(buf_free(&g, &b), 0);
	return true;
}

static bool arm(const char *line)
{
	FILE *f = fopen("/sys/kernel/debug/kfdsim/fault", "we");

	if (!f)
		return failed("open fault", -errno, 0);
	fputs(line, f);
	return !fclose(f);
}

/* Half of it, then an error of the queue; the rest is as it was. */
static bool partial(void)
{
	struct buf a, b;
	int error = 0, i;

	CHECK(buf_make(&g, &a, VRAM, MB), 0);
	CHECK(buf_make(&g, &b, VRAM, MB), 0);
	memset(a.ptr, 0x33, MB);
	memset(b.ptr, 0x44, MB);
	/* slowly: it takes several turns of the queue */
	if (!set_rate(5) || !arm("point=copy-partial errno=5 count=1"))
		return false;
	put_copy(&q, a.ptr, b.ptr, MB);
	queue_ring(&q);
	for (i = 0; i < 3000 && !error; i++) {
		queue_progress(getpid(), q.id, NULL, &error);
		sleep_ms(10);
	}
	CHECK(error, EIO);
	if (!set_rate(0))
		return false;
	CHECK(front(b.ptr, MB, 0x33), MB / 2);
	CHECK(front((unsigned char *)b.ptr + MB / 2, MB / 2, 0x44), MB / 2);
	CHECK(buf_free(&g, &a), 0);
	CHECK(buf_free(&g, &b), 0);
	return arm("clear");
}

static int gws(const struct queue *of, uint32_t n)
{
	struct kfd_ioctl_alloc_queue_gws_args args = {
		.queue_id = of->id, .num_gws = n, .first_gws = 99,
	};
	int ret = kfd_call(g.kfd, AMDKFD_IOC_ALLOC_QUEUE_GWS, &args);

	return ret || !args.first_gws ? ret : -ERANGE;
}

/* One queue of a process has all of it, until it goes. */
static bool gws_once(void)
{
	const struct queue none = { .id = 1000 };
	struct queue other;

	CHECK(queue_make(&g, &other, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	CHECK(gws(&none, 1), -EINVAL);
	CHECK(gws(&q, 0), -EINVAL);
	CHECK(gws(&q, 64), 0);
	CHECK(gws(&q, 64), -EBUSY);
	CHECK(gws(&other, 1), -EBUSY);
	CHECK(gws(&q, 0), 0);
	CHECK(gws(&other, 1), 0);
	CHECK(gws(&q, 64), -EBUSY);
	queue_destroy(&g, &other);
	CHECK(gws(&q, 64), 0);
	CHECK(gws(&q, 0), 0);
	return true;
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ set_up, "set up" },
		{ max_events, "as many events as there are slots" },
		{ signal_all, "all of them signalled" },
		{ wait_for_all, "64 of them waited for" },
		{ invalid_events, "interrupts of events that are gone" },
		{ vram_full, "all of VRAM in one buffer, and no more" },
		{ opened_twice, "opened twice" },
		{ clocks, "clocks" },
		{ userptr_threads, "user memory by several threads" },
		{ many_copies, "many small copies" },
		{ stopped_in_the_middle, "a copy stopped in its middle" },
		{ rate, "a rate of copies" },
		{ gws_once, "GWS for one queue at a time" },
		{ partial, "a copy that fails in its middle" },
	};

	ktap_cases(cases, sizeof(cases) / sizeof(cases[0]));
	queue_destroy(&g, &q);
	gpu_close(&g);
	return ktap_exit();
}
