// SPDX-License-Identifier: GPL-2.0-only
/*
 * queue-get: the queues of a checkpoint on a simulated GPU, compared with what
 * the target made; who may ask; private data that lies.
 *
 * Mutations, each seen to turn this red: no check of who asks; the holder's
 * file not compared, or only that it is KFD's; a holder that is not open taken
 * for none; the old queues not dropped when a later checkpoint's cannot be
 * read; the version not compared; queues not counted again when they are read;
 * a restore session, one without queues, or no id not refused; a checkpoint
 * that fails where only its queues cannot be kept; doorbell or its id taken
 * from another field. The reader's bounds are kfdpriv's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <gpucr_layout.h>
#include <gpucr_kfdpriv.h>

#include "../ktap.h"
#include "kfd.h"
#include "util.h"

#define PAGE	4096u
#define RING	65536u
/* A process has two pages of doorbells, of 8 bytes each, on a GPU. */
#define DOORBELLS	(2 * PAGE)
#define QUEUES	3
#define MORE_SECONDS	60

static struct raw nl;
static struct raw_ans *ans;

/* What the target made; shared with it. */
struct truth {
	uint32_t gpu;
	uint32_t ctl_stack;
	struct kfd_ioctl_create_queue_args q[QUEUES];
};

static struct truth *truth;

static void *user_bo(int kfd, uint32_t gpu, size_t size)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args a = {
		.size = size, .gpu_id = gpu,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
			 KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE |
			 KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE,
	};
	struct kfd_ioctl_map_memory_to_gpu_args m = {
		.device_ids_array_ptr = (uintptr_t)&gpu, .n_devices = 1,
	};
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	a.va_addr = (uintptr_t)at;
	a.mmap_offset = (uintptr_t)at;
	if (ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a))
		return NULL;
	m.handle = a.handle;
	return ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &m) ? NULL : at;
}

static uint32_t node_property(const char *name)
{
	const char *s;
	char path[128];
	uint32_t v = 0;
	int node;

	for (node = 0; node < 8 && !v; node++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/virtual/kfd/kfd/topology/nodes/%d/properties",
			 node);
		s = strstr(slurp(path), name);
		if (s)
			v = strtoul(s + strlen(name), NULL, 10);
	}
	return v;
}

static bool make_queue(int kfd, struct kfd_ioctl_create_queue_args *q)
{
	q->gpu_id = truth->gpu;
	q->ring_size = RING;
	q->ring_base_address = (uintptr_t)user_bo(kfd, truth->gpu, RING);
	q->read_pointer_address = (uintptr_t)user_bo(kfd, truth->gpu, PAGE);
	q->write_pointer_address = (uintptr_t)user_bo(kfd, truth->gpu, PAGE);
	if (!q->ring_base_address || !q->read_pointer_address ||
	    !q->write_pointer_address)
		return false;
	return !ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, q);
}

static uint32_t whole_pages(uint32_t bytes)
{
	return (bytes + PAGE - 1) & ~(uint32_t)(PAGE - 1);
}

/*
 * Where gfx90a saves a queue's waves: KFD wants the sizes exactly, and the
 * memory mapped. 40 waves a CU at most, 512 a shader array, 0x95000 bytes a CU.
 */
static bool save_area(int kfd, struct kfd_ioctl_create_queue_args *q)
{
	uint32_t cus = node_property("simd_count ") /
		       (node_property("simd_per_cu ") ?: 1);
	uint32_t waves = node_property("array_count ") /
			 (node_property("simd_arrays_per_engine ") ?: 1) * 512;
	size_t all;

	if (waves > cus * 40)
		waves = cus * 40;
	q->ctl_stack_size = whole_pages(40 + waves * 8 + 8);
	q->ctx_save_restore_size = q->ctl_stack_size +
				   whole_pages(cus * 0x95000);
	all = whole_pages(q->ctx_save_restore_size + waves * 32);
	q->ctx_save_restore_address =
		(uintptr_t)user_bo(kfd, truth->gpu, all);
	return q->ctx_save_restore_address;
}

