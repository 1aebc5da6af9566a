// SPDX-License-Identifier: GPL-2.0-only
/* Devices, rights and settings of the machine, and of one process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "doctor.h"
#include "topology.h"

#define CAP_IPC_LOCK_BIT	14
#define CAP_SYS_PTRACE_BIT	19
#define CAP_SYS_ADMIN_BIT	21
#define CAP_CR_BIT		40
#define MEMLOCK_WANTED		(UINT64_C(64) << 20)	/* buffers of one GPU */

bool doctor_read(const char *dir, const char *name, char *to, size_t size)
{
	char path[512];
	size_t len;
	FILE *f;

	to[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	len = fread(to, 1, size - 1, f);
	fclose(f);
	to[len] = '\0';
	to[strcspn(to, "\n")] = '\0';
	return true;
}

/* What opening a device told, in words; the token to *token. */
static const char *open_problem(int err, const char **token, const char **fix)
{
	switch (err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		*token = "no-device";
		*fix = "load the driver; in a container, give it the device";
		return "it is not there";
	case EPERM:
		*token = "device-cgroup";
		*fix = "allow it in the device cgroup (systemd: DeviceAllow=, containers: --device)";
		return "the device cgroup forbids it";
	default:
		*token = "device-access";
		*fix = "run as root, or as a member of the device's group";
		return strerror(err);
	}
}

static int try_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	int err = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

static void judge_device(const char *check, const char *path, int err)
{
	const char *token, *fix, *what;

	what = open_problem(err, &token, &fix);
	doctor_say(DOCTOR_FAIL, check, token, fix, "%s: %s", path, what);
}

void doctor_check_kfd(const struct doctor_places *p)
{
	unsigned int maj, min;
	char path[512], text[32];
	struct stat st;
	int err;

	if (!doctor_read(p->sys, "class/kfd/kfd/dev", text, sizeof(text)) ||
	    sscanf(text, "%u:%u", &maj, &min) != 2) {
		doctor_say(DOCTOR_FAIL, "kfd", "no-kfd", "modprobe amdgpu",
			   "there is no KFD: the GPU's driver is not loaded");
		return;
	}
	snprintf(path, sizeof(path), "%s/kfd", p->dev);
	if (stat(path, &st)) {
		judge_device("kfd", path, errno);
		return;
	}
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(maj, min)) {
		doctor_say(DOCTOR_FAIL, "kfd", "wrong-device",
			   "mknod it as /sys/class/kfd/kfd/dev says",
			   "%s is not device %u:%u", path, maj, min);
		return;
	}
	err = try_open(path);
	/* Without a GPU that it may use, a newer KFD answers EINVAL. */
	if (err == EINVAL)
		doctor_say(DOCTOR_FAIL, "kfd", "no-gpu",
			   "give this cgroup or container a GPU",
			   "%s: no GPU can be used here", path);
	else if (err)
		judge_device("kfd", path, err);
	else
		doctor_say(DOCTOR_OK, "kfd", NULL, NULL, "%s, device %u:%u",
			   path, maj, min);
}

void doctor_check_render(const struct doctor_places *p)
{
	struct gpucr_topology *t;
	size_t i, good = 0;
	char path[512];

	snprintf(path, sizeof(path), "%s/class/kfd/kfd/topology", p->sys);
	if (gpucr_topology_read(path, &t))
		return;
	for (i = 0; i < t->num_gpus; i++) {
		const char *token, *fix, *what;
		int err;

		snprintf(path, sizeof(path), "%s/dri/renderD%u", p->dev,
			 t->gpus[i]->drm_render_minor);
		err = try_open(path);
		if (!err) {
			good++;
			continue;
		}
		what = open_problem(err, &token, &fix);
		doctor_say(DOCTOR_WARN, "render", "no-render-node", fix,
			   "GPU %u: %s: %s", t->gpus[i]->gpu_id, path, what);
	}
	if (!t->num_gpus)
		doctor_say(DOCTOR_FAIL, "render", "no-gpu",
			   "dmesg tells why the driver found none",
			   "KFD knows no GPU that can be seen here");
	else
		doctor_say(good ? DOCTOR_OK : DOCTOR_FAIL, "render",
			   good ? NULL : "no-render-node",
			   good ? NULL : "give this cgroup or container a /dev/dri/renderD*",
			   "%zu of %zu GPUs have a render node that opens",
			   good, t->num_gpus);
	gpucr_topology_free(t);
}

void doctor_check_kernel(const struct doctor_places *p)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/sys/kernel/ns_last_pid", p->proc);
	if (access(path, F_OK))
		doctor_say(DOCTOR_FAIL, "kernel", "kernel-config",
			   "use a kernel with CONFIG_CHECKPOINT_RESTORE",
			   "this kernel cannot checkpoint processes");
	else
		doctor_say(DOCTOR_OK, "kernel", NULL, NULL,
			   "it can checkpoint processes");
}

void doctor_check_io_uring(const struct doctor_places *p)
{
	char text[16];

	if (!doctor_read(p->proc, "sys/kernel/io_uring_disabled", text,
			 sizeof(text)) || *text == '0')
		doctor_say(DOCTOR_OK, "io_uring", NULL, NULL,
			   "programs may use it; CRIU cannot dump those that do");
	else
		doctor_say(DOCTOR_OK, "io_uring", NULL, NULL,
			   "kernel.io_uring_disabled is %s: images are written without it",
			   text);
}

