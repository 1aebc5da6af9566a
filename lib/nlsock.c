// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket of the generic netlink family "gpucr": one request, one answer.
 *
 * libnl builds and parses the messages; the socket is driven here, since
 * every errno must come out as the kernel gave it and a relay operation must
 * be read by the very task that asked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "nlsock.h"
#include "owner.h"

#define NL_BUF_SIZE	(64 * 1024)	/* the kernel's dumps are <= 32 KiB */
#define NL_RCVBUF	(512 * 1024)

#ifndef SOL_NETLINK
#define SOL_NETLINK	270
#endif

struct gpucr_nl {
	int fd;				/* -1: none */
	uint16_t family;
	uint32_t seq;
	struct gpucr_owner owner;
	uint16_t bad_attr;
	char error[256];
	uint8_t *buf;
};

const char *gpucr_nl_error(const struct gpucr_nl *nl)
{
	return nl->error;
}

unsigned int gpucr_nl_bad_attr(const struct gpucr_nl *nl)
{
	return nl->bad_attr;
}

/* The sentences go to a terminal: no control character passes. */
void gpucr_nl_set_error(struct gpucr_nl *nl, const char *text, size_t len)
{
	size_t i;

	if (len >= sizeof(nl->error))
		len = sizeof(nl->error) - 1;
	for (i = 0; i < len && text[i]; i++)
		nl->error[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
	nl->error[i] = '\0';
}

static void nl_clear_error(struct gpucr_nl *nl)
{
	nl->error[0] = '\0';
	nl->bad_attr = 0;
}

/* Type of the request's attribute that begins offs bytes into it. */
static uint16_t nl_attr_at(const struct gpucr_nl_request *rq, uint32_t offs)
{
	struct nlmsghdr *nlh = nlmsg_hdr(rq->msg);
	struct nlattr *nla;
	int rem;

	nla_for_each_attr(nla, genlmsg_attrdata(nlmsg_data(nlh), 0),
			  genlmsg_attrlen(nlmsg_data(nlh), 0), rem)
		if ((size_t)((char *)nla - (char *)nlh) == offs)
			return nla_type(nla);
	return 0;
}

static void nl_parse_extack(struct gpucr_nl *nl,
			    const struct gpucr_nl_request *rq,
			    void *data, int len)
{
	struct nlattr *tb[NLMSGERR_ATTR_OFFS + 1] = { NULL };

	if (len <= 0 ||
	    nla_parse(tb, NLMSGERR_ATTR_OFFS, data, len, NULL) < 0)
		return;
	if (tb[NLMSGERR_ATTR_MSG])
		gpucr_nl_set_error(nl, nla_data(tb[NLMSGERR_ATTR_MSG]),
			     nla_len(tb[NLMSGERR_ATTR_MSG]));
	if (tb[NLMSGERR_ATTR_OFFS] && nla_len(tb[NLMSGERR_ATTR_OFFS]) == 4)
		nl->bad_attr = nl_attr_at(rq,
				nla_get_u32(tb[NLMSGERR_ATTR_OFFS]));
}

/* NLMSG_ERROR: errno, the request's header, maybe the request, TLVs. */
static int nl_on_error(struct gpucr_nl *nl,
		       const struct gpucr_nl_request *rq,
		       struct nlmsghdr *nlh)
{
	struct nlmsgerr *e = nlmsg_data(nlh);
	size_t off = sizeof(*e);

	if (nlmsg_datalen(nlh) < (int)sizeof(*e))
		return -EBADMSG;
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return e->error;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED) &&
	    e->msg.nlmsg_len >= NLMSG_HDRLEN)
		off += NLMSG_ALIGN(e->msg.nlmsg_len) - NLMSG_HDRLEN;
	if (off < (size_t)nlmsg_datalen(nlh))
		nl_parse_extack(nl, rq, (char *)e + off,
				nlmsg_datalen(nlh) - (int)off);
	return e->error;
}

