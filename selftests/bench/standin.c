// SPDX-License-Identifier: GPL-2.0-only
#include "standin.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <amdgpu.h>
#include <amdgpu_drm.h>

#define MAX_BOS		(1 << 17)
#define MAX_VAS		(1u << 17)
#define VA_SHIFT	40	/* a GPU address: mapping and offset in it */
#define MAX_QUEUED	64
#define COPY_DW		7
#define FILL_DW		5
/* An engine that is ahead of its rate sleeps when it is this much. */
#define AHEAD_NS	200000

struct amdgpu_bo {
	void *cpu;
	uint64_t size;
	bool own;		/* memory of ours, not of a BO or a user */
};

struct amdgpu_va {
	uint32_t index;
};

struct amdgpu_bo_list {
	int unused;
};

struct amdgpu_device {
	int unused;
};

struct job {
	const uint32_t *dw;
	uint32_t num;
};

struct amdgpu_context {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct job queue[MAX_QUEUED];
	uint64_t submitted;	/* sequence number of the last */
	uint64_t done;
	bool stop;
	uint64_t ready_ns;	/* when the engine has earned its next copy */
	uint64_t woken_ns;	/* first submission to an engine without work */
	double cpu;
};

static struct {
	void *cpu;
	size_t size;
} bos[MAX_BOS];
static int num_bos;

static void *vas[MAX_VAS];
static struct amdgpu_va va_handles[MAX_VAS];
static uint32_t va_free[MAX_VAS];
static uint32_t va_num_free, va_used = 1;
static pthread_mutex_t va_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t rate;
static bool hanging;
static uint64_t copied;
static double cpu_total;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void give_up(const char *what)
{
	perror(what);
	exit(1);
}

int standin_bo(size_t size, void **cpu)
{
	if (num_bos == MAX_BOS)
		give_up("too many BOs");
	*cpu = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (*cpu == MAP_FAILED)
		give_up("mmap of a BO");
	bos[num_bos].cpu = *cpu;
	bos[num_bos].size = size;
	return num_bos++;
}

void *standin_cpu_of(int fd)
{
	return bos[fd].cpu;
}

void standin_free_bos(void)
{
	while (num_bos) {
		num_bos--;
		munmap(bos[num_bos].cpu, bos[num_bos].size);
	}
}

void standin_set_rate(uint64_t bytes_per_s)
{
	rate = bytes_per_s;
}

void standin_hang(bool on)
{
	__atomic_store_n(&hanging, on, __ATOMIC_RELAXED);
}

uint64_t standin_copied(void)
{
	return __atomic_load_n(&copied, __ATOMIC_RELAXED);
}

double standin_cpu(void)
{
	return cpu_total;
}

int amdgpu_device_initialize(int fd, uint32_t *major, uint32_t *minor,
			     amdgpu_device_handle *dev)
{
	(void)fd;
	*major = 3;
	*minor = 61;
	*dev = calloc(1, sizeof(**dev));
	return *dev ? 0 : -ENOMEM;
}

int amdgpu_device_deinitialize(amdgpu_device_handle dev)
{
	free(dev);
	return 0;
}

int amdgpu_query_gpu_info(amdgpu_device_handle dev, struct amdgpu_gpu_info *info)
{
	(void)dev;
	memset(info, 0, sizeof(*info));
	info->family_id = AMDGPU_FAMILY_AI;
	return 0;
}

static int new_bo(void *cpu, uint64_t size, bool own, amdgpu_bo_handle *ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->cpu = cpu;
	(*ret)->size = size;
	(*ret)->own = own;
	return 0;
}

int amdgpu_bo_import(amdgpu_device_handle dev, enum amdgpu_bo_handle_type type,
		     uint32_t fd, struct amdgpu_bo_import_result *ret)
{
	(void)dev;
	if (type != amdgpu_bo_handle_type_dma_buf_fd || fd >= (uint32_t)num_bos)
		return -EBADF;
	ret->alloc_size = bos[fd].size;
	return new_bo(bos[fd].cpu, bos[fd].size, false, &ret->buf_handle);
}