static int target(void *arg)
{
	struct kfd_ioctl_acquire_vm_args vm = { 0 };
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC), render, i;

	(void)arg;
	if (kfd < 0 || !kfd_gpu(&vm.gpu_id, &render))
		return -1;
	vm.drm_fd = render;
	truth->gpu = vm.gpu_id;
	if (ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm))
		return -1;
	truth->q[0].queue_type = KFD_IOC_QUEUE_TYPE_SDMA;
	truth->q[0].queue_percentage = 100;
	truth->q[0].queue_priority = 3;
	truth->q[1].queue_type = KFD_IOC_QUEUE_TYPE_SDMA;
	truth->q[1].queue_percentage = 40;
	truth->q[1].queue_priority = 11;
	truth->q[2].queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	truth->q[2].queue_percentage = 100;
	truth->q[2].queue_priority = 7;
	if (!save_area(kfd, &truth->q[2]))
		return -1;
	for (i = 0; i < QUEUES; i++)
		if (!make_queue(kfd, &truth->q[i]))
			return -1;
	return kfd;
}

/* A target that we trace, and a session on it, paused. */
struct job {
	struct helper h;
	int kfd;
	uint64_t id;
	int sfd;
	struct relay y;
};

static void job_start(struct job *j, int (*fn)(void *arg), void *arg)
{
	if (!helper_start(&j->h, fn, arg))
		ktap_bail("no simulated GPU, or no queues");
	if (seize(j->h.pid))
		ktap_bail("seize");
	j->kfd = fd_of(j->h.pid, j->h.fd);
	if (session_new(&nl, ans, GPUCR_DIRECTION_CHECKPOINT, j->h.pid, j->kfd,
			&j->id, &j->sfd))
		ktap_bail("session-new: %s", ans->text);
	j->y = relay_of(GPUCR_CMD_SESSION_PAUSE, j->id);
	if (relay_call(&nl, ans, &j->y))
		ktap_bail("pause: %s", j->y.text);
	relay_buffers(&j->y);
	j->y.cmd = GPUCR_CMD_SESSION_CHECKPOINT;
}

static void job_end(struct job *j)
{
	j->y.cmd = GPUCR_CMD_SESSION_UNPAUSE;
	relay_call(&nl, ans, &j->y);
	close(j->sfd);
	close(j->kfd);
	helper_stop(&j->h);
}

static int job_checkpoint(struct job *j)
{
	int err = relay_call(&nl, ans, &j->y);

	if (!err)
		relay_close_fds(&j->y);
	return err;
}

/* The done message of the last relay. */
static const struct raw_msg *done_msg(void)
{
	return &ans->msgs[ans->num - 1];
}

static int ask(struct raw *r, struct raw_ans *a, uint64_t id, int holder)
{
	struct raw_req q;

	raw_begin(r, &q, GPUCR_CMD_QUEUE_GET, true);
	raw_put_u64(&q, GPUCR_A_QUEUE_ID, id);
	if (holder >= 0)
		raw_put_u32(&q, GPUCR_A_QUEUE_HOLDER_FD, holder);
	raw_call(r, &q, a);
	return a->err;
}

/* The target maps and rings it there; KFD records it in words. */
static bool same_doorbell(const struct raw_msg *m,
			  const struct kfd_ioctl_create_queue_args *q)
{
	uint64_t at = q->doorbell_offset & (DOORBELLS - 1);

	return raw_u32(m, GPUCR_A_QUEUE_DOORBELL_ID) == at / 8 &&
	       raw_u64(m, GPUCR_A_QUEUE_DOORBELL) == at / 4;
}

static bool same_queue(const struct raw_msg *m,
		       const struct kfd_ioctl_create_queue_args *q)
{
	bool aql = q->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;

	return same_doorbell(m, q) &&
	       raw_u32(m, GPUCR_A_QUEUE_QUEUE_ID) == q->queue_id &&
	       raw_u32(m, GPUCR_A_QUEUE_GPU_ID) == truth->gpu &&
	       raw_u32(m, GPUCR_A_QUEUE_TYPE) ==
	       (aql ? GPUCR_QUEUE_TYPE_COMPUTE : GPUCR_QUEUE_TYPE_SDMA) &&
	       raw_u32(m, GPUCR_A_QUEUE_FORMAT) ==
	       (aql ? GPUCR_QUEUE_FORMAT_AQL : GPUCR_QUEUE_FORMAT_PM4) &&
	       raw_u64(m, GPUCR_A_QUEUE_RING) == q->ring_base_address &&
	       raw_u64(m, GPUCR_A_QUEUE_RING_SIZE) == q->ring_size &&
	       raw_u64(m, GPUCR_A_QUEUE_READ_POINTER) ==
	       q->read_pointer_address &&
	       raw_u64(m, GPUCR_A_QUEUE_WRITE_POINTER) ==
	       q->write_pointer_address &&
	       raw_u32(m, GPUCR_A_QUEUE_PRIORITY) == q->queue_priority &&
	       raw_u32(m, GPUCR_A_QUEUE_PERCENT) == q->queue_percentage &&
	       raw_u64(m, GPUCR_A_QUEUE_CTX_SAVE) ==
	       q->ctx_save_restore_address &&
	       raw_u32(m, GPUCR_A_QUEUE_CTX_SAVE_SIZE) ==
	       q->ctx_save_restore_size &&
	       raw_u32(m, GPUCR_A_QUEUE_CTL_STACK_SIZE) == q->ctl_stack_size &&
	       raw_u32(m, GPUCR_A_QUEUE_MQD_SIZE) >= 512;
}

