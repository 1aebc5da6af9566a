// SPDX-License-Identifier: GPL-2.0-only
/* CRIU_OP of the simulated KFD: pause, checkpoint, restore, and who may. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../../ktap.h"
#include "kfd_lib.h"

#define VRAM	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
#define GTT	KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define USERPTR	KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
#define BIG	(64u << 20)
#define MAX_BOS	16

/* What a checkpoint takes with it; shared between the processes. */
struct image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket dev;
	struct kfd_criu_bo_bucket bo[MAX_BOS];
	uint8_t priv[65536];
	uint64_t content[MAX_BOS];	/* offset of it below, 0: none */
	char digest[MAX_BOS][128];
	uint64_t used;
	/* what the restored process must know */
	struct queue q;
	void *src, *dst, *fence;
	void *user;
	uint32_t user_size;
	uint64_t user_content;
	uint32_t event;
	uint64_t doorbell;
	bool ok;
	uint8_t data[];
};

#define IMAGE_SIZE	(sizeof(struct image) + 3ull * BIG)

static struct image *img;

/* Where each PROCESS_INFO evicts, but UNPAUSE restores once. */
static bool personality_counts(void)
{
	return personality_is("6.1") || personality_is("7.2");
}

static bool refusals(void)
{
	struct kfd_ioctl_criu_args args = { 0 };
	struct gpu g;
	long null = stat_value("resume_null");

	if (!gpu_open(&g, false))
		return false;
	CHECK(simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0), -EINVAL);
	CHECK(simple_op(&g, 9, 0), -EINVAL);
	CHECK(simple_op(&g, KFD_CRIU_OP_CHECKPOINT, 0), -EINVAL);
	CHECK(simple_op(&g, KFD_CRIU_OP_RESTORE, 0), -EINVAL);
	CHECK(simple_op(&g, KFD_CRIU_OP_RESUME, 0x7fffffff), -ESRCH);
	CHECK(simple_op(&g, KFD_CRIU_OP_RESUME, 1), -ESRCH);
	CHECK(simple_op(&g, KFD_CRIU_OP_RESUME, getpid()), -EINVAL);
	CHECK(stat_value("resume_null"), null + 1);
	args.devices = (uintptr_t)&img->dev;
	args.bos = (uintptr_t)img->bo;
	args.priv_data = (uintptr_t)img->priv;
	args.num_devices = 1;
	CHECK(criu_op(&g, KFD_CRIU_OP_CHECKPOINT, &args), -EINVAL);
	CHECK(criu_op(&g, KFD_CRIU_OP_PROCESS_INFO, &args), 0);
	CHECK(args.num_devices, 1);
	CHECK(args.num_bos, 0);
	CHECK(args.priv_data_size, 16);
	CHECK(args.pid, getpid());
	args.num_bos = 1;
	CHECK(criu_op(&g, KFD_CRIU_OP_CHECKPOINT, &args), -EINVAL);
	args.num_bos = 0;
	args.priv_data_size = 8;
	CHECK(criu_op(&g, KFD_CRIU_OP_CHECKPOINT, &args), -EINVAL);
	args.priv_data_size = 16;
	CHECK(criu_op(&g, KFD_CRIU_OP_CHECKPOINT, &args), 0);
	CHECK(simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0), 0);
	CHECK(simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0), -EINVAL);
	return true;
}

/* A stray RESUME switches userptr eviction off, which shows as corruption. */
static bool stray_resume(void)
{
	long stray = stat_value("resume_stray");
	long corruption = stat_value("corruption");
	struct buf user;
	struct gpu g;

	if (!gpu_open(&g, true))
		return false;
	CHECK(buf_make(&g, &user, USERPTR, 1u << 20), 0);
	memset(user.ptr, 1, user.size);
	CHECK(madvise(user.ptr, user.size, MADV_DONTNEED), 0);
	sleep_ms(50);
	CHECK(stat_value("corruption"), corruption);
	CHECK(simple_op(&g, KFD_CRIU_OP_RESUME, getpid()), -EINVAL);
	CHECK(stat_value("resume_stray"), stray + 1);
	memset(user.ptr, 1, user.size);
	CHECK(madvise(user.ptr, user.size, MADV_DONTNEED), 0);
	sleep_ms(50);
	CHECK(stat_value("corruption") > corruption, 1);
	return true;
}

/* A queue that always has something to do, at least n packets deep. */
struct load {
	struct gpu g;
	struct buf src, dst;
	struct queue q;
};

