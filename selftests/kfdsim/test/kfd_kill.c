// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that die at any point of using KFD leave nothing behind, and the
 * module cannot go while a file is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../../ktap.h"
#include "kfd_lib.h"

#define VRAM	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
#define GTT	KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define ROUNDS	60
#define SIZE	(8u << 20)

static struct gpu g;

/* Pause and go on, from another thread. */
static void *pauser(void *unused)
{
	struct kfd_ioctl_criu_args args = { 0 };

	(void)unused;
	for (;;) {
		args.op = KFD_CRIU_OP_PROCESS_INFO;
		kfd_call(g.kfd, AMDKFD_IOC_CRIU_OP, &args);
		args.op = KFD_CRIU_OP_UNPAUSE;
		kfd_call(g.kfd, AMDKFD_IOC_CRIU_OP, &args);
	}
	return NULL;
}

/* Sleep in WAIT_EVENTS for what never comes. */
static void *waiter(void *unused)
{
	struct kfd_ioctl_create_event_args ev;

	(void)unused;
	if (!event_make(&g, KFD_IOC_EVENT_SIGNAL, true, &ev))
		event_wait(&g, &ev.event_id, 1, true, UINT32_MAX);
	return NULL;
}

/* Everything at once, over and over. */
static void live(void)
{
	struct buf src, dst, user;
	pthread_t t;
	struct queue q;
	unsigned int i;

	if (!gpu_open(&g, true))
		_exit(1);
	pthread_create(&t, NULL, waiter, NULL);
	for (;;) {
		if (buf_make(&g, &src, GTT, SIZE) ||
		    buf_make(&g, &dst, VRAM, SIZE) ||
		    buf_make(&g, &user, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, SIZE) ||
		    queue_make(&g, &q, KFD_IOC_QUEUE_TYPE_SDMA))
			_exit(1);
		for (i = 0; i < 100; i++) {
			put_copy(&q, src.ptr, dst.ptr, SIZE);
			put_copy(&q, user.ptr, dst.ptr, SIZE);
		}
		queue_ring(&q);
		if (t)
			pthread_create(&t, NULL, pauser, NULL);
		t = 0;
		madvise(user.ptr, SIZE, MADV_DONTNEED);
		sleep_ms((unsigned int)rand() % 40);
		queue_destroy(&g, &q);
		buf_free(&g, &user);
		buf_free(&g, &dst);
		buf_free(&g, &src);
	}
}

static bool nothing_left(void)
{
	static const char * const keys[] = {
		"bos", "vms", "processes", "files", "queues",
	};
	unsigned int i, n;

	for (n = 0; n < 5; n++) {
		for (i = 0; i < 200 && stat_value(keys[n]); i++)
			sleep_ms(10);
		if (stat_value(keys[n]))
			return failed(keys[n], stat_value(keys[n]), 0);
	}
	return true;
}

static bool kills(void)
{
	unsigned int i, alive = 0;
	pid_t pid;

	for (i = 0; i < ROUNDS; i++) {
		pid = fork();
		if (!pid) {
			srand(i);
			live();
		}
		sleep_ms((unsigned int)rand() % 150);
		alive += waitpid(pid, NULL, WNOHANG) == 0;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	/* a child that fails by itself would prove nothing */
	CHECK(alive, ROUNDS);
	return nothing_left();
}

/* A file that outlives its process pins memory, but no queue. */
static bool file_outlives(void)
{
	struct gpu child;
	int to_parent[2], fd;
	unsigned int i;
	pid_t pid;

	CHECK(pipe(to_parent), 0);
	pid = fork();
	if (!pid) {
		struct buf b;
		struct queue q;

		if (!gpu_open(&child, true) || buf_make(&child, &b, VRAM, SIZE) ||
		    queue_make(&child, &q, KFD_IOC_QUEUE_TYPE_SDMA) ||
		    write(to_parent[1], &child, sizeof(child)) != sizeof(child))
			_exit(1);
		pause();
	}
	CHECK(read(to_parent[0], &child, sizeof(child)), sizeof(child));
	fd = (int)syscall(SYS_pidfd_getfd,
			  (int)syscall(SYS_pidfd_open, pid, 0), child.kfd, 0);
	CHECK(fd >= 0, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (i = 0; i < 200 && stat_value("queues"); i++)
		sleep_ms(10);
	CHECK(stat_value("queues"), 0);
	CHECK(stat_value("bos") > 0, 1);
	close(fd);
	return nothing_left();
}

static bool module_stays(void)
{
	if (!gpu_open(&g, true))
		return false;
	CHECK(syscall(SYS_delete_module, "kfdsim", O_NONBLOCK), -1);
	CHECK(errno, EAGAIN);
	gpu_close(&g);
	return true;
}

int main(void)
{
	ktap_plan(3);
	ktap_ok(kills(), "kills");
	ktap_ok(file_outlives(), "file_outlives");
	ktap_ok(module_stays(), "module_stays");
	return ktap_exit();
}
