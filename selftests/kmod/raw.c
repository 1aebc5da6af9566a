// SPDX-License-Identifier: GPL-2.0-only
/* Raw netlink for tests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/genetlink.h>

#include "raw.h"

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

int raw_socket(void)
{
	int one = 1, fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (fd < 0)
		die("netlink socket");
	if (setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one)))
		die("NETLINK_EXT_ACK");
	return fd;
}

void raw_begin(struct raw *r, struct raw_req *q, uint8_t cmd, bool dump)
{
	struct nlmsghdr *h = (struct nlmsghdr *)q;
	struct genlmsghdr *g = NLMSG_DATA(h);

	memset(q, 0, sizeof(*q));
	h->nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	h->nlmsg_type = r->family;
	h->nlmsg_flags = NLM_F_REQUEST | (dump ? NLM_F_DUMP : NLM_F_ACK);
	h->nlmsg_seq = ++r->seq;
	g->cmd = cmd;
	g->version = GPUCR_FAMILY_VERSION;
}

void raw_put(struct raw_req *q, uint16_t type, const void *data, size_t len)
{
	struct nlmsghdr *h = (struct nlmsghdr *)q;
	struct nlattr *a = (void *)(q->data + NLMSG_ALIGN(h->nlmsg_len));

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, data, len);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + NLA_ALIGN(a->nla_len);
}

void raw_put_u32(struct raw_req *q, uint16_t type, uint32_t v)
{
	raw_put(q, type, &v, sizeof(v));
}

void raw_put_u64(struct raw_req *q, uint16_t type, uint64_t v)
{
	raw_put(q, type, &v, sizeof(v));
}

void raw_send(struct raw *r, struct raw_req *q)
{
	struct nlmsghdr *h = (struct nlmsghdr *)q;

	if (send(r->fd, h, h->nlmsg_len, 0) < 0)
		die("send");
}

static struct nlattr *find(const char *attrs, size_t len, uint16_t type)
{
	size_t off = 0;

	while (off + NLA_HDRLEN <= len) {
		struct nlattr *a = (struct nlattr *)(attrs + off);

		if (a->nla_len < NLA_HDRLEN || off + a->nla_len > len)
			break;
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		off += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static void *payload(struct nlattr *a)
{
	return (char *)a + NLA_HDRLEN;
}

/* The type of the attribute at an offset of our own request. */
static int attr_at(const char *request, uint32_t offset)
{
	return ((const struct nlattr *)(request + offset))->nla_type;
}

static void parse_ack(struct raw_ans *a, const char *tlv, size_t len,
		      const char *request)
{
	struct nlattr *t;

	t = find(tlv, len, NLMSGERR_ATTR_MSG);
	if (t)
		snprintf(a->text, sizeof(a->text), "%s", (char *)payload(t));
	t = find(tlv, len, NLMSGERR_ATTR_OFFS);
	if (t && request)
		a->bad = attr_at(request, *(uint32_t *)payload(t));
	t = find(tlv, len, NLMSGERR_ATTR_MISS_TYPE);
	if (t)
		a->bad = *(uint32_t *)payload(t);
}

void raw_take_error(struct raw_ans *a, struct nlmsghdr *h)
{
	struct nlmsgerr *e = NLMSG_DATA(h);
	size_t skip = sizeof(*e);

	a->err = -e->error;
	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(h->nlmsg_flags & NLM_F_CAPPED))
		skip += e->msg.nlmsg_len - sizeof(struct nlmsghdr);
	skip = NLMSG_ALIGN(skip);
	parse_ack(a, (char *)e + skip, NLMSG_PAYLOAD(h, skip),
		  h->nlmsg_flags & NLM_F_CAPPED ? NULL : (char *)&e->msg);
}

/* 6.1 refuses a dump so: with the sentence, but without the attribute. */
void raw_take_done(struct raw_ans *a, struct nlmsghdr *h)
{
	int *err = NLMSG_DATA(h);

	a->err = -*err;
	a->late = a->err;
	if (h->nlmsg_flags & NLM_F_ACK_TLVS)
		parse_ack(a, (char *)(err + 1), NLMSG_PAYLOAD(h, sizeof(*err)),
			  NULL);
}

static void take_msg(struct raw_ans *a, struct nlmsghdr *h)
{
	struct genlmsghdr *g = NLMSG_DATA(h);
	struct raw_msg *m = &a->msgs[a->num];

	if (a->num == RAW_MSGS)
		return;
	m->cmd = g->cmd;
	m->len = NLMSG_PAYLOAD(h, GENL_HDRLEN);
	m->attrs = malloc(m->len + 1);
	memcpy(m->attrs, (char *)g + GENL_HDRLEN, m->len);
	a->num++;
}

static void ans_reset(struct raw_ans *a)
{
	while (a->num)
		free(a->msgs[--a->num].attrs);
	a->err = 0;
	a->bad = 0;
	a->late = false;
	a->text[0] = 0;
}

struct raw_ans *raw_ans_new(void)
{
	return calloc(1, sizeof(struct raw_ans));
}

