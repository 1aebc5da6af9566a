// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulated GPU's DRM side through libdrm_amdgpu: identity, memory,
 * address space. Sharing and SDMA are in drm_smoke_share.c and
 * drm_smoke_sdma.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>
#include "../../ktap.h"
#include "gpu.h"

static bool test_identity(struct gpu *g)
{
	struct amdgpu_gpu_info info;
	drmVersionPtr v = drmGetVersion(g->fd);
	drmDevicePtr d;
	bool ours;

	ours = v && !strcmp(v->name, "amdgpu") && v->version_major == 3;
	drmFreeVersion(v);
	CHECK(ours);
	CHECK(!drmGetDevice2(g->fd, 0, &d));
	ours = d->bustype == DRM_BUS_PCI && d->deviceinfo.pci->vendor_id == 0x1002 &&
	       d->businfo.pci->domain == 1;
	drmFreeDevice(&d);
	CHECK(ours);
	CHECK(!amdgpu_query_gpu_info(g->dev, &info));
	CHECK(info.asic_id && info.family_id >= AMDGPU_FAMILY_AI);
	return true;
}

static bool test_info(struct gpu *g)
{
	struct drm_amdgpu_memory_info mem;
	struct drm_amdgpu_info_hw_ip ip;
	uint32_t working = 0, v, f;

	CHECK(!amdgpu_query_info(g->dev, AMDGPU_INFO_ACCEL_WORKING, 4, &working));
	CHECK(working == 1);
	CHECK(!amdgpu_query_info(g->dev, AMDGPU_INFO_MEMORY, sizeof(mem), &mem));
	CHECK(mem.vram.total_heap_size && mem.gtt.total_heap_size);
	CHECK(!amdgpu_query_hw_ip_info(g->dev, AMDGPU_HW_IP_DMA, 0, &ip));
	CHECK(ip.available_rings);
	CHECK(!amdgpu_query_firmware_version(g->dev, AMDGPU_INFO_FW_GFX_MEC, 0, 0,
					     &v, &f));
	CHECK(amdgpu_query_info(g->dev, 0x7f, 4, &v) == -EINVAL);
	return true;
}

static bool test_fresh_is_poison(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, MIB);
	bool ok;

	CHECK(b);
	ok = all_bytes(b->cpu, MIB, POISON);
	memset(b->cpu, 0x11, MIB);
	buf_free(g, b);
	CHECK(ok);
	b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, MIB);
	CHECK(b);
	ok = all_bytes(b->cpu, MIB, POISON);
	buf_free(g, b);
	CHECK(ok);
	return true;
}

static int raw_create(int fd, uint64_t size, uint64_t domain, uint64_t flags,
		      uint32_t *handle)
{
	union drm_amdgpu_gem_create c = {
		.in = { size, PAGE, domain, flags },
	};

	*handle = 0;
	if (drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &c))
		return -errno;
	*handle = c.out.handle;
	return 0;
}

static uint64_t raw_offset(int fd, uint32_t handle)
{
	union drm_amdgpu_gem_mmap m = { .in = { handle, 0 } };

	if (drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &m))
		return 0;
	return m.out.addr_ptr;
}

static bool test_create_refuses(struct gpu *g)
{
	uint32_t h;

	CHECK(raw_create(g->fd, 0, AMDGPU_GEM_DOMAIN_VRAM, 0, &h) == -EINVAL);
	CHECK(raw_create(g->fd, PAGE, 0, 0, &h) == -EINVAL);
	CHECK(raw_create(g->fd, PAGE, 1ULL << 40, 0, &h) == -EINVAL);
	CHECK(raw_create(g->fd, PAGE, AMDGPU_GEM_DOMAIN_GDS, 0, &h) == -EINVAL);
	CHECK(raw_create(g->fd, PAGE, AMDGPU_GEM_DOMAIN_VRAM, 1ULL << 40, &h) == -EINVAL);
	CHECK(raw_create(g->fd, 1ULL << 62, AMDGPU_GEM_DOMAIN_VRAM, 0, &h) == -ENOMEM);
	return true;
}