static bool load_start(struct load *l, uint32_t size)
{
	if (!gpu_open(&l->g, true))
		return false;
	CHECK(buf_make(&l->g, &l->src, GTT, size), 0);
	CHECK(buf_make(&l->g, &l->dst, VRAM, size), 0);
	CHECK(queue_make(&l->g, &l->q, KFD_IOC_QUEUE_TYPE_SDMA), 0);
	return true;
}

static void load_push(struct load *l, unsigned int n)
{
	while (n--)
		put_copy(&l->q, l->src.ptr, l->dst.ptr, (uint32_t)l->src.size);
	queue_ring(&l->q);
}

static bool moves(uint32_t qid)
{
	long before = queue_progress(getpid(), qid, NULL, NULL);
	unsigned int i;

	for (i = 0; i < 500; i++) {
		if (queue_progress(getpid(), qid, NULL, NULL) >= before + 2)
			return true;
		sleep_ms(10);
	}
	return failed("progress", before, before + 2);
}

static bool stands(uint32_t qid)
{
	int evicted = 0;
	long before = queue_progress(getpid(), qid, &evicted, NULL);

	CHECK(evicted, 1);
	sleep_ms(200);
	CHECK(queue_progress(getpid(), qid, NULL, NULL), before);
	return true;
}

static bool pause_stops(void)
{
	struct load l;

	if (!load_start(&l, 1u << 20))
		return false;
	load_push(&l, 2000);
	if (!moves(l.q.id))
		return false;
	CHECK(simple_op(&l.g, KFD_CRIU_OP_PROCESS_INFO, 0), 0);
	if (!stands(l.q.id))
		return false;
	CHECK(simple_op(&l.g, KFD_CRIU_OP_UNPAUSE, 0), 0);
	return moves(l.q.id);
}

/* Two PROCESS_INFO, one UNPAUSE: where each evicts, the queue stays put. */
static bool pause_twice(void)
{
	struct load l;

	if (!load_start(&l, 1u << 20))
		return false;
	load_push(&l, 2000);
	CHECK(simple_op(&l.g, KFD_CRIU_OP_PROCESS_INFO, 0), 0);
	CHECK(simple_op(&l.g, KFD_CRIU_OP_PROCESS_INFO, 0), 0);
	CHECK(simple_op(&l.g, KFD_CRIU_OP_UNPAUSE, 0), 0);
	return personality_counts() ? stands(l.q.id) : moves(l.q.id);
}

static void pattern(void *ptr, size_t size)
{
	uint64_t *p = ptr;
	size_t i;

	for (i = 0; i < size / 8; i++)
		p[i] = i * 0x9e3779b97f4a7c15ull;
}

/* Start a big copy and pause in its middle. */
static bool pause_in_copy(struct load *l, struct kfd_ioctl_criu_args *args)
{
	volatile uint64_t *dst = l->dst.ptr;
	uint64_t *src = l->src.ptr;
	size_t words = l->src.size / 8;

	pattern(src, l->src.size);
	put_copy(&l->q, l->src.ptr, l->dst.ptr, (uint32_t)l->src.size);
	queue_ring(&l->q);
	while (dst[1] != src[1])
		;
	CHECK(criu_op(&l->g, KFD_CRIU_OP_PROCESS_INFO, args), 0);
	CHECK(dst[1] == src[1], 1);
	CHECK(dst[words - 1] == src[words - 1], 0);
	CHECK(dst[words - 1] == 0xa5a5a5a5a5a5a5a5ull, 1);
	return stands(l->q.id);
}

static bool pause_mid_copy(void)
{
	struct kfd_ioctl_criu_args args = { 0 };
	struct load l;

	if (!load_start(&l, BIG) || !pause_in_copy(&l, &args))
		return false;
	put_fence(&l.q, l.q.wptr.ptr + 64, 77);
	queue_ring(&l.q);
	CHECK(simple_op(&l.g, KFD_CRIU_OP_UNPAUSE, 0), 0);
	if (!wait_value(l.q.wptr.ptr + 64, 77))
		return false;
	CHECK(memcmp(l.src.ptr, l.dst.ptr, BIG), 0);
	return true;
}

static void save_bytes(const void *from, size_t size, uint64_t *at)
{
	*at = img->used;
	memcpy(img->data + img->used, from, size);
	img->used += size;
}

