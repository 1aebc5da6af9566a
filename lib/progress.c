// SPDX-License-Identifier: GPL-2.0-only
#include "progress.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"
#include "imgfile.h"
#include "log.h"
#include "proc.h"

#define SUM_KEY		",\"sum\":\""
#define SUM_LEN		16
/* At most so often, and the rate is over about that long. */
#define WRITE_MS	100
#define RATE_MS		1000
/* A writer needs microseconds; it may be killed in between. */
#define READ_TRIES	50
#define READ_NAP_NS	2000000

/* Of all tasks that share it. */
struct progress_shared {
	_Atomic uint64_t done, total;
	atomic_flag busy;
	/* Under busy. */
	char phase[32];
	pid_t target;
	uint64_t written_ms, rate_ms, rate_done, rate;
};

struct gpucr_progress {
	char *text;			/* the file */
	struct progress_shared *s;
	char kind[16];
	pid_t pid;
	unsigned long long start_time;
	uint64_t begun_ms;
};

/* A restored task may have another monotonic clock than CRIU. */
static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void measure(const struct gpucr_progress *p, uint64_t now)
{
	struct progress_shared *s = p->s;
	uint64_t done = atomic_load(&s->done), ms = now - s->rate_ms;

	if (now < s->rate_ms)
		s->rate_ms = now;
	else if (ms >= RATE_MS || !s->rate)
		s->rate = ms ? (done - s->rate_done) * 1000 / ms : 0;
	if (ms < RATE_MS)
		return;
	s->rate_ms = now;
	s->rate_done = done;
}

static void write_record(const struct gpucr_progress *p, uint64_t now)
{
	struct progress_shared *s = p->s;
	char text[GPUCR_PROGRESS_LEN];
	size_t n;

	measure(p, now);
	memset(text, ' ', sizeof(text));
	n = snprintf(text, sizeof(text),
		     "{\"gpucr\":1,\"object\":\"progress\",\"pid\":%d,\"start_time\":%llu,\"kind\":\"%s\",\"target\":%d,\"phase\":\"%s\",\"done\":%llu,\"total\":%llu,\"rate\":%llu,\"elapsed_us\":%llu,\"time\":%llu",
		     p->pid, p->start_time, p->kind, s->target, s->phase,
		     (unsigned long long)atomic_load(&s->done),
		     (unsigned long long)atomic_load(&s->total),
		     (unsigned long long)s->rate,
		     (unsigned long long)(now - p->begun_ms) * 1000,
		     (unsigned long long)now / 1000);
	n += snprintf(text + n, sizeof(text) - n, SUM_KEY "%016llx\"}",
		      (unsigned long long)gpucr_checksum(text, n));
	text[n] = ' ';
	text[sizeof(text) - 1] = '\n';
	memcpy(p->text, text, sizeof(text));
	s->written_ms = now;
}

static void remove_dead(int dir)
{
	char text[GPUCR_PROGRESS_LEN], name[32];
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d && fd >= 0)
		close(fd);
	while (d && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);

		snprintf(name, sizeof(name), "%d.json", pid);
		if (pid > 0 && !strcmp(name, e->d_name) &&
		    gpucr_progress_read(dir, pid, text) == -ESRCH)
			unlinkat(dir, name, 0);
	}
	if (d)
		closedir(d);
}

