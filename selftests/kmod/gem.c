// SPDX-License-Identifier: GPL-2.0-only
/*
 * bo-get and vma-get against what the process knows: buffers with and without
 * handle, mapping and mmap offset, shared by dma-buf, mappings cut and split.
 * Compared as sets, both ways. Offsets of cut mappings are compared, not their
 * content: vgem's fault handler counts from the mapping's start.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <drm.h>
#include <drm_mode.h>

#include "../ktap.h"
#include "raw.h"
#include "util.h"

#ifdef DRIVER_virtio
#define DRIVER "virtio_gpu"
#define OTHER_DRIVER "vgem"
#else
#define DRIVER "vgem"
#define OTHER_DRIVER "virtio_gpu"
#endif

#define PAGES(n)	((size_t)(n) * 4096)

static struct raw nl;
static struct raw_ans *ans;

/* A buffer as we made it. */
struct buffer {
	uint32_t handle;	/* 0: closed */
	uint64_t size;
	uint64_t offset;	/* 0: none asked for */
	char *map;
};

static struct buffer make_buffer(int fd, unsigned int pages, bool offset)
{
	/* 32 bits a pixel: 1024 of them fill a page. */
	struct drm_mode_create_dumb c = {
		.width = 1024, .height = pages, .bpp = 32,
	};
	struct drm_mode_map_dumb m = { 0 };
	struct buffer b = { 0 };

	if (ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &c))
		ktap_bail("create: %s", strerror(errno));
	b.handle = c.handle;
	b.size = c.size;
	m.handle = c.handle;
	if (offset && ioctl(fd, DRM_IOCTL_MODE_MAP_DUMB, &m))
		ktap_bail("map: %s", strerror(errno));
	b.offset = m.offset;
	return b;
}

static void map_buffer(int fd, struct buffer *b)
{
	b->map = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      b->offset);
	if (b->map == MAP_FAILED)
		ktap_bail("mmap: %s", strerror(errno));
}

static void close_handle(int fd, struct buffer *b)
{
	struct drm_gem_close c = { .handle = b->handle };

	if (ioctl(fd, DRM_IOCTL_GEM_CLOSE, &c))
		ktap_bail("close: %s", strerror(errno));
	b->handle = 0;
}

static int ask_bos(int fd)
{
	return raw_ask_bos(&nl, ans, fd);
}

static int ask_vmas(pid_t pid, int fd)
{
	return raw_ask_vmas(&nl, ans, pid, fd);
}