/* The digest lines of a process, without its pid; sorted by handle. */
static unsigned int read_digests(int pid, char lines[][128])
{
	FILE *f = fopen("/sys/kernel/debug/kfdsim/digest", "re");
	unsigned int n = 0;
	char line[256];
	int p, skip;

	if (!f)
		return 0;
	while (n < MAX_BOS && fgets(line, sizeof(line), f))
		if (sscanf(line, "%d%n", &p, &skip) == 1 && p == pid)
			snprintf(lines[n++], 128, "%s", line + skip);
	fclose(f);
	return n;
}

static bool save_image(struct gpu *g)
{
	uint32_t i;

	img->args.devices = (uintptr_t)&img->dev;
	img->args.bos = (uintptr_t)img->bo;
	img->args.priv_data = (uintptr_t)img->priv;
	CHECK(img->args.num_bos <= MAX_BOS, 1);
	CHECK(img->args.priv_data_size <= sizeof(img->priv), 1);
	CHECK(criu_op(g, KFD_CRIU_OP_CHECKPOINT, &img->args), 0);
	for (i = 0; i < img->args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bo = &img->bo[i];

		if (!(bo->alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | GTT))) {
			CHECK(bo->dmabuf_fd == KFD_INVALID_FD, 1);
			continue;
		}
		CHECK(fcntl((int)bo->dmabuf_fd, F_GETFD), 0);
		save_bytes((void *)(uintptr_t)bo->addr, bo->size,
			   &img->content[i]);
	}
	save_bytes(img->user, img->user_size, &img->user_content);
	CHECK(read_digests(getpid(), img->digest) > 0, 1);
	return true;
}

static bool dump(void)
{
	struct kfd_ioctl_create_event_args ev = {
		.event_type = KFD_IOC_EVENT_SIGNAL, .auto_reset = 1,
	};
	struct buf user, sig, doorbell;
	struct load l;

	if (!load_start(&l, BIG))
		return false;
	CHECK(buf_make(&l.g, &user, USERPTR, 1u << 20), 0);
	pattern(user.ptr, user.size);
	CHECK(buf_make(&l.g, &sig, GTT, KFD_SIGNAL_EVENT_LIMIT * 8), 0);
	CHECK(buf_alloc(&l.g, &doorbell, KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL,
			DOORBELLS), 0);
	ev.event_page_offset = sig.handle;
	CHECK(kfd_call(l.g.kfd, AMDKFD_IOC_CREATE_EVENT, &ev), 0);
	CHECK(event_make(&l.g, KFD_IOC_EVENT_MEMORY, false,
			 &(struct kfd_ioctl_create_event_args){ 0 }), 0);
	img->event = ev.event_id;
	img->user = user.ptr;
	img->user_size = (uint32_t)user.size;
	if (!pause_in_copy(&l, &img->args))
		return false;
	/* rung while paused: it is for the restored process to do */
	put_copy(&l.q, user.ptr, l.src.ptr, (uint32_t)user.size);
	put_fence(&l.q, (uint64_t *)sig.ptr + ev.event_id, 1);
	put_fence(&l.q, l.q.wptr.ptr + 64, 99);
	put_trap(&l.q, ev.event_id);
	queue_ring(&l.q);
	img->q = l.q;
	img->src = l.src.ptr;
	img->dst = l.dst.ptr;
	img->fence = l.q.wptr.ptr + 64;
	img->doorbell = (uint64_t)((char *)l.q.doorbell - (char *)l.q.doorbells);
	img->ok = save_image(&l.g);
	return img->ok;
}

static bool fill_bos(struct gpu *g)
{
	char lines[MAX_BOS][128] = { "" };
	uint32_t i, n;
	void *p;

	for (i = 0; i < img->args.num_bos; i++) {
		struct kfd_criu_bo_bucket *bo = &img->bo[i];
		void *at = (void *)(uintptr_t)bo->addr;

		if (bo->dmabuf_fd == KFD_INVALID_FD)
			continue;
		p = mmap(at, bo->size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED_NOREPLACE, g->drm,
			 (off_t)bo->restored_offset);
		CHECK(p == at, 1);
		/* nothing survived */
		CHECK(*(uint8_t *)p == 0xa5 || *(uint8_t *)p == 0xff ||
		      (bo->alloc_flags & GTT && !*(uint8_t *)p), 1);
		memcpy(p, img->data + img->content[i], bo->size);
		close((int)bo->dmabuf_fd);
	}
	n = read_digests(getpid(), lines);
	CHECK(n > 0, 1);
	for (i = 0; i < n; i++)
		if (strcmp(lines[i], img->digest[i])) {
			printf("# %s# %s", lines[i], img->digest[i]);
			return false;
		}
	return true;
}

