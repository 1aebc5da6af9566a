// SPDX-License-Identifier: GPL-2.0-only
/* Compute queues: PM4 and AQL packets, for the simulator's own tests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "kfd_pm4.h"

#define PROPERTIES "/sys/devices/virtual/kfd/kfd/topology/nodes/1/properties"
#define EOP_SIZE	4096u
#define WPTR_AT		256u
#define AQL_BYTES	64u
#define AQL_DW		(AQL_BYTES / 4)

uint64_t topo_value(const char *key)
{
	FILE *f = fopen(PROPERTIES, "re");
	unsigned long long value, ret = 0;
	char name[64];

	if (!f)
		return 0;
	while (fscanf(f, "%63s %llu", name, &value) == 2)
		if (!strcmp(name, key))
			ret = value;
	fclose(f);
	return ret;
}

static uint32_t pages(uint64_t bytes)
{
	return (uint32_t)((bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1));
}

/* For gfx90a: 40 waves a CU, 512 a shader array, 0x95000 bytes of state a CU. */
void area_sizes(uint32_t *stack, uint32_t *area, uint64_t *total)
{
	uint32_t cus = (uint32_t)(topo_value("simd_count") / topo_value("simd_per_cu"));
	uint32_t waves = (uint32_t)(topo_value("array_count") /
				    topo_value("simd_arrays_per_engine") * 512);

	if (waves > cus * 40)
		waves = cus * 40;
	*stack = pages(40 + waves * 8 + 8);
	*area = *stack + pages((uint64_t)cus * 0x95000);
	*total = pages(*area + waves * 32);
}

int cqueue_prepare(struct gpu *g, struct cqueue *c, uint32_t type,
		   uint32_t ring_size, struct kfd_ioctl_create_queue_args *args)
{
	uint32_t stack, area;
	uint64_t total;
	int ret;

	area_sizes(&stack, &area, &total);
	memset(c, 0, sizeof(*c));
	memset(args, 0, sizeof(*args));
	ret = buf_make(g, &c->ring, GTT, ring_size);
	if (!ret)
		ret = buf_make(g, &c->ptrs, GTT, PAGE);
	if (!ret)
		ret = buf_make(g, &c->eop, GTT, EOP_SIZE);
	if (!ret)
		ret = buf_make(g, &c->area, USERPTR, total);
	if (ret)
		return ret;
	memset(c->ptrs.ptr, 0, PAGE);
	c->aql = type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	c->s.dw = c->ring.ptr;
	c->s.size = ring_size / 4;
	if (c->aql)	/* nothing is there yet */
		for (uint32_t i = 0; i < ring_size / AQL_BYTES; i++)
			c->s.dw[i * AQL_DW] = 1;
	args->ring_base_address = (uintptr_t)c->ring.ptr;
	args->ring_size = ring_size;
	args->read_pointer_address = (uintptr_t)c->ptrs.ptr;
	args->write_pointer_address = (uintptr_t)c->ptrs.ptr + WPTR_AT;
	args->eop_buffer_address = (uintptr_t)c->eop.ptr;
	args->eop_buffer_size = EOP_SIZE;
	args->ctx_save_restore_address = (uintptr_t)c->area.ptr;
	args->ctx_save_restore_size = area;
	args->ctl_stack_size = stack;
	args->gpu_id = g->id;
	args->queue_type = type;
	args->queue_percentage = 100;
	args->queue_priority = 7;
	return 0;
}

int cqueue_map_doorbell(struct gpu *g, struct cqueue *c, uint64_t offset)
{
	struct queue q = { 0 };
	int ret = queue_map_doorbell(g, &q, offset);

	c->doorbell = q.doorbell;
	c->doorbells = q.doorbells;
	return ret;
}

int cqueue_create(struct gpu *g, struct cqueue *c,
		  struct kfd_ioctl_create_queue_args *args)
{
	int ret = kfd_call(g->kfd, AMDKFD_IOC_CREATE_QUEUE, args);

