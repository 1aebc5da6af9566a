// SPDX-License-Identifier: GPL-2.0-only
/*
 * VRAM that is full: a process whose memory another needs stands still for a
 * while, and then goes on with all of it.
 *
 * A simulator that evicts without stopping the queues turns it red.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#include <amdgpu_drm.h>

#include "kfd_lib.h"
#include "../../ktap.h"

#define VRAM	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
#define GTT	KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define MB	(1u << 20)
#define RATE	"/sys/module/kfdsim/parameters/copy_mbps"

static struct gpu g;
static struct queue q;
static struct buf big, small, sig;
static uint64_t vram;
static uint32_t turn;

static uint64_t info(uint32_t query)
{
	uint64_t v = 0;
	struct drm_amdgpu_info i = {
		.return_pointer = (uintptr_t)&v,
		.return_size = sizeof(v),
		.query = query,
	};

	return kfd_call(g.drm, DRM_IOCTL_AMDGPU_INFO, &i) ? 0 : v;
}

static uint64_t vram_size(void)
{
	struct drm_amdgpu_info_vram_gtt v = { 0 };
	struct drm_amdgpu_info i = {
		.return_pointer = (uintptr_t)&v,
		.return_size = sizeof(v),
		.query = AMDGPU_INFO_VRAM_GTT,
	};

	return kfd_call(g.drm, DRM_IOCTL_AMDGPU_INFO, &i) ? 0 : v.vram_size;
}

static int gem_create(int fd, uint64_t size, uint32_t *handle)
{
	union drm_amdgpu_gem_create c = {
		.in = { size, PAGE, AMDGPU_GEM_DOMAIN_VRAM, 0 },
	};
	int ret = kfd_call(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &c);

	*handle = c.out.handle;
	return ret;
}

/* A process that has VRAM by DRM until its pipe is closed. */
struct hog {
	pid_t pid;
	int hold;
};