static const struct raw_msg *bo_by_handle(uint32_t handle)
{
	size_t i;

	for (i = 0; i < ans->num; i++)
		if (raw_u32(&ans->msgs[i], GPUCR_A_BO_HANDLE) == handle)
			return &ans->msgs[i];
	return NULL;
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

static bool bo_is(const struct buffer *b)
{
	const struct raw_msg *m = bo_by_handle(b->handle);

	return m && raw_u64(m, GPUCR_A_BO_SIZE) == b->size &&
	       raw_u64(m, GPUCR_A_BO_OFFSET) == b->offset;
}

/* Share id by handle; the buffer must have one. */
static uint64_t share_of(int fd, uint32_t handle)
{
	const struct raw_msg *m;

	if (ask_bos(fd))
		return 0;
	m = bo_by_handle(handle);
	return m ? raw_u64(m, GPUCR_A_BO_SHARE_ID) : 0;
}

static bool vma_is(const char *start, size_t len, const struct buffer *b,
		   uint64_t delta, uint64_t share)
{
	const struct raw_msg *m = vma_at(start);

	return m && raw_u32(m, GPUCR_A_VMA_KIND) == GPUCR_VMA_KIND_BO &&
	       raw_u64(m, GPUCR_A_VMA_END) == (uintptr_t)start + len &&
	       raw_u64(m, GPUCR_A_VMA_PGOFF) == (b->offset + delta) / 4096 &&
	       raw_u64(m, GPUCR_A_VMA_BO_DELTA) == delta &&
	       raw_u64(m, GPUCR_A_VMA_BO_SIZE) == b->size &&
	       raw_u64(m, GPUCR_A_VMA_SHARE_ID) == share;
}

static void test_bos(int fd)
{
	struct buffer a = make_buffer(fd, 4, true);
	struct buffer b = make_buffer(fd, 9, true);
	struct buffer c;

	ktap_ok(!ask_bos(fd) && ans->num == 2 && bo_is(&a) && bo_is(&b),
		"two buffers are told with handle, size and offset, no more");
	c = make_buffer(fd, 2, false);
	ask_bos(fd);
	ktap_ok(ans->num == 3 && bo_by_handle(c.handle),
		"a third one is told when it exists");
	ktap_ok(share_of(fd, a.handle) && share_of(fd, a.handle) !=
		share_of(fd, b.handle) &&
		share_of(fd, a.handle) == share_of(fd, a.handle),
		"share ids differ for two buffers and are stable for one");
	ask_bos(fd);
	ktap_ok(raw_u32(bo_by_handle(a.handle), GPUCR_A_BO_HANDLE_COUNT) == 1 &&
		!raw_u32(bo_by_handle(a.handle), GPUCR_A_BO_FLAGS),
		"a private buffer has one handle and no flag");
	close_handle(fd, &a);
	ask_bos(fd);
	ktap_ok(ans->num == 2 && bo_is(&b), "a closed handle is told no more");
	close_handle(fd, &b);
	close_handle(fd, &c);
	ktap_ok(!ask_bos(fd) && !ans->num, "no buffer, no entry");
}

static void test_sharing(int fd)
{
	struct buffer a = make_buffer(fd, 3, true);
	struct drm_prime_handle p = { .handle = a.handle, .flags = O_RDWR };
	int other = open_card(DRIVER);
	uint64_t mine, theirs;
	const struct raw_msg *m;

	if (ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p)) {
		ktap_ok(false, "export: %s", strerror(errno));
		ktap_ok(false, "no export, no import");
		goto out;
	}
	ask_bos(fd);
	m = bo_by_handle(a.handle);
	ktap_ok(m && raw_u32(m, GPUCR_A_BO_FLAGS) == GPUCR_BO_FLAGS_EXPORTED,
		"an exported buffer is said to be");
	if (ioctl(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p))
		ktap_bail("import: %s", strerror(errno));
	mine = share_of(fd, a.handle);
	theirs = share_of(other, p.handle);
	m = bo_by_handle(p.handle);
	ktap_ok(mine && mine == theirs &&
		raw_u32(m, GPUCR_A_BO_HANDLE_COUNT) == 2,
		"the same buffer in a second file has the same share id");
	close(p.fd);
out:
	close(other);
	close_handle(fd, &a);
}

static int imports(void *arg)
{
	struct drm_prime_handle p = { .fd = *(int *)arg };
	int card = open_card(DRIVER);

	if (card < 0 || ioctl(card, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p))
		return -1;
	/* The first handle of a file is 1, everywhere. */
	return p.handle == 1 ? card : -1;
}

static void test_import(int fd)
{
	struct buffer a = make_buffer(fd, 7, true);
	struct drm_prime_handle p = { .handle = a.handle, .flags = O_RDWR };
	int foreign = open_card(OTHER_DRIVER), theirs;
	uint64_t share = share_of(fd, a.handle);
	const struct raw_msg *m;
	struct helper h;

	if (ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p))
		ktap_bail("export: %s", strerror(errno));
	if (!helper_start(&h, imports, &p.fd))
		ktap_bail("import in another process");
	theirs = fd_of(h.pid, h.fd);
	ktap_ok(share && share_of(theirs, 1) == share && ans->num == 1,
		"imported by another process, it has the same share id");
	close(theirs);
	helper_stop(&h);
	if (ioctl(foreign, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p)) {
		ktap_skip("%s does not import from %s on this kernel: %s",
			  OTHER_DRIVER, DRIVER, strerror(errno));
	} else {
		ask_bos(foreign);
		m = bo_by_handle(p.handle);
		ktap_ok(m && raw_u64(m, GPUCR_A_BO_SHARE_ID) == share &&
			raw_u32(m, GPUCR_A_BO_FLAGS) & GPUCR_BO_FLAGS_IMPORTED,
			"imported by %s, it is said to be, with the same share id",
			OTHER_DRIVER);
	}
	close(foreign);
	close(p.fd);
	close_handle(fd, &a);
}

