// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many GPUs in one process, each with a buffer that is mapped: what vma-get and
 * bo-get tell of each. Run by many_gpus.sh.
 *
 *	gpus COUNT	says on lines that begin with # what is wrong
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/kfd_ioctl.h>

#include "kfd.h"
#include "raw.h"

#define NODES	"/sys/class/kfd/kfd/topology/nodes"
#define SIZE	65536u
#define MOST	64

struct gpu {
	uint32_t id;
	unsigned int minor;
	int render;
	char *map;
	uint64_t share;
};

static struct gpu gpus[MOST];
static unsigned int num;
static struct raw nl;
static struct raw_ans *ans;
static int bad;

__attribute__((format(printf, 1, 2)))
static void wrong(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	bad = 1;
}

static unsigned long long property(int node, const char *name)
{
	unsigned long long v, found = 0;
	char path[128], key[64];
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%d/properties", node);
	f = fopen(path, "r");
	while (f && fscanf(f, "%63s %llu", key, &v) == 2)
		if (!strcmp(key, name))
			found = v;
	if (f)
		fclose(f);
	return found;
}

static uint32_t gpu_id(int node)
{
	char path[128];
	uint32_t id = 0;
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%d/gpu_id", node);
	f = fopen(path, "r");
	if (f && fscanf(f, "%u", &id) != 1)
		id = 0;
	if (f)
		fclose(f);
	return id;
}

static void find_gpus(void)
{
	int node;

	for (node = 0; node < 2 * MOST && num < MOST; node++) {
		gpus[num].id = gpu_id(node);
		if (!gpus[num].id)
			continue;
		gpus[num].minor = property(node, "drm_render_minor");
		num++;
	}
}

/* The same address on all: a BO's place is the only thing that tells them. */
static bool use(int kfd, struct gpu *g)
{
	struct kfd_ioctl_acquire_vm_args vm = { .gpu_id = g->id };
	struct kfd_ioctl_alloc_memory_of_gpu_args a = {
		.va_addr = 0x200000000ULL,
		.size = SIZE,
		.gpu_id = g->id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
			 KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", g->minor);
	g->render = open(path, O_RDWR | O_CLOEXEC);
	vm.drm_fd = g->render;
	if (g->render < 0 || ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm) ||
	    ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a))
		return false;
	g->map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, g->render,
		      a.mmap_offset);
	return g->map != MAP_FAILED;
}

static void check_bos(void)
{
	unsigned int i, k;

	for (i = 0; i < num; i++) {
		raw_ask(&nl, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD,
			gpus[i].render, 0, 0);
		if (ans->err || ans->num != 1 ||
		    raw_u64(&ans->msgs[0], GPUCR_A_BO_SIZE) != SIZE) {
			wrong("renderD%u: errno %d, %zu BOs", gpus[i].minor,
			      ans->err, ans->num);
			continue;
		}
		gpus[i].share = raw_u64(&ans->msgs[0], GPUCR_A_BO_SHARE_ID);
		for (k = 0; k < i; k++)
			if (gpus[k].share == gpus[i].share)
				wrong("GPUs %u and %u share a BO", k, i);
	}
}

static const struct raw_msg *vma_of(const struct gpu *g)
{
	size_t i;

	for (i = 0; i < ans->num; i++)
		if (raw_u64(&ans->msgs[i], GPUCR_A_VMA_START) ==
		    (uintptr_t)g->map)
			return &ans->msgs[i];
	return NULL;
}

static void check_vmas(size_t buf)
{
	const struct raw_msg *m;
	struct raw r = nl;
	unsigned int i;

	r.fd = raw_socket();
	r.buf = buf;
	raw_ask(&r, ans, GPUCR_CMD_VMA_GET, true, GPUCR_A_VMA_PID, getpid(), 0,
		0);
	if (ans->err || ans->num != num)
		wrong("%zu-byte reads: errno %d, %zu mappings", buf, ans->err,
		      ans->num);
	for (i = 0; i < num; i++) {
		m = vma_of(&gpus[i]);
		if (!m || raw_u32(m, GPUCR_A_VMA_KIND) != GPUCR_VMA_KIND_BO ||
		    raw_u32(m, GPUCR_A_VMA_DEV_MINOR) != gpus[i].minor ||
		    raw_u64(m, GPUCR_A_VMA_SHARE_ID) != gpus[i].share)
			wrong("%zu-byte reads: renderD%u's mapping is not told",
			      buf, gpus[i].minor);
	}
	raw_close(&r);
}

int main(int argc, char **argv)
{
	unsigned int i, want = argc > 1 ? atoi(argv[1]) : 0;
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	ans = raw_ans_new();
	find_gpus();
	if (num != want)
		wrong("%u GPUs, not %u", num, want);
	if (kfd < 0 || raw_open(&nl))
		wrong("no KFD or no gpucr: %s", strerror(errno));
	for (i = 0; !bad && i < num; i++)
		if (!use(kfd, &gpus[i]))
			wrong("renderD%u: %s", gpus[i].minor, strerror(errno));
	if (bad)
		return 1;
	check_bos();
	check_vmas(4096);
	check_vmas(8192);
	check_vmas(32768);
	return bad;
}
