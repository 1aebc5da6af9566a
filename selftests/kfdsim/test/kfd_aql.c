// SPDX-License-Identifier: GPL-2.0-only
/*
 * AQL queues of the simulated KFD, by raw ioctls: barriers, PM4 buffers, who
 * gets which slot, and that what cannot be executed is an error.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../../ktap.h"
#include "kfd_pm4.h"

#define AQL	KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
#define COMPLETE KFD_IOC_WAIT_RESULT_COMPLETE
#define RING	4096u		/* 64 packets */
#define INVALID	1

static struct gpu g;
static struct buf sig, mem;
static struct signal *signals;	/* at the start of mem */
static uint32_t *words;		/* after them */

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
	CHECK(buf_make(&g, &mem, GTT, 1u << 20), 0);
	memset(mem.ptr, 0, mem.size);
	signals = mem.ptr;
	words = (uint32_t *)mem.ptr + PAGE;
	return true;
}

/* All of them at 0, exactly; then the completion signal and its event. */
static bool barrier_and(void)
{
	struct signal *deps[3] = { &signals[0], NULL, &signals[1] };
	struct kfd_ioctl_create_event_args ev;
	struct signal *done = &signals[2];
	struct cqueue c;

	CHECK(event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &ev), 0);
	CHECK(cqueue_make(&g, &c, AQL, RING), 0);
	signal_init(deps[0], 1);
	signal_init(deps[2], -1);
	signal_init(done, 5);
	done->event = ev.event_id;
	done->mailbox = (uintptr_t)((uint64_t *)sig.ptr + ev.event_id);
	aql_barrier(&c, false, deps, 3, done);
	cqueue_ring(&c);
	sleep_ms(50);
	CHECK(done->value, 5);
	deps[0]->value = 0;
	sleep_ms(50);
	CHECK(done->value, 5);
	CHECK(aql_read_index(&c), 0);
	CHECK(event_wait(&g, &ev.event_id, 1, true, 0),
	      KFD_IOC_WAIT_RESULT_TIMEOUT);
	deps[2]->value = 0;
	CHECK(event_wait(&g, &ev.event_id, 1, true, 10000), COMPLETE);
	CHECK(done->value, 4);
	/* one that names nothing waits for nothing */
	aql_barrier(&c, false, NULL, 0, done);
	cqueue_ring(&c);
	CHECK(event_wait(&g, &ev.event_id, 1, true, 10000), COMPLETE);
	CHECK(signal_wait(done, 3), 1);
	CHECK(wait_value(c.ptrs.ptr, 2), 1);
	CHECK(aql_header(&c, 0), INVALID);
	CHECK(aql_header(&c, 1), INVALID);
	CHECK(queue_progress_at(c.id, 2), 2);
	cqueue_destroy(&g, &c);
	return true;
}

/* One of them at 0 will do. */
static bool barrier_or(void)
{
	struct signal *deps[2] = { &signals[0], &signals[1] };
	struct signal *done = &signals[2];
	struct cqueue c;

	CHECK(cqueue_make(&g, &c, AQL, RING), 0);
	signal_init(deps[0], 1);
	signal_init(deps[1], 2);
	signal_init(done, 2);
	aql_barrier(&c, true, deps, 2, done);
	aql_barrier(&c, true, NULL, 0, done);
	cqueue_ring(&c);
	sleep_ms(50);
	CHECK(done->value, 2);
	deps[1]->value = 0;
	CHECK(signal_wait(done, 0), 1);
	CHECK(deps[0]->value, 1);
	cqueue_destroy(&g, &c);
	return true;
}

/* A signal made by one queue lets the other go. */
static bool between_queues(void)
{
	struct signal *a = &signals[0], *b = &signals[1];
	struct cqueue one, two;
	unsigned int i;

	CHECK(cqueue_make(&g, &one, AQL, RING), 0);
	CHECK(cqueue_make(&g, &two, AQL, RING), 0);
	for (i = 0; i < 200; i++) {
		signal_init(a, 1);
		signal_init(b, 1);
		aql_barrier(&two, false, &a, 1, b);
		cqueue_ring(&two);
		aql_barrier(&one, false, NULL, 0, a);
		cqueue_ring(&one);
		CHECK(signal_wait(b, 0), 1);
	}
	cqueue_destroy(&g, &one);
	cqueue_destroy(&g, &two);
	return true;
}

/* Round and round, full to the brim, by both customs of ringing. */
static bool ring_wraps(void)
{
	struct signal *done = &signals[0];
	struct cqueue c;
	unsigned int r, i, n = RING / 64;

	CHECK(cqueue_make(&g, &c, AQL, RING), 0);
	for (r = 1; r <= 40; r++) {
		signal_init(done, n);
		for (i = 0; i < n; i++)
			aql_barrier(&c, false, NULL, 0, done);
		if (r % 2)
			cqueue_ring(&c);		/* number of the last */
		else
			*c.doorbell = (uint64_t)r * n;	/* of the next */
		CHECK(signal_wait(done, 0), 1);
		CHECK(wait_value(c.ptrs.ptr, r * n), 1);
	}
	CHECK(aql_read_index(&c), 40 * n);
	cqueue_destroy(&g, &c);
	return true;
}

