// SPDX-License-Identifier: GPL-2.0-only
/*
 * bo-get and vma-get against the truth on a simulated GPU: KFD's buffers,
 * which have no handle in the render node; the same exported and imported, in
 * another file and in another process; mappings cut, split, through a dma-buf,
 * and inherited.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <drm.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

/* Older headers do not have it; the number is part of KFD's ABI. */
#ifndef AMDKFD_IOC_EXPORT_DMABUF
struct kfd_ioctl_export_dmabuf_args {
	__u64 handle;
	__u32 flags;
	__u32 dmabuf_fd;
};
#define AMDKFD_IOC_EXPORT_DMABUF \
	AMDKFD_IOWR(0x24, struct kfd_ioctl_export_dmabuf_args)
#endif

#define PAGES(n)	((size_t)(n) * 4096)
#define SIZE		PAGES(16)

static struct raw nl;
static struct raw_ans *ans;
static int kfd, render, dmabuf = -1;
static uint32_t gpu;
static struct kfd_ioctl_alloc_memory_of_gpu_args bo;
static char *map;
static uint64_t share;

static void make_bo(void)
{
	struct kfd_ioctl_acquire_vm_args vm = { 0 };

	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (kfd < 0 || !kfd_gpu(&gpu, &render))
		ktap_bail("no simulated GPU");
	vm.gpu_id = gpu;
	vm.drm_fd = render;
	bo = (struct kfd_ioctl_alloc_memory_of_gpu_args) {
		.va_addr = 0x200000000ULL,
		.size = SIZE,
		.gpu_id = gpu,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
			 KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	if (ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm) ||
	    ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &bo))
		ktap_bail("no buffer: %s", strerror(errno));
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, render,
		   bo.mmap_offset);
	if (map == MAP_FAILED)
		ktap_bail("mmap: %s", strerror(errno));
}

static int ask_bos(int fd)
{
	return raw_ask_bos(&nl, ans, fd);
}

static int ask_vmas(pid_t pid, int fd)
{
	return raw_ask_vmas(&nl, ans, pid, fd);
}

static const struct raw_msg *vma_at(const char *start)
{
	size_t i;

	for (i = 0; i < ans->num; i++)
		if (raw_u64(&ans->msgs[i], GPUCR_A_VMA_START) ==
		    (uintptr_t)start)
			return &ans->msgs[i];
	return NULL;
}

static bool vma_is(size_t delta, size_t len, uint32_t flags)
{
	const struct raw_msg *m = vma_at(map + delta);

	return m && raw_u32(m, GPUCR_A_VMA_KIND) == GPUCR_VMA_KIND_BO &&
	       raw_u64(m, GPUCR_A_VMA_END) == (uintptr_t)map + delta + len &&
	       raw_u64(m, GPUCR_A_VMA_PGOFF) ==
	       (bo.mmap_offset + delta) / 4096 &&
	       raw_u64(m, GPUCR_A_VMA_BO_DELTA) == delta &&
	       raw_u64(m, GPUCR_A_VMA_BO_SIZE) == SIZE &&
	       raw_u64(m, GPUCR_A_VMA_SHARE_ID) == share &&
	       raw_u32(m, GPUCR_A_VMA_FLAGS) ==
	       (flags | GPUCR_VMA_FLAGS_SHARED);
}

#define RW	(GPUCR_VMA_FLAGS_READ | GPUCR_VMA_FLAGS_WRITE)

static void test_bo(void)
{
	const struct raw_msg *m = &ans->msgs[0];

	ktap_ok(!ask_bos(render) && ans->num == 1 &&
		!raw_has(m, GPUCR_A_BO_HANDLE) &&
		raw_u64(m, GPUCR_A_BO_SIZE) == SIZE &&
		raw_u64(m, GPUCR_A_BO_OFFSET) == bo.mmap_offset &&
		raw_u32(m, GPUCR_A_BO_FLAGS) & GPUCR_BO_FLAGS_MAPPED_ONLY,
		"KFD's buffer has no handle, and is told with size and offset");
	share = raw_u64(m, GPUCR_A_BO_SHARE_ID);
}