static void test_vmas(int fd)
{
	struct buffer a = make_buffer(fd, 8, true);
	struct buffer b = make_buffer(fd, 4, true);
	uint64_t sa = share_of(fd, a.handle), sb = share_of(fd, b.handle);
	const struct raw_msg *m;
	struct stat st;

	map_buffer(fd, &a);
	map_buffer(fd, &b);
	ktap_ok(!ask_vmas(getpid(), fd) && ans->num == 2 &&
		vma_is(a.map, a.size, &a, 0, sa) &&
		vma_is(b.map, b.size, &b, 0, sb),
		"two mappings are told with their buffers, no more");
	m = vma_at(a.map);
	fstat(fd, &st);
	ktap_ok(m && raw_u32(m, GPUCR_A_VMA_DEV_MAJOR) == major(st.st_rdev) &&
		raw_u32(m, GPUCR_A_VMA_DEV_MINOR) == minor(st.st_rdev) &&
		raw_u32(m, GPUCR_A_VMA_FLAGS) ==
		(GPUCR_VMA_FLAGS_READ | GPUCR_VMA_FLAGS_WRITE |
		 GPUCR_VMA_FLAGS_SHARED) && !raw_has(m, GPUCR_A_VMA_GPU_ID),
		"device and protection are told");
	close_handle(fd, &a);
	ask_bos(fd);
	ktap_ok(ans->num == 1 && bo_is(&b),
		"a mapped buffer without handle is no longer the file's");
	ask_vmas(getpid(), fd);
	ktap_ok(ans->num == 2 && vma_is(a.map, a.size, &a, 0, sa),
		"its mapping is still told, with the same share id");
	munmap(a.map, PAGES(3));
	ask_vmas(getpid(), fd);
	ktap_ok(ans->num == 2 &&
		vma_is(a.map + PAGES(3), a.size - PAGES(3), &a, PAGES(3), sa),
		"without its head the mapping begins inside the buffer");
	mprotect(a.map + PAGES(5), PAGES(1), PROT_READ);
	ask_vmas(getpid(), fd);
	ktap_ok(ans->num == 4 &&
		vma_is(a.map + PAGES(3), PAGES(2), &a, PAGES(3), sa) &&
		vma_is(a.map + PAGES(5), PAGES(1), &a, PAGES(5), sa) &&
		vma_is(a.map + PAGES(6), PAGES(2), &a, PAGES(6), sa) &&
		raw_u32(vma_at(a.map + PAGES(5)), GPUCR_A_VMA_FLAGS) ==
		(GPUCR_VMA_FLAGS_READ | GPUCR_VMA_FLAGS_SHARED),
		"split by mprotect it is three, each with its offset");
	munmap(a.map + PAGES(3), a.size - PAGES(3));
	munmap(b.map, b.size);
	ktap_ok(!ask_vmas(getpid(), fd) && !ans->num, "no mapping, no entry");
	close_handle(fd, &b);
}

/* vgem cannot map its dma-bufs by the node's offset before some kernels. */
static void test_dmabuf(int fd)
{
	struct buffer a = make_buffer(fd, 6, true);
	struct drm_prime_handle p = { .handle = a.handle, .flags = O_RDWR };
	uint64_t share = share_of(fd, a.handle);
	const struct raw_msg *m;
	char *map;

	if (ioctl(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p))
		ktap_bail("export: %s", strerror(errno));
	map = mmap(NULL, PAGES(2), PROT_READ, MAP_SHARED, p.fd, PAGES(1));
	if (map == MAP_FAILED)
		ktap_bail("mmap of the dma-buf: %s", strerror(errno));
	ask_vmas(getpid(), -1);
	m = vma_at(map);
	ktap_ok(m && raw_u32(m, GPUCR_A_VMA_KIND) == GPUCR_VMA_KIND_DMA_BUF &&
		raw_u64(m, GPUCR_A_VMA_SHARE_ID) == share &&
		raw_u64(m, GPUCR_A_VMA_BO_SIZE) == a.size &&
		raw_u64(m, GPUCR_A_VMA_BO_DELTA) == PAGES(1) &&
		!raw_u32(m, GPUCR_A_VMA_DEV_MAJOR),
		"a dma-buf's mapping is told with buffer and offset");
	ktap_ok(!ask_vmas(getpid(), fd) && !ans->num,
		"it is none of the DRM file's");
	ktap_ok(!ask_vmas(getpid(), p.fd) && ans->num == 1 && vma_at(map),
		"it is the dma-buf's");
	munmap(map, PAGES(2));
	close(p.fd);
	close_handle(fd, &a);
}

