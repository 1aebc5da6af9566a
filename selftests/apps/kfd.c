// SPDX-License-Identifier: GPL-2.0-only
/* See kfd.h. */
#include "kfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/kfd_ioctl.h>

#define NODES		"/sys/devices/virtual/kfd/kfd/topology/nodes"
#define VA_ALIGN	(64ul << 10)
#define DOORBELL_BYTES	8192
#define EVENT_PAGE	(4096 * 8)

static int kfd_ioctl(struct kfd *kfd, unsigned long nr, void *args)
{
	int ret;

	do {
		ret = ioctl(kfd->fd, nr, args);
	} while (ret < 0 && errno == EAGAIN);
	return ret < 0 ? -errno : 0;
}

static uint64_t node_value(unsigned int node, const char *file, const char *name)
{
	char path[128], key[64];
	unsigned long long v = 0, found = 0;
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%u/%s", node, file);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!name && fscanf(f, "%llu", &found) != 1)
		found = 0;
	while (name && fscanf(f, "%63s %llu", key, &v) == 2) {
		if (!strcmp(key, name))
			found = v;
	}
	fclose(f);
	return found;
}

static unsigned int render_minor(uint32_t gpu_id)
{
	unsigned int node;

	for (node = 0; node < 2 * KFD_MAX_GPUS + 16; node++) {
		if (node_value(node, "gpu_id", NULL) == gpu_id)
			return node_value(node, "properties", "drm_render_minor");
	}
	return 0;
}

/* The real library's initialisation is a test of the device by itself. */
static int open_gpu(struct kfd *kfd, struct kfd_gpu *gpu, uint32_t id)
{
	struct kfd_ioctl_acquire_vm_args vm = { .gpu_id = id };
	unsigned int minor = render_minor(id);
	struct amdgpu_gpu_info info;
	uint32_t major_ver, minor_ver;
	char path[64];
	int ret;

	gpu->id = id;
	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor);
	gpu->fd = open(path, O_RDWR | O_CLOEXEC);
	if (gpu->fd < 0) {
		app_err("gpu %u: %s: %s", id, path, strerror(errno));
		return APP_ABSENT;
	}
	ret = amdgpu_device_initialize(gpu->fd, &major_ver, &minor_ver, &gpu->dev);
	if (!ret)
		ret = amdgpu_query_gpu_info(gpu->dev, &info);
	if (ret) {
		app_err("gpu %u: libdrm_amdgpu: %s", id, strerror(-ret));
		return APP_FAILED;
	}
	vm.drm_fd = gpu->fd;
	ret = kfd_ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm);
	if (ret) {
		app_err("gpu %u: ACQUIRE_VM: %s", id, strerror(-ret));
		return APP_FAILED;
	}
	printf("gpu %u id %u %s drm %u.%u family %u\n", (unsigned int)(gpu - kfd->gpus), id, path,
	       major_ver, minor_ver, info.family_id);
	return APP_OK;
}

int kfd_open(struct kfd *kfd, unsigned int n)
{
	struct kfd_process_device_apertures aps[KFD_MAX_GPUS];
	struct kfd_ioctl_get_process_apertures_new_args args = {
		.kfd_process_device_apertures_ptr = (uintptr_t)aps,
	};
	int ret;

	kfd->fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (kfd->fd < 0) {
		app_err("/dev/kfd: %s", strerror(errno));
		return APP_ABSENT;
	}
	/* Once for the number, which must not be exceeded, and once for all. */
	ret = kfd_ioctl(kfd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args);
	if (args.num_of_nodes > KFD_MAX_GPUS)
		args.num_of_nodes = KFD_MAX_GPUS;
	if (!ret && args.num_of_nodes)
		ret = kfd_ioctl(kfd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args);
	if (ret) {
		app_err("GET_PROCESS_APERTURES_NEW: %s", strerror(-ret));
		return APP_FAILED;
	}
	if (args.num_of_nodes < n) {
		app_err("%u GPUs wanted, %u here", n, args.num_of_nodes);
		return APP_ABSENT;
	}
	while (kfd->num_gpus < n) {
		ret = open_gpu(kfd, &kfd->gpus[kfd->num_gpus], aps[kfd->num_gpus].gpu_id);
		if (ret)
			return ret;
		kfd->num_gpus++;
	}
	return APP_OK;
}

int kfd_move_last(struct kfd *kfd)
{
	int fd = fcntl(kfd->fd, F_DUPFD_CLOEXEC, kfd->gpus[kfd->num_gpus - 1].fd + 1);

	if (fd < 0) {
		app_err("F_DUPFD: %s", strerror(errno));
		return -errno;
	}
	close(kfd->fd);
	kfd->fd = fd;
	return 0;
}

