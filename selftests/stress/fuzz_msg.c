// SPDX-License-Identifier: GPL-2.0-only
/* Messages for the family: sane ones, and sane ones that went wrong. */
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <linux/genetlink.h>

#include "fuzz.h"

#define A(set, name, kind)	{ GPUCR_A_##set##_##name, FUZZ_##kind }
#define ARRAYS								\
	A(RELAY, DEVICES, DEVICES), A(RELAY, NUM_DEVICES, NUM_DEVICES),	\
	A(RELAY, BOS, BOS), A(RELAY, NUM_BOS, NUM_BOS),			\
	A(RELAY, PRIV, PRIV), A(RELAY, PRIV_SIZE, PRIV_SIZE),		\
	A(RELAY, NUM_OBJECTS, NUM_OBJECTS)

/* A command without an entry ends the test before the first message. */
const struct fuzz_op fuzz_ops[__GPUCR_CMD_MAX] = {
	[GPUCR_CMD_INFO_GET] = { "info-get", FUZZ_DO, {
		A(INFO, PROTOCOL_VERSION, PROTO) } },
	[GPUCR_CMD_BO_GET] = { "bo-get", FUZZ_DUMP, {
		A(BO, FD, DRM_FD) } },
	[GPUCR_CMD_VMA_GET] = { "vma-get", FUZZ_DUMP, {
		A(VMA, PID, PID), A(VMA, FD, MAP_FD) } },
	[GPUCR_CMD_SESSION_NEW] = { "session-new", FUZZ_DO, {
		A(SESSION, DIRECTION, DIRECTION), A(SESSION, PID, PID),
		A(SESSION, FD, KFD_FD) } },
	[GPUCR_CMD_SESSION_GET] = { "session-get", FUZZ_DUMP, {
		A(SESSION, ID, ID) } },
	[GPUCR_CMD_SESSION_DEL] = { "session-del", FUZZ_DO, {
		A(SESSION, ID, ID) } },
	[GPUCR_CMD_SESSION_JOIN] = { "session-join", FUZZ_DO, {
		A(SESSION, ID, ID), A(SESSION, FD, KFD_FD) } },
	[GPUCR_CMD_SESSION_PAUSE] = { "session-pause", FUZZ_DUMP, {
		A(RELAY, ID, ID) } },
	[GPUCR_CMD_SESSION_CHECKPOINT] = { "session-checkpoint", FUZZ_DUMP, {
		A(RELAY, ID, ID), ARRAYS } },
	[GPUCR_CMD_SESSION_UNPAUSE] = { "session-unpause", FUZZ_DUMP, {
		A(RELAY, ID, ID) } },
	[GPUCR_CMD_SESSION_RESTORE] = { "session-restore", FUZZ_DUMP, {
		A(RELAY, ID, ID), A(RELAY, KFD_FD, KFD_FD), ARRAYS,
		A(RELAY, IMAGE_PID, IMAGE_PID) } },
	[GPUCR_CMD_SESSION_RESUME] = { "session-resume", FUZZ_DUMP, {
		A(RELAY, ID, ID), A(RELAY, KFD_FD, KFD_FD),
		A(RELAY, PID, PID) } },
	[GPUCR_CMD_QUEUE_GET] = { "queue-get", FUZZ_DUMP, {
		A(QUEUE, ID, ID), A(QUEUE, HOLDER_FD, HOLDER_FD) } },
	[GPUCR_CMD_REMAP_GET] = { "remap-get", FUZZ_DUMP, {
		A(REMAP, ID, ID), A(REMAP, HOLDER_FD, HOLDER_FD),
		A(REMAP, IMAGE_PID, IMAGE_PID) } },
	[GPUCR_CMD_REMAP_SET] = { "remap-set", FUZZ_DO, {
		A(REMAP, ID, ID), A(REMAP, FD, OWN_DRM_FD),
		A(REMAP, IMAGE_PID, IMAGE_PID), A(REMAP, GPU_ID, GPU_ID),
		A(REMAP, OLD_PGOFF, PGOFF), A(REMAP, NEW_PGOFF, PGOFF),
		A(REMAP, SIZE, BO_SIZE) } },
	[GPUCR_CMD_REMAP_RESOLVE] = { "remap-resolve", FUZZ_DO, {
		A(REMAP, ID, ID), A(REMAP, FD, OWN_DRM_FD),
		A(REMAP, IMAGE_PID, IMAGE_PID), A(REMAP, GPU_ID, GPU_ID),
		A(REMAP, OLD_PGOFF, PGOFF), A(REMAP, SIZE, BO_SIZE) } },
	[GPUCR_CMD_SESSION_DRAIN] = { "session-drain", FUZZ_DO, {
		A(SESSION, DRAIN, DRAIN) } },
	[GPUCR_CMD_SESSION_NTF] = { "session-ntf", FUZZ_NONE, { { 0, 0 } } },
};