static bool restored_runs(struct gpu *g)
{
	struct queue q = img->q;
	uint8_t *dst = img->dst, *src = img->src;

	CHECK(event_wait(g, &img->event, 1, true, 20000),
	      KFD_IOC_WAIT_RESULT_COMPLETE);
	if (!wait_value(img->fence, 99))
		return false;
	/* the paused copy was finished before the one from user memory */
	CHECK(memcmp(src, img->user, img->user_size), 0);
	CHECK(memcmp(dst, img->user, img->user_size), 0);
	CHECK(memcmp(dst + img->user_size, src + img->user_size,
		     BIG - img->user_size), 0);
	CHECK(queue_map_doorbell(g, &q, (3ull << 62) | ((uint64_t)g->id << 46) |
				 img->doorbell), 0);
	put_fence(&q, img->fence, 100);
	queue_ring(&q);
	return wait_value(img->fence, 100);
}

static bool restore_refused(void)
{
	struct kfd_ioctl_criu_args args = img->args;
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	img->dev.drm_fd = (uint32_t)g.drm;
	args.num_devices = 2;
	CHECK(criu_op(&g, KFD_CRIU_OP_RESTORE, &args), -EINVAL);
	gpu_close(&g);
	/* a VM of its own already */
	if (!gpu_open(&g, true))
		return false;
	args.num_devices = 1;
	img->dev.drm_fd = (uint32_t)g.drm;
	CHECK(criu_op(&g, KFD_CRIU_OP_RESTORE, &args), -EINVAL);
	return true;
}

static bool restore_and_run(void)
{
	struct kfd_ioctl_criu_args args = img->args;
	struct gpu g;
	void *user = mmap(img->user, img->user_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			  -1, 0);

	CHECK(user == img->user, 1);
	memcpy(user, img->data + img->user_content, img->user_size);
	if (!gpu_open(&g, false))
		return false;
	img->dev.drm_fd = (uint32_t)g.drm;
	CHECK(criu_op(&g, KFD_CRIU_OP_RESTORE, &args), 0);
	if (!fill_bos(&g) || !stands(img->q.id))
		return false;
	CHECK(simple_op(&g, KFD_CRIU_OP_RESUME, getpid()), 0);
	if (!restored_runs(&g))
		return false;
	CHECK(stat_value("corruption") >= 0, 1);
	CHECK(criu_op(&g, KFD_CRIU_OP_RESTORE, &args), -EINVAL);
	return true;
}

static bool checkpoint_restore(void)
{
	unsigned int i;

	memset(img, 0, sizeof(*img));
	img->used = 8;
	if (!in_child(dump) || !img->ok)
		return false;
	for (i = 0; i < 200 && stat_value("bos"); i++)
		sleep_ms(10);
	CHECK(stat_value("bos"), 0);
	return in_child(restore_refused) && in_child(restore_and_run);
}

/* Only the tracing thread, only CRIU_OP, only with the capability. */
static bool tracer(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2] = { 0 };
	struct kfd_ioctl_get_version_args v = { 0 };
	struct kfd_ioctl_criu_args args = { 0 };
	struct gpu g, child;
	int to_parent[2];
	pid_t pid;

	CHECK(pipe(to_parent), 0);
	pid = fork();
	if (!pid) {
		if (!gpu_open(&child, false) ||
		    write(to_parent[1], &child, sizeof(child)) != sizeof(child))
			_exit(1);
		pause();
		_exit(0);
	}
	CHECK(read(to_parent[0], &child, sizeof(child)), sizeof(child));
	g.kfd = (int)syscall(SYS_pidfd_getfd,
			     (int)syscall(SYS_pidfd_open, pid, 0), child.kfd, 0);
	CHECK(g.kfd >= 0, 1);
	CHECK(criu_op(&g, KFD_CRIU_OP_PROCESS_INFO, &args), -EBADF);
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	CHECK(kfd_call(g.kfd, AMDKFD_IOC_GET_VERSION, &v), -EBADF);
	CHECK(criu_op(&g, KFD_CRIU_OP_PROCESS_INFO, &args), 0);
	CHECK(args.pid, pid);
	CHECK(criu_op(&g, KFD_CRIU_OP_UNPAUSE, &args), 0);
	/* traced still, but dead: nothing can be made in it */
	kill(pid, SIGKILL);
	CHECK(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	args.devices = args.bos = args.priv_data = (uintptr_t)img;
	CHECK(criu_op(&g, KFD_CRIU_OP_RESTORE, &args), -ESRCH);
	CHECK(syscall(SYS_capset, &head, caps), 0);
	CHECK(criu_op(&g, KFD_CRIU_OP_PROCESS_INFO, &args), -EACCES);
	waitpid(pid, NULL, 0);
	return true;
}