int amdgpu_create_bo_from_user_mem(amdgpu_device_handle dev, void *cpu,
				   uint64_t size, amdgpu_bo_handle *ret)
{
	(void)dev;
	return new_bo(cpu, size, false, ret);
}

int amdgpu_bo_alloc(amdgpu_device_handle dev, struct amdgpu_bo_alloc_request *rq,
		    amdgpu_bo_handle *ret)
{
	void *cpu = aligned_alloc(4096, rq->alloc_size);

	(void)dev;
	return cpu ? new_bo(cpu, rq->alloc_size, true, ret) : -ENOMEM;
}

int amdgpu_bo_free(amdgpu_bo_handle bo)
{
	if (bo->own)
		free(bo->cpu);
	free(bo);
	return 0;
}

int amdgpu_bo_cpu_map(amdgpu_bo_handle bo, void **cpu)
{
	*cpu = bo->cpu;
	return 0;
}

int amdgpu_bo_cpu_unmap(amdgpu_bo_handle bo)
{
	(void)bo;
	return 0;
}

int amdgpu_va_range_alloc(amdgpu_device_handle dev,
			  enum amdgpu_gpu_va_range type, uint64_t size,
			  uint64_t align, uint64_t base, uint64_t *va,
			  amdgpu_va_handle *handle, uint64_t flags)
{
	uint32_t i;

	(void)dev;
	(void)type;
	(void)size;
	(void)align;
	(void)base;
	(void)flags;
	pthread_mutex_lock(&va_lock);
	i = va_num_free ? va_free[--va_num_free] : va_used++;
	pthread_mutex_unlock(&va_lock);
	if (i >= MAX_VAS)
		return -ENOMEM;
	va_handles[i].index = i;
	*handle = &va_handles[i];
	*va = (uint64_t)i << VA_SHIFT;
	return 0;
}

int amdgpu_va_range_free(amdgpu_va_handle handle)
{
	pthread_mutex_lock(&va_lock);
	va_free[va_num_free++] = handle->index;
	pthread_mutex_unlock(&va_lock);
	return 0;
}

int amdgpu_bo_va_op(amdgpu_bo_handle bo, uint64_t offset, uint64_t size,
		    uint64_t addr, uint64_t flags, uint32_t ops)
{
	(void)size;
	(void)flags;
	vas[addr >> VA_SHIFT] = ops == AMDGPU_VA_OP_MAP ?
		(char *)bo->cpu + offset : NULL;
	return 0;
}

int amdgpu_bo_list_create(amdgpu_device_handle dev, uint32_t num,
			  amdgpu_bo_handle *bos, uint8_t *prios,
			  amdgpu_bo_list_handle *ret)
{
	static struct amdgpu_bo_list list;

	(void)dev;
	(void)num;
	(void)bos;
	(void)prios;
	*ret = &list;
	return 0;
}

int amdgpu_bo_list_destroy(amdgpu_bo_list_handle list)
{
	(void)list;
	return 0;
}

static void *at(uint32_t low, uint32_t high)
{
	uint64_t va = low | (uint64_t)high << 32;
	char *base = vas[va >> VA_SHIFT];

	if (!base)
		give_up("SDMA: an address that nothing is mapped at");
	return base + (va & ((UINT64_C(1) << VA_SHIFT) - 1));
}

/*
 * An engine of this rate would not be done earlier. While it has work it falls
 * behind only where this machine cannot copy so fast: that its thread wakes up
 * late is none of its own doing.
 */