	if (ret)
		return ret;
	c->id = args->queue_id;
	return cqueue_map_doorbell(g, c, args->doorbell_offset);
}

int cqueue_make(struct gpu *g, struct cqueue *c, uint32_t type,
		uint32_t ring_size)
{
	struct kfd_ioctl_create_queue_args args;
	int ret = cqueue_prepare(g, c, type, ring_size, &args);

	return ret ? ret : cqueue_create(g, c, &args);
}

void cqueue_free(struct gpu *g, struct cqueue *c)
{
	buf_free(g, &c->ring);
	buf_free(g, &c->ptrs);
	buf_free(g, &c->eop);
	buf_free(g, &c->area);
}

void cqueue_destroy(struct gpu *g, struct cqueue *c)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = c->id };

	kfd_call(g->kfd, AMDKFD_IOC_DESTROY_QUEUE, &args);
	munmap(c->doorbells, DOORBELLS);
	cqueue_free(g, c);
}

/* PM4 rings dwords; AQL the number of the last packet. */
void cqueue_ring(struct cqueue *c)
{
	uint64_t value = c->aql ? c->s.put / AQL_DW - 1 : c->s.put;

	*(volatile uint64_t *)((char *)c->ptrs.ptr + WPTR_AT) = value;
	__sync_synchronize();
	*c->doorbell = value;
}

uint32_t cqueue_rptr(const struct cqueue *c)
{
	return *(volatile uint32_t *)c->ptrs.ptr;
}

bool cqueue_drained(const struct cqueue *c)
{
	return wait_value(c->ptrs.ptr, (uint32_t)(c->s.put % c->s.size));
}

int cqueue_error(const struct cqueue *c)
{
	int error = 0;
	unsigned int i;

	for (i = 0; i < 1000 && !error; i++) {
		queue_progress(getpid(), c->id, NULL, &error);
		if (!error)
			sleep_ms(10);
	}
	return error;
}

void pm4_dw(struct stream *s, uint32_t dw)
{
	s->dw[s->put++ % s->size] = dw;
}

static void pm4_addr(struct stream *s, const void *addr)
{
	pm4_dw(s, (uint32_t)(uintptr_t)addr);
	pm4_dw(s, (uint32_t)((uintptr_t)addr >> 32));
}

void pm4_nop(struct stream *s, uint32_t dwords)
{
	pm4_dw(s, dwords == 1 ? PM4_NOP_ONE : PM4_HDR(PM4_NOP, dwords));
	while (--dwords)
		pm4_dw(s, 0xdeadbeef);
}

void pm4_write(struct stream *s, const void *addr, uint32_t value)
{
	pm4_dw(s, PM4_HDR(PM4_WRITE_DATA, 5));
	pm4_dw(s, 5 << 8 | 1 << 20);
	pm4_addr(s, addr);
	pm4_dw(s, value);
}

void pm4_write2(struct stream *s, const void *addr, uint32_t a, uint32_t b)
{
	pm4_dw(s, PM4_HDR(PM4_WRITE_DATA, 6));
	pm4_dw(s, 5 << 8 | 1 << 20);
	pm4_addr(s, addr);
	pm4_dw(s, a);
	pm4_dw(s, b);
}

void pm4_release(struct stream *s, const void *addr, uint64_t value,
		 uint32_t data_sel, uint32_t int_sel, uint32_t ctx)
{
	pm4_dw(s, PM4_HDR(PM4_RELEASE_MEM, 8));
	pm4_dw(s, 0x14 | 5 << 8);
	pm4_dw(s, int_sel << 24 | data_sel << 29);
	pm4_addr(s, addr);
	pm4_dw(s, (uint32_t)value);
	pm4_dw(s, (uint32_t)(value >> 32));
	pm4_dw(s, ctx);
}

void pm4_wait(struct stream *s, const void *addr, uint32_t func, uint32_t ref,
	      uint32_t mask)
{
	pm4_dw(s, PM4_HDR(PM4_WAIT_REG_MEM, 7));
	pm4_dw(s, func | 1 << 4);
	pm4_addr(s, addr);
	pm4_dw(s, ref);
	pm4_dw(s, mask);
	pm4_dw(s, 4);
}