static bool test_vram_full(struct gpu *g)
{
	uint64_t before = gpu_vram_used(g);
	struct drm_amdgpu_info_vram_gtt v;
	uint64_t most;
	uint32_t h, h2;
	int r;

	CHECK(!amdgpu_query_info(g->dev, AMDGPU_INFO_VRAM_GTT, sizeof(v), &v));
	most = v.vram_size - before;
	CHECK(!raw_create(g->fd, most, AMDGPU_GEM_DOMAIN_VRAM, 0, &h));
	r = raw_create(g->fd, PAGE, AMDGPU_GEM_DOMAIN_VRAM, 0, &h2);
	CHECK(r == -ENOMEM);
	CHECK(!raw_create(g->fd, PAGE, AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_GTT,
			  0, &h2));
	CHECK(!drmCloseBufferHandle(g->fd, h2));
	CHECK(!drmCloseBufferHandle(g->fd, h));
	CHECK(gpu_vram_used(g) == before);
	return true;
}

/* Only the ends of a BO of all of VRAM are touched: it must cost nearly nothing. */
static bool test_sparse(struct gpu *g)
{
	struct drm_amdgpu_info_vram_gtt v;
	struct buf *b;
	bool ok;

	CHECK(!amdgpu_query_info(g->dev, AMDGPU_INFO_VRAM_GTT, sizeof(v), &v));
	b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM,
		    (v.vram_size - gpu_vram_used(g)) & ~(PAGE - 1));
	CHECK(b);
	b->cpu[0] = 1;
	b->cpu[b->size - 1] = 2;
	ok = b->cpu[1] == POISON && b->cpu[b->size - 2] == POISON &&
	     b->cpu[b->size / 2] == POISON && b->cpu[0] == 1 &&
	     b->cpu[b->size - 1] == 2;
	buf_free(g, b);
	CHECK(ok);
	return true;
}

static bool test_mmap_rules(struct gpu *g)
{
	uint64_t off;
	uint32_t h;
	void *p;

	CHECK(!raw_create(g->fd, 8 * PAGE, AMDGPU_GEM_DOMAIN_GTT, 0, &h));
	off = raw_offset(g->fd, h);
	CHECK(off);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, g->fd, off + PAGE);
	CHECK(p == MAP_FAILED && errno == EINVAL);
	p = mmap(NULL, 9 * PAGE, PROT_READ, MAP_SHARED, g->fd, off);
	CHECK(p == MAP_FAILED && errno == EINVAL);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, g->fd, off);
	CHECK(p == MAP_FAILED && errno == EINVAL);
	p = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE, g->fd, off);
	CHECK(p != MAP_FAILED);
	CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE) && errno == EACCES);
	munmap(p, PAGE);
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, g->fd, off);
	CHECK(p != MAP_FAILED);
	munmap(p, 2 * PAGE);
	CHECK(!drmCloseBufferHandle(g->fd, h));
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, g->fd, off);
	CHECK(p == MAP_FAILED);
	CHECK(!raw_create(g->fd, PAGE, AMDGPU_GEM_DOMAIN_VRAM,
			  AMDGPU_GEM_CREATE_NO_CPU_ACCESS, &h));
	CHECK(!raw_offset(g->fd, h) && errno == EPERM);
	CHECK(!drmCloseBufferHandle(g->fd, h));
	return true;
}

/* What is left of a mapping whose head went must still show its own pages. */
static bool test_split_mapping(struct gpu *g)
{
	uint32_t h;
	uint8_t *p;
	unsigned int i;

	CHECK(!raw_create(g->fd, 64 * PAGE, AMDGPU_GEM_DOMAIN_VRAM, 0, &h));
	p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd,
		 raw_offset(g->fd, h));
	CHECK(p != MAP_FAILED);
	for (i = 0; i < 64; i++)
		memset(p + i * PAGE, i, PAGE);
	CHECK(!madvise(p, 64 * PAGE, MADV_DONTNEED) || errno == EINVAL);
	munmap(p, 64 * PAGE);
	p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd,
		 raw_offset(g->fd, h));
	CHECK(p != MAP_FAILED);
	munmap(p, 5 * PAGE);
	munmap(p + 20 * PAGE, PAGE);
	for (i = 5; i < 64; i++)
		if (i != 20)
			CHECK(all_bytes(p + i * PAGE, PAGE, i));
	munmap(p, 64 * PAGE);
	CHECK(!drmCloseBufferHandle(g->fd, h));
	return true;
}

