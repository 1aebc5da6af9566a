// SPDX-License-Identifier: GPL-2.0-only
#include "task.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void parse_nspid(struct gpucr_task *t, const char *s)
{
	char *end;

	t->depth = 0;
	for (;;) {
		long n = strtol(s, &end, 10);

		if (end == s)
			return;
		t->ns_pid = n;
		t->depth++;
		s = end;
	}
}

static bool same_userns(pid_t pid)
{
	struct stat self, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return !stat("/proc/self/ns/user", &self) && !stat(path, &other) &&
	       self.st_ino == other.st_ino && self.st_dev == other.st_dev;
}

/* tracer may be NULL. */
static int read_status(pid_t pid, struct gpucr_task *ret, pid_t *tracer)
{
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	memset(ret, 0, sizeof(*ret));
	ret->pid = pid;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "NSpid:", 6))
			parse_nspid(ret, line + 6);
		else if (tracer && !strncmp(line, "TracerPid:", 10))
			*tracer = atoi(line + 10);
	}
	fclose(f);
	return ret->depth ? 0 : -ESRCH;
}

int gpucr_task_read(pid_t pid, struct gpucr_task *ret)
{
	int err = read_status(pid, ret, NULL);

	if (!err)
		ret->foreign_userns = !same_userns(pid);
	return err;
}

bool gpucr_task_is_gone(pid_t pid)
{
	char path[64], line[128];
	bool gone = true;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "State:", 6))
			gone = strpbrk(line + 6, "ZX") != NULL;
	}
	fclose(f);
	return gone;
}

static int compare_tasks(const void *a, const void *b)
{
	const struct gpucr_task *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int append_task(struct gpucr_task **list, size_t *num,
		       const struct gpucr_task *t)
{
	struct gpucr_task *more;

	if (!(*num & (*num - 1))) {
		more = realloc(*list, (*num ? *num * 2 : 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		*list = more;
	}
	(*list)[(*num)++] = *t;
	return 0;
}

/* Append the process to the list where the caller traces it. */
static int look_at_process(const char *name, struct gpucr_task **list,
			   size_t *num)
{
	struct gpucr_task t;
	pid_t tracer = 0;

	if (!isdigit((unsigned char)name[0]) ||
	    read_status(atoi(name), &t, &tracer) || tracer != gettid())
		return 0;
	t.foreign_userns = !same_userns(t.pid);
	return append_task(list, num, &t);
}

int gpucr_task_list_traced(struct gpucr_task **ret, size_t *num)
{
	struct dirent *de;
	int err = 0;
	DIR *d;

	*ret = NULL;
	*num = 0;
	d = opendir("/proc");
	if (!d)
		return -errno;
	while (!err && (de = readdir(d)))
		err = look_at_process(de->d_name, ret, num);
	closedir(d);
	if (err) {
		free(*ret);
		*ret = NULL;
		*num = 0;
		return err;
	}
	if (*num)
		qsort(*ret, *num, sizeof(**ret), compare_tasks);
	return 0;
}

/* One mapped inode and what it is; a task has few, and long runs of one. */
struct seen_inode {
	unsigned long long dev_ino[2];
	bool device;
	dev_t rdev;
};

struct map_reader {
	pid_t pid;
	struct seen_inode seen[16];
	unsigned int next;
	struct gpucr_task_map *maps;
	size_t num;
};

static struct seen_inode *look_up(struct map_reader *r,
				  const unsigned long long dev_ino[2],
				  unsigned long long start,
				  unsigned long long end)
{
	struct seen_inode *s;
	struct stat st;
	unsigned int i;
	char path[96];

	for (i = 0; i < 16; i++) {
		s = &r->seen[i];
		if (s->dev_ino[0] == dev_ino[0] && s->dev_ino[1] == dev_ino[1])
			return s;
	}
	s = &r->seen[r->next++ % 16];
	s->dev_ino[0] = dev_ino[0];
	s->dev_ino[1] = dev_ino[1];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", r->pid,
		 start, end);
	s->device = !stat(path, &st) && S_ISCHR(st.st_mode);
	s->rdev = s->device ? st.st_rdev : 0;
	return s;
}

static int read_map_line(struct map_reader *r, const char *line)
{
	unsigned long long start, end, offset, dev_ino[2];
	unsigned int maj, min;
	struct seen_inode *s;
	char perms[8];

	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu", &start, &end, perms,
		   &offset, &maj, &min, &dev_ino[1]) != 7 || !dev_ino[1])
		return 0;
	dev_ino[0] = (unsigned long long)maj << 32 | min;
	s = look_up(r, dev_ino, start, end);
	if (!s->device)
		return 0;
	if (!(r->num & (r->num - 1))) {
		size_t want = (r->num ? r->num * 2 : 1) * sizeof(*r->maps);
		struct gpucr_task_map *more = realloc(r->maps, want);

		if (!more)
			return -ENOMEM;
		r->maps = more;
	}
	r->maps[r->num++] = (struct gpucr_task_map){
		.start = start, .end = end, .offset = offset, .rdev = s->rdev,
	};
	return 0;
}

int gpucr_task_device_maps(pid_t pid, struct gpucr_task_map **ret, size_t *num)
{
	struct map_reader r = { .pid = pid };
	char path[64], *line = NULL;
	size_t size = 0;
	int err = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && getline(&line, &size, f) > 0)
		err = read_map_line(&r, line);
	free(line);
	fclose(f);
	if (err) {
		free(r.maps);
		return err;
	}
	*ret = r.maps;
	*num = r.num;
	return 0;
}
