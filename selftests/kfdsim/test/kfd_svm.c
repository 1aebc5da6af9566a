// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared virtual memory of the simulated KFD: attributes of ranges, GPUs that
 * reach them, and what a checkpoint keeps. Loaded with svm=1, as 7.2 or later.
 *
 * A RESUME that makes no ranges turns it red.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "kfd_lib.h"
#include "../../ktap.h"

#define GTT		KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define PROPERTIES	"/sys/devices/virtual/kfd/kfd/topology/nodes/1/properties"
#define SVM_BIT		0x08000000ul
#define PAGES		64u
#define MAX_ATTRS	8
#define DEFAULT_FLAGS	(KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_COHERENT)

#define ATTR(t, v)	{ KFD_IOCTL_SVM_ATTR_##t, v }

/* What one process leaves for the next; mapped shared. */
struct image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket dev;
	struct kfd_criu_bo_bucket bo;
	uint8_t priv[4096];
};

static struct gpu g;
static char *mem;
static struct image *img;

/* n: attributes that fit; claim: how many the argument says it has */
static int svm_claim(uint32_t op, const void *addr, uint64_t size,
		     struct kfd_ioctl_svm_attribute *a, uint32_t n, uint32_t claim)
{
	uint64_t buf[(sizeof(struct kfd_ioctl_svm_args) + MAX_ATTRS * sizeof(*a)) / 8];
	struct kfd_ioctl_svm_args *args = (void *)buf;
	unsigned long cmd = AMDKFD_IOC_SVM + ((n * sizeof(*a)) << _IOC_SIZESHIFT);
	int ret;

	memset(buf, 0, sizeof(buf));
	args->start_addr = (uintptr_t)addr;
	args->size = size;
	args->op = op;
	args->nattr = claim;
	memcpy(args->attrs, a, n * sizeof(*a));
	ret = kfd_call(g.kfd, cmd, args);
	memcpy(a, args->attrs, n * sizeof(*a));
	return ret;
}

static int svm_set(const void *addr, uint64_t size,
		   struct kfd_ioctl_svm_attribute *a, uint32_t n)
{
	return svm_claim(KFD_IOCTL_SVM_OP_SET_ATTR, addr, size, a, n, n);
}

static int svm_get(const void *addr, uint64_t size,
		   struct kfd_ioctl_svm_attribute *a, uint32_t n)
{
	return svm_claim(KFD_IOCTL_SVM_OP_GET_ATTR, addr, size, a, n, n);
}

/* How many objects a checkpoint has; -errno. */
static int objects(void)
{
	struct kfd_ioctl_criu_args args = { 0 };
	int ret = criu_op(&g, KFD_CRIU_OP_PROCESS_INFO, &args);

	if (!ret)
		ret = simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0);
	return ret ? ret : (int)args.num_objects;
}

static bool bit_is_set(void)
{
	FILE *f = fopen(PROPERTIES, "re");
	unsigned long value, bits = 0;
	char name[64];

	if (!f)
		return failed("open properties", -errno, 0);
	while (fscanf(f, "%63s %lu", name, &value) == 2)
		if (!strcmp(name, "capability"))
			bits = value;
	fclose(f);
	CHECK(bits & SVM_BIT, SVM_BIT);
	return true;
}

static bool refusals(void)
{
	struct kfd_ioctl_svm_attribute access[] = { ATTR(ACCESS, g.id) };
	struct kfd_ioctl_svm_attribute nobody[] = { ATTR(ACCESS, g.id + 1) };
	struct kfd_ioctl_svm_attribute unknown[] = { { 99, 0 } };
	struct buf b;
	char *hole;

	CHECK(svm_set(mem, 0, access, 1), -EINVAL);
	CHECK(svm_set(mem + 1, PAGE, access, 1), -EINVAL);
	CHECK(svm_set(mem, PAGE, nobody, 1), -EINVAL);
	CHECK(svm_set(mem, PAGE, unknown, 1), -EINVAL);
	CHECK(svm_get(mem, PAGE, unknown, 1), -EINVAL);
	CHECK(svm_claim(KFD_IOCTL_SVM_OP_SET_ATTR, mem, PAGE, access, 1, 2), -EINVAL);
	CHECK(svm_claim(2, mem, PAGE, access, 1, 1), -EINVAL);
	hole = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole + PAGE, PAGE);
	CHECK(svm_set(hole, 2 * PAGE, access, 1), -EFAULT);
	munmap(hole, PAGE);
	CHECK(buf_make(&g, &b, GTT, PAGE), 0);
	CHECK(svm_set(b.ptr, PAGE, access, 1), -EFAULT);
	CHECK(buf_free(&g, &b), 0);
	CHECK(objects(), 0);
	return true;
}

