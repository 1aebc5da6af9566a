/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client of the generic netlink family "gpucr": one function per operation.
 *
 * A handle belongs to the process that opened it. After a fork the child's
 * first call opens a socket of its own; the inherited descriptor is left
 * alone, since its number may mean another file there by then.
 * Functions return 0 or -errno: -ENOENT where the family is absent and could
 * not be loaded, else what the module answered; gpucr_nl_error() then has its
 * sentence. Not for use by several threads at once.
 */
#ifndef GPUCR_NL_H
#define GPUCR_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/gpucr.h>

struct gpucr_nl;

int gpucr_nl_open(struct gpucr_nl **ret);
void gpucr_nl_close(struct gpucr_nl *nl);
/* The module's sentence about the last failure; "" where it gave none. */
const char *gpucr_nl_error(const struct gpucr_nl *nl);
/* Number of the request's attribute that the last failure is about; 0: none. */
unsigned int gpucr_nl_bad_attr(const struct gpucr_nl *nl);

struct gpucr_nl_info {
	char version[32];
	uint32_t protocol;
	uint32_t ops[32];
	unsigned int num_ops;
	char drivers[8][32];
	unsigned int num_drivers;
	uint32_t max_objects;
	uint32_t max_sessions;
	char helper[256];		/* "": off */
	uint32_t sessions_open;
	uint64_t sessions_total;
	uint64_t sessions_abandoned;
	uint64_t sessions_recovered;
	uint64_t sessions_recovery_failed;
	bool draining;			/* session-new answers EAGAIN */
	uint32_t max_queues, max_remaps;
};

int gpucr_nl_info(struct gpucr_nl *nl, struct gpucr_nl_info *ret);

struct gpucr_nl_bo {
	uint32_t handle;		/* 0: none */
	uint32_t flags;			/* enum gpucr_bo_flags */
	uint64_t size;			/* bytes */
	uint64_t offset;		/* mmap offset, bytes */
	bool has_offset;
	uint64_t share_id;
	uint32_t handle_count;
};

/* BOs of the DRM file fd. *ret is free()d by the caller. */
int gpucr_nl_bos(struct gpucr_nl *nl, int fd, struct gpucr_nl_bo **ret,
		 size_t *num);

struct gpucr_nl_vma {
	uint64_t start, end;		/* addresses */
	uint64_t pgoff;			/* pages */
	uint32_t flags;			/* enum gpucr_vma_flags */
	uint32_t kind;			/* enum gpucr_vma_kind */
	uint32_t dev_major, dev_minor;
	uint32_t gpu_id;		/* 0: the offset carries none */
	uint64_t share_id;		/* 0: no BO */
	uint64_t bo_size, bo_delta;	/* bytes */
};

/* Device VMAs of pid that map the open file fd; fd -1: all of them. */
int gpucr_nl_vmas(struct gpucr_nl *nl, pid_t pid, int fd,
		  struct gpucr_nl_vma **ret, size_t *num);

struct gpucr_nl_session {
	uint64_t id;
	uint32_t pid;
	uint32_t direction;		/* enum gpucr_direction */
	uint32_t state;			/* enum gpucr_session_state */
	uint32_t owner_pid;
	char owner_comm[16];
	bool owner_gone;
	uint64_t age_ms, paused_ms;
	bool was_paused;
	uint32_t error;
	uint32_t num_devices, num_bos, num_objects;
	uint64_t priv_size;
	uint32_t tasks;
};

/* Opens a session; *fd is its descriptor (O_CLOEXEC): closing it ends it. */
int gpucr_nl_session_new(struct gpucr_nl *nl, enum gpucr_direction direction,
			 pid_t pid, int kfd_fd, uint64_t *id, int *fd);
int gpucr_nl_session_join(struct gpucr_nl *nl, uint64_t id, int kfd_fd);
int gpucr_nl_session_del(struct gpucr_nl *nl, uint64_t id);
/* id 0: all. *ret is free()d by the caller. */
int gpucr_nl_sessions(struct gpucr_nl *nl, uint64_t id,
		      struct gpucr_nl_session **ret, size_t *num);

