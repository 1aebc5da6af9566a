// SPDX-License-Identifier: GPL-2.0-only
/*
 * remap-set: who may say where a BO has come to, and what is believed. On a
 * simulated GPU, and vgem as another device.
 *
 * Mutations, each seen to turn this red: no look into the VMA manager;
 * "allowed", the start or the size not compared there; the holder's file not
 * compared; a range that begins in another, or ends in it, taken; sizes of no
 * whole page or of none, ids of 0, ranges that wrap taken; what is set again
 * not replaced; the device not compared; a checkpoint session, or one that has
 * failed, not refused; no test of membership; a descriptor of another kind
 * believed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <drm.h>
#include <drm_mode.h>

#include "../ktap.h"
#include "kfd.h"
#include "remap_ask.h"
#include "util.h"

#define PAGE	4096u
#define SIZE	65536u		/* of a BO of kfd_target() */
#define MANY	4000u

static struct raw nl;
static struct raw_ans *ans;

static uint64_t restore_session(int *sfd)
{
	uint64_t id;

	if (session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &id, sfd))
		ktap_bail("session-new: %s", ans->text);
	return id;
}

static size_t get(uint64_t id, uint32_t image_pid)
{
	return ask_entries(&nl, ans, id, image_pid);
}

static bool resolve_refused(struct ask *k, int err, const char *words)
{
	ask(&nl, ans, k);
	return refused(ans, err, words);
}

/* We ourselves, with BOs and a render node, as a task that says what it has. */
struct self {
	int kfd, render, sfd;
	uint32_t gpu;
	uint64_t id, at[2];	/* offsets of BOs, pages */
};

static void self_start(struct self *s)
{
	struct kfd_target t = { .bos = 2 };

	s->kfd = kfd_target(&t);
	s->render = s->kfd + 1;
	s->id = restore_session(&s->sfd);
	raw_ask(&nl, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD, s->render, 0,
		0);
	if (ans->err || ans->num != 2)
		ktap_bail("bo-get: %s", ans->text);
	s->at[0] = raw_u64(&ans->msgs[0], GPUCR_A_BO_OFFSET) / PAGE;
	s->at[1] = raw_u64(&ans->msgs[1], GPUCR_A_BO_OFFSET) / PAGE;
}

static struct ask set_of(const struct self *s)
{
	struct ask k = ask_of(GPUCR_CMD_REMAP_SET, s->id);

	k.fd = s->render;
	k.image_pid = 5;
	k.gpu = 4711;
	k.old = 0x100000;
	k.size = SIZE;
	k.new = s->at[0];
	return k;
}

/* vgem has a BO just there: only its device is another. */
static bool other_device(const struct self *s, struct ask *r)
{
	struct drm_mode_map_dumb m = { 0 };
	unsigned int i;
	bool ok = false;
	int fd;

	if (system("modprobe vgem"))
		return false;
	fd = open_card("vgem");
	for (i = 0; i < 256 && m.offset != s->at[1] * PAGE; i++) {
		struct drm_mode_create_dumb c = {
			.width = SIZE / 4, .height = 1, .bpp = 32,
		};

		if (ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &c))
			break;
		m.handle = c.handle;
		if (ioctl(fd, DRM_IOCTL_MODE_MAP_DUMB, &m))
			break;
	}
	r->fd = fd;
	if (m.offset == s->at[1] * PAGE)
		ok = resolve_refused(r, ESTALE, "not for this file");
	else
		ktap_note("vgem has no BO at %llx, last one at %llx",
			  (unsigned long long)s->at[1] * PAGE,
			  (unsigned long long)m.offset);
	close(fd);
	return !system("modprobe -r vgem") && ok;
}

static void test_set(const struct self *s)
{
	struct ask k = set_of(s), r = ask_of(GPUCR_CMD_REMAP_RESOLVE, s->id);

	ktap_ok(!ask(&nl, ans, &k) && get(s->id, 0) == 1 &&
		raw_u32(&ans->msgs[0], GPUCR_A_REMAP_SOURCE) ==
		GPUCR_REMAP_SOURCE_SET, "the owner sets an offset");
	r.fd = s->render;
	r.image_pid = 5;
	r.gpu = 4711;
	r.old = 0x100000;
	ktap_ok(!ask(&nl, ans, &r) &&
		raw_u64(&ans->msgs[0], GPUCR_A_REMAP_NEW_PGOFF) == s->at[0],
		"and it resolves");
	k.new = s->at[1];
	ktap_ok(!ask(&nl, ans, &k) && get(s->id, 0) == 1 &&
		raw_u64(&ans->msgs[0], GPUCR_A_REMAP_NEW_PGOFF) == k.new,
		"the same BO elsewhere replaces it");
	ktap_ok(other_device(s, &r), "it is not another device's BO of its size and offset");
	k.old += SIZE / PAGE - 1;
	ktap_ok(resolve_refused(&k, EEXIST, "overlaps"),
		"a range that begins in it is refused");
	k.old -= SIZE / PAGE;
	ktap_ok(resolve_refused(&k, EEXIST, "overlaps"),
		"and one that ends in it");
	k.image_pid = 6;
	ktap_ok(!ask(&nl, ans, &k) && get(s->id, 0) == 2,
		"another task's may lie there");
}