static bool defaults(void)
{
	struct kfd_ioctl_svm_attribute a[] = {
		ATTR(PREFERRED_LOC, 1), ATTR(PREFETCH_LOC, 1), ATTR(SET_FLAGS, 0),
		ATTR(CLR_FLAGS, 0), ATTR(GRANULARITY, 0), ATTR(ACCESS, g.id),
	};

	CHECK(svm_get(mem, PAGE, a, 6), 0);
	CHECK(a[0].value, KFD_IOCTL_SVM_LOCATION_UNDEFINED);
	CHECK(a[1].value, KFD_IOCTL_SVM_LOCATION_UNDEFINED);
	CHECK(a[2].value, DEFAULT_FLAGS);
	CHECK(a[3].value, (uint32_t)~DEFAULT_FLAGS);
	CHECK(a[4].value, 9);
	CHECK(a[5].type, KFD_IOCTL_SVM_ATTR_NO_ACCESS);
	return true;
}

static bool set_some(void)
{
	struct kfd_ioctl_svm_attribute a[] = {
		ATTR(PREFERRED_LOC, g.id), ATTR(SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_EXEC),
		ATTR(CLR_FLAGS, KFD_IOCTL_SVM_FLAG_COHERENT), ATTR(GRANULARITY, 5),
		ATTR(ACCESS, g.id),
	};

	CHECK(svm_set(mem, 16 * PAGE, a, 5), 0);
	return true;
}

static bool kept(void)
{
	struct kfd_ioctl_svm_attribute a[] = {
		ATTR(PREFERRED_LOC, 0), ATTR(SET_FLAGS, 0), ATTR(CLR_FLAGS, 0),
		ATTR(GRANULARITY, 0), ATTR(ACCESS, g.id), ATTR(PREFETCH_LOC, 0),
	};
	const uint32_t flags = KFD_IOCTL_SVM_FLAG_HOST_ACCESS |
			       KFD_IOCTL_SVM_FLAG_GPU_EXEC;

	CHECK(svm_get(mem, 16 * PAGE, a, 6), 0);
	CHECK(a[0].value, g.id);
	CHECK(a[1].value, flags);
	CHECK(a[2].value, ~flags);
	CHECK(a[3].value, 5);
	CHECK(a[4].type, KFD_IOCTL_SVM_ATTR_ACCESS);
	CHECK(a[5].value, KFD_IOCTL_SVM_LOCATION_UNDEFINED);
	return true;
}

static bool attributes(void)
{
	if (!set_some() || !kept())
		return false;
	CHECK(objects(), 1);
	return true;
}