/*
 * One KFD CRIU operation through a session. Inputs as in struct
 * kfd_ioctl_criu_args; after cmd session-pause the counts are outputs.
 */
struct gpucr_nl_relay {
	uint32_t cmd;			/* GPUCR_CMD_SESSION_PAUSE ... _RESUME */
	uint64_t id;
	int kfd_fd;			/* restore, resume; else -1 */
	uint32_t pid;			/* resume: in; pause: out */
	void *devices;			/* struct kfd_criu_device_bucket[] */
	uint32_t num_devices;
	void *bos;			/* struct kfd_criu_bo_bucket[] */
	uint32_t num_bos;
	void *priv;
	uint64_t priv_size;
	uint32_t num_objects;
	uint32_t state;			/* out: enum gpucr_session_state */
	bool called;			/* out: KFD was called (accepted) */
	uint32_t image_pid;		/* restore: keep offsets; 0: do not */
	uint32_t kept;			/* out: queues or offsets */
	int kept_error;			/* out: why not all; -errno */
};

/* Where only kept_error is set it has succeeded; gpucr_nl_error() says why. */
int gpucr_nl_relay(struct gpucr_nl *nl, struct gpucr_nl_relay *r);

/* Take no new sessions, or take them again. */
int gpucr_nl_session_drain(struct gpucr_nl *nl, bool drain);

/* A queue of a checkpoint; addresses and sizes in bytes. */
struct gpucr_nl_queue {
	uint32_t qid, gpu_id;
	uint32_t type;			/* enum gpucr_queue_type */
	uint32_t format;		/* enum gpucr_queue_format */
	uint64_t ring, ring_size;
	uint64_t read_pointer, write_pointer;
	uint64_t doorbell;
	uint32_t doorbell_id;
	uint32_t priority, percent;
	uint32_t sdma_id, gws;
	uint64_t eop, ctx_save;
	uint32_t eop_size, ctx_save_size;
	uint32_t mqd_size, ctl_stack_size;
};

/*
 * Queues that the last checkpoint of a session found. holder: -1, or a file
 * that gives the right to ask: the session's, or KFD's of its target.
 * -ENODATA where there was no checkpoint. *ret is free()d by the caller.
 */
int gpucr_nl_queues(struct gpucr_nl *nl, uint64_t id, int holder,
		    struct gpucr_nl_queue **ret, size_t *num);

/* Where a BO of the image has come to; offsets in pages. */
struct gpucr_nl_remap {
	uint32_t image_pid, gpu_id;
	uint64_t old_pgoff;
	uint64_t size;			/* bytes */
	uint64_t new_pgoff;
	uint32_t dev_minor;		/* of its render node */
	uint32_t source;		/* enum gpucr_remap_source */
};

/* image_pid 0: all. holder: -1, or the session's file. */
int gpucr_nl_remaps(struct gpucr_nl *nl, uint64_t id, int holder,
		    uint32_t image_pid, struct gpucr_nl_remap **ret,
		    size_t *num);
/* A BO of the render node fd; dev_minor and source are not looked at. */
int gpucr_nl_remap_set(struct gpucr_nl *nl, uint64_t id, int fd,
		       const struct gpucr_nl_remap *r);

/* How a mapping of the image is made again. */
struct gpucr_nl_resolved {
	uint32_t kind;			/* enum gpucr_remap_kind */
	uint32_t dev_minor;
	uint64_t new_pgoff;		/* in the render node or the dma-buf */
	uint64_t delta;			/* bytes into the BO */
	uint64_t size;			/* bytes of the BO */
};

/*
 * key: image_pid, gpu_id, old_pgoff; size of the mapping, or 0. fd: a render
 * node that must be able to map it, or -1.
 */
int gpucr_nl_remap_resolve(struct gpucr_nl *nl, uint64_t id, int fd,
			   const struct gpucr_nl_remap *key,
			   struct gpucr_nl_resolved *ret);

#endif
