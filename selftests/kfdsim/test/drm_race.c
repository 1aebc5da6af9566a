// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything at once on one DRM file: copies while their user memory and their
 * mappings come and go, handles closed while others import them, processes
 * that end in the middle. Whatever is refused, nothing may break: the kernel
 * log, lockdep and the unload tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xf86drm.h>
#include "../../ktap.h"
#include "gpu.h"

#define SECONDS		5
#define SIZE		(256 * 1024UL)

static atomic_bool stop;
static atomic_ulong copies, faults, remaps, shares, births;
static struct gpu gpu;
static struct buf *user, *vram;

/* A context of its own each time something failed. */
static void *copier(void *unused)
{
	struct gpu g = gpu;
	unsigned int n = 0;

	(void)unused;
	g.ctx = NULL;
	g.ib = buf_new(&g, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	if (!g.ib || !gpu_new_ctx(&g))
		return "no context";
	while (!stop) {
		bool out = n++ & 1;
		int r = gpu_copy(&g, out ? user->va : vram->va,
				 out ? vram->va : user->va, SIZE - 1);

		if (!r) {
			copies++;
			continue;
		}
		faults++;
		if (r != -EFAULT || !gpu_new_ctx(&g))
			return "a copy failed with something else than EFAULT";
	}
	amdgpu_cs_ctx_free(g.ctx);
	buf_free(&g, g.ib);
	return NULL;
}

/* Takes the user memory away and gives it back. */
static void *unmapper(void *unused)
{
	struct timespec nap = { 0, 1000 * 1000 };

	(void)unused;
	while (!stop) {
		munmap(user->cpu + SIZE / 2, SIZE / 4);
		nanosleep(&nap, NULL);
		if (mmap(user->cpu + SIZE / 2, SIZE / 4, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return "mmap";
		nanosleep(&nap, NULL);
		remaps++;
	}
	return NULL;
}

/* The same with the GPU's mapping of VRAM. */
static void *remapper(void *unused)
{
	const uint64_t rw = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;

	(void)unused;
	while (!stop) {
		if (amdgpu_bo_va_op_raw(gpu.dev, NULL, 0, PAGE, vram->va + 5 * PAGE, 0,
					AMDGPU_VA_OP_CLEAR))
			return "clear";
		if (amdgpu_bo_va_op_raw(gpu.dev, vram->bo, 0, SIZE, vram->va, rw,
					AMDGPU_VA_OP_REPLACE))
			return "replace";
		remaps++;
	}
	return NULL;
}

/* Handles of one BO, made and closed by several at once, on two files. */
static void *sharer(void *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint32_t dmabuf, h;
	void *p;

	while (!stop) {
		if (amdgpu_bo_export(vram->bo, amdgpu_bo_handle_type_dma_buf_fd, &dmabuf))
			return "export";
		if (drmPrimeFDToHandle(fd, dmabuf, &h))
			return "import";
		p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
		close(dmabuf);
		if (p == MAP_FAILED)
			return "mmap of a dma-buf";
		((volatile char *)p)[shares % SIZE] = 1;
		munmap(p, SIZE);
		drmCloseBufferHandle(fd, h);
		shares++;
	}
	close(fd);
	return NULL;
}

/* Processes that die with a copy under way. */
static void *parent(void *unused)
{
	struct timespec nap = { 0, 120 * 1000 * 1000 };
	pid_t pid;

	(void)unused;
	while (!stop) {
		pid = fork();
		if (!pid) {
			execl("/proc/self/exe", "drm_race", "copy-for-ever", NULL);
			_exit(1);
		}
		nanosleep(&nap, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		births++;
	}
	return NULL;
}

static bool race(void)
{
	char *path = drmGetRenderDeviceNameFromFd(gpu.fd);
	struct timespec run = { SECONDS, 0 };
	void *(*const fn[])(void *) = {
		copier, copier, unmapper, remapper, sharer, sharer, parent,
	};
	enum { N = sizeof(fn) / sizeof(fn[0]) };
	pthread_t t[N];
	bool ok = true;
	int i;

	for (i = 0; i < N; i++)
		if (pthread_create(&t[i], NULL, fn[i], path))
			ktap_bail("no thread");
	nanosleep(&run, NULL);
	stop = true;
	for (i = 0; i < N; i++) {
		void *why;

		pthread_join(t[i], &why);
		if (why)
			ok = fail("thread %d: %s", i, (char *)why);
	}
	free(path);
	return ok;
}

/* A killed process's submissions end, and its memory goes, a moment later. */
static bool vram_becomes(uint64_t used)
{
	struct timespec nap = { 0, 10000000 };
	int i;

	for (i = 0; i < 1000 && gpu_vram_used(&gpu) != used; i++)
		nanosleep(&nap, NULL);
	return gpu_vram_used(&gpu) == used;
}

int main(int argc, char **argv)
{
	uint64_t before;

	if (argc == 2 && !strcmp(argv[1], "copy-for-ever"))
		return copy_for_ever();
	ktap_plan(3);
	if (!gpu_open(&gpu))
		ktap_bail("no simulated GPU");
	before = gpu_vram_used(&gpu);
	user = buf_user(&gpu, SIZE);
	vram = buf_new(&gpu, AMDGPU_GEM_DOMAIN_VRAM, SIZE);
	if (!user || !vram)
		ktap_bail("no buffers");
	ktap_ok(race(), "nothing failed but what may");
	ktap_note("%lu copies, %lu faults, %lu remaps, %lu imports, %lu kills",
		  copies, faults, remaps, shares, births);
	ktap_ok(copies && faults && remaps && shares && births,
		"each of them happened");
	buf_free(&gpu, user);
	buf_free(&gpu, vram);
	ktap_ok(vram_becomes(before), "no VRAM is left in use");
	gpu_close(&gpu);
	return ktap_exit();
}