static int hog_start(struct hog *h, uint64_t size)
{
	int hold[2], told[2], fd, ret = -EPIPE;
	uint32_t handle;
	char c;

	if (pipe(hold) || pipe(told))
		return -errno;
	fflush(stdout);
	h->pid = fork();
	if (!h->pid) {
		close(hold[1]);
		fd = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
		ret = gem_create(fd, size, &handle);
		if (write(told[1], &ret, sizeof(ret)) == sizeof(ret))
			_exit(read(hold[0], &c, 1) != 0);
		_exit(1);
	}
	close(hold[0]);
	close(told[1]);
	if (read(told[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -EPIPE;
	close(told[0]);
	h->hold = hold[1];
	return ret;
}

static void hog_end(struct hog *h)
{
	close(h->hold);
	waitpid(h->pid, NULL, 0);
}

/* How long the queues of this process stood still, so far; -1: not told. */
static long evicted_ms(void)
{
	char path[128];
	long ms = -1;
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/class/kfd/kfd/proc/%d/stats_%u/evicted_ms", getpid(), g.id);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &ms) != 1)
		ms = -1;
	fclose(f);
	return ms;
}

/* It is told when they go on. */
static bool wait_evicted(long before)
{
	unsigned int i;

	for (i = 0; i < 3000 && evicted_ms() <= before; i++)
		sleep_ms(10);
	return evicted_ms() > before || failed("evicted_ms", evicted_ms(), before + 1);
}

static bool fence_comes(void)
{
	put_fence(&q, sig.ptr, ++turn);
	queue_ring(&q);
	return wait_value(sig.ptr, turn);
}

static bool set_rate(unsigned int mbps)
{
	FILE *f = fopen(RATE, "we");

	if (!f)
		return failed("open copy_mbps", -errno, 0);
	fprintf(f, "%u", mbps);
	return !fclose(f);
}

static bool set_up(void)
{
	if (!gpu_open(&g, true))
		return false;
	vram = vram_size();
	CHECK(vram >= 64 * MB, 1);
	CHECK(buf_make(&g, &big, VRAM, vram / 8 * 5), 0);
	CHECK(buf_make(&g, &small, GTT, MB), 0);
	CHECK(buf_make(&g, &sig, GTT, PAGE), 0);
	CHECK(queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	memset(big.ptr, 0x5a, MB);
	return fence_comes();
}

/* A process needs all that it has: what DRM gives it comes from elsewhere. */
static bool not_its_own(void)
{
	uint64_t gtt = info(AMDGPU_INFO_GTT_USAGE);
	long stood = evicted_ms();
	struct drm_gem_close c = { 0 };

	CHECK(gem_create(g.drm, vram / 2, &c.handle), 0);
	CHECK(info(AMDGPU_INFO_GTT_USAGE) - gtt, vram / 2);
	CHECK(evicted_ms(), stood);
	CHECK(kfd_call(g.drm, DRM_IOCTL_GEM_CLOSE, &c), 0);
	CHECK(info(AMDGPU_INFO_GTT_USAGE), gtt);
	return true;
}

/* Another's DRM buffer drives it out, and is driven out in its turn. */
static bool stops_and_goes_on(void)
{
	uint64_t gtt = info(AMDGPU_INFO_GTT_USAGE);
	uint64_t gone = info(AMDGPU_INFO_NUM_EVICTIONS);
	long stood = evicted_ms();
	struct hog h;

	CHECK(hog_start(&h, vram / 2), 0);
	if (!wait_evicted(stood + 50))
		return false;
	CHECK(info(AMDGPU_INFO_NUM_EVICTIONS) - gone, 2);
	CHECK(info(AMDGPU_INFO_GTT_USAGE) - gtt, vram / 2);
	CHECK(info(AMDGPU_INFO_VRAM_USAGE) >= big.size, 1);
	if (!fence_comes())
		return false;
	put_copy(&q, big.ptr, small.ptr, MB);
	if (!fence_comes())
		return false;
	CHECK(memcmp(big.ptr, small.ptr, MB), 0);
	hog_end(&h);
	CHECK(info(AMDGPU_INFO_GTT_USAGE), gtt);
	return true;
}

/* In the middle of a copy that takes two seconds. */
static bool in_the_middle(void)
{
	long stood = evicted_ms();
	char *to = (char *)big.ptr + 8 * MB;
	struct hog h;

	memset(to, 0, 4 * MB);
	memset(big.ptr, 0x77, 4 * MB);
	if (!set_rate(2))
		return false;
	put_copy(&q, big.ptr, to, 4 * MB);
	queue_ring(&q);
	sleep_ms(100);
	CHECK(hog_start(&h, vram / 2), 0);
	CHECK(to[4 * MB - 1], 0);
	if (!wait_evicted(stood + 50) || !set_rate(0) || !fence_comes())
		return false;
	CHECK(memcmp(big.ptr, to, 4 * MB), 0);
	hog_end(&h);
	return true;
}

/* CRIU's pause outlives that a process gets its memory back. */
static bool paused_too(void)
{
	struct kfd_ioctl_criu_args args = { 0 };
	long stood = evicted_ms();
	int evicted = 0;
	struct hog h;

	CHECK(criu_op(&g, KFD_CRIU_OP_PROCESS_INFO, &args), 0);
	CHECK(hog_start(&h, vram / 2), 0);
	sleep_ms(1000);
	queue_progress(getpid(), q.id, &evicted, NULL);
	CHECK(evicted, 1);
	CHECK(evicted_ms(), stood);
	CHECK(simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0), 0);
	if (!wait_evicted(stood + 50) || !fence_comes())
		return false;
	hog_end(&h);
	return true;
}

static uint64_t available(void)
{
	struct kfd_ioctl_get_available_memory_args a = { .gpu_id = g.id };

	return kfd_call(g.kfd, AMDKFD_IOC_AVAILABLE_MEMORY, &a) ? 0 : a.available;
}

/* What DRM has is available to KFD; what KFD has is not. */
static bool available_to_kfd(void)
{
	uint64_t all = available(), gtt = info(AMDGPU_INFO_GTT_USAGE);
	struct buf b, more;
	struct hog h;

	CHECK(all > vram / 4 && all < vram / 2, 1);
	CHECK(hog_start(&h, vram / 4), 0);
	CHECK(info(AMDGPU_INFO_GTT_USAGE), gtt);
	CHECK(available(), all);
	CHECK(buf_make(&g, &b, VRAM, all), 0);
	CHECK(info(AMDGPU_INFO_GTT_USAGE) - gtt, vram / 4);
	CHECK(available(), 0);
	CHECK(buf_alloc(&g, &more, VRAM, 4 * MB), -ENOMEM);
	CHECK(buf_free(&g, &b), 0);
	CHECK(available(), all);
	hog_end(&h);
	return true;
}

/* One that is killed while it stands still leaves nothing. */
static bool killed(void)
{
	int told[2], i;
	struct hog h;
	pid_t pid;
	char c;

	CHECK(buf_free(&g, &big), 0);
	CHECK(pipe(told), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct gpu own;
		struct queue run;

		if (!gpu_open(&own, true) || buf_make(&own, &big, VRAM, big.size) ||
		    queue_make(&own, &run, KFD_IOC_QUEUE_TYPE_SDMA) ||
		    write(told[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CHECK(read(told[0], &c, 1), 1);
	CHECK(hog_start(&h, vram / 2), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	hog_end(&h);
	for (i = 0; i < 500 && stat_value("processes") != 1; i++)
		sleep_ms(10);
	CHECK(stat_value("processes"), 1);
	CHECK(info(AMDGPU_INFO_VRAM_USAGE), 0);
	return fence_comes();
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ set_up, "set up" },
		{ not_its_own, "its own process does not drive it out" },
		{ stops_and_goes_on, "another does, and it gets all back" },
		{ in_the_middle, "in the middle of a copy" },
		{ paused_too, "paused at the same time" },
		{ available_to_kfd, "available is what others do not hold by KFD" },
		{ killed, "killed while it stands still" },
	};

	ktap_cases(cases, sizeof(cases) / sizeof(cases[0]));
	queue_destroy(&g, &q);
	gpu_close(&g);
	return ktap_exit();
}