struct forked {
	int fd;
	struct buffer b;
};

static int fork_fn(void *arg)
{
	struct forked *f = arg;

	return f->fd;
}

/* A child of fork maps the same; the file in our table is the very same. */
static void test_other_task(int fd)
{
	struct forked f = { fd, make_buffer(fd, 5, true) };
	uint64_t share = share_of(fd, f.b.handle);
	struct helper h;
	int copy, stranger;

	map_buffer(fd, &f.b);
	if (!helper_start(&h, fork_fn, &f))
		ktap_bail("helper");
	copy = fd_of(h.pid, h.fd);
	stranger = open_card(DRIVER);
	ktap_ok(!ask_vmas(h.pid, copy) && ans->num == 1 &&
		vma_is(f.b.map, f.b.size, &f.b, 0, share),
		"another task's mapping is told to the holder of its file");
	ktap_ok(!ask_vmas(h.pid, stranger) && !ans->num,
		"another open of the same device shows nothing");
	ask_vmas(h.pid, -1);
	ktap_ok(refused(ans, EPERM, "must trace"),
		"without the file and without tracing it is refused");
	ktap_ok(!seize(h.pid) && !ask_vmas(h.pid, -1) && ans->num == 1,
		"its tracer is told");
	helper_stop(&h);
	ask_vmas(h.pid, copy);
	ktap_ok(refused(ans, ESRCH, "no task") && points_to(ans, GPUCR_A_VMA_PID),
		"a dead task is refused by its pid");
	munmap(f.b.map, f.b.size);
	close_handle(fd, &f.b);
	close(copy);
	close(stranger);
}

static void test_refusals(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct raw_req q;

	ask_bos(null);
	ktap_ok(refused(ans, EINVAL, "not a DRM node") &&
		points_to(ans, GPUCR_A_BO_FD), "bo-get of another file is refused");
	ask_bos(9999);
	ktap_ok(refused(ans, EBADF, "not an open descriptor") &&
		points_to(ans, GPUCR_A_BO_FD), "bo-get of no file is refused");
	raw_ask(&nl, ans, GPUCR_CMD_BO_GET, true, 0, 0, 0, 0);
	ktap_ok(refused(ans, EINVAL, "fd is missing") &&
		points_to(ans, GPUCR_A_BO_FD), "bo-get without fd is refused");
	ask_vmas(getpid(), null);
	ktap_ok(refused(ans, EINVAL, "neither a DRM node"),
		"vma-get of another file is refused");
	ask_vmas(getpid(), 9999);
	ktap_ok(refused(ans, EBADF, "not an open descriptor") &&
		points_to(ans, GPUCR_A_VMA_FD), "vma-get of no file is refused");
	raw_begin(&nl, &q, GPUCR_CMD_VMA_GET, true);
	raw_put_u32(&q, GPUCR_A_VMA_FD, fd);
	raw_call(&nl, &q, ans);
	ktap_ok(refused(ans, EINVAL, "pid is missing") &&
		points_to(ans, GPUCR_A_VMA_PID), "vma-get without pid is refused");
	ask_vmas(0x7ffffff0, fd);
	ktap_ok(refused(ans, ESRCH, "no task") && points_to(ans, GPUCR_A_VMA_PID),
		"vma-get of no task is refused");
	close(null);
}

int main(void)
{
	int fd;

	ktap_plan(32);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	fd = open_card(DRIVER);
	if (fd < 0)
		ktap_bail("no %s device", DRIVER);
	test_bos(fd);
	test_sharing(fd);
	test_import(fd);
	test_vmas(fd);
	test_dmabuf(fd);
	test_other_task(fd);
	test_refusals(fd);
	return ktap_exit();
}
