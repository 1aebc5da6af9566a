// SPDX-License-Identifier: GPL-2.0-only
/* KFD processes as targets, and sessions on them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kfd.h"
#include "util.h"

#define NODES	"/sys/devices/virtual/kfd/kfd/topology/nodes"

static uint32_t node_minor(int node)
{
	char path[128], key[64];
	unsigned long long v;
	uint32_t minor = 0;
	FILE *f;

	snprintf(path, sizeof(path), NODES "/%d/properties", node);
	f = fopen(path, "r");
	while (f && fscanf(f, "%63s %llu", key, &v) == 2)
		if (!strcmp(key, "drm_render_minor"))
			minor = v;
	if (f)
		fclose(f);
	return minor;
}

bool kfd_gpu(uint32_t *id, int *render)
{
	char path[128];
	int node;
	FILE *f;

	for (node = 0; node < 80; node++) {
		snprintf(path, sizeof(path), NODES "/%d/gpu_id", node);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%u", id) != 1)
			*id = 0;
		fclose(f);
		if (!*id)
			continue;
		snprintf(path, sizeof(path), "/dev/dri/renderD%u",
			 node_minor(node));
		*render = open(path, O_RDWR | O_CLOEXEC);
		return *render >= 0;
	}
	return false;
}

int kfd_version(int fd, struct kfd_ioctl_get_version_args *v)
{
	return ioctl(fd, AMDKFD_IOC_GET_VERSION, v) ? errno : 0;
}

static bool alloc_bo(int kfd, uint32_t gpu, unsigned int n)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args a = {
		.va_addr = 0x200000000ULL + ((uint64_t)n << 20),
		.size = 65536,
		.gpu_id = gpu,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};

	return !ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a);
}

static bool alloc_user(int kfd, uint32_t gpu)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args a = {
		.size = 65536, .gpu_id = gpu,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	void *at = mmap(NULL, a.size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	a.va_addr = (uintptr_t)at;
	a.mmap_offset = (uintptr_t)at;
	return at != MAP_FAILED &&
	       !ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &a);
}

int kfd_target(void *arg)
{
	struct kfd_target *t = arg;
	struct kfd_ioctl_acquire_vm_args vm = { 0 };
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC), render;
	unsigned int i;

	if (kfd < 0 || t->bare)
		return kfd;
	if (!kfd_gpu(&vm.gpu_id, &render))
		return -1;
	vm.drm_fd = render;
	if (ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm))
		return -1;
	for (i = 0; i < t->bos; i++)
		if (!alloc_bo(kfd, vm.gpu_id, i))
			return -1;
	if (t->user && !alloc_user(kfd, vm.gpu_id))
		return -1;
	return kfd;
}

int session_new(struct raw *r, struct raw_ans *a, uint32_t direction, pid_t pid,
		int fd, uint64_t *id, int *session_fd)
{
	struct raw_req q;

	raw_begin(r, &q, GPUCR_CMD_SESSION_NEW, false);
	raw_put_u32(&q, GPUCR_A_SESSION_DIRECTION, direction);
	if (pid)
		raw_put_u32(&q, GPUCR_A_SESSION_PID, pid);
	if (fd >= 0)
		raw_put_u32(&q, GPUCR_A_SESSION_FD, fd);
	raw_call(r, &q, a);
	if (a->err || !a->num)
		return a->err;
	*id = raw_u64(&a->msgs[0], GPUCR_A_SESSION_ID);
	*session_fd = raw_u32(&a->msgs[0], GPUCR_A_SESSION_SESSION_FD);
	return 0;
}

int session_join(struct raw *r, struct raw_ans *a, uint64_t id, int fd)
{
	return raw_ask(r, a, GPUCR_CMD_SESSION_JOIN, false, GPUCR_A_SESSION_FD,
		       fd, GPUCR_A_SESSION_ID, id);
}

int session_del(struct raw *r, struct raw_ans *a, uint64_t id)
{
	return raw_ask(r, a, GPUCR_CMD_SESSION_DEL, false, 0, 0,
		       GPUCR_A_SESSION_ID, id);
}

const struct raw_msg *session_show(struct raw *r, struct raw_ans *a,
				   uint64_t id)
{
	if (raw_ask(r, a, GPUCR_CMD_SESSION_GET, true, 0, 0,
		    GPUCR_A_SESSION_ID, id) || !a->num)
		return NULL;
	return &a->msgs[0];
}

int session_state(struct raw *r, struct raw_ans *a, uint64_t id)
{
	const struct raw_msg *m = session_show(r, a, id);

	return m ? (int)raw_u32(m, GPUCR_A_SESSION_STATE) : -1;
}

bool session_wait(struct raw *r, struct raw_ans *a, uint64_t id, int state,
		  unsigned int ms)
{
	unsigned int i;

	for (i = 0; i <= ms / 10; i++) {
		if (session_state(r, a, id) == state)
			return true;
		usleep(10000);
	}
	printf("# session is in state %d after %u ms, not %d\n",
	       session_state(r, a, id), ms, state);
	return false;
}

struct relay relay_of(uint8_t cmd, uint64_t id)
{
	return (struct relay) { .cmd = cmd, .id = id, .kfd_fd = -1 };
}

void relay_buffers(struct relay *y)
{
	/* One more than counted: KFD wants an address where there is no BO. */
	y->devices = calloc(y->num_devices + 1,
			    sizeof(struct kfd_criu_device_bucket));
	y->bos = calloc(y->num_bos + 1, sizeof(struct kfd_criu_bo_bucket));
	y->priv = calloc(1, y->priv_size + 1);
}

