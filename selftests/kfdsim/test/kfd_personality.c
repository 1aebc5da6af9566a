// SPDX-License-Identifier: GPL-2.0-only
/*
 * What differs between kernels, as their KFD and amdgpu show it: one result
 * each. Wants one GPU; "personality.sh" runs it under every personality.
 *
 * usage: kfd_personality 6.1|6.12|7.2|7.3 [dump FILE|restore FILE]
 *
 * What is dumped is restored on another machine, whose GPU has another id.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <drm.h>
#include <amdgpu_drm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "../../ktap.h"
#include "kfd_lib.h"

#define GTT		KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define GPU_OF(id)	((uint64_t)(id) << 46)
#define TYPE(n)		((uint64_t)(n) << 62)
#define MAX_BOS		4
#define PRIV		4096

/* As the two kernels' headers and libdrm's may or may not have them. */
struct list_entry {
	uint32_t handle, flags;
	uint64_t size, domains, alloc_flags, alignment;
};

struct list_args {
	uint64_t entries;
	uint32_t n, pad;
};

struct op_args {
	uint32_t handle, op;
	uint64_t value;
	uint32_t n, pad;
};

struct va_args {
	uint32_t handle, pad, op, flags;
	uint64_t va, offset, size, point;
	uint32_t syncobj, n_wait;
	uint64_t wait;
};

struct vm_entry {
	uint64_t addr, size, offset, flags;
};

#define LIST_HANDLES	DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct list_args)
#define GEM_OP		DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP, struct op_args)
#define MAPPING_INFO	2
#define GEM_VA		DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_VA, struct va_args)
#define CHANGE_HANDLE	DRM_IOWR(0xd2, uint64_t)

/* What must be seen. */
static const struct expect {
	const char *name;
	uint32_t kfd_minor, drm_minor, bo_record;
	bool counts, by_user_id, event_page, lists, dmabuf;
} expects[] = {
	{ "6.1", 11, 49, 80, true, false, true, false, false },
	{ "6.12", 17, 61, 272, false, false, true, false, true },
	{ "7.2", 23, 64, 272, true, false, true, true, true },
	{ "7.3", 23, 64, 272, false, true, false, true, true },
};

static const struct expect *want;

/* A checkpoint. */
static struct image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket dev;
	struct kfd_criu_bo_bucket bo[MAX_BOS];
	uint8_t priv[PRIV];
} img;

static int criu(int kfd, uint32_t op, struct kfd_ioctl_criu_args *args)
{
	args->op = op;
	return kfd_call(kfd, AMDKFD_IOC_CRIU_OP, args);
}

static int map_at(int kfd, uint64_t offset, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, kfd,
		       (off_t)offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, size);
	return 0;
}

static bool versions(void)
{
	struct kfd_ioctl_get_version_args v = { 0 };
	struct drm_version drm = { 0 };
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_GET_VERSION, &v), 0);
	CHECK(v.minor_version, want->kfd_minor);
	CHECK(kfd_call(g.drm, DRM_IOCTL_VERSION, &drm), 0);
	CHECK(drm.version_major, 3);
	CHECK(drm.version_minor, want->drm_minor);
	return true;
}

static bool record_size(void)
{
	struct kfd_ioctl_criu_args args = { 0 };
	struct buf b;
	struct gpu g;

	if (!gpu_open(&g, true))
		return false;
	CHECK(buf_make(&g, &b, GTT, PAGE), 0);
	CHECK(criu(g.kfd, KFD_CRIU_OP_PROCESS_INFO, &args), 0);
	CHECK(args.num_bos, 1);
	CHECK(args.priv_data_size, 8 + 8 + want->bo_record);
	return true;
}

static bool second_pause(void)
{
	struct kfd_ioctl_criu_args args = { 0 };
	struct queue q;
	struct gpu g;
	int evicted = -1;

	if (!gpu_open(&g, true))
		return false;
	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	CHECK(criu(g.kfd, KFD_CRIU_OP_PROCESS_INFO, &args), 0);
	CHECK(criu(g.kfd, KFD_CRIU_OP_PROCESS_INFO, &args), 0);
	CHECK(criu(g.kfd, KFD_CRIU_OP_UNPAUSE, &args), 0);
	CHECK(queue_progress(getpid(), q.id, &evicted, NULL) >= 0, 1);
	CHECK(evicted, want->counts);
	return true;
}

static void image_pointers(void)
{
	img.args.devices = (uintptr_t)&img.dev;
	img.args.bos = (uintptr_t)img.bo;
	img.args.priv_data = (uintptr_t)img.priv;
}

