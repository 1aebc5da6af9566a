/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Raw netlink for tests: requests as wrong as a test likes, answers with all
 * their detail. Functions end the program where the machine itself fails.
 */
#ifndef GPUCR_RAW_H
#define GPUCR_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/gpucr.h>
#include <linux/netlink.h>

#define RAW_BUF		(1 << 16)
#define RAW_MSGS	16384

struct raw {
	int fd;
	uint16_t family;
	uint32_t group;
	uint32_t seq;
	size_t buf;		/* of recv(); RAW_BUF where 0 */
};

/* A request in the making, a struct nlmsghdr first. */
struct raw_req {
	_Alignas(8) char data[1024];
};

/* One message of an answer. */
struct raw_msg {
	uint8_t cmd;
	uint16_t len;
	char *attrs;
};

/* The answer to one request. */
struct raw_ans {
	int err;		/* 0 or a positive errno */
	char text[256];		/* the kernel's sentence */
	int bad;		/* attribute that it points to, or misses; 0 */
	bool late;		/* refused by the end of a dump, which cannot point */
	size_t num;
	struct raw_msg msgs[RAW_MSGS];
};

/* Return: 0 or a positive errno (ENOENT: no such family). */
int raw_open(struct raw *r);
void raw_close(struct raw *r);
int raw_socket(void);

void raw_begin(struct raw *r, struct raw_req *q, uint8_t cmd, bool dump);
void raw_put(struct raw_req *q, uint16_t type, const void *data, size_t len);
void raw_put_u32(struct raw_req *q, uint16_t type, uint32_t v);
void raw_put_u64(struct raw_req *q, uint16_t type, uint64_t v);
void raw_send(struct raw *r, struct raw_req *q);
/* Reads until the answer ends; frees what the answer held before. */
void raw_recv(struct raw *r, struct raw_ans *a);
void raw_call(struct raw *r, struct raw_req *q, struct raw_ans *a);
struct raw_ans *raw_ans_new(void);
/* errno, sentence and attribute of an NLMSG_ERROR or NLMSG_DONE. */
void raw_take_error(struct raw_ans *a, struct nlmsghdr *h);
void raw_take_done(struct raw_ans *a, struct nlmsghdr *h);

/* Attributes of a message. */
bool raw_has(const struct raw_msg *m, uint16_t type);
uint32_t raw_u32(const struct raw_msg *m, uint16_t type);
uint64_t raw_u64(const struct raw_msg *m, uint16_t type);
const char *raw_str(const struct raw_msg *m, uint16_t type);

/* One request with up to two numbers in it: type 0 leaves one out. */
int raw_ask(struct raw *r, struct raw_ans *a, uint8_t cmd, bool dump,
	    uint16_t t32, uint32_t v32, uint16_t t64, uint64_t v64);
/* The BOs of a descriptor of ours; the mappings of pid, all for fd -1. */
int raw_ask_bos(struct raw *r, struct raw_ans *a, int fd);
int raw_ask_vmas(struct raw *r, struct raw_ans *a, pid_t pid, int fd);

#endif