void relay_request(struct raw *r, struct raw_req *q, const struct relay *y)
{
	raw_begin(r, q, y->cmd, true);
	raw_put_u64(q, GPUCR_A_RELAY_ID, y->id);
	if (y->kfd_fd >= 0)
		raw_put_u32(q, GPUCR_A_RELAY_KFD_FD, y->kfd_fd);
	if (y->pid)
		raw_put_u32(q, GPUCR_A_RELAY_PID, y->pid);
	if (y->cmd != GPUCR_CMD_SESSION_CHECKPOINT &&
	    y->cmd != GPUCR_CMD_SESSION_RESTORE)
		return;
	raw_put_u64(q, GPUCR_A_RELAY_DEVICES, (uintptr_t)y->devices);
	raw_put_u64(q, GPUCR_A_RELAY_BOS, (uintptr_t)y->bos);
	raw_put_u64(q, GPUCR_A_RELAY_PRIV, (uintptr_t)y->priv);
	raw_put_u32(q, GPUCR_A_RELAY_NUM_DEVICES, y->num_devices);
	raw_put_u32(q, GPUCR_A_RELAY_NUM_BOS, y->num_bos);
	raw_put_u32(q, GPUCR_A_RELAY_NUM_OBJECTS, y->num_objects);
	raw_put_u64(q, GPUCR_A_RELAY_PRIV_SIZE, y->priv_size);
}

static void take_done(const struct raw_msg *m, struct relay *y)
{
	y->done = true;
	y->error = raw_u32(m, GPUCR_A_RELAY_ERROR);
	snprintf(y->text, sizeof(y->text), "%s",
		 raw_str(m, GPUCR_A_RELAY_MESSAGE));
	y->state = raw_u32(m, GPUCR_A_RELAY_STATE);
	if (!raw_has(m, GPUCR_A_RELAY_NUM_DEVICES))
		return;
	y->told_pid = raw_u32(m, GPUCR_A_RELAY_PID);
	y->num_devices = raw_u32(m, GPUCR_A_RELAY_NUM_DEVICES);
	y->num_bos = raw_u32(m, GPUCR_A_RELAY_NUM_BOS);
	y->num_objects = raw_u32(m, GPUCR_A_RELAY_NUM_OBJECTS);
	y->priv_size = raw_u64(m, GPUCR_A_RELAY_PRIV_SIZE);
}

void relay_answer(struct raw_ans *a, struct relay *y)
{
	size_t i;

	y->accepted = false;
	y->done = false;
	y->error = a->err;
	y->bad = a->bad;
	y->late = a->late;
	snprintf(y->text, sizeof(y->text), "%s", a->text);
	for (i = 0; i < a->num; i++) {
		if (raw_u32(&a->msgs[i], GPUCR_A_RELAY_PHASE) ==
		    GPUCR_RELAY_PHASE_ACCEPTED)
			y->accepted = true;
		else
			take_done(&a->msgs[i], y);
	}
}

int relay_call(struct raw *r, struct raw_ans *a, struct relay *y)
{
	struct raw_req q;

	relay_request(r, &q, y);
	raw_call(r, &q, a);
	relay_answer(a, y);
	return y->error;
}