/* xorshift64*: the same messages for the same seed. */
uint64_t fuzz_rnd(struct fuzz *f)
{
	f->seed ^= f->seed >> 12;
	f->seed ^= f->seed << 25;
	f->seed ^= f->seed >> 27;
	return (f->seed * 0x2545f4914f6cdd1dULL) >> 16;
}

static bool one_in(struct fuzz *f, uint32_t n)
{
	return !fuzz_below(f, n);
}

/* A restore is many steps long: fewer of them go wrong. */
static bool goes_wrong(struct fuzz *f, uint32_t one_in_so_many)
{
	return one_in(f, f->restores ? one_in_so_many * 8 : one_in_so_many);
}

static uint64_t odd_number(struct fuzz *f)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 63, 64, 4095, 4096, 65535, 65536, 1 << 20,
		INT_MAX, 1ULL << 31, UINT_MAX, 1ULL << 32, LLONG_MAX,
		1ULL << 63, ULLONG_MAX, ULLONG_MAX - 4095,
	};

	return one_in(f, 4) ? fuzz_rnd(f) : odd[fuzz_below(f, 19)];
}

/* Right for the operation three times of four. */
static uint32_t some_fd(struct fuzz *f, enum fuzz_fd own, enum fuzz_fd target)
{
	if (!goes_wrong(f, 4))
		return f->fds[f->restores || one_in(f, 3) ? own : target];
	if (one_in(f, 8))
		return odd_number(f);
	return f->fds[fuzz_below(f, FD_NUM)];
}

static uint32_t some_pid(struct fuzz *f)
{
	if (f->restores && !goes_wrong(f, 1))
		return getpid();
	switch (fuzz_below(f, 16)) {
	case 0:
		return odd_number(f);
	case 1:
		return getppid();
	case 2:
		return 1;
	case 3:
		return gettid();
	case 4:
		return 2;	/* kthreadd */
	case 5:
	case 6:
		return getpid();
	}
	return f->target;
}

static uint64_t some_id(struct fuzz *f)
{
	if (f->id && !goes_wrong(f, 4))
		return f->id;
	return one_in(f, 8) ? odd_number(f) : f->ids[fuzz_below(f, f->num_ids)];
}

/* Never memory that the fuzzer needs: KFD may write there. */
static uint64_t some_pointer(struct fuzz *f, char *sane)
{
	if (!goes_wrong(f, 5))
		return (uintptr_t)sane;
	switch (fuzz_below(f, 8)) {
	case 0:
		return 0;
	case 1:
		return 0xffffffff81000000;
	case 2:
		return 0xffff888000000000 + fuzz_rnd(f) % (1ULL << 30);
	case 3:
		return (uintptr_t)sane + FUZZ_ARENA - fuzz_below(f, 64);
	case 4:
		return (uintptr_t)sane + FUZZ_ARENA;	/* a guard page */
	case 5:
		return 0x7ffffffff000 - fuzz_below(f, 8192);
	case 6:
		return 0x0008000000000000 + fuzz_rnd(f) % 4096;
	}
	return (uintptr_t)&fuzz_ops;	/* cannot be written to */
}

static uint64_t some_count(struct fuzz *f, uint64_t sane)
{
	if (!goes_wrong(f, 6))
		return sane;
	return one_in(f, 2) ? sane + fuzz_below(f, 3) - 1 : odd_number(f);
}

