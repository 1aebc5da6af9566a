// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the BOs of a restore have come to: filled by RESTORE in two tasks at
 * once, resolved, and mapped. On a simulated GPU, through real sessions.
 *
 * Mutations, each seen to turn this red: the image's pid left out of the order
 * or of the ranges, the GPU left out of the ranges; no look into the VMA
 * manager in the fill; one old offset kept twice; offsets inside a page; user
 * memory not left out; device buckets not counted; a delta that is lost; a
 * mapping longer than its BO; a file of another task believed; the owner not
 * let in.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <gpucr_layout.h>

#include "../ktap.h"
#include "kfd.h"
#include "remap_ask.h"
#include "util.h"

#define PAGE	4096u
#define BOS	3
#define SIZE	65536u		/* of a BO of kfd_target() */

static struct raw nl;
static struct raw_ans *ans;

/* RESTORE with the pid in the image. */
static int restore(struct raw *r, struct raw_ans *a, struct relay *y,
		   uint32_t image_pid)
{
	struct raw_req q;

	y->cmd = GPUCR_CMD_SESSION_RESTORE;
	relay_request(r, &q, y);
	if (image_pid)
		raw_put_u32(&q, GPUCR_A_RELAY_IMAGE_PID, image_pid);
	raw_call(r, &q, a);
	relay_answer(a, y);
	return y->error;
}

/* A task of a restore; what it is told, and in shared memory what it saw. */
struct task {
	uint64_t id;
	struct relay from;
	uint32_t image_pid;
	enum lie { HONEST, ANY, SAME_OLD, ODD_OLD, SPOILED } lie;
	int go;			/* waits for a byte here, so that two run at once */
	struct seen {
		int error;
		bool has_kept;
		uint32_t kept, kept_error, gpu, minor;
		uint64_t new[BOS];
		int maps, dmabuf, still, foreign;
		uint64_t foreign_old;
		int render, kfd;
		char text[256];
	} *seen;
};

/* Writes through the render node, reads through the dma-buf one page on. */
static int map_both(struct raw *own, struct raw_ans *a, struct task *t,
		    const struct kfd_criu_bo_bucket *old,
		    const struct kfd_criu_bo_bucket *new)
{
	struct ask k = ask_of(GPUCR_CMD_REMAP_RESOLVE, t->id);
	uint8_t *whole, *tail;

	k.fd = t->seen->render;
	k.image_pid = t->image_pid;
	k.gpu = old->gpu_id;
	k.old = old->offset / PAGE;
	k.size = SIZE;
	if (ask(own, a, &k) || raw_u32(&a->msgs[0], GPUCR_A_REMAP_KIND) !=
			       GPUCR_REMAP_KIND_RENDER)
		return 1;
	whole = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		     t->seen->render,
		     raw_u64(&a->msgs[0], GPUCR_A_REMAP_NEW_PGOFF) * PAGE);
	k.old++;
	k.size = SIZE - PAGE;
	if (whole == MAP_FAILED || ask(own, a, &k) ||
	    raw_u32(&a->msgs[0], GPUCR_A_REMAP_KIND) !=
	    GPUCR_REMAP_KIND_DMA_BUF ||
	    raw_u64(&a->msgs[0], GPUCR_A_REMAP_DELTA) != PAGE)
		return 2;
	tail = mmap(NULL, SIZE - PAGE, PROT_READ, MAP_SHARED, new->dmabuf_fd,
		    raw_u64(&a->msgs[0], GPUCR_A_REMAP_NEW_PGOFF) * PAGE);
	if (tail == MAP_FAILED)
		return 3;
	whole[PAGE + 5] = 0x5c;
	whole[5] = 0x11;
	return tail[5] == 0x5c ? 0 : 4;
}

static void tell_lies(struct task *t, struct kfd_criu_bo_bucket *b)
{
	unsigned int i;

	for (i = 0; i < BOS; i++) {
		if (t->lie == SAME_OLD)
			b[i].offset = 0x100000000;
		if (t->lie == ODD_OLD)
			b[i].offset += 8;
	}
}

struct spoiler {
	struct kfd_criu_bo_bucket *b;
	volatile bool stop;
};

static void *spoil(void *arg)
{
	struct spoiler *s = arg;
	volatile uint64_t *at = (volatile uint64_t *)&s->b[1].restored_offset;

	while (!s->stop)
		*at = 0x7000;
	return NULL;
}