/* CapEff of the caller; 0 where /proc does not tell. */
static uint64_t read_capabilities(const char *proc)
{
	char path[512], line[128];
	uint64_t caps = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/self/status", proc);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "CapEff:", 7))
			caps = strtoull(line + 7, NULL, 16);
	if (f)
		fclose(f);
	return caps;
}

static bool has_cap(uint64_t caps, unsigned int bit)
{
	return caps >> bit & 1;
}

static void memlock(const struct doctor_places *p, uint64_t caps)
{
	char path[512], line[128], soft[32];
	uint64_t limit = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/self/limits", p->proc);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Max locked memory %31s", soft) == 1)
			limit = *soft == 'u' ? UINT64_MAX :
					       strtoull(soft, NULL, 10);
	if (f)
		fclose(f);
	doctor_judge_memlock(caps, limit);
}

void doctor_judge_memlock(uint64_t capabilities, uint64_t limit)
{
	if (has_cap(capabilities, CAP_IPC_LOCK_BIT) || limit >= MEMLOCK_WANTED)
		doctor_say(DOCTOR_OK, "memlock", NULL, NULL,
			   "memory for buffers can be locked");
	else
		doctor_say(DOCTOR_WARN, "memlock", "memlock-low",
			   "ulimit -l unlimited, or CAP_IPC_LOCK",
			   "only %" PRIu64 " KiB can be locked: copies are slower",
			   limit >> 10);
}

void doctor_check_capabilities(const struct doctor_places *p)
{
	uint64_t caps = read_capabilities(p->proc);
	unsigned long from = 1, to = 1, num = 0;
	char text[64];
	bool initial;

	doctor_read(p->proc, "self/uid_map", text, sizeof(text));
	initial = sscanf(text, "%lu %lu %lu", &from, &to, &num) == 3 &&
		  !from && !to && num == UINT32_MAX;
	if (!initial)
		doctor_say(DOCTOR_FAIL, "capabilities", "user-namespace",
			   "run it on the host as root",
			   "this is a user namespace: KFD wants capabilities of the host");
	else if (!has_cap(caps, CAP_SYS_ADMIN_BIT) &&
		 !has_cap(caps, CAP_CR_BIT))
		doctor_say(DOCTOR_FAIL, "capabilities", "no-capability",
			   "run as root, or with CAP_CHECKPOINT_RESTORE and CAP_SYS_PTRACE",
			   "neither CAP_CHECKPOINT_RESTORE nor CAP_SYS_ADMIN");
	else if (!has_cap(caps, CAP_SYS_PTRACE_BIT))
		doctor_say(DOCTOR_FAIL, "capabilities", "no-capability",
			   "run as root, or with CAP_SYS_PTRACE too",
			   "no CAP_SYS_PTRACE");
	else
		doctor_say(DOCTOR_OK, "capabilities", NULL, NULL,
			   "all that CRIU and KFD want");
	memlock(p, caps);
}

/* Descriptors of the process whose name has this in it; -1: not readable. */
static int count_fds(const char *proc, pid_t pid, const char *what)
{
	char path[512], link[128];
	struct dirent *de;
	int num = 0;
	ssize_t n;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%d/fd", proc, pid);
	d = opendir(path);
	if (!d)
		return -1;
	while ((de = readdir(d))) {
		n = readlinkat(dirfd(d), de->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		num += !!strstr(link, what);
	}
	closedir(d);
	return num;
}

/* Is the process in the user namespace of the caller? */
static bool same_user_namespace(const char *proc, pid_t pid)
{
	char path[512], a[64] = "", b[64] = "";

	snprintf(path, sizeof(path), "%s/self/ns/user", proc);
	if (readlink(path, a, sizeof(a) - 1) < 0)
		return true;
	snprintf(path, sizeof(path), "%s/%d/ns/user", proc, pid);
	return readlink(path, b, sizeof(b) - 1) < 0 || !strcmp(a, b);
}

void doctor_check_pid(const struct doctor_places *p, pid_t pid)
{
	int kfd = count_fds(p->proc, pid, "/dev/kfd");
	char path[512];

	snprintf(path, sizeof(path), "%s/%d", p->proc, pid);
	if (access(path, F_OK)) {
		doctor_say(DOCTOR_FAIL, "pid", "no-process", "gpucr ps",
			   "pid %d: there is no such process", pid);
		return;
	}
	if (kfd < 0) {
		doctor_say(DOCTOR_FAIL, "pid", "no-ptrace-access",
			   "run as root, or with CAP_SYS_PTRACE",
			   "pid %d: it cannot be looked into", pid);
		return;
	}
	if (!same_user_namespace(p->proc, pid))
		doctor_say(DOCTOR_FAIL, "pid", "user-namespace",
			   "run the job without a user namespace of its own",
			   "pid %d: it is in another user namespace, where KFD does not restore",
			   pid);
	else if (count_fds(p->proc, pid, "anon_inode:[io_uring]") > 0)
		doctor_say(DOCTOR_FAIL, "pid", "io-uring",
			   "sysctl kernel.io_uring_disabled=2 before the job starts",
			   "pid %d: it uses io_uring, which CRIU cannot dump",
			   pid);
	else if (!kfd)
		doctor_say(DOCTOR_OK, "pid", NULL, NULL,
			   "pid %d: it does not use KFD, so gpucr leaves it to CRIU",
			   pid);
	else
		doctor_say(DOCTOR_OK, "pid", NULL, NULL,
			   "pid %d: KFD open %d time%s, nothing in the way", pid,
			   kfd, kfd > 1 ? "s" : "");
}