bool relay_refused(const struct relay *y, int err, const char *words)
{
	if (y->error == err && strstr(y->text, words))
		return true;
	printf("# got errno %d (%s), \"%s\"; wanted %d (%s), \"%s\"\n",
	       y->error, strerror(y->error), y->text, err, strerror(err),
	       words);
	return false;
}

void relay_close_fds(const struct relay *y)
{
	const struct kfd_criu_bo_bucket *b = y->bos;
	unsigned int i;

	for (i = 0; i < y->num_bos; i++)
		if (b[i].dmabuf_fd && b[i].dmabuf_fd != UINT32_MAX)
			close(b[i].dmabuf_fd);
}

static int sample_call(struct raw *r, struct raw_ans *a, struct relay *y,
		       uint8_t cmd)
{
	y->cmd = cmd;
	if (relay_call(r, a, y))
		printf("# operation %u of the sample: %s\n", cmd, y->text);
	return y->error;
}

bool relay_sample(struct raw *r, struct raw_ans *a, pid_t pid, int fd,
		  struct relay *y)
{
	int kfd = seize(pid) ? -1 : fd_of(pid, fd), sfd;
	bool ok;

	if (kfd < 0 || session_new(r, a, GPUCR_DIRECTION_CHECKPOINT, pid, kfd,
				   &y->id, &sfd)) {
		printf("# no session on process %d: %s\n", pid, a->text);
		return false;
	}
	y->kfd_fd = -1;
	ok = !sample_call(r, a, y, GPUCR_CMD_SESSION_PAUSE);
	if (ok && !y->devices)
		relay_buffers(y);
	ok = ok && !sample_call(r, a, y, GPUCR_CMD_SESSION_CHECKPOINT);
	if (ok)
		relay_close_fds(y);
	ok = ok && !sample_call(r, a, y, GPUCR_CMD_SESSION_UNPAUSE);
	close(sfd);
	close(kfd);
	return ok;
}

bool relay_sample_of(struct raw *r, struct raw_ans *a, struct kfd_target *t,
		     struct relay *y)
{
	struct helper h;
	bool ok;

	memset(y, 0, sizeof(*y));
	if (!helper_start(&h, kfd_target, t)) {
		printf("# no simulated GPU\n");
		return false;
	}
	ok = relay_sample(r, a, h.pid, h.fd, y);
	helper_stop(&h);
	return ok;
}

bool relay_sample_bos(struct raw *r, struct raw_ans *a, unsigned int bos,
		      struct relay *y)
{
	struct kfd_target t = { .bos = bos };

	return relay_sample_of(r, a, &t, y);
}

struct restorer *restorer_new(const struct relay *from)
{
	struct restorer *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		exit(1);
	t->from = *from;
	t->sfd = -1;
	t->error = -1;
	return t;
}

static void restorer_call(struct restorer *t, struct raw *r, struct raw_ans *a,
			  struct relay *y)
{
	const struct raw_msg *done = &a->msgs[1];
	struct raw_req q;

	relay_request(r, &q, y);
	if (t->image_pid)
		raw_put_u32(&q, GPUCR_A_RELAY_IMAGE_PID, t->image_pid);
	raw_call(r, &q, a);
	relay_answer(a, y);
	t->error = y->error;
	if (a->num < 2)
		return;
	t->kept = raw_u32(done, GPUCR_A_RELAY_KEPT);
	t->kept_error = raw_u32(done, GPUCR_A_RELAY_KEPT_ERROR);
}

int restorer_run(void *arg)
{
	struct restorer *t = arg;
	struct kfd_criu_device_bucket *dev = t->from.devices;
	struct raw_ans *a = raw_ans_new();
	struct relay y = t->from;
	int kfd = open("/dev/kfd", O_RDWR), render;
	struct raw own;
	uint32_t gpu;

	if (t->sfd >= 0)
		close(t->sfd);
	if (kfd < 0 || raw_open(&own) || !kfd_gpu(&gpu, &render))
		return -1;
	if (!t->stays_out && session_join(&own, a, t->id, kfd))
		return -1;
	dev->drm_fd = render;
	y.cmd = GPUCR_CMD_SESSION_RESTORE;
	y.id = t->id;
	y.kfd_fd = kfd;
	restorer_call(t, &own, a, &y);
	if (y.error)
		printf("# restore: %d %s\n", y.error, y.text);
	return !y.error && y.state == GPUCR_SESSION_STATE_RESTORED ? kfd : -1;
}