/* As sets, both ways. */
static bool told_truth(void)
{
	bool seen[QUEUES] = { false };
	size_t i;
	int k;

	for (i = 0; i < ans->num; i++) {
		for (k = 0; k < QUEUES; k++)
			if (!seen[k] && same_queue(&ans->msgs[i], &truth->q[k]))
				break;
		if (k == QUEUES)
			return false;
		seen[k] = true;
	}
	return ans->num == QUEUES;
}

static void test_truth(struct job *j)
{
	struct raw small = nl;

	ask(&nl, ans, j->id, -1);
	ktap_ok(refused(ans, ENODATA, "no queues"),
		"before the checkpoint there are none to tell");
	ktap_ok(!job_checkpoint(j) &&
		raw_u32(done_msg(), GPUCR_A_RELAY_KEPT) == QUEUES &&
		!raw_has(done_msg(), GPUCR_A_RELAY_KEPT_ERROR),
		"a checkpoint keeps them and says how many");
	ktap_ok(!ask(&nl, ans, j->id, -1) && told_truth(),
		"they are what the target made: rings, pointers, doorbells, priorities");
	/* A new socket: the kernel remembers the largest buffer of each. */
	small.fd = raw_socket();
	small.buf = 4096;
	ktap_ok(!ask(&small, ans, j->id, -1) && told_truth(),
		"also for a reader of 4 KiB");
	raw_close(&small);
}

/* The command line tool, a process that has no part in the session. */
static bool tool_agrees(uint64_t id)
{
	char cmd[400];

	snprintf(cmd, sizeof(cmd),
		 "gpucr -j queue session %llx gpu %u | jq -e '.data | length == %d "
		 "and (map(.priority) | sort) == [3, 7, 11] and "
		 "(map(select(.format == \"aql\")) | length) == 1 and "
		 "all(.ring_size == %u)' >/dev/null",
		 (unsigned long long)id, truth->gpu, QUEUES, RING);
	return !system(cmd);
}

/* Another process, which neither opened nor joined nor traces anything. */
struct stranger {
	uint64_t id;
	pid_t owner, target;
	int sfd, kfd;		/* numbers there */
	int copy;		/* of the latter, the parent's */
};

static int stranger(void *arg)
{
	struct stranger *s = arg;
	struct raw_ans *a = raw_ans_new();
	struct raw own;
	int copy, null;

	/* Inherited; a stranger has none of them. */
	close(s->sfd);
	close(s->copy);
	null = open("/dev/null", O_RDONLY);
	if (raw_open(&own))
		return 1;
	ask(&own, a, s->id, -1);
	if (!refused(a, EPERM, "no part in the session"))
		return 2;
	ask(&own, a, s->id, null);
	if (!refused(a, EPERM, "no part in the session"))
		return 3;
	ask(&own, a, s->id, 777);
	if (!refused(a, EBADF, "not an open descriptor"))
		return 4;
	/* A KFD file, but not the target's. */
	copy = open("/dev/kfd", O_RDWR);
	ask(&own, a, s->id, copy);
	if (!refused(a, EPERM, "no part in the session"))
		return 5;
	copy = fd_of(s->owner, s->sfd);
	if (copy < 0 || ask(&own, a, s->id, copy) || a->num != QUEUES)
		return 6;
	copy = fd_of(s->target, s->kfd);
	if (copy < 0 || ask(&own, a, s->id, copy) || a->num != QUEUES)
		return 7;
	return 0;
}