/* NLMSG_DONE: errno of the dump, TLVs. */
static int nl_on_done(struct gpucr_nl *nl,
		      const struct gpucr_nl_request *rq,
		      struct nlmsghdr *nlh)
{
	int *err = nlmsg_data(nlh);

	if (nlmsg_datalen(nlh) < (int)sizeof(*err))
		return 0;
	if (nlh->nlmsg_flags & NLM_F_ACK_TLVS)
		nl_parse_extack(nl, rq, err + 1,
				nlmsg_datalen(nlh) - (int)sizeof(*err));
	return *err;
}

/*
 * One message of an answer. Returns 1 where it was the last. The first error
 * stays in *err, and the rest of the answer is read and dropped.
 */
static int nl_on_message(struct gpucr_nl *nl,
			 const struct gpucr_nl_request *rq,
			 struct nlmsghdr *nlh, int *err)
{
	int ret = 0;

	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR && !*err)
		*err = -EINTR;
	switch (nlh->nlmsg_type) {
	case NLMSG_NOOP:
		return 0;
	case NLMSG_ERROR:
		ret = nl_on_error(nl, rq, nlh);
		break;
	case NLMSG_DONE:
		ret = nl_on_done(nl, rq, nlh);
		break;
	case NLMSG_OVERRUN:
		ret = -ENOBUFS;
		break;
	default:
		if (!*err && rq->handler)
			*err = rq->handler(nlh, rq->arg);
		return 0;
	}
	if (!*err)
		*err = ret;
	return 1;
}

static ssize_t sock_recv(struct gpucr_nl *nl)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { nl->buf, NL_BUF_SIZE };
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from),
		.msg_iov = &iov, .msg_iovlen = 1,
	};
	ssize_t len;

	do
		len = recvmsg(nl->fd, &msg, 0);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	if (msg.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	return from.nl_pid ? 0 : len;	/* not from the kernel: ignored */
}

static int nl_read_answer(struct gpucr_nl *nl,
			  const struct gpucr_nl_request *rq, bool *whole)
{
	struct nlmsghdr *nlh;
	int rem, err = 0;
	ssize_t len;

	*whole = false;
	for (;;) {
		len = sock_recv(nl);
		if (len < 0)
			return err ? err : (int)len;
		rem = (int)len;
		for (nlh = (struct nlmsghdr *)nl->buf; nlmsg_ok(nlh, rem);
		     nlh = nlmsg_next(nlh, &rem)) {
			if (nlh->nlmsg_seq != nl->seq)
				continue;
			if (nl_on_message(nl, rq, nlh, &err)) {
				*whole = true;
				return err;
			}
		}
	}
}

static int nl_transact(struct gpucr_nl *nl,
		       const struct gpucr_nl_request *rq)
{
	struct nlmsghdr *nlh = nlmsg_hdr(rq->msg);
	bool whole = false;
	int ret;

	nl_clear_error(nl);
	nlh->nlmsg_seq = ++nl->seq;
	if (send(nl->fd, nlh, nlh->nlmsg_len, 0) < 0)
		ret = -errno;
	else
		ret = nl_read_answer(nl, rq, &whole);
	if (!whole) {
		/* A half-read answer must not meet the next question. */
		close(nl->fd);
		nl->fd = -1;
	}
	return ret;
}

static int nl_request_init(struct gpucr_nl_request *rq, uint16_t family,
			   uint8_t cmd, bool dump)
{
	memset(rq, 0, sizeof(*rq));
	rq->msg = nlmsg_alloc();
	if (!rq->msg)
		return -ENOMEM;
	if (!genlmsg_put(rq->msg, 0, 0, family, 0,
			 NLM_F_REQUEST | (dump ? NLM_F_DUMP : NLM_F_ACK),
			 cmd, GPUCR_FAMILY_VERSION)) {
		nlmsg_free(rq->msg);
		return -ENOMEM;
	}
	return 0;
}

int gpucr_nl_parse(struct nlmsghdr *nlh, struct nlattr **tb, int max,
		   const struct nla_policy *policy)
{
	if (nlmsg_datalen(nlh) < (int)GENL_HDRLEN ||
	    genlmsg_parse(nlh, 0, tb, max, (struct nla_policy *)policy) < 0)
		return -EBADMSG;
	return 0;
}