/* With a gap behind, so that neighbours stay apart. */
static void *reserve(uint64_t size, int prot)
{
	char *raw = mmap(NULL, size + 2 * VA_ALIGN, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *mem;

	if (raw == MAP_FAILED)
		return NULL;
	mem = (char *)(((uintptr_t)raw + VA_ALIGN - 1) & ~(VA_ALIGN - 1));
	if (mem != raw)
		munmap(raw, mem - raw);
	if (prot != PROT_NONE && mprotect(mem, size, prot))
		return NULL;
	return mem;
}

static uint32_t alloc_flags(enum app_heap heap)
{
	uint32_t flags = KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE |
			 KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE;

	switch (heap) {
	case APP_VRAM:
		return flags | KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
	case APP_GTT:
		return flags | KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	default:
		return flags | KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	}
}

static int map_on(struct kfd *kfd, uint64_t handle, uint32_t *ids, unsigned int n)
{
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.handle = handle,
		.device_ids_array_ptr = (uintptr_t)ids,
		.n_devices = n,
	};
	int ret = kfd_ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map);

	if (!ret && map.n_success != n)
		ret = -EIO;
	if (ret)
		app_err("MAP_MEMORY_TO_GPU: %s", strerror(-ret));
	return ret;
}

/* GPU address from libdrm's manager, at the CPU's: as ROCm does, for one pointer on both. */
static int take_address(struct kfd_bo *bo)
{
	uint64_t base;
	int ret;

	if (!bo->mem)
		bo->mem = reserve(bo->size, bo->heap & (APP_USERPTR | APP_SVM) ? PROT_READ | PROT_WRITE :
								PROT_NONE);
	if (!bo->mem)
		return -ENOMEM;
	ret = amdgpu_va_range_alloc(bo->gpu->dev, amdgpu_gpu_va_range_general, bo->size, 0,
				    (uintptr_t)bo->mem, &base, &bo->va, 0);
	if (!ret && base != (uintptr_t)bo->mem)
		ret = -EADDRNOTAVAIL;
	if (ret)
		app_err("address %p: %s", bo->mem, strerror(-ret));
	return ret;
}

/* Plain memory, which the GPU reaches by its address. */
static int share_memory(struct kfd *kfd, const struct kfd_bo *bo)
{
	const size_t attr_size = sizeof(struct kfd_ioctl_svm_attribute);
	struct kfd_ioctl_svm_args *args = calloc(1, sizeof(*args) + attr_size);
	int ret = -ENOMEM;

	if (args) {
		args->start_addr = (uintptr_t)bo->mem;
		args->size = bo->size;
		args->op = KFD_IOCTL_SVM_OP_SET_ATTR;
		args->nattr = 1;
		args->attrs[0].type = KFD_IOCTL_SVM_ATTR_ACCESS;
		args->attrs[0].value = bo->gpu->id;
		ret = kfd_ioctl(kfd, AMDKFD_IOC_SVM + (attr_size << _IOC_SIZESHIFT), args);
	}
	free(args);
	if (ret)
		app_err("SVM: %s", strerror(-ret));
	return ret;
}

/* At bo's address, where it has one. */
static int alloc_at(struct kfd *kfd, struct kfd_bo *bo)
{
	struct kfd_gpu *gpu = bo->gpu;
	enum app_heap heap = bo->heap;
	uint64_t size = bo->size;
	struct kfd_ioctl_alloc_memory_of_gpu_args args = { .size = size, .gpu_id = gpu->id };
	int prot = heap == APP_VRAM ? PROT_READ : PROT_READ | PROT_WRITE;
	int ret;

	ret = take_address(bo);
	if (ret || heap == APP_SVM)
		return ret ? ret : share_memory(kfd, bo);
	args.va_addr = (uintptr_t)bo->mem;
	args.flags = alloc_flags(heap);
	if (heap == APP_USERPTR)
		args.mmap_offset = (uintptr_t)bo->mem;
	ret = kfd_ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
	if (ret) {
		app_err("ALLOC_MEMORY_OF_GPU of %llu bytes: %s", (unsigned long long)size,
			strerror(-ret));
		return ret;
	}
	bo->handle = args.handle;
	ret = map_on(kfd, bo->handle, &gpu->id, 1);
	if (ret || heap == APP_USERPTR)
		return ret;
	/* A child must not have it, as ROCm has it too. */
	if (mmap(bo->mem, size, prot, MAP_SHARED | MAP_FIXED, gpu->fd, args.mmap_offset) ==
	    MAP_FAILED || madvise(bo->mem, size, MADV_DONTFORK)) {
		ret = -errno;
		app_err("mmap of a BO: %s", strerror(errno));
	}
	return ret;
}

int kfd_alloc(struct kfd *kfd, struct kfd_gpu *gpu, enum app_heap heap, uint64_t size,
	      struct kfd_bo *bo)
{
	*bo = (struct kfd_bo){ .gpu = gpu, .heap = heap, .size = size };
	return alloc_at(kfd, bo);
}

int kfd_alloc_user(struct kfd *kfd, struct kfd_gpu *gpu, void *mem, uint64_t size,
		   struct kfd_bo *bo)
{
	*bo = (struct kfd_bo){ .gpu = gpu, .heap = APP_USERPTR, .size = size, .mem = mem };
	return alloc_at(kfd, bo);
}

