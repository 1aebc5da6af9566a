// SPDX-License-Identifier: GPL-2.0
/*
 * What the interpreter itself costs: SDMA packets on the first GPU, against
 * memcpy() of the same pages by the same CPU. Reading the file "bench" in
 * debugfs measures and gives a line for each:
 *
 *	NAME BYTES packets COUNT ns NANOSECONDS
 */
#include <linux/debugfs.h>
#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include "kfdsim_drm.h"

#define SIZE		SZ_2M
#define SRC_VA		0x10000000ULL
#define DST_VA		0x20000000ULL
#define BUDGET_NS	(NSEC_PER_SEC / 4)
#define ROUNDS		5		/* of which the best counts */
#define READ_WRITE	(AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE)

/* Two buffers of VRAM, mapped, all pages there. */
struct bench {
	struct kfdsim_gpu *gpu;
	struct kfdsim_vm *vm;
	struct kfdsim_bo *src, *dst;
	atomic64_t bytes;
};

static int touch(struct kfdsim_bo *bo)
{
	pgoff_t i;

	for (i = 0; i < SIZE >> PAGE_SHIFT; i++)
		if (!kfdsim_bo_page(bo, i))
			return -ENOMEM;
	return 0;
}

static struct kfdsim_bo *make_bo(struct bench *b, u64 va, int *ret)
{
	struct kfdsim_bo *bo = kfdsim_bo_create(b->gpu, SIZE,
						AMDGPU_GEM_DOMAIN_VRAM, 0);

	if (IS_ERR(bo)) {
		*ret = PTR_ERR(bo);
		return NULL;
	}
	*ret = touch(bo);
	if (!*ret)
		*ret = kfdsim_vm_map(b->vm, bo, 0, va, SIZE, READ_WRITE);
	return bo;
}

static void bench_free(struct bench *b)
{
	if (b->src) {
		kfdsim_vm_unmap(b->vm, b->src, SRC_VA);
		kfdsim_bo_put(b->src);
	}
	if (b->dst) {
		kfdsim_vm_unmap(b->vm, b->dst, DST_VA);
		kfdsim_bo_put(b->dst);
	}
	kfdsim_vm_put(b->vm);
}

static int bench_make(struct bench *b)
{
	int ret = 0;

	b->vm = kfdsim_vm_create(b->gpu);
	if (IS_ERR(b->vm))
		return PTR_ERR(b->vm);
	b->src = make_bo(b, SRC_VA, &ret);
	if (!ret)
		b->dst = make_bo(b, DST_VA, &ret);
	if (ret)
		bench_free(b);
	return ret;
}

static int do_memcpy(struct bench *b, u32 bytes)
{
	pgoff_t i;

	for (i = 0; i < bytes >> PAGE_SHIFT; i++) {
		void *src = kmap_local_page(kfdsim_bo_page(b->src, i));
		void *dst = kmap_local_page(kfdsim_bo_page(b->dst, i));

		memcpy(dst, src, PAGE_SIZE);
		kunmap_local(dst);
		kunmap_local(src);
	}
	return 0;
}

static int exec(struct bench *b, const u32 *dw, unsigned int n)
{
	struct kfdsim_sdma s = {
		.vm = b->vm, .gpu = b->gpu, .bytes = &b->bytes,
	};
	int ret = kfdsim_sdma_exec(&s, dw, n);

	return ret < 0 ? ret : 0;
}

static int do_copy(struct bench *b, u32 bytes)
{
	const u32 dw[] = {
		1, bytes - 1, 0, (u32)SRC_VA, SRC_VA >> 32, (u32)DST_VA,
		DST_VA >> 32,
	};

	return exec(b, dw, ARRAY_SIZE(dw));
}

static int do_fence(struct bench *b, u32 bytes)
{
	const u32 dw[] = { 5, (u32)DST_VA, DST_VA >> 32, 1 };

	return exec(b, dw, ARRAY_SIZE(dw));
}

static int do_nop(struct bench *b, u32 bytes)
{
	static const u32 dw[] = { 0 };

	return exec(b, dw, ARRAY_SIZE(dw));
}

/* As many times as fit; the best of some rounds, since others use the CPU too. */
static int measure(struct seq_file *m, struct bench *b, const char *name,
		   int (*run)(struct bench *b, u32 bytes), u32 bytes)
{
	u64 best_ns = BUDGET_NS, best_n = 0;
	unsigned int round;
	int ret;

	for (round = 0; round < ROUNDS; round++) {
		u64 start = ktime_get_ns(), ns, n = 0;

		do {
			ret = run(b, bytes);
			if (ret)
				return ret;
			n++;
			ns = ktime_get_ns() - start;
		} while (ns < BUDGET_NS);
		/* n / ns > best_n / best_ns */
		if (n * best_ns > best_n * ns) {
			best_n = n;
			best_ns = ns;
		}
		cond_resched();
	}
	seq_printf(m, "%s %u packets %llu ns %llu\n", name, bytes, best_n, best_ns);
	return 0;
}

static int bench_gpu(struct seq_file *m, struct kfdsim_gpu *gpu)
{
	struct bench b = { .gpu = gpu };
	int ret = bench_make(&b);

	if (ret)
		return ret;
	ret = measure(m, &b, "memcpy", do_memcpy, SIZE);
	if (!ret)
		ret = measure(m, &b, "copy", do_copy, SIZE);
	if (!ret)
		ret = measure(m, &b, "memcpy", do_memcpy, PAGE_SIZE);
	if (!ret)
		ret = measure(m, &b, "copy", do_copy, PAGE_SIZE);
	if (!ret)
		ret = measure(m, &b, "fence", do_fence, sizeof(u32));
	if (!ret)
		ret = measure(m, &b, "nop", do_nop, 0);
	bench_free(&b);
	return ret;
}

static int bench_show(struct seq_file *m, void *unused)
{
	int ret = -ENODEV;

	kfdsim_gpus_hold();
	if (kfdsim_num_gpus && kfdsim_gpus[0])
		ret = bench_gpu(m, kfdsim_gpus[0]);
	kfdsim_gpus_unhold();
	return ret;
}
DEFINE_SHOW_ATTRIBUTE(bench);

void kfdsim_bench_init(struct dentry *root)
{
	debugfs_create_file("bench", 0400, root, NULL, &bench_fops);
}