static int on_family(struct nlmsghdr *nlh, void *arg)
{
	static const struct nla_policy policy[CTRL_ATTR_MAX + 1] = {
		[CTRL_ATTR_FAMILY_ID] = { .type = NLA_U16 },
	};
	struct nlattr *tb[CTRL_ATTR_MAX + 1];
	int ret = gpucr_nl_parse(nlh, tb, CTRL_ATTR_MAX, policy);

	if (ret)
		return ret;
	if (!tb[CTRL_ATTR_FAMILY_ID])
		return -EBADMSG;
	*(uint16_t *)arg = nla_get_u16(tb[CTRL_ATTR_FAMILY_ID]);
	return 0;
}

/* The look-up by name is what makes the kernel load the module. */
static int nl_resolve(struct gpucr_nl *nl)
{
	struct gpucr_nl_request rq;
	int ret;

	ret = nl_request_init(&rq, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, false);
	if (ret)
		return ret;
	rq.handler = on_family;
	rq.arg = &nl->family;
	nl->family = 0;
	ret = -ENOMEM;
	if (!nla_put_string(rq.msg, CTRL_ATTR_FAMILY_NAME, GPUCR_FAMILY_NAME))
		ret = nl_transact(nl, &rq);
	nlmsg_free(rq.msg);
	if (!ret && !nl->family)
		ret = -ENOENT;
	return ret;
}

static int sock_connect(struct gpucr_nl *nl)
{
	int one = 1, size = NL_RCVBUF, ret;

	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (nl->fd < 0)
		return errno == EPROTONOSUPPORT ? -ENOENT : -errno;
	setsockopt(nl->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(nl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(nl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	ret = nl_resolve(nl);
	if (ret && nl->fd >= 0) {
		close(nl->fd);
		nl->fd = -1;
	}
	return ret;
}

/* Before each call: a socket that is this process's own. */
static int nl_ready(struct gpucr_nl *nl)
{
	int err;

	if (!gpucr_owner_is_self(&nl->owner)) {
		nl->fd = -1;	/* the parent's: its number may be reused */
		gpucr_owner_fini(&nl->owner);
		err = gpucr_owner_init(&nl->owner);
		if (err)
			return err;
	}
	return nl->fd >= 0 ? 0 : sock_connect(nl);
}

int gpucr_nl_open(struct gpucr_nl **ret)
{
	struct gpucr_nl *nl = calloc(1, sizeof(*nl));
	int err = -ENOMEM;

	*ret = NULL;
	if (!nl)
		return -ENOMEM;
	nl->fd = -1;
	nl->buf = malloc(NL_BUF_SIZE);
	if (nl->buf)
		err = nl_ready(nl);
	if (err) {
		gpucr_nl_close(nl);
		return err;
	}
	*ret = nl;
	return 0;
}

void gpucr_nl_close(struct gpucr_nl *nl)
{
	if (!nl)
		return;
	if (nl->fd >= 0 && gpucr_owner_is_self(&nl->owner))
		close(nl->fd);
	gpucr_owner_fini(&nl->owner);
	free(nl->buf);
	free(nl);
}

int gpucr_nl_begin(struct gpucr_nl *nl, struct gpucr_nl_request *rq,
		   uint8_t cmd, bool dump)
{
	int ret;

	nl_clear_error(nl);
	ret = nl_ready(nl);
	if (ret)
		return ret;
	return nl_request_init(rq, nl->family, cmd, dump);
}

int gpucr_nl_end(struct gpucr_nl *nl, struct gpucr_nl_request *rq,
		 int put_err, gpucr_nl_handler handler, void *arg)
{
	int ret = -ENOMEM;

	rq->handler = handler;
	rq->arg = arg;
	if (!put_err)
		ret = nl_transact(nl, rq);
	nlmsg_free(rq->msg);
	return ret;
}
