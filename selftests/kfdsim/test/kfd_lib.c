// SPDX-License-Identifier: GPL-2.0-only
/* KFD by raw ioctls, for the simulator's own tests. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "kfd_lib.h"

#define NODE	"/sys/devices/virtual/kfd/kfd/topology/nodes/1/gpu_id"
#define DEBUGFS	"/sys/kernel/debug/kfdsim/"

bool failed(const char *what, long got, long want)
{
	printf("# %s is %ld, not %ld\n", what, got, want);
	return false;
}

void sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, (ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
}

int kfd_call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static uint32_t read_gpu_id(void)
{
	FILE *f = fopen(NODE, "re");
	unsigned int id = 0;

	if (f) {
		if (fscanf(f, "%u", &id) != 1)
			id = 0;
		fclose(f);
	}
	return id;
}

bool gpu_open(struct gpu *g, bool vm)
{
	struct kfd_ioctl_acquire_vm_args acquire = { 0 };

	g->id = read_gpu_id();
	g->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	g->drm = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	if (!g->id || g->kfd < 0 || g->drm < 0)
		return failed("gpu_open", errno, 0);
	if (!vm)
		return true;
	acquire.drm_fd = g->drm;
	acquire.gpu_id = g->id;
	CHECK(kfd_call(g->kfd, AMDKFD_IOC_ACQUIRE_VM, &acquire), 0);
	return true;
}

void gpu_close(struct gpu *g)
{
	close(g->kfd);
	close(g->drm);
}

uint64_t reserve(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? 0 : (uintptr_t)p;
}

int buf_alloc(struct gpu *g, struct buf *b, uint32_t flags, uint64_t size)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = reserve(size),
		.size = size,
		.gpu_id = g->id,
		.flags = flags,
	};
	int ret;

	memset(b, 0, sizeof(*b));
	b->ptr = (void *)(uintptr_t)args.va_addr;
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
		if (mprotect(b->ptr, size, PROT_READ | PROT_WRITE))
			return -errno;
		args.mmap_offset = args.va_addr;
	}
	ret = kfd_call(g->kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
	b->handle = args.handle;
	b->offset = args.mmap_offset;
	b->size = size;
	b->flags = flags;
	return ret;
}

int buf_map_gpu(struct gpu *g, struct buf *b)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = b->handle,
		.device_ids_array_ptr = (uintptr_t)&g->id,
		.n_devices = 1,
	};

	return kfd_call(g->kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args);
}

int buf_map_cpu(struct gpu *g, struct buf *b)
{
	void *p = mmap(b->ptr, b->size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, g->drm, (off_t)b->offset);

	return p == b->ptr ? 0 : -errno;
}

int buf_make(struct gpu *g, struct buf *b, uint32_t flags, uint64_t size)
{
	int ret = buf_alloc(g, b, flags | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, size);

	if (!ret)
		ret = buf_map_gpu(g, b);
	if (!ret && !(flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR))
		ret = buf_map_cpu(g, b);
	return ret;
}

int buf_free(struct gpu *g, struct buf *b)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args unmap = {
		.handle = b->handle,
		.device_ids_array_ptr = (uintptr_t)&g->id,
		.n_devices = 1,
	};
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = b->handle };
	int ret = kfd_call(g->kfd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &unmap);

	if (!ret)
		ret = kfd_call(g->kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
	munmap(b->ptr, b->size);
	return ret;
}

int queue_map_doorbell(struct gpu *g, struct queue *q, uint64_t offset)
{
	q->doorbells = mmap(NULL, DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED,
			    g->kfd, (off_t)(offset & ~(uint64_t)(DOORBELLS - 1)));
	if (q->doorbells == MAP_FAILED)
		return -errno;
	q->doorbell = (volatile uint64_t *)((char *)q->doorbells +
					    (offset & (DOORBELLS - 1)));
	return 0;
}

int queue_make(struct gpu *g, struct queue *q, uint32_t type)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_size = RING_SIZE,
		.gpu_id = g->id,
		.queue_type = type,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
	const uint32_t gtt = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
	int ret;

	memset(q, 0, sizeof(*q));
	ret = buf_make(g, &q->ring, gtt, RING_SIZE);
	if (!ret)
		ret = buf_make(g, &q->rptr, gtt, PAGE);
	if (!ret)
		ret = buf_make(g, &q->wptr, gtt, PAGE);
	if (ret)
		return ret;
	*(uint64_t *)q->rptr.ptr = 0;
	*(uint64_t *)q->wptr.ptr = 0;
	args.ring_base_address = (uintptr_t)q->ring.ptr;
	args.read_pointer_address = (uintptr_t)q->rptr.ptr;
	args.write_pointer_address = (uintptr_t)q->wptr.ptr;
	ret = kfd_call(g->kfd, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (ret)
		return ret;
	q->id = args.queue_id;
	return queue_map_doorbell(g, q, args.doorbell_offset);
}

void queue_destroy(struct gpu *g, struct queue *q)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = q->id };

	kfd_call(g->kfd, AMDKFD_IOC_DESTROY_QUEUE, &args);
	munmap(q->doorbells, DOORBELLS);
	buf_free(g, &q->ring);
	buf_free(g, &q->rptr);
	buf_free(g, &q->wptr);
}

static void put(struct queue *q, uint32_t dw)
{
	((uint32_t *)q->ring.ptr)[(q->put / 4) % (RING_SIZE / 4)] = dw;
	q->put += 4;
}

static void put_addr(struct queue *q, const void *addr)
{
	put(q, (uint32_t)(uintptr_t)addr);
	put(q, (uint32_t)((uintptr_t)addr >> 32));
}

void put_copy(struct queue *q, const void *src, const void *dst, uint32_t bytes)
{
	put(q, 1);
	put(q, bytes - 1);
	put(q, 0);
	put_addr(q, src);
	put_addr(q, dst);
}

void put_fence(struct queue *q, const void *addr, uint32_t value)
{
	put(q, 5);
	put_addr(q, addr);
	put(q, value);
}

void put_trap(struct queue *q, uint32_t ctx)
{
	put(q, 6);
	put(q, ctx);
}

void put_nop(struct queue *q, unsigned int dwords)
{
	put(q, (dwords - 1) << 16);
	while (--dwords)
		put(q, 0);
}

void queue_ring(struct queue *q)
{
	*(uint64_t *)q->wptr.ptr = q->put;
	__sync_synchronize();
	*q->doorbell = q->put;
}

bool wait_value(const void *addr, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		if (*(const volatile uint32_t *)addr == value)
			return true;
		sleep_ms(1);
	}
	return failed("*addr", *(const volatile uint32_t *)addr, value);
}

int event_make(struct gpu *g, uint32_t type, bool auto_reset,
	       struct kfd_ioctl_create_event_args *ev)
{
	memset(ev, 0, sizeof(*ev));
	ev->event_type = type;
	ev->auto_reset = auto_reset;
	ev->node_id = g->id;
	return kfd_call(g->kfd, AMDKFD_IOC_CREATE_EVENT, ev);
}

int event_wait(struct gpu *g, const uint32_t *ids, uint32_t n, bool all,
	       uint32_t ms)
{
	struct kfd_event_data data[8] = { 0 };
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
	ret = kfd_call(g->kfd, AMDKFD_IOC_WAIT_EVENTS, &args);
	return ret ? ret : (int)args.wait_result;
}

long stat_value(const char *key)
{
	FILE *f = fopen(DEBUGFS "stats", "re");
	char name[64];
	long value, ret = -1;

	if (!f)
		return -1;
	while (fscanf(f, "%63s %ld", name, &value) == 2)
		if (!strcmp(name, key))
			ret = value;
	fclose(f);
	return ret;
}

long queue_progress(int pid, uint32_t qid, int *evicted, int *error)
{
	FILE *f = fopen(DEBUGFS "queues", "re");
	char line[256], type[32];
	long progress, ret = -1;
	unsigned int gpu, id;
	int p, ev, err;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%d %u %u %31s %ld %d %*u %*u %d", &p, &gpu,
			   &id, type, &progress, &ev, &err) != 7)
			continue;
		if (p != pid || id != qid)
			continue;
		ret = progress;
		if (evicted)
			*evicted = ev;
		if (error)
			*error = err;
	}
	fclose(f);
	return ret;
}

long queue_progress_at(uint32_t qid, long n)
{
	long progress = -1;
	int i;

	for (i = 0; i < 10000 && progress < n; i++) {
		if (i)
			sleep_ms(1);
		progress = queue_progress(getpid(), qid, NULL, NULL);
	}
	return progress;
}

bool personality_is(const char *want)
{
	FILE *f = fopen("/sys/module/kfdsim/parameters/personality", "re");
	char name[16] = "";

	if (f) {
		if (!fgets(name, sizeof(name), f))
			name[0] = 0;
		fclose(f);
	}
	name[strcspn(name, "\n")] = 0;
	return !strcmp(name, want);
}

int criu_op(struct gpu *g, uint32_t op, struct kfd_ioctl_criu_args *args)
{
	args->op = op;
	return kfd_call(g->kfd, AMDKFD_IOC_CRIU_OP, args);
}

int simple_op(struct gpu *g, uint32_t op, uint32_t pid)
{
	struct kfd_ioctl_criu_args args = { .pid = pid };

	return criu_op(g, op, &args);
}

bool in_child(bool (*fn)(void))
{
	int status = 1;	/* of a fork that failed */
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(fn() ? 0 : 1);
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("# killed by signal %d\n", WTERMSIG(status));
	return !status;
}
