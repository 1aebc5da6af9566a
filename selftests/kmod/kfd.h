/* SPDX-License-Identifier: GPL-2.0-only */
/* KFD processes as targets, and sessions on them. */
#ifndef GPUCR_TEST_KFD_H
#define GPUCR_TEST_KFD_H

#include <linux/kfd_ioctl.h>

#include "raw.h"

/* What a target makes, and what it got. */
struct kfd_target {
	unsigned int bos;	/* VRAM BOs of 64 KiB */
	bool user;		/* and as much user memory as a BO */
	bool bare;		/* opens KFD only */
};

/* For helper_start(): returns the number of its KFD file. */
int kfd_target(void *arg);
/* The first GPU: its KFD id and an open render node. false: none. */
bool kfd_gpu(uint32_t *id, int *render);
int kfd_version(int fd, struct kfd_ioctl_get_version_args *v);

/* session-new; the id is in *id. Returns a positive errno or 0. */
int session_new(struct raw *r, struct raw_ans *a, uint32_t direction, pid_t pid,
		int fd, uint64_t *id, int *session_fd);
int session_join(struct raw *r, struct raw_ans *a, uint64_t id, int fd);
int session_del(struct raw *r, struct raw_ans *a, uint64_t id);
/* The session's attributes, valid until the next request; NULL: none. */
const struct raw_msg *session_show(struct raw *r, struct raw_ans *a,
				   uint64_t id);
/* State by session-get; -1: there is no such session. */
int session_state(struct raw *r, struct raw_ans *a, uint64_t id);
/* Waits up to ms for a state (-1: gone). */
bool session_wait(struct raw *r, struct raw_ans *a, uint64_t id, int state,
		  unsigned int ms);

struct relay {
	uint8_t cmd;
	uint64_t id;
	int kfd_fd;		/* -1: left out */
	uint32_t pid;		/* 0: left out */
	void *devices, *bos, *priv;
	uint32_t num_devices, num_bos, num_objects;
	uint64_t priv_size;
	/* the answer */
	bool accepted, done;
	int error;		/* of the request or of the call; positive */
	char text[256];
	int bad;
	bool late;
	uint32_t state;
	uint32_t told_pid;
};

/* Puts the request; the relay's answer is read by relay_call(). */
void relay_request(struct raw *r, struct raw_req *q, const struct relay *y);
/* What came in a answers y. */
void relay_answer(struct raw_ans *a, struct relay *y);
/* Returns y->error. Counts of a pause are put into y. */
int relay_call(struct raw *r, struct raw_ans *a, struct relay *y);
struct relay relay_of(uint8_t cmd, uint64_t id);
/* Buffers for a checkpoint of what the last pause counted. */
void relay_buffers(struct relay *y);
bool relay_refused(const struct relay *y, int err, const char *words);
/* The dma-bufs that a checkpoint has left in y's buffers. */
void relay_close_fds(const struct relay *y);
/*
 * A whole checkpoint of a process, which is seized here, by its KFD file: y is
 * then what a restore starts from. Buffers that y has are used, else they are
 * made; its dma-bufs are closed. false: the output says what failed.
 */
bool relay_sample(struct raw *r, struct raw_ans *a, pid_t pid, int fd,
		  struct relay *y);
/* The same of a new target with that many BOs, or such a one, which ends with it. */
bool relay_sample_bos(struct raw *r, struct raw_ans *a, unsigned int bos,
		      struct relay *y);
bool relay_sample_of(struct raw *r, struct raw_ans *a, struct kfd_target *t,
		     struct relay *y);

/* A task of a restore, for helper_start(): joins, and restores. */
struct restorer {
	uint64_t id;
	struct relay from;	/* what a checkpoint gave */
	bool stays_out;		/* does not join */
	int sfd;		/* a copy of the session's file, closed first; -1 */
	uint32_t image_pid;	/* 0: left out */
	/* what came of it, where the memory is shared with the task */
	int error;		/* positive; -1: it did not come so far */
	uint32_t kept, kept_error;
};

/* In memory that children share. */
struct restorer *restorer_new(const struct relay *from);
/* Returns the number of its KFD file; -1: it has not restored. */
int restorer_run(void *arg);

#endif