/* The second producer is first: nothing overtakes, nothing is lost. */
static bool late_producer(void)
{
	struct signal *first = &signals[0], *second = &signals[1];
	struct cqueue c;

	CHECK(cqueue_make(&g, &c, AQL, RING), 0);
	signal_init(first, 1);
	signal_init(second, 1);
	c.s.put = 16;
	aql_barrier(&c, false, NULL, 0, second);
	cqueue_ring(&c);
	sleep_ms(50);
	CHECK(second->value, 1);
	c.s.put = 0;
	aql_barrier(&c, false, NULL, 0, first);
	cqueue_ring(&c);
	CHECK(signal_wait(first, 0), 1);
	CHECK(signal_wait(second, 0), 1);
	CHECK(wait_value(c.ptrs.ptr, 2), 1);
	cqueue_destroy(&g, &c);
	return true;
}

static bool pm4_buffer(void)
{
	struct stream ib = { .dw = words + 1024, .size = 4096 };
	struct signal *done = &signals[0];
	struct cqueue c;

	CHECK(cqueue_make(&g, &c, AQL, RING), 0);
	signal_init(done, 1);
	words[0] = words[1] = 0;
	pm4_acquire(&ib);
	pm4_wait(&ib, &words[1], 3, 7, ~0u);
	pm4_write(&ib, &words[0], 42);
	aql_pm4(&c, ib.dw, (uint32_t)ib.put, done);
	cqueue_ring(&c);
	sleep_ms(50);
	CHECK(done->value, 1);
	CHECK(words[0], 0);
	words[1] = 7;
	CHECK(signal_wait(done, 0), 1);
	CHECK(words[0], 42);
	/* three in the buffer and the packet itself */
	CHECK(queue_progress_at(c.id, 4), 4);
	cqueue_destroy(&g, &c);
	return true;
}

/* A packet that is an error after one that is none, and another after it. */
static bool wrong(uint32_t header, int error)
{
	struct signal *done = &signals[0];
	struct kfd_ioctl_create_event_args ev;
	struct cqueue c;

	CHECK(event_make(&g, KFD_IOC_EVENT_HW_EXCEPTION, true, &ev), 0);
	CHECK(cqueue_make(&g, &c, AQL, RING), 0);
	signal_init(done, 3);
	aql_barrier(&c, false, NULL, 0, done);
	aql_raw(&c, header, done);
	aql_barrier(&c, false, NULL, 0, done);
	cqueue_ring(&c);
	CHECK(event_wait(&g, &ev.event_id, 1, true, 10000), COMPLETE);
	CHECK(cqueue_error(&c), error);
	sleep_ms(20);
	CHECK(done->value, 2);
	CHECK(aql_read_index(&c), 1);
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_DESTROY_EVENT,
		       &(struct kfd_ioctl_destroy_event_args){
				.event_id = ev.event_id }), 0);
	cqueue_destroy(&g, &c);
	return true;
}

static bool dispatch(void)
{
	return wrong(2 | 1 << 8 | 1 << 16, EOPNOTSUPP);
}

/* Agent dispatch, no such type, vendor formats of others. */
static bool wrong_packets(void)
{
	return wrong(4, EINVAL) && wrong(6, EINVAL) && wrong(0, EINVAL) &&
	       wrong(0 | 1 << 16, EINVAL) && wrong(0 | 2 << 16, EINVAL);
}

/* ROCr's queue has a signal of its own for errors. */
static bool inactive_signal(void)
{
	struct signal *error = &signals[0];
	struct kfd_ioctl_create_event_args ev, hw;
	struct cqueue c;

	CHECK(event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &ev), 0);
	CHECK(event_make(&g, KFD_IOC_EVENT_HW_EXCEPTION, true, &hw), 0);
	CHECK(cqueue_make(&g, &c, AQL, RING), 0);
	signal_init(error, 0);
	error->event = ev.event_id;
	error->mailbox = (uintptr_t)((uint64_t *)sig.ptr + ev.event_id);
	((uint32_t *)c.ptrs.ptr)[2] = 128;
	((uint64_t *)c.ptrs.ptr)[8] = (uintptr_t)error;
	aql_raw(&c, 2 | 1 << 16, NULL);
	cqueue_ring(&c);
	CHECK(event_wait(&g, &ev.event_id, 1, true, 10000), COMPLETE);
	CHECK(error->value, 8);
	CHECK(cqueue_error(&c), EOPNOTSUPP);
	CHECK(event_wait(&g, &hw.event_id, 1, true, 0),
	      KFD_IOC_WAIT_RESULT_TIMEOUT);
	cqueue_destroy(&g, &c);
	return true;
}

/* A signal that is not mapped. */
static bool fault(void)
{
	struct signal *nowhere = (void *)0x7ff000003000;
	struct kfd_ioctl_create_event_args ev;
	struct cqueue c;

	CHECK(event_make(&g, KFD_IOC_EVENT_MEMORY, true, &ev), 0);
	CHECK(cqueue_make(&g, &c, AQL, RING), 0);
	aql_barrier(&c, false, &nowhere, 1, NULL);
	cqueue_ring(&c);
	CHECK(event_wait(&g, &ev.event_id, 1, true, 10000), COMPLETE);
	CHECK(cqueue_error(&c), EFAULT);
	cqueue_destroy(&g, &c);
	return true;
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ set_up, "set_up" },
		{ barrier_and, "barrier_and" },
		{ barrier_or, "barrier_or" },
		{ between_queues, "between_queues" },
		{ ring_wraps, "ring_wraps" },
		{ late_producer, "late_producer" },
		{ pm4_buffer, "pm4_buffer" },
		{ dispatch, "dispatch" },
		{ wrong_packets, "wrong_packets" },
		{ inactive_signal, "inactive_signal" },
		{ fault, "fault" },
	};

	ktap_cases(cases, sizeof(cases) / sizeof(cases[0]));
	gpu_close(&g);
	return ktap_exit();
}