static void test_who(struct job *j)
{
	struct stranger s = {
		.id = j->id, .owner = getpid(), .target = j->h.pid,
		.sfd = j->sfd, .kfd = j->h.fd, .copy = j->kfd,
	};
	int n;

	n = in_child(stranger, &s);
	ktap_ok(n == 0,
		"another process is refused until it holds a file of it (%d)", n);
	ktap_ok(tool_agrees(j->id),
		"gpucr queue, started by hand, tells the same");
	ask(&nl, ans, j->id ^ 1, -1);
	ktap_ok(refused(ans, ENOENT, "no session") &&
		points_to(ans, GPUCR_A_QUEUE_ID), "another id is refused by name");
	raw_ask(&nl, ans, GPUCR_CMD_QUEUE_GET, true, 0, 0, 0, 0);
	ktap_ok(refused(ans, EINVAL, "id is missing"), "no id is refused");
	raw_ask(&nl, ans, GPUCR_CMD_QUEUE_GET, true, GPUCR_A_QUEUE_GPU_ID, 1,
		GPUCR_A_QUEUE_ID, j->id);
	ktap_ok(ans->err == EINVAL, "an attribute of the answer is refused (%d)",
		ans->err);
}

static void test_wrong_session(void)
{
	uint64_t id;
	int sfd;

	session_new(&nl, ans, GPUCR_DIRECTION_RESTORE, 0, -1, &id, &sfd);
	ask(&nl, ans, id, -1);
	ktap_ok(refused(ans, EINVAL, "for a restore"),
		"a restore session has no queues");
	close(sfd);
}

/*
 * Private data that changes between KFD's writing and the module's reading: on
 * pages that fault, each of which is given what the lie wants once the module
 * comes for it.
 */
struct liar {
	int uffd;
	uint8_t *at;
	size_t size;
};