/* Returns its KFD file, and lives on. */
static int task_fn(void *arg)
{
	struct task *t = arg;
	struct kfd_criu_device_bucket *dev = t->from.devices;
	struct kfd_criu_bo_bucket *bos = t->from.bos, old[BOS];
	struct spoiler s = { .b = bos };
	struct seen *seen = t->seen;
	struct relay y = t->from;
	struct raw own;
	pthread_t thread;
	unsigned int i;
	char byte;

	seen->kfd = open("/dev/kfd", O_RDWR);
	if (seen->kfd < 0 || raw_open(&own) ||
	    !kfd_gpu(&seen->gpu, &seen->render) ||
	    session_join(&own, ans, t->id, seen->kfd))
		return -1;
	dev->drm_fd = seen->render;
	y.id = t->id;
	y.kfd_fd = seen->kfd;
	tell_lies(t, bos);
	memcpy(old, bos, sizeof(old));
	if (t->go >= 0 && read(t->go, &byte, 1) < 0)
		return -1;
	if (t->lie == SPOILED)
		pthread_create(&thread, NULL, spoil, &s);
	seen->error = restore(&own, ans, &y, t->image_pid);
	s.stop = true;
	if (t->lie == SPOILED)
		pthread_join(thread, NULL);
	snprintf(seen->text, sizeof(seen->text), "%s", y.text);
	if (seen->error)
		return -1;
	seen->has_kept = raw_has(&ans->msgs[1], GPUCR_A_RELAY_KEPT);
	seen->kept = raw_u32(&ans->msgs[1], GPUCR_A_RELAY_KEPT);
	seen->kept_error = raw_u32(&ans->msgs[1], GPUCR_A_RELAY_KEPT_ERROR);
	for (i = 0; i < BOS; i++)
		seen->new[i] = bos[i].restored_offset / PAGE;
	if (t->lie == HONEST && t->image_pid)
		seen->maps = map_both(&own, ans, t, &old[1], &bos[1]);
	return seen->kfd;
}