static bool dump_doorbell(void)
{
	struct buf doorbell;
	struct gpu g;

	if (!gpu_open(&g, true))
		return false;
	CHECK(buf_alloc(&g, &doorbell, KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL,
			DOORBELLS), 0);
	CHECK(criu(g.kfd, KFD_CRIU_OP_PROCESS_INFO, &img.args), 0);
	CHECK(img.args.num_bos, 1);
	CHECK(img.args.priv_data_size <= PRIV, 1);
	image_pointers();
	CHECK(criu(g.kfd, KFD_CRIU_OP_CHECKPOINT, &img.args), 0);
	CHECK(img.bo[0].offset == (TYPE(3) | GPU_OF(g.id)), 1);
	return true;
}

/* The offset that KFD reports carries the new id; which one mmap wants differs. */
static bool restore_elsewhere(void)
{
	uint32_t old = img.dev.user_gpu_id;
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	CHECK(old && g.id != old, 1);
	image_pointers();
	img.dev.actual_gpu_id = g.id;
	img.dev.drm_fd = (uint32_t)g.drm;
	CHECK(criu(g.kfd, KFD_CRIU_OP_RESTORE, &img.args), 0);
	CHECK(img.bo[0].restored_offset == (TYPE(3) | GPU_OF(g.id)), 1);
	CHECK(map_at(g.kfd, TYPE(3) | GPU_OF(g.id), DOORBELLS),
	      want->by_user_id ? -ENODEV : 0);
	CHECK(map_at(g.kfd, TYPE(3) | GPU_OF(old), DOORBELLS),
	      want->by_user_id ? 0 : -ENODEV);
	return true;
}

/* In a file between the two. */
static bool image_file(const char *path, bool write_it)
{
	FILE *f = fopen(path, write_it ? "we" : "re");
	size_t n = 0;

	if (f) {
		n = write_it ? fwrite(&img, sizeof(img), 1, f) :
			       fread(&img, sizeof(img), 1, f);
		fclose(f);
	}
	return n == 1;
}

static bool half(const char *what, const char *path)
{
	if (!strcmp(what, "dump"))
		return dump_doorbell() && image_file(path, true);
	return !strcmp(what, "restore") && image_file(path, false) &&
	       restore_elsewhere();
}

static bool event_page(void)
{
	struct kfd_ioctl_create_event_args ev = {
		.event_type = KFD_IOC_EVENT_SIGNAL,
	};
	struct gpu g;

	if (!gpu_open(&g, true))
		return false;
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_CREATE_EVENT, &ev), 0);
	CHECK(map_at(g.kfd, TYPE(2) | GPU_OF(g.id), PAGE),
	      want->event_page ? 0 : -EINVAL);
	CHECK(map_at(g.kfd, TYPE(1) | GPU_OF(g.id), PAGE) < 0, 1);
	return true;
}

static uint32_t gem_new(int drm, uint64_t size)
{
	union drm_amdgpu_gem_create c = {
		.in = { .bo_size = size, .domains = AMDGPU_GEM_DOMAIN_GTT },
	};

	return kfd_call(drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &c) ? 0 : c.out.handle;
}

static bool gem_map(int drm, uint32_t handle, uint64_t va, uint64_t offset)
{
	struct drm_amdgpu_gem_va m = {
		.handle = handle, .operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_READABLE, .va_address = va,
		.offset_in_bo = offset, .map_size = PAGE,
	};

	return !kfd_call(drm, DRM_IOCTL_AMDGPU_GEM_VA, &m);
}

static bool list_handles(void)
{
	struct list_entry e[2] = { { 0 } };
	struct list_args args = { 0 };
	uint32_t a, b;
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	a = gem_new(g.drm, PAGE);
	b = gem_new(g.drm, 2 * PAGE);
	CHECK(a && b, 1);
	if (!want->lists) {
		CHECK(kfd_call(g.drm, LIST_HANDLES, &args), -EINVAL);
		return true;
	}
	/* too little room tells the number */
	args.n = 1;
	CHECK(kfd_call(g.drm, LIST_HANDLES, &args), 0);
	CHECK(args.n, 2);
	CHECK(e[0].handle, 0);
	args.entries = (uintptr_t)e;
	CHECK(kfd_call(g.drm, LIST_HANDLES, &args), 0);
	CHECK(args.n, 2);
	CHECK(e[0].handle == a && e[0].size == PAGE, 1);
	CHECK(e[1].handle == b && e[1].size == 2 * PAGE, 1);
	CHECK(e[1].domains, AMDGPU_GEM_DOMAIN_GTT);
	return true;
}

static bool mapping_info(void)
{
	struct vm_entry e[2] = { { 0 } };
	struct op_args args = { .op = MAPPING_INFO, .value = (uintptr_t)e, .n = 2 };
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	args.handle = gem_new(g.drm, 2 * PAGE);
	CHECK(args.handle > 0, 1);
	CHECK(gem_map(g.drm, args.handle, 0x400000, PAGE), 1);
	CHECK(kfd_call(g.drm, GEM_OP, &args), want->lists ? 0 : -EINVAL);
	if (!want->lists)
		return true;
	CHECK(args.n, 1);
	CHECK(e[0].addr == 0x400000 && e[0].size == PAGE &&
	      e[0].offset == PAGE && e[0].flags == AMDGPU_VM_PAGE_READABLE, 1);
	CHECK(gem_map(g.drm, args.handle, 0x600000, 0), 1);
	memset(e, 0, sizeof(e));
	args.n = 1;
	CHECK(kfd_call(g.drm, GEM_OP, &args), 0);
	CHECK(args.n, 2);
	CHECK(e[0].size, 0);
	return true;
}