/* Other attributes in the middle are a range of its own; what goes is gone. */
static bool splits(void)
{
	struct kfd_ioctl_svm_attribute same[] = { ATTR(ACCESS, g.id) };
	struct kfd_ioctl_svm_attribute ro[] = {
		ATTR(SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_RO),
	};
	struct kfd_ioctl_svm_attribute get[] = {
		ATTR(SET_FLAGS, 0), ATTR(CLR_FLAGS, 0),
	};

	CHECK(svm_set(mem + 4 * PAGE, 2 * PAGE, same, 1), 0);
	CHECK(objects(), 1);
	CHECK(svm_set(mem + 4 * PAGE, 2 * PAGE, ro, 1), 0);
	CHECK(objects(), 3);
	CHECK(svm_get(mem, 16 * PAGE, get, 2), 0);
	CHECK(get[0].value & KFD_IOCTL_SVM_FLAG_GPU_RO, 0);
	CHECK(get[1].value & KFD_IOCTL_SVM_FLAG_GPU_RO, 0);
	CHECK(munmap(mem + 8 * PAGE, PAGE), 0);
	CHECK(objects(), 4);
	CHECK(munmap(mem + 12 * PAGE, 4 * PAGE), 0);
	CHECK(objects(), 4);
	CHECK(munmap(mem, 16 * PAGE), 0);
	CHECK(objects(), 0);
	CHECK(mmap(mem, 16 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == mem, 1);
	return true;
}

/* By the same address; where it has no access, a fault. */
static bool reached(void)
{
	struct kfd_ioctl_svm_attribute yes[] = { ATTR(ACCESS_IN_PLACE, g.id) };
	struct kfd_ioctl_svm_attribute no[] = { ATTR(NO_ACCESS, g.id) };
	struct buf sig;
	struct queue q;
	int error = 0, i;

	CHECK(buf_make(&g, &sig, GTT, PAGE), 0);
	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	memset(mem, 0x3c, 2 * PAGE);
	memset(mem + 2 * PAGE, 0, 2 * PAGE);
	CHECK(svm_set(mem, 4 * PAGE, yes, 1), 0);
	put_copy(&q, mem, mem + 2 * PAGE, 2 * PAGE);
	put_fence(&q, sig.ptr, 1);
	queue_ring(&q);
	if (!wait_value(sig.ptr, 1))
		return false;
	CHECK(memcmp(mem, mem + 2 * PAGE, 2 * PAGE), 0);
	CHECK(svm_set(mem + 2 * PAGE, PAGE, no, 1), 0);
	put_copy(&q, mem, mem + 2 * PAGE, PAGE);
	queue_ring(&q);
	for (i = 0; i < 1000 && !error; i++) {
		queue_progress(getpid(), q.id, NULL, &error);
		sleep_ms(10);
	}
	CHECK(error, EFAULT);
	queue_destroy(&g, &q);
	CHECK(buf_free(&g, &sig), 0);
	return true;
}

static bool save(void)
{
	struct kfd_ioctl_criu_args *args = &img->args;

	if (!gpu_open(&g, true) || !set_some())
		return false;
	CHECK(criu_op(&g, KFD_CRIU_OP_PROCESS_INFO, args), 0);
	CHECK(args->num_objects, 1);
	/* process, device, range with five attributes */
	CHECK(args->priv_data_size, 8 + 8 + 24 + 5 * 8);
	args->devices = (uintptr_t)&img->dev;
	args->bos = (uintptr_t)&img->bo;
	args->priv_data = (uintptr_t)img->priv;
	CHECK(criu_op(&g, KFD_CRIU_OP_CHECKPOINT, args), 0);
	CHECK(*(uint32_t *)(img->priv + 16), 2);
	CHECK(*(uint64_t *)(img->priv + 24), (uintptr_t)mem / PAGE);
	CHECK(*(uint64_t *)(img->priv + 32), 16);
	return true;
}

/* RESUME, not RESTORE, makes the ranges. */
static bool load(void)
{
	if (!gpu_open(&g, false))
		return false;
	img->dev.drm_fd = (uint32_t)g.drm;
	CHECK(criu_op(&g, KFD_CRIU_OP_RESTORE, &img->args), 0);
	CHECK(objects(), 0);
	CHECK(simple_op(&g, KFD_CRIU_OP_RESUME, (uint32_t)getpid()), 0);
	CHECK(objects(), 1);
	return kept();
}

/* Where its memory is not, no range comes, and RESUME says so. */
static bool load_nowhere(void)
{
	if (!gpu_open(&g, false))
		return false;
	img->dev.drm_fd = (uint32_t)g.drm;
	munmap(mem, 16 * PAGE);
	CHECK(criu_op(&g, KFD_CRIU_OP_RESTORE, &img->args), 0);
	CHECK(simple_op(&g, KFD_CRIU_OP_RESUME, (uint32_t)getpid()), -EFAULT);
	return true;
}

static bool checkpointed(void)
{
	return in_child(save) && in_child(load) && in_child(load_nowhere);
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ bit_is_set, "the capability bit is set" },
		{ refusals, "refusals" },
		{ defaults, "what no range has" },
		{ attributes, "attributes are kept" },
		{ splits, "ranges split, and go with their memory" },
		{ reached, "a GPU reaches them" },
		{ checkpointed, "checkpointed, restored, resumed" },
	};

	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	img = mmap(NULL, sizeof(*img), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED || img == MAP_FAILED || !gpu_open(&g, true))
		ktap_bail("no simulated GPU");
	ktap_cases(cases, sizeof(cases) / sizeof(cases[0]));
	return ktap_exit();
}
