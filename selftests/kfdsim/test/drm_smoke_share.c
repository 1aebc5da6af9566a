// SPDX-License-Identifier: GPL-2.0-only
/* Sharing: dma-bufs, other processes, and what is left when they die. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xf86drm.h>
#include "gpu.h"

static int export_fd(struct buf *b)
{
	uint32_t fd;

	if (amdgpu_bo_export(b->bo, amdgpu_bo_handle_type_dma_buf_fd, &fd))
		return -1;
	return (int)fd;
}

static uint32_t own_handle(struct buf *b)
{
	uint32_t h = 0;

	amdgpu_bo_export(b->bo, amdgpu_bo_handle_type_kms, &h);
	return h;
}

static int open_again(struct gpu *g)
{
	char *name = drmGetRenderDeviceNameFromFd(g->fd);
	int fd = open(name, O_RDWR | O_CLOEXEC);

	free(name);
	return fd;
}

/* The same file gets the handle it has, another file a handle of the same BO. */
static bool test_prime_identity(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 4 * PAGE);
	struct amdgpu_bo_import_result res;
	uint32_t h = 0, again = 0;
	int fd = export_fd(b), other = open_again(g);
	union drm_amdgpu_gem_mmap m;
	uint8_t *p;

	CHECK(fd >= 0 && other >= 0);
	CHECK(!drmPrimeFDToHandle(g->fd, fd, &h));
	CHECK(h == own_handle(b));
	CHECK(!amdgpu_bo_import(g->dev, amdgpu_bo_handle_type_dma_buf_fd, fd, &res));
	CHECK(res.buf_handle == b->bo && res.alloc_size == 4 * PAGE);
	amdgpu_bo_free(res.buf_handle);
	CHECK(!drmPrimeFDToHandle(other, fd, &h));
	CHECK(!drmPrimeFDToHandle(other, fd, &again));
	CHECK(h == again);
	m.in.handle = h;
	CHECK(!drmIoctl(other, DRM_IOCTL_AMDGPU_GEM_MMAP, &m));
	p = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, other, m.out.addr_ptr);
	CHECK(p != MAP_FAILED);
	pattern_fill(b->cpu, 4 * PAGE, 99);
	CHECK(pattern_check(p, 4 * PAGE, 99) == -1);
	munmap(p, 4 * PAGE);
	close(fd);
	close(other);
	buf_free(g, b);
	return true;
}

/* An export of an import is the dma-buf of the same BO. */
static bool test_prime_reexport(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	int fd = export_fd(b), other = open_again(g), fd2;
	uint32_t h, h2;

	CHECK(!drmPrimeFDToHandle(other, fd, &h));
	CHECK(!drmPrimeHandleToFD(other, h, DRM_CLOEXEC | DRM_RDWR, &fd2));
	CHECK(!drmPrimeFDToHandle(g->fd, fd2, &h2));
	CHECK(h2 == own_handle(b));
	close(fd2);
	close(other);
	close(fd);
	buf_free(g, b);
	return true;
}

/* The only way to map a BO from its middle. */
static bool test_dmabuf_mmap(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 8 * PAGE);
	int fd = export_fd(b);
	uint8_t *p;

	CHECK(fd >= 0);
	pattern_fill(b->cpu, 8 * PAGE, 5);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 3 * PAGE);
	CHECK(p != MAP_FAILED);
	CHECK(!memcmp(p, b->cpu + 3 * PAGE, 2 * PAGE));
	p[PAGE] = 0x5a;
	CHECK(b->cpu[4 * PAGE] == 0x5a);
	munmap(p, 2 * PAGE);
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 7 * PAGE);
	CHECK(p == MAP_FAILED);
	close(fd);
	buf_free(g, b);
	return true;
}