static uint64_t value(struct fuzz *f, enum fuzz_kind kind)
{
	switch (kind) {
	case FUZZ_PROTO:
		return one_in(f, 4) ? odd_number(f) : GPUCR_FAMILY_VERSION;
	case FUZZ_DRM_FD:
		return some_fd(f, one_in(f, 2) ? FD_CARD : FD_RENDER_OWN,
			       FD_RENDER_TARGET);
	case FUZZ_MAP_FD:
		return some_fd(f, one_in(f, 2) ? FD_DMABUF : FD_KFD_OWN,
			       one_in(f, 2) ? FD_RENDER_TARGET :
					      FD_KFD_TARGET);
	case FUZZ_KFD_FD:
		return some_fd(f, FD_KFD_OWN, FD_KFD_TARGET);
	case FUZZ_PID:
		return some_pid(f);
	case FUZZ_ID:
		return some_id(f);
	case FUZZ_DIRECTION:
		if (f->restores)
			return GPUCR_DIRECTION_RESTORE;
		return one_in(f, 16) ? odd_number(f) : one_in(f, 4);
	case FUZZ_DEVICES:
		return some_pointer(f, f->dev);
	case FUZZ_BOS:
		return some_pointer(f, f->bo);
	case FUZZ_PRIV:
		return some_pointer(f, f->priv);
	case FUZZ_NUM_DEVICES:
		return some_count(f, f->counts.devices);
	case FUZZ_NUM_BOS:
		return some_count(f, f->counts.bos);
	case FUZZ_NUM_OBJECTS:
		return some_count(f, f->counts.objects);
	case FUZZ_PRIV_SIZE:
		return some_count(f, f->counts.priv_size);
	case FUZZ_HOLDER_FD:
		return one_in(f, 4) ? some_fd(f, FD_KFD_OWN, FD_KFD_TARGET) :
				      (uint32_t)f->session_fd;
	case FUZZ_IMAGE_PID:
		return goes_wrong(f, 8) ? odd_number(f) : 1;
	case FUZZ_OWN_DRM_FD:
		return some_fd(f, FD_CARD, FD_RENDER_TARGET);
	case FUZZ_GPU_ID:
		return goes_wrong(f, 8) ? odd_number(f) : 4711;
	case FUZZ_PGOFF:
		return goes_wrong(f, 8) ? odd_number(f) : f->bo_pgoff;
	case FUZZ_BO_SIZE:
		return goes_wrong(f, 8) ? odd_number(f) : f->bo_size;
	case FUZZ_DRAIN:
		/* While it lasts no session is made: not for long. */
		return one_in(f, 32);
	default:
		return odd_number(f);
	}
}

static bool is_wide(enum fuzz_kind kind)
{
	switch (kind) {
	case FUZZ_U64:
	case FUZZ_ID:
	case FUZZ_DEVICES:
	case FUZZ_BOS:
	case FUZZ_PRIV:
	case FUZZ_PRIV_SIZE:
	case FUZZ_PGOFF:
	case FUZZ_BO_SIZE:
		return true;
	default:
		return false;
	}
}

static void put_attr(char *buf, uint16_t type, const void *data, size_t len)
{
	struct nlmsghdr *h = (struct nlmsghdr *)buf;
	struct nlattr *a = (void *)(buf + NLMSG_ALIGN(h->nlmsg_len));

	if (NLMSG_ALIGN(h->nlmsg_len) + NLA_HDRLEN + NLA_ALIGN(len) > FUZZ_MSG)
		return;
	memset(a, 0, NLA_HDRLEN + NLA_ALIGN(len));
	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, data, len);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static void put_number(char *buf, uint16_t type, uint64_t v, bool wide)
{
	uint32_t narrow = v;

	if (wide)
		put_attr(buf, type, &v, sizeof(v));
	else
		put_attr(buf, type, &narrow, sizeof(narrow));
}

/* Half of the time, what may stay away. */
static bool left_out(struct fuzz *f, uint8_t cmd, enum fuzz_kind kind)
{
	if (cmd == GPUCR_CMD_SESSION_NEW && f->restores &&
	    kind != FUZZ_DIRECTION)
		return true;
	if (kind == FUZZ_PROTO || kind == FUZZ_MAP_FD ||
	    kind == FUZZ_HOLDER_FD ||
	    (cmd == GPUCR_CMD_SESSION_GET && kind == FUZZ_ID) ||
	    (cmd == GPUCR_CMD_REMAP_GET && kind == FUZZ_IMAGE_PID) ||
	    (cmd == GPUCR_CMD_REMAP_RESOLVE &&
	     (kind == FUZZ_OWN_DRM_FD || kind == FUZZ_BO_SIZE)))
		return one_in(f, 2);
	return goes_wrong(f, 40);
}

