/* SPDX-License-Identifier: GPL-2.0-only */
/* The fuzzer: what the operations take, and how messages are made of it. */
#ifndef GPUCR_FUZZ_H
#define GPUCR_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../kmod/raw.h"

#define FUZZ_MSG	4096	/* most bytes of one message */
#define FUZZ_ARENA	65536	/* bytes of a buffer for KFD */

/* What a sane value of an attribute is. */
enum fuzz_kind {
	FUZZ_END,
	FUZZ_PROTO,
	FUZZ_U32,
	FUZZ_U64,
	FUZZ_DRM_FD,
	FUZZ_MAP_FD,
	FUZZ_KFD_FD,
	FUZZ_PID,
	FUZZ_ID,
	FUZZ_DIRECTION,
	FUZZ_DEVICES,
	FUZZ_BOS,
	FUZZ_PRIV,
	FUZZ_NUM_DEVICES,
	FUZZ_NUM_BOS,
	FUZZ_NUM_OBJECTS,
	FUZZ_PRIV_SIZE,
	FUZZ_HOLDER_FD,
	FUZZ_IMAGE_PID,
	FUZZ_OWN_DRM_FD,
	FUZZ_GPU_ID,
	FUZZ_PGOFF,
	FUZZ_BO_SIZE,
	FUZZ_DRAIN,
};

enum fuzz_how { FUZZ_NONE, FUZZ_DO, FUZZ_DUMP };

#define FUZZ_ATTRS	16

struct fuzz_op {
	const char *name;
	enum fuzz_how how;
	struct {
		uint8_t type;
		uint8_t kind;
	} attrs[FUZZ_ATTRS];
};

/* By command; one for each that the family knows. */
extern const struct fuzz_op fuzz_ops[__GPUCR_CMD_MAX];

/* Descriptors that messages may name. */
enum fuzz_fd {
	FD_KFD_OWN,
	FD_KFD_TARGET,
	FD_RENDER_OWN,
	FD_RENDER_TARGET,
	FD_CARD,
	FD_DMABUF,
	FD_NULL,
	FD_PIPE,
	FD_MEMFD,
	FD_PATH,
	FD_DIR,
	FD_PIDFD,
	FD_UNIX,
	FD_EVENT,
	FD_NUM,
};

/* What a thread of the fuzzer knows. */
struct fuzz {
	uint64_t seed;
	struct raw nl;
	int fds[FD_NUM];
	pid_t target;
	uint64_t id;		/* of its newest session; 0: none */
	uint32_t state;		/* as its last answer told */
	int session_fd;		/* may be closed by now */
	uint64_t *ids;		/* of everybody's newest sessions */
	size_t num_ids;
	struct {
		uint32_t devices, bos, objects;
		uint64_t priv_size;
	} counts;		/* of the last pause */
	char *dev, *bo, *priv;	/* FUZZ_ARENA bytes each */
	uint64_t bo_pgoff;	/* a BO of FD_CARD */
	uint64_t bo_size;
	bool restores;		/* is a task of a restore: names its own KFD */
};

uint64_t fuzz_rnd(struct fuzz *f);
static inline uint32_t fuzz_below(struct fuzz *f, uint32_t n)
{
	return fuzz_rnd(f) % n;
}

/* Messages of a kind: all in order, changed here and there, noise. */
enum fuzz_mode { FUZZ_SANE, FUZZ_MUTATED, FUZZ_NOISE };

/* Makes one of that command in buf; returns its length. */
size_t fuzz_build(struct fuzz *f, char *buf, uint8_t cmd, enum fuzz_mode mode);

#endif
