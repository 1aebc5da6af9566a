// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies through ROCr: host to GPU, back, from one GPU to another, with signals
 * and barrier packets; and that what needs a shader is an error, not a silent
 * success.
 *
 * Wants two GPUs. To fail where the simulator drops a copy, a signal or a
 * dependency, or where a dispatch is skipped; only its canary was tried.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "../ktap.h"

#define MAX_GPUS	8
#define BYTES		(3 << 20)	/* more than one SDMA packet holds */
#define WAIT_NS		60000000000ULL	/* of a machine without KVM */

struct agent {
	hsa_agent_t id;
	hsa_amd_memory_pool_t pool;
	char name[64];
};

static struct agent cpu, gpus[MAX_GPUS];
static unsigned int num_cpus, num_gpus;

static hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void *data)
{
	struct agent *a = data;
	hsa_amd_segment_t segment;
	bool alloc = false;

	if (hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT,
					 &segment) ||
	    hsa_amd_memory_pool_get_info(pool,
					 HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
					 &alloc))
		return HSA_STATUS_ERROR;
	if (segment != HSA_AMD_SEGMENT_GLOBAL || !alloc)
		return HSA_STATUS_SUCCESS;
	a->pool = pool;
	return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t take_agent(hsa_agent_t id, void *data)
{
	hsa_device_type_t type;
	struct agent *a;

	(void)data;
	if (hsa_agent_get_info(id, HSA_AGENT_INFO_DEVICE, &type))
		return HSA_STATUS_ERROR;
	if (type == HSA_DEVICE_TYPE_CPU && !num_cpus++)
		a = &cpu;
	else if (type == HSA_DEVICE_TYPE_GPU && num_gpus < MAX_GPUS)
		a = &gpus[num_gpus++];
	else
		return HSA_STATUS_SUCCESS;
	a->id = id;
	if (hsa_agent_get_info(id, HSA_AGENT_INFO_NAME, a->name))
		return HSA_STATUS_ERROR;
	if (hsa_amd_agent_iterate_memory_pools(id, take_pool, a) !=
	    HSA_STATUS_INFO_BREAK)
		return HSA_STATUS_ERROR;
	return HSA_STATUS_SUCCESS;
}

static bool find_agents(void)
{
	if (hsa_iterate_agents(take_agent, NULL))
		return false;
	ktap_note("%u CPU agents, first %s; %u GPU agents, first %s", num_cpus,
		  cpu.name, num_gpus, gpus[0].name);
	return num_cpus && num_gpus >= 2 && !strncmp(gpus[0].name, "gfx", 3);
}

/* Memory of one agent that all others may reach; NULL where there is none. */
static void *mem_new(const struct agent *a, size_t size)
{
	hsa_agent_t all[MAX_GPUS];
	unsigned int i;
	void *p;

	if (hsa_amd_memory_pool_allocate(a->pool, size, 0, &p))
		return NULL;
	for (i = 0; i < num_gpus; i++)
		all[i] = gpus[i].id;
	if (hsa_amd_agents_allow_access(num_gpus, all, NULL, p)) {
		hsa_amd_memory_pool_free(p);
		return NULL;
	}
	return p;
}

static bool reached(hsa_signal_t s, hsa_signal_value_t value)
{
	return hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_EQ, value,
					 WAIT_NS, HSA_WAIT_STATE_BLOCKED) == value;
}

/* dst and src belong to these; waits for the end unless dep holds it back. */
static bool copy(void *dst, const struct agent *to, const void *src,
		 const struct agent *from, size_t size)
{
	hsa_signal_t done;
	bool ok;

	if (hsa_signal_create(1, 0, NULL, &done))
		return false;
	ok = !hsa_amd_memory_async_copy(dst, to->id, src, from->id, size, 0, NULL,
					done) &&
	     reached(done, 0);
	hsa_signal_destroy(done);
	return ok;
}

static uint32_t word(uint32_t seed, uint32_t i)
{
	return seed + i * 2654435761u;
}

static void fill(uint32_t *p, size_t bytes, uint32_t seed)
{
	size_t i;

	for (i = 0; i < bytes / 4; i++)
		p[i] = word(seed, i);
}