/* Its pages are there before it is mapped: a full /run must kill nobody. */
static char *make_file(int dir, pid_t pid)
{
	char text[GPUCR_PROGRESS_LEN], name[32];
	char *map = MAP_FAILED;
	int fd;

	snprintf(name, sizeof(name), "%d.json", pid);
	unlinkat(dir, name, 0);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return NULL;
	memset(text, ' ', sizeof(text));
	if (!fchmod(fd, 0644) &&
	    write(fd, text, sizeof(text)) == (ssize_t)sizeof(text))
		map = mmap(NULL, sizeof(text), PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		return map;
	unlinkat(dir, name, 0);
	return NULL;
}

static int open_dir(int run)
{
	if (run < 0)
		return -1;
	mkdirat(run, "gpucr", 0755);
	return openat(run, "gpucr",
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct gpucr_progress *gpucr_progress_open(int run, const char *kind)
{
	struct gpucr_progress *p = calloc(1, sizeof(*p));
	int dir = open_dir(run);

	if (!p || dir < 0)
		goto err_free;
	p->pid = getpid();
	p->start_time = gpucr_proc_start_time(p->pid);
	p->begun_ms = now_ms();
	snprintf(p->kind, sizeof(p->kind), "%s", kind);
	remove_dead(dir);
	p->s = mmap(NULL, sizeof(*p->s), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->s == MAP_FAILED)
		goto err_free;
	p->text = make_file(dir, p->pid);
	if (!p->text)
		goto err_unmap;
	close(dir);
	p->s->rate_ms = p->begun_ms;
	gpucr_progress_phase(p, "start", 0);
	return p;

err_unmap:
	munmap(p->s, sizeof(*p->s));
err_free:
	gpucr_dbg("no progress file in " GPUCR_RUN_DIR);
	if (dir >= 0)
		close(dir);
	free(p);
	return NULL;
}

void gpucr_progress_close(struct gpucr_progress *p)
{
	if (!p)
		return;
	munmap(p->text, GPUCR_PROGRESS_LEN);
	munmap(p->s, sizeof(*p->s));
	free(p);
}

/* One writes at a time; a task that was killed while it did stops the rest. */
static bool lock(struct gpucr_progress *p, unsigned int tries)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	while (atomic_flag_test_and_set(&p->s->busy)) {
		if (!tries--)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

void gpucr_progress_phase(struct gpucr_progress *p, const char *phase,
			  pid_t target)
{
	if (!p || !lock(p, 20))
		return;
	snprintf(p->s->phase, sizeof(p->s->phase), "%s", phase);
	if (target)
		p->s->target = target;
	write_record(p, now_ms());
	atomic_flag_clear(&p->s->busy);
}

void gpucr_progress_expect(struct gpucr_progress *p, uint64_t bytes)
{
	if (p)
		atomic_fetch_add(&p->s->total, bytes);
}

void gpucr_progress_add(struct gpucr_progress *p, uint64_t bytes)
{
	uint64_t now;

	if (!p)
		return;
	atomic_fetch_add(&p->s->done, bytes);
	if (!lock(p, 0))
		return;
	now = now_ms();
	if (now - p->s->written_ms >= WRITE_MS)
		write_record(p, now);
	atomic_flag_clear(&p->s->busy);
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

int gpucr_progress_list(int dir, pid_t **ret, size_t *num)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char text[GPUCR_PROGRESS_LEN], name[32];
	struct dirent *e;
	pid_t *more;
	int err = d ? 0 : -errno;

	*ret = NULL;
	*num = 0;
	while (!err && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);

		snprintf(name, sizeof(name), "%d.json", pid);
		if (pid <= 0 || strcmp(name, e->d_name) ||
		    gpucr_progress_read(dir, pid, text))
			continue;
		more = reallocarray(*ret, *num + 1, sizeof(*more));
		if (!more) {
			err = -ENOMEM;
			break;
		}
		*ret = more;
		more[(*num)++] = pid;
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	if (*num)
		qsort(*ret, *num, sizeof(**ret), compare_pids);
	return err;
}

/* Is it a whole record, and of this pid? Ends the text behind it. */
static bool is_whole(char *text, unsigned long long *start_time, pid_t pid)
{
	char *sum = NULL, *at = text, want[SUM_LEN + 1];
	int found;

	text[GPUCR_PROGRESS_LEN - 1] = '\0';
	while ((at = strstr(at, SUM_KEY)))
		sum = at++;
	if (!sum || strlen(sum) < strlen(SUM_KEY) + SUM_LEN + 2)
		return false;
	snprintf(want, sizeof(want), "%016llx",
		 (unsigned long long)gpucr_checksum(text, sum - text));
	sum += strlen(SUM_KEY);
	if (strncmp(sum, want, SUM_LEN) || strncmp(sum + SUM_LEN, "\"}", 2))
		return false;
	sum[SUM_LEN + 2] = '\0';
	return sscanf(text, "{\"gpucr\":1,\"object\":\"progress\",\"pid\":%d,\"start_time\":%llu,",
		      &found, start_time) == 2 && found == pid;
}

int gpucr_progress_read(int dir, pid_t pid, char text[GPUCR_PROGRESS_LEN])
{
	const struct timespec nap = { .tv_nsec = READ_NAP_NS };
	unsigned long long start, now = gpucr_proc_start_time(pid);
	char name[32];
	unsigned int i;
	int fd, err = -EBADMSG;

	snprintf(name, sizeof(name), "%d.json", pid);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (i = 0; i < READ_TRIES && err == -EBADMSG; i++) {
		err = gpucr_pread_all(fd, text, GPUCR_PROGRESS_LEN, 0);
		if (!err && !is_whole(text, &start, pid))
			err = -EBADMSG;
		/* Half-written by one that will not go on. */
		if (err && !now)
			err = -ESRCH;
		if (err == -EBADMSG)
			nanosleep(&nap, NULL);
	}
	close(fd);
	return err ? err : now == start ? 0 : -ESRCH;
}