static bool test_foreign_dmabuf(struct gpu *g)
{
	struct buf *b = buf_user(g, PAGE);
	int fd, null = open("/dev/null", O_RDWR);
	uint32_t h;

	CHECK(b);
	CHECK(drmPrimeHandleToFD(g->fd, own_handle(b), 0, &fd) && errno == EPERM);
	CHECK(drmPrimeFDToHandle(g->fd, null, &h) && errno == EINVAL);
	close(null);
	buf_free(g, b);
	return true;
}

/* A child that shares the file must not copy through its parent's memory. */
static bool test_userptr_other_mm(struct gpu *g)
{
	struct buf *u = buf_user(g, PAGE);
	struct buf *v = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, PAGE);
	int status;
	pid_t pid;

	CHECK(u && v);
	/* The parent writes its page, so that the child has its own copy. */
	memset(u->cpu, 1, PAGE);
	pid = fork();
	if (!pid)
		_exit(gpu_copy(g, v->va, u->va, PAGE - 1) == -EFAULT ? 0 : 1);
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	CHECK(gpu_new_ctx(g));
	CHECK(!gpu_copy(g, v->va, u->va, PAGE - 1));
	buf_free(g, u);
	buf_free(g, v);
	return true;
}

/* Killed with BOs, mappings and a copy under way: everything must come back. */
static bool test_kill(struct gpu *g)
{
	uint64_t before = gpu_vram_used(g);
	struct timespec nap = { 0, 300 * 1000 * 1000 };
	pid_t pid = fork();
	int i;

	/* A new program, since libdrm would find the file of its parent. */
	if (!pid) {
		execl("/proc/self/exe", "drm_smoke", "copy-for-ever", NULL);
		_exit(1);
	}
	for (i = 0; i < 50 && gpu_vram_used(g) == before; i++)
		nanosleep(&nap, NULL);
	CHECK(gpu_vram_used(g) > before);
	nanosleep(&nap, NULL);
	CHECK(!waitpid(pid, NULL, WNOHANG));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (i = 0; i < 50 && gpu_vram_used(g) != before; i++)
		nanosleep(&nap, NULL);
	CHECK(gpu_vram_used(g) == before);
	return true;
}

/* A BO lives as long as somebody has it, even when its maker is gone. */
static bool test_outlive(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, PAGE);
	uint64_t with = gpu_vram_used(g);
	int fd = export_fd(b);
	uint8_t *p;

	CHECK(fd >= 0);
	memset(b->cpu, 0x77, PAGE);
	buf_free(g, b);
	CHECK(gpu_vram_used(g) == with);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED && all_bytes(p, PAGE, 0x77));
	close(fd);
	CHECK(all_bytes(p, PAGE, 0x77));
	munmap(p, PAGE);
	CHECK(gpu_vram_used(g) == with - PAGE);
	return true;
}

static bool test_metadata(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, PAGE);
	struct amdgpu_bo_metadata set = {
		.tiling_info = 3, .size_metadata = 8, .umd_metadata = { 1, 2 },
	};
	struct amdgpu_bo_info info = { 0 };

	CHECK(!amdgpu_bo_set_metadata(b->bo, &set));
	CHECK(!amdgpu_bo_query_info(b->bo, &info));
	CHECK(info.alloc_size == PAGE);
	CHECK(info.preferred_heap == AMDGPU_GEM_DOMAIN_VRAM);
	CHECK(info.metadata.tiling_info == 3 && info.metadata.size_metadata == 8);
	CHECK(info.metadata.umd_metadata[1] == 2);
	buf_free(g, b);
	return true;
}

const struct test share_tests[] = {
	{ "prime-identity", test_prime_identity },
	{ "prime-reexport", test_prime_reexport },
	{ "dmabuf-mmap", test_dmabuf_mmap },
	{ "foreign-dmabuf", test_foreign_dmabuf },
	{ "userptr-of-another-process", test_userptr_other_mm },
	{ "killed-in-a-copy", test_kill },
	{ "bo-outlives-its-maker", test_outlive },
	{ "metadata", test_metadata },
	{ NULL, NULL },
};
