// SPDX-License-Identifier: GPL-2.0-only
/*
 * shareloop: a queue of one process writes numbers, each into VRAM and then
 * into memory that another process shares, which has no GPU. All of them are
 * asked for at the start; whatever happens meanwhile, in the end each slot of
 * both must hold its number. Shared memory that was read while the queue still
 * ran has a hole for ever.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "app.h"
#include "kfd.h"
#include "sdma.h"

#define SLOTS		1024u
#define SLOTS_BYTES	(SLOTS * sizeof(uint32_t))
#define RING_BYTES	(1u << 20)
/* What is copied between two numbers, so that all of them take seconds. */
#define BALLAST		(4u << 20)

static volatile uint32_t *shared;

static void *map_shared(const char *kind)
{
	void *mem = MAP_FAILED;
	int id;

	if (!strcmp(kind, "anon"))
		return mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(kind, "memfd")) {
		id = memfd_create("shareloop", MFD_CLOEXEC);
		if (id >= 0 && !ftruncate(id, SLOTS_BYTES))
			mem = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, id, 0);
	} else if (!strcmp(kind, "sysv")) {
		id = shmget(IPC_PRIVATE, SLOTS_BYTES, IPC_CREAT | 0600);
		mem = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
	} else {
		errno = EINVAL;
	}
	return mem;
}

/* How many slots from the first on hold their numbers; all others must be empty. */
static unsigned int filled(const volatile uint32_t *slots, const char *what)
{
	unsigned int i, n = 0;

	while (n < SLOTS && slots[n] == n + 1)
		n++;
	/* The queue may have written one more since. */
	for (i = n + 2; i < SLOTS; i++) {
		if (!slots[i] || slots[n + 1])
			continue;
		app_err("%s: slot %u is filled, slot %u is not", what, i, n + 1);
		_exit(APP_FAILED);
	}
	return n;
}

static int wait_event(struct sdma *s, unsigned int ms)
{
	return kfd_wait(s->priv, s->event_id, ms);
}

static int make_queue(struct kfd *kfd, struct sdma *s)
{
	struct kfd_gpu *gpu = &kfd->gpus[0];
	struct kfd_bo ring, ptrs;
	int ret;

	ret = kfd_alloc(kfd, gpu, APP_GTT, RING_BYTES, &ring);
	if (!ret)
		ret = kfd_alloc(kfd, gpu, APP_GTT, 4096, &ptrs);
	if (!ret)
		ret = kfd_event(kfd, &s->event_id, &s->slot);
	if (ret)
		return ret;
	memset(ring.mem, 0, ring.size);
	memset(ptrs.mem, 0, ptrs.size);
	s->ring = ring.mem;
	s->bytes = ring.size;
	s->wptr = (volatile uint64_t *)((char *)ptrs.mem + 64);
	s->fence = (volatile uint32_t *)((char *)ptrs.mem + 128);
	s->wait = wait_event;
	s->priv = kfd;
	return kfd_queue(kfd, gpu, &ring, &ptrs, &s->doorbell);
}

/* Number i + 1 into slot i of both, and what takes time. */
static int ask(struct sdma *s, struct kfd_bo *vram, struct kfd_bo *numbers,
	       struct kfd_bo *ballast)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < SLOTS && !ret; i++) {
		const char *from = (char *)numbers->mem + i * 4;

		ret = sdma_copy(s, (char *)vram->mem + i * 4, from, 4);
		if (!ret)
			ret = sdma_copy(s, (volatile char *)shared + i * 4, from, 4);
		if (!ret)
			ret = sdma_copy(s, ballast[1].mem, ballast[0].mem, BALLAST);
	}
	return ret ? ret : sdma_kick(s);
}

/* Slots of VRAM are 0xa5 when new; the queue empties them first. */
static int writer(const struct app_opt *opt)
{
	static struct kfd kfd;
	static struct sdma s;
	struct kfd_bo vram, user, numbers, ballast[2];
	unsigned int i, n = 0;
	int ret = kfd_open(&kfd, 1);

	if (ret)
		return ret;
	ret = make_queue(&kfd, &s);
	if (!ret)
		ret = kfd_alloc(&kfd, kfd.gpus, APP_VRAM, SLOTS_BYTES, &vram);
	if (!ret)
		ret = kfd_alloc(&kfd, kfd.gpus, APP_GTT, SLOTS_BYTES, &numbers);
	for (i = 0; i < 2 && !ret; i++)
		ret = kfd_alloc(&kfd, kfd.gpus, APP_VRAM, BALLAST, &ballast[i]);
	if (!ret)
		ret = kfd_alloc_user(&kfd, kfd.gpus, (void *)shared, SLOTS_BYTES, &user);
	if (!ret)
		ret = sdma_copy(&s, vram.mem, (void *)shared, SLOTS_BYTES);
	if (!ret)
		ret = sdma_kick(&s);
	if (!ret)
		ret = sdma_wait(&s);
	for (i = 0; i < SLOTS && !ret; i++)
		((volatile uint32_t *)numbers.mem)[i] = i + 1;
	if (!ret)
		ret = ask(&s, &vram, &numbers, ballast);
	if (ret)
		return APP_FAILED;
	app_ready(opt);
	while (n < SLOTS) {
		n = filled(vram.mem, "vram");
		app_sleep(20);
	}
	ret = sdma_wait(&s);
	printf("vram %s\n", ret ? "not done" : "whole");
	fflush(stdout);
	while (!ret)
		app_sleep(1000);
	return APP_FAILED;
}

static int reader(const struct app_opt *opt)
{
	unsigned int n = 0;

	app_ready(opt);
	while (n < SLOTS) {
		n = filled(shared, "shared memory");
		printf("at %u\n", n);
		app_sleep(20);
	}
	puts("shared memory whole");
	fflush(stdout);
	while (n == SLOTS)
		app_sleep(1000);
	return APP_FAILED;
}

int main(int argc, char **argv)
{
	struct app_opt opt;

	app_parse(&opt, argc, argv);
	opt.procs = 2;
	shared = map_shared(opt.shared ? opt.shared : "anon");
	if (shared == MAP_FAILED) {
		app_err("shared memory: %s", strerror(errno));
		return APP_FAILED;
	}
	app_start(&opt);
	return opt.proc ? writer(&opt) : reader(&opt);
}
