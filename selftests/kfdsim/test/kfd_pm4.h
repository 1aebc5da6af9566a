/* SPDX-License-Identifier: GPL-2.0-only */
/* Compute queues: PM4 and AQL packets, for the simulator's own tests. */
#ifndef KFD_PM4_H
#define KFD_PM4_H

#include "kfd_lib.h"

#define VRAM	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
#define GTT	KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define USERPTR	KFD_IOC_ALLOC_MEM_FLAGS_USERPTR

#define PM4_HDR(op, dwords)	(3u << 30 | ((dwords) - 2) << 16 | (op) << 8)
#define PM4_NOP			0x10
#define PM4_DISPATCH		0x15
#define PM4_WRITE_DATA		0x37
#define PM4_WAIT_REG_MEM	0x3c
#define PM4_IB			0x3f
#define PM4_RELEASE_MEM		0x49
#define PM4_DMA_DATA		0x50
#define PM4_ACQUIRE_MEM		0x58
#define PM4_SET_SH_REG		0x76
#define PM4_NOP_ONE		0xffff1002u
#define PM4_FILLER		0x80000000u

#define RELEASE_NONE	0u
#define RELEASE_32	1u
#define RELEASE_64	2u
#define RELEASE_CLOCK	3u

/* Where packets are put: a ring, or an indirect buffer (which ends). */
struct stream {
	uint32_t *dw;
	uint32_t size;		/* dwords; a power of two for a ring */
	uint64_t put;		/* dwords so far */
};

/* A compute queue with what it must have from 6.12 on. */
struct cqueue {
	struct buf ring, ptrs, eop, area;
	struct stream s;
	uint32_t id;
	bool aql;
	volatile uint64_t *doorbell;
	void *doorbells;
};

/* An HSA signal as packet processors know it. */
struct signal {
	int64_t kind;
	volatile int64_t value;
	uint64_t mailbox;
	uint32_t event;
	uint32_t reserved;
	uint64_t times[4];
} __attribute__((aligned(64)));

/* Of the first GPU's node; 0 where there is no such line. */
uint64_t topo_value(const char *key);
/* Control stack, save area, and all that must be mapped, as libhsakmt counts. */
void area_sizes(uint32_t *stack, uint32_t *area, uint64_t *total);

/* In two steps, so that a test can spoil the arguments between them. */
int cqueue_prepare(struct gpu *g, struct cqueue *c, uint32_t type,
		   uint32_t ring_size, struct kfd_ioctl_create_queue_args *args);
int cqueue_create(struct gpu *g, struct cqueue *c,
		  struct kfd_ioctl_create_queue_args *args);
int cqueue_make(struct gpu *g, struct cqueue *c, uint32_t type,
		uint32_t ring_size);
void cqueue_free(struct gpu *g, struct cqueue *c);
void cqueue_destroy(struct gpu *g, struct cqueue *c);
/* Map the doorbell of a queue that exists already. */
int cqueue_map_doorbell(struct gpu *g, struct cqueue *c, uint64_t offset);
void cqueue_ring(struct cqueue *c);
/* PM4: wait until everything rung is consumed. */
bool cqueue_drained(const struct cqueue *c);
/* errno of its queue error after the event said so. */
int cqueue_error(const struct cqueue *c);
uint32_t cqueue_rptr(const struct cqueue *c);

void pm4_dw(struct stream *s, uint32_t dw);
void pm4_nop(struct stream *s, uint32_t dwords);
void pm4_write(struct stream *s, const void *addr, uint32_t value);
void pm4_write2(struct stream *s, const void *addr, uint32_t a, uint32_t b);
void pm4_release(struct stream *s, const void *addr, uint64_t value,
		 uint32_t data_sel, uint32_t int_sel, uint32_t ctx);
/* func: 3 equal, 4 not equal, 5 at least */
void pm4_wait(struct stream *s, const void *addr, uint32_t func, uint32_t ref,
	      uint32_t mask);
void pm4_ib(struct stream *s, const void *addr, uint32_t dwords, bool chain);
void pm4_acquire(struct stream *s);
void pm4_copy(struct stream *s, const void *dst, const void *src, uint32_t bytes);
void pm4_fill(struct stream *s, const void *dst, uint32_t value, uint32_t bytes);

/* AQL: fill the slot of the next packet, header last; returns its number. */
uint64_t aql_barrier(struct cqueue *c, bool any, struct signal *const *deps,
		     unsigned int n, struct signal *completion);
uint64_t aql_pm4(struct cqueue *c, const void *ib, uint32_t dwords,
		 struct signal *completion);
uint64_t aql_raw(struct cqueue *c, uint32_t header, struct signal *completion);
/* Number of packets that were read. */
uint64_t aql_read_index(const struct cqueue *c);
uint16_t aql_header(const struct cqueue *c, uint64_t number);
void signal_init(struct signal *s, int64_t value);
bool signal_wait(const struct signal *s, int64_t value);

#endif