static bool arm(const char *line)
{
	int fd = open("/sys/kernel/debug/kfdsim/fault", O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, line, strlen(line));

	close(fd);
	return n == (ssize_t)strlen(line);
}

/* Each operation hangs until a signal where it is told to. */
static bool hangs(struct gpu *g)
{
	static const char * const points[] = {
		[KFD_CRIU_OP_PROCESS_INFO] = "criu-process-info",
		[KFD_CRIU_OP_CHECKPOINT] = "criu-checkpoint",
		[KFD_CRIU_OP_UNPAUSE] = "criu-unpause",
		[KFD_CRIU_OP_RESTORE] = "criu-restore",
		[KFD_CRIU_OP_RESUME] = "criu-resume",
	};
	char line[64];
	uint32_t op;

	for (op = 0; op < sizeof(points) / sizeof(points[0]); op++) {
		snprintf(line, sizeof(line), "point=%s hang=1", points[op]);
		CHECK(arm(line), 1);
		ualarm(200000, 0);
		CHECK(simple_op(g, op, (uint32_t)getpid()), -EINTR);
		CHECK(arm("clear"), 1);
	}
	return true;
}

/* Between the two calls a BO seems to go: the second one finds other counts. */
static bool counts_change(struct gpu *g)
{
	struct kfd_ioctl_criu_args args = { 0 };
	uint64_t somewhere[64] = { 0 };
	uint32_t bos;

	CHECK(criu_op(g, KFD_CRIU_OP_PROCESS_INFO, &args), 0);
	bos = args.num_bos;
	CHECK(simple_op(g, KFD_CRIU_OP_UNPAUSE, 0), 0);
	CHECK(arm("point=criu-count count=1"), 1);
	CHECK(criu_op(g, KFD_CRIU_OP_PROCESS_INFO, &args), 0);
	CHECK(args.num_bos, bos + 1);
	args.devices = (uintptr_t)somewhere;
	args.bos = (uintptr_t)somewhere;
	args.priv_data = (uintptr_t)somewhere;
	CHECK(criu_op(g, KFD_CRIU_OP_CHECKPOINT, &args), -EINVAL);
	CHECK(arm("clear"), 1);
	CHECK(simple_op(g, KFD_CRIU_OP_UNPAUSE, 0), 0);
	return true;
}

static bool faults(void)
{
	struct gpu g;

	if (!gpu_open(&g, false))
		return false;
	CHECK(arm("point=nothing errno=5"), 0);
	CHECK(arm("point=criu-unpause errno=0"), 0);
	CHECK(arm("point=criu-unpause colour=3"), 0);
	CHECK(arm("point=criu-unpause errno=28 nth=2 count=1"), 1);
	CHECK(simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0), -EINVAL);
	CHECK(simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0), -ENOSPC);
	CHECK(simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0), -EINVAL);
	CHECK(arm("point=criu-process-info pid=1 errno=5"), 1);
	CHECK(simple_op(&g, KFD_CRIU_OP_PROCESS_INFO, 0), 0);
	CHECK(arm("clear"), 1);
	CHECK(simple_op(&g, KFD_CRIU_OP_UNPAUSE, 0), 0);
	return counts_change(&g) && hangs(&g);
}

static void on_alarm(int sig)
{
	(void)sig;
}

int main(void)
{
	struct sigaction act = { .sa_handler = on_alarm };

	img = mmap(NULL, IMAGE_SIZE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (img == MAP_FAILED)
		return 1;
	sigaction(SIGALRM, &act, NULL);
	ktap_plan(8);
	ktap_ok(in_child(refusals), "refusals");
	ktap_ok(in_child(tracer), "tracer");
	ktap_ok(in_child(faults), "faults");
	ktap_ok(in_child(pause_stops), "pause_stops");
	ktap_ok(in_child(pause_twice), "pause_twice");
	ktap_ok(in_child(pause_mid_copy), "pause_mid_copy");
	ktap_ok(checkpoint_restore(), "checkpoint_restore");
	ktap_ok(in_child(stray_resume), "stray_resume");
	return ktap_exit();
}