static void keep_rate(struct amdgpu_context *c, size_t len)
{
	uint64_t now;

	if (!rate)
		return;
	c->ready_ns += (double)len / rate * 1e9;
	now = now_ns(CLOCK_MONOTONIC);
	if (c->ready_ns > now + AHEAD_NS) {
		struct timespec t = {
			.tv_sec = c->ready_ns / 1000000000,
			.tv_nsec = c->ready_ns % 1000000000,
		};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
}

static void run_job(struct amdgpu_context *c, const struct job *j)
{
	uint32_t i = 0;

	while (i < j->num) {
		const uint32_t *dw = j->dw + i;
		size_t len;

		if (!*dw) {
			i++;
			continue;
		}
		switch (*dw) {
		case 1:
			len = (size_t)dw[1] + 1;
			memcpy(at(dw[5], dw[6]), at(dw[3], dw[4]), len);
			__atomic_add_fetch(&copied, len, __ATOMIC_RELAXED);
			i += COPY_DW;
			break;
		case 11:
			/* Of bytes, which it writes as fast as it copies. */
			len = (size_t)dw[4] + 1;
			memset(at(dw[1], dw[2]), dw[3], len);
			i += FILL_DW;
			break;
		default:
			give_up("SDMA: neither a linear copy nor a fill");
		}
		keep_rate(c, len);
	}
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void *engine(void *arg)
{
	struct amdgpu_context *c = arg;
	bool idle = true;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		if (c->done == c->submitted ||
		    __atomic_load_n(&hanging, __ATOMIC_RELAXED)) {
			idle = true;
			pthread_cond_wait(&c->change, &c->lock);
			continue;
		}
		/* No copy can be ahead of the one that was asked for. */
		if (idle)
			c->ready_ns = later(c->ready_ns, c->woken_ns);
		idle = false;
		pthread_mutex_unlock(&c->lock);
		run_job(c, &c->queue[(c->done + 1) % MAX_QUEUED]);
		pthread_mutex_lock(&c->lock);
		c->done++;
		pthread_cond_broadcast(&c->change);
	}
	pthread_mutex_unlock(&c->lock);
	c->cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
	return NULL;
}

int amdgpu_cs_ctx_create(amdgpu_device_handle dev, amdgpu_context_handle *ret)
{
	struct amdgpu_context *c = calloc(1, sizeof(*c));

	(void)dev;
	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->change, NULL);
	if (pthread_create(&c->thread, NULL, engine, c))
		give_up("a thread for the engine");
	*ret = c;
	return 0;
}

int amdgpu_cs_ctx_free(amdgpu_context_handle c)
{
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->change);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_mutex_lock(&va_lock);
	cpu_total += c->cpu;
	pthread_mutex_unlock(&va_lock);
	free(c);
	return 0;
}

int amdgpu_cs_submit(amdgpu_context_handle c, uint64_t flags,
		     struct amdgpu_cs_request *rq, uint32_t num)
{
	(void)flags;
	(void)num;
	pthread_mutex_lock(&c->lock);
	if (c->submitted - c->done >= MAX_QUEUED - 1)
		give_up("too many submissions");
	if (c->done == c->submitted)
		c->woken_ns = now_ns(CLOCK_MONOTONIC);
	c->submitted++;
	c->queue[c->submitted % MAX_QUEUED] = (struct job){
		.dw = vas[rq->ibs[0].ib_mc_address >> VA_SHIFT],
		.num = rq->ibs[0].size,
	};
	rq->seq_no = c->submitted;
	pthread_cond_broadcast(&c->change);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int amdgpu_cs_query_fence_status(struct amdgpu_cs_fence *fence,
				 uint64_t timeout_ns, uint64_t flags,
				 uint32_t *expired)
{
	struct amdgpu_context *c = fence->context;
	uint64_t end = now_ns(CLOCK_REALTIME) + timeout_ns;
	struct timespec t = {
		.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000,
	};
	int err = 0;

	(void)flags;
	pthread_mutex_lock(&c->lock);
	while (c->done < fence->fence && timeout_ns && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&c->change, &c->lock, &t);
	*expired = c->done >= fence->fence;
	pthread_mutex_unlock(&c->lock);
	return 0;
}