/* Return: true where the answer has ended. */
static bool take(struct raw *r, struct raw_ans *a, struct nlmsghdr *h)
{
	if (h->nlmsg_seq != r->seq)
		return false;
	if (h->nlmsg_type == NLMSG_ERROR) {
		raw_take_error(a, h);
		return true;
	}
	if (h->nlmsg_type == NLMSG_DONE) {
		raw_take_done(a, h);
		return true;
	}
	take_msg(a, h);
	return false;
}

void raw_recv(struct raw *r, struct raw_ans *a)
{
	static __thread char buf[RAW_BUF] __attribute__((aligned(8)));
	struct nlmsghdr *h;
	bool end = false;
	ssize_t n;

	ans_reset(a);
	while (!end) {
		n = recv(r->fd, buf, r->buf ? r->buf : sizeof(buf), MSG_TRUNC);
		if (n < 0) {
			a->err = errno;
			return;
		}
		if ((size_t)n > (r->buf ? r->buf : sizeof(buf))) {
			a->err = EMSGSIZE;
			snprintf(a->text, sizeof(a->text), "truncated");
			return;
		}
		for (h = (void *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n))
			end |= take(r, a, h);
	}
}

void raw_call(struct raw *r, struct raw_req *q, struct raw_ans *a)
{
	raw_send(r, q);
	raw_recv(r, a);
}

bool raw_has(const struct raw_msg *m, uint16_t type)
{
	return find(m->attrs, m->len, type);
}

uint32_t raw_u32(const struct raw_msg *m, uint16_t type)
{
	struct nlattr *t = find(m->attrs, m->len, type);

	return t ? *(uint32_t *)payload(t) : 0;
}

uint64_t raw_u64(const struct raw_msg *m, uint16_t type)
{
	struct nlattr *t = find(m->attrs, m->len, type);
	uint64_t v = 0;

	if (t)
		memcpy(&v, payload(t), sizeof(v));
	return v;
}

const char *raw_str(const struct raw_msg *m, uint16_t type)
{
	struct nlattr *t = find(m->attrs, m->len, type);

	return t ? payload(t) : "";
}

static void find_group(struct raw *r, struct nlattr *groups)
{
	struct nlattr *one, *name, *id;
	size_t off = 0, len = groups->nla_len - NLA_HDRLEN;
	char *base = payload(groups);

	while (off + NLA_HDRLEN <= len) {
		one = (void *)(base + off);
		name = find(payload(one), one->nla_len - NLA_HDRLEN,
			    CTRL_ATTR_MCAST_GRP_NAME);
		id = find(payload(one), one->nla_len - NLA_HDRLEN,
			  CTRL_ATTR_MCAST_GRP_ID);
		if (name && id && !strcmp(payload(name), GPUCR_MCGRP_EVENTS))
			r->group = *(uint32_t *)payload(id);
		off += NLA_ALIGN(one->nla_len);
	}
}

int raw_open(struct raw *r)
{
	struct raw_ans *a = raw_ans_new();
	struct nlattr *groups;
	struct raw_req q;
	int err;

	memset(r, 0, sizeof(*r));
	r->fd = raw_socket();
	r->family = GENL_ID_CTRL;
	raw_begin(r, &q, CTRL_CMD_GETFAMILY, false);
	raw_put(&q, CTRL_ATTR_FAMILY_NAME, GPUCR_FAMILY_NAME,
		sizeof(GPUCR_FAMILY_NAME));
	raw_call(r, &q, a);
	err = a->err;
	if (!err) {
		struct nlattr *id = find(a->msgs[0].attrs, a->msgs[0].len,
					 CTRL_ATTR_FAMILY_ID);

		r->family = *(uint16_t *)payload(id);
		groups = find(a->msgs[0].attrs, a->msgs[0].len,
			      CTRL_ATTR_MCAST_GROUPS);
		if (groups)
			find_group(r, groups);
	}
	ans_reset(a);
	free(a);
	return err;
}

void raw_close(struct raw *r)
{
	close(r->fd);
}

int raw_ask(struct raw *r, struct raw_ans *a, uint8_t cmd, bool dump,
	    uint16_t t32, uint32_t v32, uint16_t t64, uint64_t v64)
{
	struct raw_req q;

	raw_begin(r, &q, cmd, dump);
	if (t32)
		raw_put_u32(&q, t32, v32);
	if (t64)
		raw_put_u64(&q, t64, v64);
	raw_call(r, &q, a);
	return a->err;
}

int raw_ask_bos(struct raw *r, struct raw_ans *a, int fd)
{
	return raw_ask(r, a, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD, fd, 0, 0);
}

int raw_ask_vmas(struct raw *r, struct raw_ans *a, pid_t pid, int fd)
{
	struct raw_req q;

	raw_begin(r, &q, GPUCR_CMD_VMA_GET, true);
	raw_put_u32(&q, GPUCR_A_VMA_PID, pid);
	if (fd >= 0)
		raw_put_u32(&q, GPUCR_A_VMA_FD, fd);
	raw_call(r, &q, a);
	return a->err;
}