/* Offset of a BO that lives on in another process; pages. */
static uint64_t others_bo(void)
{
	static struct kfd_target t = { .bos = 3 };
	static struct helper h;
	int copy;

	if (!helper_start(&h, kfd_target, &t))
		ktap_bail("no other process");
	copy = fd_of(h.pid, h.fd + 1);
	raw_ask(&nl, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD, copy, 0, 0);
	close(copy);
	if (ans->err || ans->num != 3)
		ktap_bail("no BOs of another process");
	return raw_u64(&ans->msgs[2], GPUCR_A_BO_OFFSET) / PAGE;
}

static void test_set_bad(const struct self *s)
{
	static const struct {
		uint64_t size;
		uint32_t pid, gpu;
	} odd[] = {
		{ SIZE + 1, 5, 1 }, { UINT64_MAX & ~(PAGE - 1ull), 5, 1 },
		{ ZERO, 5, 1 }, { SIZE, ZERO, 1 }, { SIZE, 5, ZERO },
	};
	struct ask k = set_of(s);
	unsigned int i;

	k.old = 0x900000;
	k.size = SIZE / 2;
	ktap_ok(resolve_refused(&k, EINVAL, "another size"),
		"a BO of another size is refused");
	k.size = SIZE;
	k.new = s->at[0] + 1;
	ktap_ok(resolve_refused(&k, ENOENT, "no BO that the file may map"),
		"the middle of a BO is refused");
	k.new = others_bo();
	ktap_ok(resolve_refused(&k, ENOENT, "no BO that the file may map"),
		"another process's BO is refused");
	k.new = UINT64_MAX;
	ktap_ok(resolve_refused(&k, EINVAL, "no range"),
		"an offset beyond all is refused");
	k.new = s->at[0];
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		k.size = odd[i].size;
		k.image_pid = odd[i].pid;
		k.gpu = odd[i].gpu;
		ktap_ok(resolve_refused(&k, EINVAL, "no range"),
			"%llu bytes, task %u, GPU %u are refused",
			(unsigned long long)or_zero(k.size),
			(uint32_t)or_zero(k.image_pid),
			(uint32_t)or_zero(k.gpu));
	}
	k = set_of(s);
	k.old = UINT64_MAX - 3;
	ktap_ok(resolve_refused(&k, EINVAL, "no range"),
		"an old range that wraps is refused");
	k.old = 0x900000;
	k.fd = s->kfd;
	ktap_ok(resolve_refused(&k, EINVAL, "not a DRM node") &&
		ans->bad == GPUCR_A_REMAP_FD, "a KFD file is refused by name");
	k.fd = 777;
	ktap_ok(resolve_refused(&k, EBADF, "not an open descriptor"),
		"a closed descriptor is refused");
	k.fd = -1;
	ktap_ok(resolve_refused(&k, EINVAL, "fd, size or new-pgoff is missing"),
		"no descriptor is refused");
	k.fd = s->render;
	k.image_pid = 0;
	ktap_ok(resolve_refused(&k, EINVAL, "is missing"), "no pid is refused");
	k.image_pid = 5;
	k.id ^= 1;
	ktap_ok(resolve_refused(&k, ENOENT, "no session") &&
		ans->bad == GPUCR_A_REMAP_ID, "another id is refused by name");
}