static void put_sane(struct fuzz *f, char *buf, uint8_t cmd)
{
	const struct fuzz_op *op = &fuzz_ops[cmd];
	size_t i;

	for (i = 0; i < FUZZ_ATTRS && op->attrs[i].kind; i++) {
		if (!left_out(f, cmd, op->attrs[i].kind))
			put_number(buf, op->attrs[i].type,
				   value(f, op->attrs[i].kind),
				   is_wide(op->attrs[i].kind));
	}
}

static void put_noise(struct fuzz *f, char *buf)
{
	unsigned int i, n = fuzz_below(f, 12);
	char data[64];
	size_t k;

	for (k = 0; k < sizeof(data); k++)
		data[k] = fuzz_rnd(f);
	for (i = 0; i < n; i++)
		put_attr(buf, fuzz_below(f, 32) | (one_in(f, 8) ? 0x8000 : 0) |
			 (one_in(f, 8) ? 0x4000 : 0), data,
			 one_in(f, 3) ? fuzz_below(f, 64) : one_in(f, 2) ? 4 : 8);
}

/* The n-th attribute of a message that was made here, or NULL. */
static struct nlattr *attr_no(char *buf, unsigned int n)
{
	struct nlmsghdr *h = (struct nlmsghdr *)buf;
	size_t off = NLMSG_LENGTH(GENL_HDRLEN);
	struct nlattr *a;

	while (off + NLA_HDRLEN <= h->nlmsg_len) {
		a = (struct nlattr *)(buf + off);
		if (a->nla_len < NLA_HDRLEN)
			return NULL;
		if (!n--)
			return a;
		off += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static void mutate_attr(struct fuzz *f, char *buf)
{
	struct nlattr *a = attr_no(buf, fuzz_below(f, 4));

	if (!a)
		return;
	switch (fuzz_below(f, 6)) {
	case 0:
		a->nla_type = fuzz_below(f, 32);
		break;
	case 1:
		a->nla_type |= fuzz_below(f, 4) << 14;
		break;
	case 2:
		a->nla_len = fuzz_below(f, 24);
		break;
	case 3:
		a->nla_len = fuzz_rnd(f);
		break;
	case 4:
		/* The same once more, with another value. */
		put_number(buf, a->nla_type, odd_number(f), one_in(f, 2));
		break;
	default:
		put_number(buf, fuzz_below(f, 64), odd_number(f), one_in(f, 2));
	}
}

static void mutate(struct fuzz *f, char *buf)
{
	struct nlmsghdr *h = (struct nlmsghdr *)buf;
	struct genlmsghdr *g = NLMSG_DATA(h);
	uint32_t len = h->nlmsg_len;

	if (len <= NLMSG_HDRLEN)
		return;
	switch (fuzz_below(f, 10)) {
	case 0:
		h->nlmsg_flags ^= 1 << fuzz_below(f, 16);
		break;
	case 1:
		g->cmd = fuzz_rnd(f);
		break;
	case 2:
		g->version = fuzz_rnd(f);
		break;
	case 3:
		g->reserved = fuzz_rnd(f);
		break;
	case 4:
		h->nlmsg_len -= fuzz_below(f, len);
		break;
	case 5:
		buf[NLMSG_HDRLEN + fuzz_below(f, len - NLMSG_HDRLEN)] =
			fuzz_rnd(f);
		break;
	default:
		mutate_attr(f, buf);
	}
}

size_t fuzz_build(struct fuzz *f, char *buf, uint8_t cmd, enum fuzz_mode mode)
{
	struct nlmsghdr *h = (struct nlmsghdr *)buf;
	struct genlmsghdr *g = NLMSG_DATA(h);
	unsigned int i;

	memset(buf, 0, NLMSG_LENGTH(GENL_HDRLEN));
	h->nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	h->nlmsg_type = f->nl.family;
	h->nlmsg_flags = NLM_F_REQUEST | (fuzz_ops[cmd].how == FUZZ_DUMP ?
					  NLM_F_DUMP : NLM_F_ACK);
	h->nlmsg_seq = ++f->nl.seq;
	g->cmd = cmd;
	g->version = GPUCR_FAMILY_VERSION;
	if (mode == FUZZ_NOISE)
		put_noise(f, buf);
	else
		put_sane(f, buf, cmd);
	if (mode == FUZZ_MUTATED)
		for (i = 0; i <= fuzz_below(f, 3); i++)
			mutate(f, buf);
	return h->nlmsg_len < NLMSG_HDRLEN ? NLMSG_HDRLEN : h->nlmsg_len;
}
