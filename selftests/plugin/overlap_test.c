// SPDX-License-Identifier: GPL-2.0-only
/*
 * How tasks hand their buffers over to CRIU's own process: a stand-in for CRIU
 * with its store of descriptors, forked tasks, and files with their number in
 * them for dma-bufs. One that is dropped of each part turns it red.
 */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../plugin/amdgpu/host.h"
#include "../../plugin/amdgpu/overlap.h"
#include "../../plugin/amdgpu/plugin.h"
#include "../ktap.h"

#define MANY	600
#define STORE	16

/* What host.c compares others with. */
struct plugin_desc CR_PLUGIN_DESC = { .name = PLUGIN_NAME };

/* --- CRIU's store: the tasks have it by fork ----------------------------- */

static int store[STORE], num_stored;

__attribute__((visibility("default")))
int fdstore_add(int fd)
{
	store[num_stored] = dup(fd);
	return store[num_stored] < 0 ? -1 : num_stored++;
}

__attribute__((visibility("default")))
int fdstore_get(int id)
{
	return id < num_stored ? dup(store[id]) : -1;
}

static void empty_store(void)
{
	while (num_stored)
		close(store[--num_stored]);
}

static int num_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = -1;	/* that of the directory itself */

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* --- fills ---------------------------------------------------------------- */

static atomic_int num_good, num_begun;

static int fill_good(uint32_t image_id, const int *fds, size_t num,
		     const struct content_watch *watch)
{
	size_t i;
	uint32_t v;

	(void)watch;
	for (i = 0; i < num; i++) {
		if (pread(fds[i], &v, sizeof(v), 0) != sizeof(v) ||
		    v != image_id + i)
			return -EBADMSG;
	}
	atomic_fetch_add(&num_good, num);
	return 0;
}

static int fill_bad(uint32_t image_id, const int *fds, size_t num,
		    const struct content_watch *watch)
{
	(void)image_id;
	(void)fds;
	(void)num;
	(void)watch;
	return -EILSEQ;
}

static void nap(void)
{
	const struct timespec t = { .tv_nsec = 5000000 };

	nanosleep(&t, NULL);
}

static int fill_slow(uint32_t image_id, const int *fds, size_t num,
		     const struct content_watch *watch)
{
	(void)image_id;
	(void)fds;
	(void)num;
	atomic_store(&num_begun, 1);
	while (!watch->tick(watch->arg))
		nap();
	return -ECANCELED;
}

/* --- tasks ---------------------------------------------------------------- */

static bool offer(uint32_t image_id, size_t num)
{
	int fds[MANY];
	size_t i;

	for (i = 0; i < num; i++) {
		uint32_t v = image_id + i;

		fds[i] = memfd_create("bo", MFD_CLOEXEC);
		if (fds[i] < 0 || write(fds[i], &v, sizeof(v)) != sizeof(v))
			_exit(9);
	}
	return overlap_hand_over(image_id, fds, num);
}

/* A task of so many BOs; with an error it stays until it sees that. */
static pid_t start_task(uint32_t image_id, size_t num, int error)
{
	pid_t pid = fork();
	int i;

	if (pid)
		return pid;
	if (!offer(image_id, num))
		_exit(1);
	for (i = 0; error && i < 2000 && overlap_error() != error; i++)
		nap();
	_exit(error == overlap_error() ? 0 : 2);
}

/* It says how many it has, and dies. */
static pid_t start_dying_task(void)
{
	const uint32_t note[] = { 1, 7, 10 };
	pid_t pid = fork();
	int sock;

	if (pid)
		return pid;
	sock = fdstore_get(0);
	_exit(send(sock, note, sizeof(note), 0) != sizeof(note));
}

static int status_of(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
	       WEXITSTATUS(status) : -1;
}

/* --- tests ---------------------------------------------------------------- */

static struct overlap_result res;

static int end(bool cancel)
{
	int err = overlap_end(cancel, &res);

	empty_store();
	return err;
}

static void two_at_once(void)
{
	pid_t a, b;

	overlap_init(2);
	a = start_task(100, MANY, 0);
	b = start_task(5000, MANY, 0);
	/* As CRIU's hook, which comes when the tasks are there. */
	overlap_start(fill_good);
	ktap_ok(!status_of(a) && !status_of(b), "two tasks hand over");
	ktap_ok(!end(false) && res.processes == 2 && num_good == 2 * MANY,
		"all %d dma-bufs came, in order", (int)num_good);
}

static void more_than_lanes(void)
{
	pid_t a, b;

	overlap_init(1);
	overlap_start(fill_good);
	a = start_task(100, 3, 0);
	ktap_ok(!status_of(a), "the first takes the lane");
	b = start_task(200, 3, 0);
	ktap_ok(status_of(b) == 1, "the second does it itself");
	ktap_ok(!end(false) && res.processes == 1, "one was filled");
}

static void too_many(void)
{
	struct rlimit old, r;
	pid_t a;

	getrlimit(RLIMIT_NOFILE, &old);
	r = old;
	r.rlim_cur = 2 * MANY - 2;
	setrlimit(RLIMIT_NOFILE, &r);
	overlap_init(1);
	setrlimit(RLIMIT_NOFILE, &old);
	overlap_start(fill_good);
	a = start_task(100, MANY, 0);
	ktap_ok(status_of(a) == 1 && !end(false) && !res.processes,
		"more than CRIU has room for: the task does it itself");
}

static void failure(void)
{
	pid_t a;

	overlap_init(1);
	overlap_start(fill_bad);
	a = start_task(100, 1, -EILSEQ);
	ktap_ok(!status_of(a), "a failed fill is seen by the task");
	ktap_ok(end(false) == -EILSEQ && !res.processes, "and by CRIU");
}

static void nobody_comes(void)
{
	overlap_init(1);
	ktap_ok(status_of(start_task(100, 1, 0)) == 1 && !end(true),
		"CRIU's hook never comes: the task does it itself");
	overlap_init(3);
	overlap_start(fill_good);
	ktap_ok(!end(false) && !res.processes, "nobody came");
	overlap_init(1);
	overlap_start(fill_good);
	ktap_ok(!status_of(start_dying_task()) && !end(false) &&
		!res.processes, "who came died before its dma-bufs");
	overlap_init(2);
	ktap_ok(!end(true), "the threads were never started");
}

static void cancelled(void)
{
	pid_t a;
	int i;

	overlap_init(1);
	overlap_start(fill_slow);
	a = start_task(100, 1, 0);
	for (i = 0; i < 2000 && !num_begun; i++)
		nap();
	ktap_ok(!status_of(a) && !end(true) && !res.processes,
		"a fill that is given up is no failure");
}

int main(void)
{
	int open_before = num_open();

	ktap_plan(15);
	ktap_ok(!overlap_hand_over(1, &open_before, 1) && !end(false),
		"without lanes nothing is handed over");
	two_at_once();
	more_than_lanes();
	too_many();
	failure();
	nobody_comes();
	cancelled();
	ktap_ok(num_open() == open_before, "no descriptor is left: %d, %d",
		num_open(), open_before);
	return ktap_exit();
}