/* The answer does not grow with the reader's patience, nor stop before its end. */
static void test_many(const struct self *s)
{
	struct ask k = set_of(s), g = ask_of(GPUCR_CMD_REMAP_GET, s->id);
	unsigned int i, err = 0;
	struct raw small = nl;

	k.image_pid = 9;
	for (i = 0; i < MANY && !err; i++) {
		k.old = 0x100000 + i * (SIZE / PAGE);
		err = ask(&nl, ans, &k);
	}
	/* A new socket: the kernel remembers the largest buffer of each. */
	small.fd = raw_socket();
	small.buf = 4096;
	g.image_pid = 9;
	ktap_ok(!err && !ask(&small, ans, &g) && ans->num == MANY &&
		raw_u64(&ans->msgs[MANY - 1], GPUCR_A_REMAP_OLD_PGOFF) == k.old,
		"%u offsets come whole through 4 KiB", i);
	raw_close(&small);
}

struct stranger {
	uint64_t id;
	pid_t owner;
	int sfd, render;
	struct ask set;
};

static int stranger(void *arg)
{
	struct stranger *s = arg;
	struct ask k = ask_of(GPUCR_CMD_REMAP_GET, s->id);
	struct raw own;
	int kfd;

	close(s->sfd);
	if (raw_open(&own))
		return 1;
	ask(&own, ans, &k);
	if (!refused(ans, EPERM, "no part in the session"))
		return 2;
	k.holder = s->render;
	ask(&own, ans, &k);
	if (!refused(ans, EPERM, "no part in the session"))
		return 3;
	k.holder = fd_of(s->owner, s->sfd);
	if (k.holder < 0 || ask(&own, ans, &k) || !ans->num)
		return 4;
	ask(&own, ans, &s->set);
	if (!refused(ans, EPERM, "has not joined"))
		return 5;
	s->set.cmd = GPUCR_CMD_REMAP_RESOLVE;
	ask(&own, ans, &s->set);
	if (!refused(ans, EPERM, "has not joined"))
		return 6;
	/* The twin differs in that only. */
	kfd = open("/dev/kfd", O_RDWR);
	if (session_join(&own, ans, s->id, kfd) || ask(&own, ans, &s->set))
		return 7;
	s->set.cmd = GPUCR_CMD_REMAP_SET;
	return ask(&own, ans, &s->set) ? 8 : 0;
}

static void test_who(const struct self *s)
{
	struct stranger x = {
		.id = s->id, .owner = getpid(), .sfd = s->sfd,
		.render = s->render, .set = set_of(s),
	};
	int n = in_child(stranger, &x);

	ktap_ok(n == 0,
		"another process looks with the session's file, and sets and resolves once joined (%d)",
		n);
}

static void test_wrong_session(const struct self *s)
{
	struct kfd_target t = { .bos = 1 };
	struct ask k = set_of(s);
	struct helper h;
	int kfd, sfd;

	if (!helper_start(&h, kfd_target, &t) || seize(h.pid))
		ktap_bail("target");
	kfd = fd_of(h.pid, h.fd);
	session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, h.pid, kfd, &k.id,
		    &sfd);
	ktap_ok(resolve_refused(&k, EINVAL, "for a checkpoint"),
		"a checkpoint session takes no offsets");
	k.cmd = GPUCR_CMD_REMAP_RESOLVE;
	ktap_ok(resolve_refused(&k, EINVAL, "for a checkpoint"),
		"nor resolves any");
	k.cmd = GPUCR_CMD_REMAP_GET;
	k.fd = -1;
	k.gpu = 0;
	k.size = 0;
	ktap_ok(resolve_refused(&k, EINVAL, "for a checkpoint"),
		"nor tells any");
	close(sfd);
	close(kfd);
	helper_stop(&h);
}

static void test_failed(const struct self *self)
{
	struct self s = *self;
	struct restorer *t;
	struct relay from;
	struct helper h;
	struct ask k;

	if (!relay_sample_bos(&nl, ans, 1, &from))
		ktap_bail("no sample");
	t = restorer_new(&from);
	t->id = restore_session(&s.sfd);
	s.id = t->id;
	t->from.num_objects++;
	ktap_ok(!helper_start(&h, restorer_run, t) && t->error == EINVAL,
		"a restore that KFD refuses");
	helper_stop(&h);
	k = set_of(&s);
	ktap_ok(resolve_refused(&k, ESHUTDOWN, "has failed"),
		"leaves a session that takes no offsets");
	close(s.sfd);
	ask(&nl, ans, &k);
	ktap_ok(refused(ans, ENOENT, "no session"), "they go with the session");
}

int main(void)
{
	struct self s;

	ktap_plan(30);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	self_start(&s);
	test_set(&s);
	test_set_bad(&s);
	test_many(&s);
	test_who(&s);
	test_wrong_session(&s);
	close(s.sfd);
	test_failed(&s);
	return ktap_exit();
}