int kfd_map_everywhere(struct kfd *kfd, struct kfd_bo *bo)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < kfd->num_gpus && !ret; i++) {
		if (&kfd->gpus[i] != bo->gpu)
			ret = map_on(kfd, bo->handle, &kfd->gpus[i].id, 1);
	}
	return ret;
}

int kfd_free(struct kfd *kfd, struct kfd_bo *bo)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args unmap = {
		.handle = bo->handle,
		.device_ids_array_ptr = (uintptr_t)&bo->gpu->id,
		.n_devices = 1,
	};
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = bo->handle };
	int ret;

	ret = kfd_ioctl(kfd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &unmap);
	munmap(bo->mem, bo->size);
	if (!ret)
		ret = kfd_ioctl(kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
	if (!ret)
		ret = amdgpu_va_range_free(bo->va);
	if (ret)
		app_err("freeing a BO: %s", strerror(-ret));
	return ret;
}

/* The first event brings the page of mailboxes: a GTT BO that every GPU maps. */
static int event_page(struct kfd *kfd, uint64_t *offset)
{
	struct kfd_bo bo;
	int ret;

	ret = kfd_alloc(kfd, &kfd->gpus[0], APP_GTT, EVENT_PAGE, &bo);
	if (!ret)
		ret = kfd_map_everywhere(kfd, &bo);
	if (ret)
		return ret;
	kfd->event_page = bo.mem;
	*offset = bo.handle;
	return 0;
}

int kfd_event(struct kfd *kfd, uint32_t *id, volatile uint64_t **slot)
{
	struct kfd_ioctl_create_event_args args = {
		.event_type = KFD_IOC_EVENT_SIGNAL,
		.auto_reset = 1,
	};
	uint64_t offset = 0;
	int ret = 0;

	if (!kfd->event_page)
		ret = event_page(kfd, &offset);
	if (ret)
		return ret;
	args.event_page_offset = offset;
	ret = kfd_ioctl(kfd, AMDKFD_IOC_CREATE_EVENT, &args);
	if (ret) {
		app_err("CREATE_EVENT: %s", strerror(-ret));
		return ret;
	}
	*id = args.event_id;
	*slot = kfd->event_page + args.event_slot_index;
	return 0;
}

int kfd_wait(struct kfd *kfd, uint32_t id, unsigned int ms)
{
	struct kfd_event_data event = { .event_id = id };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)&event,
		.num_events = 1,
		.wait_for_all = 1,
		.timeout = ms,
	};
	int ret = kfd_ioctl(kfd, AMDKFD_IOC_WAIT_EVENTS, &args);

	if (ret)
		return ret;
	if (args.wait_result == KFD_IOC_WAIT_RESULT_FAIL)
		return -EIO;
	return args.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE;
}

/* As ROCm does: a doorbell BO for the GPU's page, then the mapping through /dev/kfd. */
static int map_doorbells(struct kfd *kfd, struct kfd_gpu *gpu, uint64_t offset)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.size = DOORBELL_BYTES,
		.gpu_id = gpu->id,
		.mmap_offset = offset,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
			 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT,
	};
	struct kfd_bo bo = { .gpu = gpu, .size = DOORBELL_BYTES };
	int ret;

	ret = take_address(&bo);
	if (ret)
		return ret;
	args.va_addr = (uintptr_t)bo.mem;
	ret = kfd_ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
	if (!ret)
		ret = map_on(kfd, args.handle, &gpu->id, 1);
	if (!ret && mmap(bo.mem, DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 kfd->fd, offset) == MAP_FAILED)
		ret = -errno;
	if (!ret && madvise(bo.mem, DOORBELL_BYTES, MADV_DONTFORK))
		ret = -errno;
	if (ret) {
		app_err("doorbells: %s", strerror(-ret));
		return ret;
	}
	gpu->doorbells = bo.mem;
	return 0;
}

int kfd_queue(struct kfd *kfd, struct kfd_gpu *gpu, struct kfd_bo *ring, struct kfd_bo *ptrs,
	      volatile uint64_t **doorbell)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = (uintptr_t)ring->mem,
		.ring_size = ring->size,
		.read_pointer_address = (uintptr_t)ptrs->mem,
		.write_pointer_address = (uintptr_t)ptrs->mem + 64,
		.gpu_id = gpu->id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = KFD_MAX_QUEUE_PRIORITY / 2,
	};
	int ret = kfd_ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &args);

	if (ret) {
		app_err("CREATE_QUEUE: %s", strerror(-ret));
		return ret;
	}
	/* Low bits: where in the process's page of doorbells; the rest: where that is mapped. */
	if (!gpu->doorbells)
		ret = map_doorbells(kfd, gpu, args.doorbell_offset & ~(DOORBELL_BYTES - 1ULL));
	if (ret)
		return ret;
	*doorbell = (volatile uint64_t *)(gpu->doorbells +
					  (args.doorbell_offset & (DOORBELL_BYTES - 1)));
	return 0;
}
