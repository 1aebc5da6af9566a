/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What /proc and KFD's sysfs tell of GPU processes, without touching them:
 * no ptrace, no ioctl, nothing stopped.
 *
 * Functions return 0 or -errno: -ESRCH where the process is gone, -EACCES or
 * -EPERM where the kernel does not show it to the caller.
 */
#ifndef GPUCR_PROC_H
#define GPUCR_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum gpucr_dev_kind {
	GPUCR_DEV_OTHER,
	GPUCR_DEV_KFD,
	GPUCR_DEV_RENDER,
	GPUCR_DEV_PRIMARY,
	GPUCR_DEV_DMA_BUF,		/* of any driver: no device of its own */
};

struct gpucr_proc_fd {
	pid_t pid;
	int fd;
	enum gpucr_dev_kind kind;
	uint32_t dev_major, dev_minor;	/* 0 for a dma-buf */
	dev_t inode_dev;		/* what it is a file of */
	ino_t inode;
};

/* Kind of the character device, by sysfs. */
enum gpucr_dev_kind gpucr_dev_kind(uint32_t dev_major, uint32_t dev_minor);
/* Driver of a DRM device's minor; "" where sysfs does not tell. */
void gpucr_dev_driver(uint32_t dev_minor, char *name, size_t size);
/* Minor of the render node of the device whose minor it is; 0: none. */
uint32_t gpucr_dev_render_minor(uint32_t dev_minor);

/* KFD, DRM and dma-buf descriptors of pid, by rising number; free() *ret. */
int gpucr_proc_fds(pid_t pid, struct gpucr_proc_fd **ret, size_t *num);
/*
 * The same of every process that the caller may look into; *hidden counts
 * those that it may not.
 */
int gpucr_proc_all_fds(struct gpucr_proc_fd **ret, size_t *num,
		       size_t *hidden);
/* 1: both descriptors are one open file; 0: they are not; -errno. */
int gpucr_proc_same_file(const struct gpucr_proc_fd *a,
			 const struct gpucr_proc_fd *b);

/* The command name; what is not printable ASCII is '?'. */
int gpucr_proc_comm(pid_t pid, char *comm, size_t size);
/*
 * Is its main thread on the way out? Its descriptors are closed then, though
 * the process may still be there for a while. True also where it is gone.
 */
bool gpucr_proc_is_exiting(pid_t pid);
/* When it was started, in clock ticks since boot; 0: it is gone. */
unsigned long long gpucr_proc_start_time(pid_t pid);
/* Is this process in the initial pid namespace, whose pids sysfs shows? */
bool gpucr_proc_initial_pidns(void);

/* A pidfd, O_CLOEXEC, or -errno. */
int gpucr_pidfd_open(pid_t pid);
/* A copy of descriptor fd of the process, O_CLOEXEC, or -errno. */
int gpucr_pidfd_getfd(int pidfd, int fd);

struct gpucr_kfd_gpu {
	uint32_t gpu_id;
	uint64_t vram;			/* bytes in use */
	uint64_t evicted_ms;		/* grows when an eviction ends */
};

struct gpucr_kfd_queue {
	uint32_t qid;
	uint32_t gpu_id;
	uint32_t type;			/* KFD's enum kfd_queue_type */
	uint64_t size;			/* of the ring, bytes */
};

/* A process as /sys/class/kfd/kfd/proc shows it. */
struct gpucr_kfd_proc {
	pid_t pid;			/* in the initial pid namespace */
	struct gpucr_kfd_gpu *gpus;	/* by rising gpu_id */
	size_t num_gpus;
	struct gpucr_kfd_queue *queues;	/* by rising qid */
	size_t num_queues;
};

/* The word for a queue type; "unknown" for one that this version lacks. */
const char *gpucr_kfd_queue_type(uint32_t type);
/* -ESRCH where KFD has no such process, -ENOENT where there is no KFD. */
int gpucr_kfd_proc_read(pid_t pid, struct gpucr_kfd_proc *ret);
/* Frees what the structure holds. */
void gpucr_kfd_proc_clear(struct gpucr_kfd_proc *proc);
/* Pids of all KFD processes, rising; *ret is free()d. */
int gpucr_kfd_proc_list(pid_t **ret, size_t *num);

#endif