static bool same(const uint32_t *p, size_t bytes, uint32_t seed)
{
	size_t i;

	for (i = 0; i < bytes / 4; i++) {
		if (p[i] == word(seed, i))
			continue;
		ktap_note("word %zu is %#x", i, p[i]);
		return false;
	}
	return true;
}

/* From the host over GPUs 0 and, if via, 1 back into another host buffer. */
static bool round_trip(bool via, uint32_t seed)
{
	uint32_t *host = mem_new(&cpu, BYTES), *back = mem_new(&cpu, BYTES);
	void *a = mem_new(&gpus[0], BYTES), *b = mem_new(&gpus[1], BYTES);
	bool ok = host && back && a && b;

	if (ok) {
		fill(host, BYTES, seed);
		memset(back, 0, BYTES);
		ok = copy(a, &gpus[0], host, &cpu, BYTES);
	}
	if (ok && via)
		ok = copy(b, &gpus[1], a, &gpus[0], BYTES);
	if (ok)
		ok = copy(back, &cpu, via ? b : a, &gpus[via], BYTES);
	if (ktap_canary())
		((uint8_t *)back)[BYTES / 2] ^= 1;
	ok = ok && same(back, BYTES, seed);
	hsa_amd_memory_pool_free(host);
	hsa_amd_memory_pool_free(back);
	hsa_amd_memory_pool_free(a);
	hsa_amd_memory_pool_free(b);
	return ok;
}

/* A part of the source, unaligned, and nothing beside it. */
static bool odd_sizes(void)
{
	uint8_t *host = mem_new(&cpu, 8192), *back = mem_new(&cpu, 8192);
	uint8_t *a = mem_new(&gpus[0], 8192);
	bool ok = host && back && a;
	size_t i;

	if (!ok)
		return false;
	for (i = 0; i < 8192; i++)
		host[i] = i * 7 + 1;
	memset(back, 0xee, 8192);
	ok = copy(a, &gpus[0], host, &cpu, 8192) &&
	     copy(back + 3, &cpu, a + 5, &gpus[0], 4099);
	for (i = 0; ok && i < 8192; i++) {
		bool inside = i >= 3 && i < 3 + 4099;

		ok = back[i] == (inside ? (uint8_t)((i + 2) * 7 + 1) : 0xee);
	}
	hsa_amd_memory_pool_free(host);
	hsa_amd_memory_pool_free(back);
	hsa_amd_memory_pool_free(a);
	return ok;
}

/* A copy does not begin before its dependency is 0. */
static bool waits_for_signal(void)
{
	uint32_t *host = mem_new(&cpu, 4096), *a = mem_new(&gpus[0], 4096);
	hsa_signal_t before, done;
	bool ok = host && a && !hsa_signal_create(1, 0, NULL, &before) &&
		  !hsa_signal_create(1, 0, NULL, &done);

	if (!ok)
		return false;
	fill(host, 4096, 1);
	ok = !hsa_amd_memory_async_copy(a, gpus[0].id, host, cpu.id, 4096, 1,
					&before, done);
	usleep(200000);
	if (ok && hsa_signal_load_scacquire(done) != 1) {
		ktap_note("it did not wait");
		ok = false;
	}
	/* what is copied is what is there when it may begin */
	fill(host, 4096, 2);
	hsa_signal_store_screlease(before, 0);
	ok = ok && reached(done, 0);
	memset(host, 0, 4096);
	ok = ok && copy(host, &cpu, a, &gpus[0], 4096) && same(host, 4096, 2);
	hsa_signal_destroy(before);
	hsa_signal_destroy(done);
	hsa_amd_memory_pool_free(host);
	hsa_amd_memory_pool_free(a);
	return ok;
}

static uint16_t header(unsigned int type)
{
	return type << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
	       HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
	       HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
}