/* Not in 6.x, disabled in 7.2 and 7.3. */
static bool change_handle(void)
{
	uint32_t args[2];
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	args[0] = gem_new(g.drm, PAGE);
	args[1] = args[0] + 7;
	CHECK(args[0] > 0, 1);
	CHECK(kfd_call(g.drm, CHANGE_HANDLE, args), -EINVAL);
	return true;
}

/* EXPORT_DMABUF of KFD 1.12; its argument is two u64 wide. */
static bool export_dmabuf(void)
{
	uint64_t args[2] = { ~0ull, 0 };
	struct gpu g;

	if (!gpu_open(&g, true))
		return false;
	CHECK(kfd_call(g.kfd, AMDKFD_IOWR(0x24, uint64_t[2]), args) == -ENOTTY,
	      !want->dmabuf);
	return true;
}

/* Waiting for none of no fences is an error everywhere, for all from 7.2 on. */
static bool no_fences(void)
{
	union drm_amdgpu_wait_fences any = { .in.timeout_ns = 1 };
	union drm_amdgpu_wait_fences every = { .in.wait_all = 1 };
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	CHECK(kfd_call(g.drm, DRM_IOCTL_AMDGPU_WAIT_FENCES, &any), -EINVAL);
	CHECK(kfd_call(g.drm, DRM_IOCTL_AMDGPU_WAIT_FENCES, &every),
	      want->lists ? -EINVAL : 0);
	return true;
}

static uint64_t point_of(int drm, uint32_t handle)
{
	uint64_t point = ~0ULL;
	struct drm_syncobj_timeline_array a = {
		.handles = (uintptr_t)&handle,
		.points = (uintptr_t)&point,
		.count_handles = 1,
	};

	CHECK(kfd_call(drm, DRM_IOCTL_SYNCOBJ_QUERY, &a), 0);
	return point;
}

/* From 7.2 on a mapping waits for syncobjs and signals a point of another. */
static bool va_timeline(void)
{
	struct drm_syncobj_create made = { .flags = DRM_SYNCOBJ_CREATE_SIGNALED };
	struct drm_syncobj_create line = { 0 };
	struct va_args args = {
		.op = AMDGPU_VA_OP_MAP, .flags = AMDGPU_VM_PAGE_READABLE,
		.va = 1 << 30, .size = PAGE, .point = 5, .syncobj = 99,
	};
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	args.handle = gem_new(g.drm, PAGE);
	CHECK(kfd_call(g.drm, DRM_IOCTL_SYNCOBJ_CREATE, &made), 0);
	CHECK(kfd_call(g.drm, DRM_IOCTL_SYNCOBJ_CREATE, &line), 0);
	CHECK(kfd_call(g.drm, GEM_VA, &args), want->lists ? -ENOENT : 0);
	args.syncobj = line.handle;
	args.va += PAGE;
	args.n_wait = 1;
	CHECK(kfd_call(g.drm, GEM_VA, &args), want->lists ? -EFAULT : 0);
	args.wait = (uintptr_t)&made.handle;
	args.va += PAGE;
	CHECK(kfd_call(g.drm, GEM_VA, &args), 0);
	CHECK(point_of(g.drm, line.handle), want->lists ? 5 : 0);
	return true;
}

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(expects) / sizeof(expects[0]); i++)
		if (!strcmp(argv[1], expects[i].name))
			want = &expects[i];
	if (!want || !personality_is(want->name)) {
		fprintf(stderr, "usage: kfd_personality 6.1|6.12|7.2|7.3, as the simulator's\n");
		return 1;
	}
	if (argc == 4)
		return !half(argv[2], argv[3]);
	ktap_plan(10);
	ktap_ok(in_child(versions), "versions of KFD and DRM");
	ktap_ok(in_child(record_size), "size of a BO's private record");
	ktap_ok(in_child(second_pause), "a second pause");
	ktap_ok(in_child(event_page), "mmap of the event page");
	ktap_ok(in_child(list_handles), "GEM_LIST_HANDLES");
	ktap_ok(in_child(mapping_info), "GET_MAPPING_INFO");
	ktap_ok(in_child(change_handle), "GEM_CHANGE_HANDLE");
	ktap_ok(in_child(export_dmabuf), "EXPORT_DMABUF");
	ktap_ok(in_child(no_fences), "waiting for no fence");
	ktap_ok(in_child(va_timeline), "syncobjs of a mapping");
	return ktap_exit();
}
