// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulated GPU's DRM side through libdrm_amdgpu: identity, memory,
 * address space. Full VRAM, sharing, rings and packets are in drm_smoke_*.c.
 *
 * usage: drm_smoke [gfx]      gfx: what needs a model with a graphics ring
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

/* Newer than some libdrm. */
#define DOMAIN_DOORBELL	0x40

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
	/* By the difference user space knows an MI200, which cannot draw. */
	CHECK(info.chip_external_rev - info.chip_rev == 0x3c);
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
	CHECK(raw_create(g->fd, PAGE, DOMAIN_DOORBELL, 0, &h) == -EINVAL);
	CHECK(raw_create(g->fd, PAGE, AMDGPU_GEM_DOMAIN_VRAM, 1ULL << 40, &h) == -EINVAL);
	CHECK(raw_create(g->fd, 1ULL << 62, AMDGPU_GEM_DOMAIN_VRAM, 0, &h) == -ENOMEM);
	return true;
}

/* Memory on the chip: a page for each byte, and nobody reaches it. */
static bool test_on_chip(struct gpu *g)
{
	const uint64_t flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;
	struct amdgpu_bo_alloc_request req = {
		.alloc_size = 1022, .preferred_heap = AMDGPU_GEM_DOMAIN_GDS,
	};
	struct buf *b = buf_new(g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	uint64_t before = gpu_vram_used(g), va = b->va + 64 * MIB;
	struct amdgpu_bo_info info = { 0 };
	amdgpu_bo_handle bo;
	void *cpu;
	uint32_t h;

	CHECK(raw_create(g->fd, PAGE, AMDGPU_GEM_DOMAIN_GDS | AMDGPU_GEM_DOMAIN_VRAM,
			 0, &h) == -EINVAL);
	CHECK(raw_create(g->fd, 1, AMDGPU_GEM_DOMAIN_GWS,
			 AMDGPU_GEM_CREATE_VM_ALWAYS_VALID, &h) == -EINVAL);
	CHECK(!raw_create(g->fd, 1, AMDGPU_GEM_DOMAIN_OA, 0, &h));
	CHECK(!drmCloseBufferHandle(g->fd, h));
	CHECK(!amdgpu_bo_alloc(g->dev, &req, &bo));
	CHECK(!amdgpu_bo_query_info(bo, &info));
	CHECK(info.alloc_size == 1024 * PAGE);
	CHECK(info.preferred_heap == AMDGPU_GEM_DOMAIN_GDS);
	CHECK(gpu_vram_used(g) == before);
	CHECK(amdgpu_bo_cpu_map(bo, &cpu) == -EPERM);
	CHECK(!amdgpu_bo_va_op_raw(g->dev, bo, 0, PAGE, va, flags, AMDGPU_VA_OP_MAP));
	CHECK(gpu_copy(g, va, b->va, 63) == -EFAULT);
	CHECK(gpu_new_ctx(g));
	amdgpu_bo_free(bo);
	buf_free(g, b);
	return true;
}

#define TRACING	"/sys/kernel/debug/tracing/"

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Does a line of the trace have this? */
static bool traced(const char *text)
{
	FILE *f = fopen(TRACING "trace", "re");
	char line[512];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "amdgpu_bo_move") && strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

/* amdgpu tells those who trace it where a BO comes and goes. */
static bool test_move_event(struct gpu *g)
{
	uint32_t h;

	CHECK(put(TRACING "trace", "\n"));
	CHECK(put(TRACING "events/amdgpu/amdgpu_bo_move/enable", "1"));
	CHECK(!raw_create(g->fd, 3 * PAGE, AMDGPU_GEM_DOMAIN_VRAM, 0, &h));
	CHECK(traced("from=-1, to=2, size=12288"));
	CHECK(!traced("from=2, to=-1, size=12288"));
	CHECK(!drmCloseBufferHandle(g->fd, h));
	CHECK(traced("from=2, to=-1, size=12288"));
	CHECK(put(TRACING "events/amdgpu/amdgpu_bo_move/enable", "0"));
	CHECK(put(TRACING "trace", "\n"));
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
	{ "on-chip-memory", test_on_chip },
	{ "move-event", test_move_event },
	{ "sparse-bo", test_sparse },
	{ "mmap-rules", test_mmap_rules },
	{ "split-mapping", test_split_mapping },
	{ "proc-mem", test_proc_mem },
	{ "va-rules", test_va_rules },
	{ "many-bos", test_many_bos },
	{ NULL, NULL },
};

static const struct test *const all[] = {
	memory_tests, place_tests, share_tests, sdma_tests, compute_tests,
	rate_tests, NULL,
};

static const struct test *const graphics[] = { gfx_tests, NULL };

static int count(const struct test *const *groups)
{
	const struct test *t;
	int n = 0;

	for (; *groups; groups++)
		for (t = *groups; t->name; t++)
			n++;
	return n;
}

static void run_all(struct gpu *g, const struct test *const *groups)
{
	const struct test *t;

	for (; *groups; groups++)
		for (t = *groups; t->name; t++)
			ktap_ok(t->run(g), "%s", t->name);
}

int main(int argc, char **argv)
{
	const struct test *const *groups = all;
	struct gpu g;

	if (argc == 2 && !strcmp(argv[1], "copy-for-ever"))
		return copy_for_ever();
	if (argc == 2 && !strcmp(argv[1], "gfx"))
		groups = graphics;
	ktap_plan(count(groups));
	if (!gpu_open(&g))
		ktap_bail("no simulated GPU");
	g.canary = ktap_canary();
	run_all(&g, groups);
	gpu_close(&g);
	return ktap_exit();
}
