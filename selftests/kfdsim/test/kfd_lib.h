/* SPDX-License-Identifier: GPL-2.0-only */
/* KFD by raw ioctls, for the simulator's own tests. */
#ifndef KFD_LIB_H
#define KFD_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/kfd_ioctl.h>

#define RING_SIZE	65536u
#define PAGE		4096u
#define DOORBELLS	8192u

/* KFD 1.12 and 1.13; Debian 12's headers end with 1.11. */
#ifndef AMDKFD_IOC_EXPORT_DMABUF
struct kfd_ioctl_export_dmabuf_args {
	uint64_t handle;
	uint32_t flags;
	uint32_t dmabuf_fd;
};

#define AMDKFD_IOC_EXPORT_DMABUF \
	AMDKFD_IOWR(0x24, struct kfd_ioctl_export_dmabuf_args)
#endif

#ifndef AMDKFD_IOC_RUNTIME_ENABLE
struct kfd_ioctl_runtime_enable_args {
	uint64_t r_debug;
	uint32_t mode_mask;
	uint32_t capabilities_mask;
};

#define AMDKFD_IOC_RUNTIME_ENABLE \
	AMDKFD_IOWR(0x25, struct kfd_ioctl_runtime_enable_args)
#endif

/* Say why, as a diagnostic; always false. */
bool failed(const char *what, long got, long want);

#define CHECK(got, want) do { \
	long got_ = (long)(got), want_ = (long)(want); \
	if (got_ != want_) \
		return failed(#got, got_, want_); \
} while (0)

/* One process's use of the first GPU. */
struct gpu {
	int kfd;
	int drm;
	uint32_t id;
};

/* A buffer at the same CPU and GPU address. */
struct buf {
	uint64_t handle;
	uint64_t size;
	uint64_t offset;
	uint32_t flags;
	void *ptr;
};

/* An SDMA queue, and where the next packet goes. */
struct queue {
	struct buf ring, rptr, wptr;
	uint32_t id;
	volatile uint64_t *doorbell;
	void *doorbells;
	uint64_t put;
};

/* Result of an ioctl as 0 or -errno. */
int kfd_call(int fd, unsigned long cmd, void *arg);

bool gpu_open(struct gpu *g, bool vm);
void gpu_close(struct gpu *g);
uint64_t reserve(uint64_t size);

int buf_alloc(struct gpu *g, struct buf *b, uint32_t flags, uint64_t size);
int buf_map_gpu(struct gpu *g, struct buf *b);
int buf_map_cpu(struct gpu *g, struct buf *b);
int buf_make(struct gpu *g, struct buf *b, uint32_t flags, uint64_t size);
int buf_free(struct gpu *g, struct buf *b);

int queue_make(struct gpu *g, struct queue *q, uint32_t type);
int queue_map_doorbell(struct gpu *g, struct queue *q, uint64_t offset);
void queue_destroy(struct gpu *g, struct queue *q);
void put_copy(struct queue *q, const void *src, const void *dst, uint32_t bytes);
void put_fence(struct queue *q, const void *addr, uint32_t value);
void put_trap(struct queue *q, uint32_t ctx);
void put_nop(struct queue *q, unsigned int dwords);
void queue_ring(struct queue *q);
/* Wait until *addr is value; false after some seconds. */
bool wait_value(const void *addr, uint32_t value);

int event_make(struct gpu *g, uint32_t type, bool auto_reset,
	       struct kfd_ioctl_create_event_args *ev);
/* Result of WAIT_EVENTS: KFD_IOC_WAIT_RESULT_* or -errno. */
int event_wait(struct gpu *g, const uint32_t *ids, uint32_t n, bool all,
	       uint32_t ms);

/* A CRIU operation, args but for op filled; -errno. */
int criu_op(struct gpu *g, uint32_t op, struct kfd_ioctl_criu_args *args);
/* One that takes no more than a pid. */
int simple_op(struct gpu *g, uint32_t op, uint32_t pid);
/* Run a case in a process of its own; false too where it was killed. */
bool in_child(bool (*fn)(void));

/* A value of debugfs "stats"; -1 where there is none. */
long stat_value(const char *key);
/* Progress of a queue of pid, or -1; evicted and error where not NULL. */
long queue_progress(int pid, uint32_t qid, int *evicted, int *error);
/*
 * Progress of a queue of ours, read once it is n or more, or given up. What a packet wrote is seen before the
 * packet is counted, so a single look may come too early.
 */
long queue_progress_at(uint32_t qid, long n);
/* The kernel whose KFD the simulator was told to be. */
bool personality_is(const char *name);
void sleep_ms(unsigned int ms);

#endif