static void *lie(void *arg)
{
	struct liar *l = arg;
	struct uffd_msg msg;
	struct pollfd p = { .fd = l->uffd, .events = POLLIN };
	static uint8_t junk[PAGE] __attribute__((aligned(PAGE)));

	memset(junk, 0xff, sizeof(junk));
	while (poll(&p, 1, 20000) > 0 &&
	       read(l->uffd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_copy c = {
			.dst = msg.arg.pagefault.address & ~(uint64_t)(PAGE - 1),
			.src = (uintptr_t)junk, .len = PAGE,
		};

		ioctl(l->uffd, UFFDIO_COPY, &c);
	}
	return NULL;
}

/* A thread that spoils the private data as soon as KFD has written it. */
struct spoiler {
	volatile uint8_t *at;
	size_t size;
	volatile bool stop;
};

static void *spoil(void *arg)
{
	struct spoiler *s = arg;

	while (!s->stop)
		memset((void *)s->at, 0xff, s->size);
	return NULL;
}

/* The version is the first word: with it spoiled nothing can be read. */
static void test_lies(struct job *j)
{
	struct spoiler s = { .at = j->y.priv, .size = 8 };
	pthread_t t;
	int i, err = 0, spoiled = 0;

	pthread_create(&t, NULL, spoil, &s);
	for (i = 0; i < 200 && spoiled < 3 && !err; i++) {
		err = job_checkpoint(j);
		spoiled += raw_u32(done_msg(), GPUCR_A_RELAY_KEPT_ERROR) ==
			   EPROTO;
	}
	s.stop = true;
	pthread_join(t, NULL);
	ktap_ok(!err && spoiled && j->y.state ==
		GPUCR_SESSION_STATE_CHECKPOINTED,
		"private data that cannot be read fails no checkpoint (%d of %d)",
		spoiled, i);
	ktap_ok(strstr(j->y.text, "unknown version"), "and that is told: %s",
		j->y.text);
	ask(&nl, ans, j->id, -1);
	ktap_ok(refused(ans, ENODATA, "no queues"),
		"what an earlier checkpoint kept is not told for it");
}

/* Every byte of it, by another thread, while it is read. */
static void test_race(struct job *j)
{
	struct spoiler s = { .at = j->y.priv, .size = j->y.priv_size };
	pthread_t t;
	int i, err = 0, kept = 0;

	pthread_create(&t, NULL, spoil, &s);
	for (i = 0; i < 30 && !err; i++) {
		err = job_checkpoint(j);
		kept += !raw_has(done_msg(), GPUCR_A_RELAY_KEPT_ERROR);
		if (!ask(&nl, ans, j->id, -1) && ans->num > QUEUES)
			err = -1;
	}
	s.stop = true;
	pthread_join(t, NULL);
	ktap_ok(!err, "spoiled all over while it is read, it harms nobody (%d of %d kept)",
		kept, i);
}

/* Where the last object begins; 0: there is none. */
static size_t last_object(const struct relay *y)
{
	struct gpucr_kfdpriv p = {
		.data = y->priv, .size = y->priv_size,
		.num_devices = y->num_devices, .num_bos = y->num_bos,
		.num_objects = y->num_objects,
	};
	struct gpucr_kfdpriv_object o = { 0 };

	if (gpucr_kfdpriv_open(&p, 0))
		return 0;
	while (o.index + 1 < p.num_objects && gpucr_kfdpriv_next(&p, &o) > 0)
		if (o.index + 1 == p.num_objects)
			return o.offset;
	return 0;
}

/* A thread that makes the last queue an event and a queue again. */
static void *waver(void *arg)
{
	struct spoiler *s = arg;
	volatile uint32_t *type = (volatile uint32_t *)s->at;

	while (!s->stop) {
		*type = GPUCR_KFDPRIV_EVENT;
		*type = GPUCR_KFDPRIV_QUEUE;
	}
	return NULL;
}

/*
 * More of them than there was room made for: they are counted again. The
 * thread must be at work at the right moment twice: on a busy machine that
 * takes thousands of tries.
 */
static void test_more(struct job *j)
{
	struct spoiler s = { .at = j->y.priv };
	time_t end = time(NULL) + MORE_SECONDS;
	pthread_t t;
	int i, err, more = 0;

	err = job_checkpoint(j);
	s.at += last_object(&j->y);
	if (err || s.at == j->y.priv)
		ktap_bail("no last object");
	pthread_create(&t, NULL, waver, &s);
	for (i = 0; time(NULL) < end && !more && !err; i++) {
		err = job_checkpoint(j);
		more += raw_u32(done_msg(), GPUCR_A_RELAY_KEPT_ERROR) == E2BIG;
	}
	s.stop = true;
	pthread_join(t, NULL);
	ktap_ok(!err && more && strstr(j->y.text, "too many"),
		"a queue that was none when they were counted is one too many (after %d)",
		i);
}

/* A page that is only there when somebody comes for it, and then is junk. */
static void test_fault(struct job *j)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { 0 };
	struct liar l = { .size = (j->y.priv_size + PAGE) / PAGE * PAGE };
	struct relay y = j->y;
	pthread_t t;

	l.uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	l.at = mmap(NULL, l.size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uintptr_t)l.at;
	reg.range.len = l.size;
	reg.mode = UFFDIO_REGISTER_MODE_MISSING;
	if (l.uffd < 0 || ioctl(l.uffd, UFFDIO_API, &api) ||
	    ioctl(l.uffd, UFFDIO_REGISTER, &reg))
		ktap_bail("userfaultfd: %s", strerror(errno));
	pthread_create(&t, NULL, lie, &l);
	pthread_detach(t);
	y.priv = l.at;
	relay_call(&nl, ans, &y);
	relay_close_fds(&y);
	ktap_ok(!y.error && raw_u32(done_msg(), GPUCR_A_RELAY_KEPT) == QUEUES,
		"memory that faults is waited for, outside of netlink's locks");
}

static void test_again(struct job *j)
{
	ktap_ok(!job_checkpoint(j) && !ask(&nl, ans, j->id, -1) && told_truth(),
		"another checkpoint brings the truth again");
	j->y.cmd = GPUCR_CMD_SESSION_UNPAUSE;
	relay_call(&nl, ans, &j->y);
	ktap_ok(!ask(&nl, ans, j->id, -1) && told_truth(),
		"it is still told when the target runs again");
}

static void test_none(void)
{
	struct kfd_target t = { .bos = 2 };
	struct job j;

	job_start(&j, kfd_target, &t);
	ktap_ok(!job_checkpoint(&j) && raw_has(done_msg(), GPUCR_A_RELAY_KEPT) &&
		!ask(&nl, ans, j.id, -1) && ans->num == 0,
		"a target without queues has none, and that is no error");
	job_end(&j);
	ask(&nl, ans, j.id, -1);
	ktap_ok(refused(ans, ENOENT, "no session"),
		"they are gone with the session");
}

int main(void)
{
	struct job j;

	ktap_plan(20);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	job_start(&j, target, NULL);
	test_truth(&j);
	test_who(&j);
	test_wrong_session();
	test_lies(&j);
	test_race(&j);
	test_more(&j);
	test_fault(&j);
	test_again(&j);
	job_end(&j);
	test_none();
	return ktap_exit();
}