/* Puts a packet whose header is not written yet, then that, then rings. */
static void submit(hsa_queue_t *q, const void *packet, uint16_t head)
{
	uint64_t n = hsa_queue_add_write_index_screlease(q, 1);
	uint8_t *slot = (uint8_t *)q->base_address + (n % q->size) * 64;

	memcpy(slot + 2, (const uint8_t *)packet + 2, 62);
	__atomic_store_n((uint16_t *)slot, head, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(q->doorbell_signal, n);
}

static bool barrier_packet(hsa_queue_t *q, unsigned int type,
			   hsa_signal_value_t value)
{
	hsa_barrier_and_packet_t p = { 0 };	/* -or has the same layout */
	hsa_signal_t a, b, done;
	bool ok;

	if (hsa_signal_create(1, 0, NULL, &a) || hsa_signal_create(1, 0, NULL, &b) ||
	    hsa_signal_create(1, 0, NULL, &done))
		return false;
	p.dep_signal[0] = a;
	p.dep_signal[4] = b;
	p.completion_signal = done;
	submit(q, &p, header(type));
	usleep(100000);
	hsa_signal_store_screlease(a, 0);
	usleep(100000);
	ok = hsa_signal_load_scacquire(done) == value;
	hsa_signal_store_screlease(b, 0);
	ok = reached(done, 0) && ok;
	hsa_signal_destroy(a);
	hsa_signal_destroy(b);
	hsa_signal_destroy(done);
	return ok;
}

static int error_pipe[2];

static void queue_error(hsa_status_t status, hsa_queue_t *q, void *data)
{
	(void)q;
	(void)data;
	if (write(error_pipe[1], &status, sizeof(status)) < 0)
		abort();
}

static bool told(hsa_status_t *status)
{
	struct pollfd fd = { .fd = error_pipe[0], .events = POLLIN };

	return poll(&fd, 1, WAIT_NS / 1000000) == 1 &&
	       read(error_pipe[0], status, sizeof(*status)) == sizeof(*status);
}

/* The packets that ROCr and the simulator have in common; and one they do not. */
static void test_queue(void)
{
	hsa_kernel_dispatch_packet_t dispatch = {
		.setup = 1, .workgroup_size_x = 64, .workgroup_size_y = 1,
		.workgroup_size_z = 1, .grid_size_x = 64, .grid_size_y = 1,
		.grid_size_z = 1,
	};
	hsa_status_t status = HSA_STATUS_SUCCESS;
	hsa_queue_t *q;
	bool ok = !pipe(error_pipe) &&
		  !hsa_queue_create(gpus[0].id, 256, HSA_QUEUE_TYPE_SINGLE,
				    queue_error, NULL, UINT32_MAX, UINT32_MAX, &q);

	ktap_ok(ok, "a queue is created");
	ktap_ok(ok && barrier_packet(q, HSA_PACKET_TYPE_BARRIER_AND, 1),
		    "a barrier-AND packet waits for both signals");
	ktap_ok(ok && barrier_packet(q, HSA_PACKET_TYPE_BARRIER_OR, 0),
		    "a barrier-OR packet waits for one");
	if (ok && !hsa_signal_create(1, 0, NULL, &dispatch.completion_signal)) {
		submit(q, &dispatch, header(HSA_PACKET_TYPE_KERNEL_DISPATCH));
		ok = told(&status) && status != HSA_STATUS_SUCCESS &&
		     hsa_signal_load_scacquire(dispatch.completion_signal) == 1;
		ktap_note("status %#x", status);
	}
	ktap_ok(ok, "a dispatch is a queue error that the event tells");
	if (ok)
		hsa_queue_destroy(q);
}

/* In a process of its own: ROCr aborts it. Below 1 MiB it would use SDMA. */
static void copy_inside(void)
{
	void *a, *b;

	if (hsa_init() || !find_agents())
		_exit(3);
	a = mem_new(&gpus[0], BYTES);
	b = mem_new(&gpus[0], BYTES);
	if (!a || !b)
		_exit(3);
	_exit(copy(b, &gpus[0], a, &gpus[0], BYTES) ? 0 : 2);
}

static bool inside_is_error(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(120);
		copy_inside();
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	ktap_note("status %#x", status);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int main(void)
{
	bool ok;

	ktap_plan(10);
	/* before this process has a runtime, which a child cannot use */
	ktap_ok(inside_is_error(), "a copy inside one GPU is an error");
	ok = !hsa_init() && find_agents();
	ktap_ok(ok, "agents: a CPU and two GPUs");
	if (!ok)
		return 1;
	ktap_ok(round_trip(false, 1), "host to GPU and back");
	ktap_ok(round_trip(true, 77), "host to GPU, to another GPU, and back");
	ktap_ok(odd_sizes(), "an unaligned part");
	ktap_ok(waits_for_signal(), "a copy waits for its signal");
	test_queue();
	return ktap_exit();
}
