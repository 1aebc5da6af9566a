// SPDX-License-Identifier: GPL-2.0-only
/* GPU processes as KFD's sysfs shows them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"

#define KFD_PROC	"/sys/class/kfd/kfd/proc"

static int open_dir(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A stream over a copy of dir. NULL where there is no memory or fd. */
static DIR *read_dir(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d;

	if (copy < 0)
		return NULL;
	d = fdopendir(copy);
	if (!d)
		close(copy);
	return d;
}

static int read_number(int dir, const char *path, uint64_t *ret)
{
	char text[32], *end;
	ssize_t n;
	int fd;

	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return end == text || errno ? -EINVAL : 0;
}

/* The number after prefix, where name is nothing else. */
static bool name_number(const char *name, const char *prefix, uint32_t *ret)
{
	size_t len = strlen(prefix);
	unsigned long n;
	char *end;

	if (strncmp(name, prefix, len) || name[len] < '0' || name[len] > '9')
		return false;
	n = strtoul(name + len, &end, 10);
	if (*end || n > UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/*
 * Room for one more of size bytes, zeroed, in the array whose pointer is at
 * array. NULL without memory.
 */
static void *grow(void *array, size_t *num, size_t size)
{
	void *at, *more;

	memcpy(&at, array, sizeof(at));
	more = reallocarray(at, *num + 1, size);
	if (!more)
		return NULL;
	memcpy(array, &more, sizeof(more));
	return memset((char *)more + size * (*num)++, 0, size);
}

static int add_gpu(int dir, const char *name, struct gpucr_kfd_proc *p)
{
	struct gpucr_kfd_gpu *g;
	char path[64];
	uint32_t id;

	if (!name_number(name, "vram_", &id))
		return 0;
	g = grow(&p->gpus, &p->num_gpus, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->gpu_id = id;
	if (read_number(dir, name, &g->vram))
		g->vram = 0;
	snprintf(path, sizeof(path), "stats_%u/evicted_ms", id);
	if (read_number(dir, path, &g->evicted_ms))
		g->evicted_ms = 0;
	return 0;
}

static int add_queue(int dir, const char *name, struct gpucr_kfd_proc *p)
{
	struct gpucr_kfd_queue *q;
	uint64_t gpu, type, size;
	char path[64];
	uint32_t qid;

	if (!name_number(name, "", &qid))
		return 0;
	snprintf(path, sizeof(path), "%u/gpuid", qid);
	if (read_number(dir, path, &gpu))
		return 0;	/* destroyed meanwhile */
	snprintf(path, sizeof(path), "%u/type", qid);
	if (read_number(dir, path, &type))
		return 0;
	snprintf(path, sizeof(path), "%u/size", qid);
	if (read_number(dir, path, &size))
		return 0;
	q = grow(&p->queues, &p->num_queues, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->qid = qid;
	q->gpu_id = (uint32_t)gpu;
	q->type = (uint32_t)type;
	q->size = size;
	return 0;
}

static int for_each_name(int dir, struct gpucr_kfd_proc *p,
			 int (*fn)(int dir, const char *name,
				   struct gpucr_kfd_proc *p))
{
	struct dirent *de;
	int err = 0;
	DIR *d;

	d = read_dir(dir);
	if (!d)
		return -errno;
	while (!err && (de = readdir(d)))
		err = fn(dir, de->d_name, p);
	closedir(d);
	return err;
}

static int compare_gpu(const void *a, const void *b)
{
	const struct gpucr_kfd_gpu *x = a, *y = b;

	return (x->gpu_id > y->gpu_id) - (x->gpu_id < y->gpu_id);
}

static int compare_queue(const void *a, const void *b)
{
	const struct gpucr_kfd_queue *x = a, *y = b;

	return (x->qid > y->qid) - (x->qid < y->qid);
}

static int read_all(int dir, struct gpucr_kfd_proc *p)
{
	int queues, err;

	err = for_each_name(dir, p, add_gpu);
	if (err)
		return err;
	queues = open_dir(dir, "queues");
	if (queues >= 0) {
		err = for_each_name(queues, p, add_queue);
		close(queues);
	}
	if (p->num_gpus)
		qsort(p->gpus, p->num_gpus, sizeof(*p->gpus), compare_gpu);
	if (p->num_queues)
		qsort(p->queues, p->num_queues, sizeof(*p->queues),
		      compare_queue);
	return err;
}

int gpucr_kfd_proc_read(pid_t pid, struct gpucr_kfd_proc *ret)
{
	int root, dir, err;
	char name[16];

	memset(ret, 0, sizeof(*ret));
	ret->pid = pid;
	root = open_dir(AT_FDCWD, KFD_PROC);
	if (root < 0)
		return root;
	snprintf(name, sizeof(name), "%d", pid);
	dir = open_dir(root, name);
	close(root);
	if (dir < 0)
		return dir == -ENOENT ? -ESRCH : dir;
	err = read_all(dir, ret);
	close(dir);
	if (err)
		gpucr_kfd_proc_clear(ret);
	/* What vanished while it was read belongs to a process that ended. */
	return err == -ENOENT ? -ESRCH : err;
}

void gpucr_kfd_proc_clear(struct gpucr_kfd_proc *p)
{
	free(p->gpus);
	free(p->queues);
	memset(p, 0, sizeof(*p));
}

static int compare_pid(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int gpucr_kfd_proc_list(pid_t **ret, size_t *num)
{
	struct dirent *de;
	uint32_t pid;
	pid_t *p;
	DIR *d;

	*ret = NULL;
	*num = 0;
	d = opendir(KFD_PROC);
	if (!d)
		return -errno;
	while ((de = readdir(d))) {
		if (!name_number(de->d_name, "", &pid) || pid > INT_MAX)
			continue;
		p = grow(ret, num, sizeof(*p));
		if (!p)
			goto no_memory;
		*p = (pid_t)pid;
	}
	closedir(d);
	if (*num)
		qsort(*ret, *num, sizeof(**ret), compare_pid);
	return 0;

no_memory:
	closedir(d);
	free(*ret);
	*ret = NULL;
	*num = 0;
	return -ENOMEM;
}

const char *gpucr_kfd_queue_type(uint32_t type)
{
	static const char * const names[] = {
		"compute", "sdma", "hiq", "diq", "sdma-xgmi", "sdma-engine",
	};

	if (type >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[type];
}