static struct task task_of(uint64_t id, const struct relay *from,
			   uint32_t image_pid)
{
	struct task t = { .id = id, .from = *from, .image_pid = image_pid };

	t.go = -1;
	t.seen = mmap(NULL, sizeof(*t.seen), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return t;
}

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

/* The entries of one task in the last answer, beginning at first. */
static bool entries_are(size_t first, const struct task *t,
			const struct kfd_criu_bo_bucket *old)
{
	const struct raw_msg *m;
	unsigned int i, k, hits = 0;

	for (i = 0; i < BOS; i++) {
		m = &ans->msgs[first + i];
		for (k = 0; k < BOS; k++)
			hits += raw_u64(m, GPUCR_A_REMAP_OLD_PGOFF) ==
				old[k].offset / PAGE &&
				raw_u64(m, GPUCR_A_REMAP_NEW_PGOFF) ==
				t->seen->new[k] &&
				raw_u64(m, GPUCR_A_REMAP_SIZE) == SIZE &&
				raw_u32(m, GPUCR_A_REMAP_GPU_ID) ==
				old[k].gpu_id &&
				raw_u32(m, GPUCR_A_REMAP_DEV_MINOR) >= 128 &&
				raw_u32(m, GPUCR_A_REMAP_IMAGE_PID) ==
				t->image_pid &&
				raw_u32(m, GPUCR_A_REMAP_SOURCE) ==
				GPUCR_REMAP_SOURCE_RESTORE;
	}
	return hits == BOS;
}

/* As helper_start(), but both work at the same time. */
static bool start_pair(struct task *t, struct helper *h)
{
	int go[2], ready[2], i, fd;
	bool ok = true;

	if (pipe(go) || pipe(ready))
		return false;
	fflush(stdout);
	for (i = 0; i < 2; i++) {
		t[i].go = go[0];
		h[i].pid = fork();
		if (h[i].pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = task_fn(&t[i]);
		if (write(ready[1], &fd, sizeof(fd)) != sizeof(fd))
			_exit(1);
		for (;;)
			pause();
	}
	if (write(go[1], "xx", 2) != 2)
		return false;
	for (i = 0; i < 2; i++)
		ok &= read(ready[0], &fd, sizeof(fd)) == sizeof(fd) && fd >= 0;
	close(go[0]);
	close(go[1]);
	close(ready[0]);
	close(ready[1]);
	return ok;
}

/* The command line tool, a process that has no part in the session. */
static bool tool_agrees(const struct task *t)
{
	char cmd[400];

	snprintf(cmd, sizeof(cmd),
		 "gpucr -j remap session %llx pid %u | jq -e '.data | length == %d "
		 "and all(.image_pid == %u and .size == %u and .source == \"restore\") "
		 "and any(.new_offset == \"0x%llx\")' >/dev/null",
		 (unsigned long long)t->id, t->image_pid, BOS, t->image_pid,
		 SIZE, (unsigned long long)t->seen->new[0] * PAGE);
	return !system(cmd);
}

static void test_fill(struct task *t, struct helper *h)
{
	const struct kfd_criu_bo_bucket *old = t[0].from.bos;
	unsigned int i, k, equal = 0;

	bool started = start_pair(t, h);

	ktap_ok(started && !t[0].seen->error && !t[1].seen->error,
		"two tasks restore the same image with two pids (%s%s)",
		t[0].seen->text, t[1].seen->text);
	ktap_ok(t[0].seen->has_kept && t[0].seen->kept == BOS &&
		!t[0].seen->kept_error && t[1].seen->kept == BOS,
		"RESTORE keeps the offsets of all BOs");
	ktap_ok(get(t[0].id, 0) == 2 * BOS && entries_are(0, &t[0], old) &&
		entries_are(BOS, &t[1], old),
		"all are told by the owner's question, in order");
	ktap_ok(get(t[0].id, 102) == BOS && entries_are(0, &t[1], old),
		"and those of one task");
	ktap_ok(tool_agrees(&t[1]),
		"gpucr remap, started by hand, tells the same");
	ktap_ok(get(t[0].id, 103) == 0, "a pid that is not there has none");
	for (i = 0; i < BOS; i++)
		for (k = 0; k < BOS; k++)
			equal += t[0].seen->new[i] == t[1].seen->new[k];
	ktap_ok(!equal, "one old offset leads to different BOs in the two");
	ktap_ok(!t[0].seen->maps && !t[1].seen->maps,
		"each maps its BO by the answer, and a tail of it by dma-buf (%d, %d)",
		t[0].seen->maps, t[1].seen->maps);
}

static bool resolve_refused(struct ask *k, int err, const char *words)
{
	ask(&nl, ans, k);
	return refused(ans, err, words);
}

/* The neighbours in the table's order are those that might be mistaken. */
static bool only_its_gpu(struct ask k, const struct kfd_criu_bo_bucket *old)
{
	unsigned int i, refusals = 0;

	for (i = 0; i < BOS; i++) {
		k.old = old[i].offset / PAGE;
		k.gpu = old[i].gpu_id - 1;
		refusals += resolve_refused(&k, ENOENT, "no BO of that task");
		k.gpu = old[i].gpu_id + 1;
		refusals += resolve_refused(&k, ENOENT, "no BO of that task");
	}
	return refusals == 2 * BOS;
}

static void test_resolve(struct task *t, struct helper *h)
{
	const struct kfd_criu_bo_bucket *old = t->from.bos;
	struct ask k = ask_of(GPUCR_CMD_REMAP_RESOLVE, t->id);
	int copy;

	k.image_pid = t->image_pid;
	k.gpu = old->gpu_id;
	k.old = old->offset / PAGE + SIZE / PAGE - 1;
	k.size = PAGE;
	ktap_ok(!ask(&nl, ans, &k) &&
		raw_u64(&ans->msgs[0], GPUCR_A_REMAP_DELTA) == SIZE - PAGE &&
		raw_u64(&ans->msgs[0], GPUCR_A_REMAP_NEW_PGOFF) ==
		SIZE / PAGE - 1 &&
		raw_u64(&ans->msgs[0], GPUCR_A_REMAP_SIZE) == SIZE,
		"the last page of a BO is found");
	k.size = 2 * PAGE;
	ktap_ok(resolve_refused(&k, ERANGE, "ends after"),
		"a mapping longer than the BO is refused");
	k.size = UINT64_MAX;
	ktap_ok(resolve_refused(&k, ERANGE, "ends after"), "and an endless one");
	k.size = 0;
	ktap_ok(only_its_gpu(k, old), "another GPU has no such BO");
	k.image_pid = 103;
	ktap_ok(resolve_refused(&k, ENOENT, "no BO of that task"),
		"nor has another task");
	k.image_pid = t->image_pid;
	k.old = UINT64_MAX;
	ktap_ok(resolve_refused(&k, ENOENT, "no BO of that task"),
		"nor an offset beyond all");
	k.old = old->offset / PAGE;
	copy = fd_of(h[0].pid, t[0].seen->render);
	k.fd = copy;
	ktap_ok(!ask(&nl, ans, &k), "with the task's own render node it holds");
	close(copy);
	copy = fd_of(h[1].pid, t[1].seen->render);
	k.fd = copy;
	ktap_ok(resolve_refused(&k, ESTALE, "not for this file"),
		"with the other task's it does not");
	close(copy);
}

/* What RESTORE is lied to about is not kept; the restore goes on. */
static void test_lies(const struct relay *from)
{
	static const struct {
		enum lie lie;
		uint32_t kept;
		uint32_t error;
		const char *what;
	} lies[] = {
		{ SAME_OLD, 1, EEXIST, "three BOs at one old offset" },
		{ ODD_OLD, 0, EINVAL, "old offsets inside a page" },
		{ SPOILED, BOS - 1, ENOENT, "a new offset that leads nowhere" },
	};
	unsigned int i, n;
	struct helper h;
	struct task t;
	uint64_t id;
	bool ok;
	int sfd;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		/* A spoiler has to be as fast as the module. */
		for (n = 0, ok = false; n < 20 && !ok; n++) {
			id = restore_session(&sfd);
			t = task_of(id, from, 7);
			t.lie = lies[i].lie;
			ok = helper_start(&h, task_fn, &t) &&
			     t.seen->kept == lies[i].kept &&
			     t.seen->kept_error == lies[i].error &&
			     strstr(t.seen->text, "not kept") &&
			     get(id, 0) == lies[i].kept;
			helper_stop(&h);
			close(sfd);
			if (lies[i].lie != SPOILED)
				break;
		}
		ktap_ok(ok, "%s: errno %d, %u kept, errno %u: %s", lies[i].what,
			t.seen->error, t.seen->kept, t.seen->kept_error,
			t.seen->text);
	}
	id = restore_session(&sfd);
	t = task_of(id, from, 0);
	ktap_ok(helper_start(&h, task_fn, &t) && !t.seen->has_kept &&
		get(id, 0) == 0, "without a pid nothing is kept");
	helper_stop(&h);
	close(sfd);
}

/* What no render node maps has no offset there, and that is no error. */
static void test_user_memory(void)
{
	struct kfd_target k = { .bos = BOS, .user = true };
	struct relay from;
	struct helper h;
	struct task t;
	int sfd;

	if (!relay_sample_of(&nl, ans, &k, &from))
		ktap_bail("no sample with user memory");
	t = task_of(restore_session(&sfd), &from, 7);
	t.lie = ANY;
	ktap_ok(from.num_bos == BOS + 1 && helper_start(&h, task_fn, &t) &&
		t.seen->kept == BOS && !t.seen->kept_error,
		"user memory is left out: %u kept, errno %u (%s)", t.seen->kept,
		t.seen->kept_error, t.seen->text);
	helper_stop(&h);
	close(sfd);
}

/* KFD refuses it; the module must not have copied them all by then. */
static void test_many_devices(const struct relay *from)
{
	struct relay *y;
	struct helper h;
	struct task t;
	int sfd;

	t = task_of(restore_session(&sfd), from, 7);
	t.lie = ANY;
	y = &t.from;
	y->num_devices = 4096;
	y->devices = calloc(y->num_devices,
			    sizeof(struct kfd_criu_device_bucket));
	ktap_ok(!helper_start(&h, task_fn, &t) && t.seen->error == EINVAL,
		"buckets for more GPUs than there can be harm nobody");
	helper_stop(&h);
	free(y->devices);
	close(sfd);
}

int main(void)
{
	struct relay from;
	struct task t[2];
	struct helper h[2];
	int sfd;

	ktap_plan(22);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	if (!relay_sample_bos(&nl, ans, BOS, &from))
		ktap_bail("no sample");
	t[0] = task_of(restore_session(&sfd), &from, 101);
	t[1] = task_of(t[0].id, &from, 102);
	test_fill(t, h);
	test_resolve(t, h);
	test_lies(&from);
	test_user_memory();
	test_many_devices(&from);
	helper_stop(&h[0]);
	helper_stop(&h[1]);
	close(sfd);
	return ktap_exit();
}