/* ptrace() and /proc/PID/mem reach device memory through the driver. */
static bool test_proc_mem(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 4 * PAGE);
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint32_t word = 0;
	bool ok;

	CHECK(b && fd >= 0);
	pattern_fill(b->cpu, 4 * PAGE, 7);
	ok = pread(fd, &word, 4, (uintptr_t)b->cpu + 2 * PAGE) == 4 &&
	     word == *(uint32_t *)(b->cpu + 2 * PAGE);
	word = 0x12345678;
	ok = ok && pwrite(fd, &word, 4, (uintptr_t)b->cpu + PAGE) == 4 &&
	     *(uint32_t *)(b->cpu + PAGE) == word;
	close(fd);
	buf_free(g, b);
	CHECK(ok);
	return true;
}

static bool test_va_rules(struct gpu *g)
{
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, 8 * PAGE);
	const uint64_t flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;
	uint64_t va = b->va + 64 * MIB;

#define OP(op, off, size, va) \
	amdgpu_bo_va_op_raw(g->dev, b->bo, off, size, va, flags, AMDGPU_VA_OP_##op)
	CHECK(OP(MAP, 0, PAGE, b->va) == -EINVAL);
	CHECK(OP(MAP, 0, PAGE, b->va + 7 * PAGE) == -EINVAL);
	CHECK(OP(MAP, 0, PAGE, va + 1) == -EINVAL);
	CHECK(OP(MAP, 0, PAGE / 2, va) == -EINVAL);
	CHECK(OP(MAP, 512, PAGE, va) == -EINVAL);
	CHECK(OP(MAP, 8 * PAGE, PAGE, va) == -EINVAL);
	CHECK(OP(MAP, 0, PAGE, 0x1000) == -EINVAL);
	CHECK(OP(MAP, 0, PAGE, 0x800000000000ULL) == -EINVAL);
	CHECK(OP(MAP, 0, 0, va) == -EINVAL);
	CHECK(OP(UNMAP, 0, PAGE, va) == -ENOENT);
	CHECK(!OP(MAP, 2 * PAGE, 4 * PAGE, va));
	CHECK(OP(UNMAP, 0, PAGE, va + PAGE) == -ENOENT);
	CHECK(!OP(UNMAP, 0, PAGE, va));
	CHECK(OP(UNMAP, 0, PAGE, va) == -ENOENT);
#undef OP
	buf_free(g, b);
	return true;
}

static bool test_many_bos(struct gpu *g)
{
	enum { N = 2000 };
	uint64_t before = gpu_vram_used(g);
	struct buf **b = calloc(N, sizeof(*b));
	int i;

	for (i = 0; i < N; i++) {
		b[i] = buf_new(g, AMDGPU_GEM_DOMAIN_VRAM, 64 * 1024);
		CHECK(b[i]);
		b[i]->cpu[i % 65536] = i;
	}
	for (i = 0; i < N; i++)
		CHECK(b[i]->cpu[i % 65536] == (uint8_t)i);
	for (i = 0; i < N; i++)
		buf_free(g, b[i]);
	free(b);
	CHECK(gpu_vram_used(g) == before);
	return true;
}

static const struct test memory_tests[] = {
	{ "identity", test_identity },
	{ "info", test_info },
	{ "fresh-vram-is-poison", test_fresh_is_poison },
	{ "create-refuses", test_create_refuses },
	{ "vram-full", test_vram_full },
	{ "sparse-bo", test_sparse },
	{ "mmap-rules", test_mmap_rules },
	{ "split-mapping", test_split_mapping },
	{ "proc-mem", test_proc_mem },
	{ "va-rules", test_va_rules },
	{ "many-bos", test_many_bos },
	{ NULL, NULL },
};

static const struct test *const groups[] = {
	memory_tests, share_tests, sdma_tests, compute_tests,
};

static void run_all(struct gpu *g)
{
	const struct test *t;
	unsigned int i;

	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (t = groups[i]; t->name; t++)
			ktap_ok(t->run(g), "%s", t->name);
}

int main(int argc, char **argv)
{
	const struct test *t;
	unsigned int i;
	struct gpu g;
	int n = 0;

	if (argc == 2 && !strcmp(argv[1], "copy-for-ever"))
		return copy_for_ever();
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (t = groups[i]; t->name; t++)
			n++;
	ktap_plan(n);
	if (!gpu_open(&g))
		ktap_bail("no simulated GPU");
	g.canary = ktap_canary();
	run_all(&g);
	gpu_close(&g);
	return ktap_exit();
}