/* The BO of that share id, with a handle. */
static bool imported_in(int fd, uint32_t handle)
{
	size_t i;

	ask_bos(fd);
	for (i = 0; i < ans->num; i++)
		if (raw_u32(&ans->msgs[i], GPUCR_A_BO_HANDLE) == handle)
			return raw_u64(&ans->msgs[i], GPUCR_A_BO_SHARE_ID) ==
			       share &&
			       raw_u64(&ans->msgs[i], GPUCR_A_BO_SIZE) == SIZE;
	return false;
}

static int reopen(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", render);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* A process may checkpoint itself, and gets a dma-buf of each buffer. */
static int export_by_checkpoint(void)
{
	struct kfd_ioctl_criu_args a = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct kfd_criu_bo_bucket *bos;
	int fd;

	if (ioctl(kfd, AMDKFD_IOC_CRIU_OP, &a) || a.num_bos != 1)
		ktap_bail("pausing itself: %s", strerror(errno));
	bos = calloc(a.num_bos, sizeof(*bos));
	a.op = KFD_CRIU_OP_CHECKPOINT;
	a.bos = (uintptr_t)bos;
	a.devices = (uintptr_t)calloc(a.num_devices,
				      sizeof(struct kfd_criu_device_bucket));
	a.priv_data = (uintptr_t)calloc(1, a.priv_data_size);
	if (ioctl(kfd, AMDKFD_IOC_CRIU_OP, &a))
		ktap_bail("checkpointing itself: %s", strerror(errno));
	fd = bos[0].dmabuf_fd;
	a = (struct kfd_ioctl_criu_args) { .op = KFD_CRIU_OP_UNPAUSE };
	if (ioctl(kfd, AMDKFD_IOC_CRIU_OP, &a))
		ktap_bail("going on: %s", strerror(errno));
	return fd;
}

/* KFD 1.11 has no operation of its own for it. */
static int export(void)
{
	struct kfd_ioctl_export_dmabuf_args e = {
		.handle = bo.handle, .flags = O_CLOEXEC,
	};

	if (!ioctl(kfd, AMDKFD_IOC_EXPORT_DMABUF, &e))
		return e.dmabuf_fd;
	if (errno != EINVAL && errno != ENOTTY)
		ktap_bail("export: %s", strerror(errno));
	ktap_note("exported by a checkpoint: this KFD has no EXPORT_DMABUF");
	return export_by_checkpoint();
}

static void test_import(void)
{
	struct drm_prime_handle p;
	int other = reopen();

	dmabuf = export();
	p = (struct drm_prime_handle) { .fd = dmabuf };
	ktap_ok(!ask_bos(render) && ans->num == 1 &&
		raw_u64(&ans->msgs[0], GPUCR_A_BO_SHARE_ID) == share,
		"exported, it is told as before");
	ktap_ok(!ask_bos(other) && !ans->num,
		"another open of the same node has none of it");
	if (ioctl(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p))
		ktap_bail("import: %s", strerror(errno));
	ktap_ok(imported_in(other, p.handle),
		"imported there, it has a handle and the same share id");
	if (ioctl(render, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p))
		ktap_bail("import: %s", strerror(errno));
	ktap_ok(imported_in(render, p.handle) && ans->num == 1,
		"imported in its own file, it is told once, with the handle");
	close(other);
}

static int imports(void *arg)
{
	struct drm_prime_handle p = { .fd = dmabuf };
	int fd = reopen();

	(void)arg;
	if (fd < 0 || ioctl(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p))
		return -1;
	return fd;
}

/* The child of a fork has our mapping too, unless the driver denies it. */
static void test_process(void)
{
	struct helper h;
	int theirs, same;

	if (!helper_start(&h, imports, NULL))
		ktap_bail("helper");
	theirs = fd_of(h.pid, h.fd);
	ktap_ok(!ask_bos(theirs) && ans->num == 1 &&
		raw_u64(&ans->msgs[0], GPUCR_A_BO_SHARE_ID) == share,
		"imported by another process, it has the same share id");
	ktap_ok(!ask_vmas(h.pid, theirs) && !ans->num,
		"that file has no mapping there");
	same = fd_of(h.pid, render);
	ask_vmas(h.pid, same);
	ktap_ok(!ans->err && ans->num == 1 && vma_is(0, SIZE, RW),
		"the inherited file has the inherited mapping");
	close(theirs);
	close(same);
	helper_stop(&h);
}

static void test_vmas(void)
{
	const struct raw_msg *m;
	struct stat st;

	fstat(render, &st);
	ask_vmas(getpid(), render);
	m = vma_at(map);
	ktap_ok(ans->num == 1 && vma_is(0, SIZE, RW) &&
		raw_u32(m, GPUCR_A_VMA_DEV_MINOR) == minor(st.st_rdev) &&
		!raw_has(m, GPUCR_A_VMA_GPU_ID),
		"its mapping is told with buffer and device");
	munmap(map, PAGES(5));
	ask_vmas(getpid(), render);
	ktap_ok(ans->num == 1 && vma_is(PAGES(5), SIZE - PAGES(5), RW),
		"without its head the mapping begins inside the buffer");
	mprotect(map + PAGES(7), PAGES(2), PROT_READ);
	ask_vmas(getpid(), render);
	ktap_ok(ans->num == 3 && vma_is(PAGES(5), PAGES(2), RW) &&
		vma_is(PAGES(7), PAGES(2), GPUCR_VMA_FLAGS_READ) &&
		vma_is(PAGES(9), SIZE - PAGES(9), RW),
		"split by mprotect it is three, each with its offset");
}

static void test_dmabuf(void)
{
	const struct raw_msg *m;
	char *p = mmap(NULL, PAGES(4), PROT_READ, MAP_SHARED, dmabuf, PAGES(3));

	if (p == MAP_FAILED)
		ktap_bail("mmap of the dma-buf: %s", strerror(errno));
	ask_vmas(getpid(), dmabuf);
	m = vma_at(p);
	ktap_ok(ans->num == 1 && m &&
		raw_u32(m, GPUCR_A_VMA_KIND) == GPUCR_VMA_KIND_DMA_BUF &&
		raw_u64(m, GPUCR_A_VMA_SHARE_ID) == share &&
		raw_u64(m, GPUCR_A_VMA_BO_SIZE) == SIZE &&
		raw_u64(m, GPUCR_A_VMA_BO_DELTA) == PAGES(3),
		"a mapping of its dma-buf is told with the same share id");
	ktap_ok(!ask_vmas(getpid(), render) && ans->num == 3,
		"it is none of the render node's");
	ask_vmas(getpid(), -1);
	ktap_ok(!ans->err && ans->num == 4,
		"without a file all are told, %zu", ans->num);
	munmap(p, PAGES(4));
}

/* Freed by KFD while still mapped: only the mapping knows it. */
static void test_freed(void)
{
	struct kfd_ioctl_free_memory_of_gpu_args f = { .handle = bo.handle };
	struct drm_gem_close c = { 0 };

	ask_bos(render);
	c.handle = raw_u32(&ans->msgs[0], GPUCR_A_BO_HANDLE);
	if (ioctl(render, DRM_IOCTL_GEM_CLOSE, &c) ||
	    ioctl(kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &f))
		ktap_bail("free: %s", strerror(errno));
	close(dmabuf);
	ktap_ok(!ask_bos(render) && !ans->num,
		"freed by KFD, it is the file's no more");
	ask_vmas(getpid(), render);
	ktap_ok(ans->num == 3 && vma_is(PAGES(9), SIZE - PAGES(9), RW),
		"but its mappings still know it");
}

int main(void)
{
	ktap_plan(16);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	make_bo();
	test_bo();
	test_import();
	test_process();
	test_vmas();
	test_dmabuf();
	test_freed();
	return ktap_exit();
}