void pm4_ib(struct stream *s, const void *addr, uint32_t dwords, bool chain)
{
	pm4_dw(s, PM4_HDR(PM4_IB, 4));
	pm4_addr(s, addr);
	pm4_dw(s, dwords | (chain ? 1u << 20 : 0) | 1u << 23);
}

void pm4_acquire(struct stream *s)
{
	pm4_dw(s, PM4_HDR(PM4_ACQUIRE_MEM, 7));
	for (unsigned int i = 0; i < 6; i++)
		pm4_dw(s, 0xffffffff);
}

void pm4_copy(struct stream *s, const void *dst, const void *src, uint32_t bytes)
{
	pm4_dw(s, PM4_HDR(PM4_DMA_DATA, 7));
	pm4_dw(s, 1u << 31);
	pm4_addr(s, src);
	pm4_addr(s, dst);
	pm4_dw(s, bytes);
}

void pm4_fill(struct stream *s, const void *dst, uint32_t value, uint32_t bytes)
{
	pm4_dw(s, PM4_HDR(PM4_DMA_DATA, 7));
	pm4_dw(s, 1u << 31 | 2u << 29);
	pm4_dw(s, value);
	pm4_dw(s, 0);
	pm4_addr(s, dst);
	pm4_dw(s, bytes);
}

/* A packet is there once its header is, whatever order the rest came in. */
static uint64_t aql_put(struct cqueue *c, uint32_t header, uint32_t body[AQL_DW])
{
	uint32_t *slot = c->s.dw + c->s.put % c->s.size;
	uint64_t number = c->s.put / AQL_DW;

	memcpy(slot + 1, body + 1, AQL_BYTES - 4);
	__atomic_store_n(slot, header, __ATOMIC_RELEASE);
	c->s.put += AQL_DW;
	return number;
}

static void aql_u64(uint32_t *body, unsigned int byte, uint64_t value)
{
	memcpy((char *)body + byte, &value, sizeof(value));
}

uint64_t aql_raw(struct cqueue *c, uint32_t header, struct signal *completion)
{
	uint32_t body[AQL_DW] = { 0 };

	aql_u64(body, 56, (uintptr_t)completion);
	return aql_put(c, header, body);
}

uint64_t aql_barrier(struct cqueue *c, bool any, struct signal *const *deps,
		     unsigned int n, struct signal *completion)
{
	uint32_t body[AQL_DW] = { 0 };
	unsigned int i;

	for (i = 0; i < n; i++)
		aql_u64(body, 8 + i * 8, (uintptr_t)deps[i]);
	aql_u64(body, 56, (uintptr_t)completion);
	return aql_put(c, (any ? 5 : 3) | 1 << 8, body);
}

uint64_t aql_pm4(struct cqueue *c, const void *ib, uint32_t dwords,
		 struct signal *completion)
{
	uint32_t body[AQL_DW] = { 0 };
	struct stream s = { .dw = body + 1, .size = AQL_DW - 1 };

	pm4_ib(&s, ib, dwords, false);
	body[5] = 10;
	aql_u64(body, 56, (uintptr_t)completion);
	return aql_put(c, 0 | 1 << 8 | 1 << 16, body);
}

uint64_t aql_read_index(const struct cqueue *c)
{
	return *(volatile uint64_t *)c->ptrs.ptr;
}

uint16_t aql_header(const struct cqueue *c, uint64_t number)
{
	return (uint16_t)c->s.dw[number * AQL_DW % c->s.size];
}

void signal_init(struct signal *s, int64_t value)
{
	memset(s, 0, sizeof(*s));
	s->kind = 1;
	s->value = value;
}

bool signal_wait(const struct signal *s, int64_t value)
{
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		if (s->value == value)
			return true;
		sleep_ms(1);
	}
	return failed("signal", (long)s->value, (long)value);
}
