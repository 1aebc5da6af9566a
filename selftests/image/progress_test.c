// SPDX-License-Identifier: GPL-2.0-only
/*
 * Progress files: whole for readers however many write, of their process, and
 * gone after it. (Without the checksum the torn record is taken for whole.)
 * With arguments, for tests of the tool: a dump of so many MiB
 * in so many seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "progress.h"
#include "sample.h"
#include "table.h"

#define WRITERS		3
#define ROUNDS		3000
#define MIB		(UINT64_C(1) << 20)

static int run, dir;

static uint64_t number(const char *text, const char *key)
{
	char want[32];
	const char *p;

	snprintf(want, sizeof(want), "\"%s\":", key);
	p = strstr(text, want);
	return p ? strtoull(p + strlen(want), NULL, 10) : UINT64_MAX;
}

static int record(void)
{
	struct gpucr_progress *p = gpucr_progress_open(run, "dump");
	char text[GPUCR_PROGRESS_LEN], name[32];
	struct stat st;

	CHECK(p);
	dir = openat(run, "gpucr", O_RDONLY | O_DIRECTORY);
	snprintf(name, sizeof(name), "%d.json", getpid());
	CHECK(!fstatat(dir, name, &st, 0));
	CHECK((st.st_mode & 07777) == 0644);
	CHECK(st.st_size == GPUCR_PROGRESS_LEN);
	gpucr_progress_expect(p, 300);
	gpucr_progress_add(p, 100);
	gpucr_progress_phase(p, "copy", 4711);
	CHECK(!gpucr_progress_read(dir, getpid(), text));
	ktap_note("%s", text);
	CHECK(number(text, "pid") == (uint64_t)getpid());
	CHECK(number(text, "target") == 4711);
	CHECK(number(text, "done") == 100 && number(text, "total") == 300);
	CHECK(strstr(text, "\"kind\":\"dump\"") &&
	      strstr(text, "\"phase\":\"copy\""));
	gpucr_progress_phase(p, "done", 0);
	CHECK(!gpucr_progress_read(dir, getpid(), text));
	CHECK(number(text, "target") == 4711 && strstr(text, "\"done\""));
	gpucr_progress_close(p);
	return 0;
}

/* What is half of one record and half of another is not taken for one. */
static int torn(void)
{
	struct gpucr_progress *p = gpucr_progress_open(run, "dump");
	char text[GPUCR_PROGRESS_LEN], name[32], *at;
	int fd;

	CHECK(p);
	snprintf(name, sizeof(name), "%d.json", getpid());
	fd = openat(dir, name, O_RDWR);
	CHECK(fd >= 0 && pread(fd, text, sizeof(text), 0) == sizeof(text));
	text[sizeof(text) - 1] = '\0';
	at = strstr(text, "\"done\":");
	CHECK(at && pwrite(fd, "9", 1, at + 7 - text) == 1);
	CHECK(gpucr_progress_read(dir, getpid(), text) == -EBADMSG);
	close(fd);
	gpucr_progress_close(p);
	return 0;
}

static int many_writers(void)
{
	struct gpucr_progress *p = gpucr_progress_open(run, "restore");
	char text[GPUCR_PROGRESS_LEN];
	uint64_t last = 0, done;
	pid_t pids[WRITERS];
	unsigned int i, j;
	int status, reads;

	CHECK(p);
	for (i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i])
			continue;
		/* Each a record: the pace of add() would leave few. */
		for (j = 0; j < ROUNDS; j++) {
			gpucr_progress_add(p, 1);
			gpucr_progress_phase(p, j % 2 ? "fill" : "a-longer-phase",
					     1 + j * 7919 % 99999);
		}
		_exit(0);
	}
	for (i = 0, reads = 0; i < WRITERS; reads++) {
		CHECK(!gpucr_progress_read(dir, getpid(), text));
		done = number(text, "done");
		CHECK(done >= last && done <= WRITERS * ROUNDS);
		last = done;
		if (waitpid(pids[i], &status, WNOHANG) == pids[i]) {
			CHECK(!status);
			i++;
		}
	}
	gpucr_progress_phase(p, "done", 0);
	CHECK(!gpucr_progress_read(dir, getpid(), text));
	ktap_note("%d reads", reads);
	CHECK(number(text, "done") == WRITERS * ROUNDS);
	gpucr_progress_close(p);
	return 0;
}

/* The next writer clears away what the dead left, and nothing else. */
static int dead_ones_go(void)
{
	struct gpucr_progress *p;
	char text[GPUCR_PROGRESS_LEN], name[32];
	pid_t pid, *pids;
	size_t num;
	int fd;

	fd = openat(dir, "kfd-seen", O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	close(fd);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(!gpucr_progress_open(run, "dump"));
	CHECK(waitpid(pid, NULL, 0) == pid);
	snprintf(name, sizeof(name), "%d.json", pid);
	CHECK(!faccessat(dir, name, F_OK, 0));
	CHECK(gpucr_progress_read(dir, pid, text) == -ESRCH);
	CHECK(!gpucr_progress_list(dir, &pids, &num));
	CHECK(num == 1 && pids[0] == getpid());
	free(pids);
	p = gpucr_progress_open(run, "dump");
	CHECK(p && faccessat(dir, name, F_OK, 0));
	CHECK(!faccessat(dir, "kfd-seen", F_OK, 0));
	gpucr_progress_close(p);
	return 0;
}

static int nowhere(void)
{
	int null = open("/dev/null", O_RDONLY);
	struct gpucr_progress *p = gpucr_progress_open(null, "dump");

	CHECK(!p && !gpucr_progress_open(-1, "dump"));
	gpucr_progress_expect(p, 1);
	gpucr_progress_add(p, 1);
	gpucr_progress_phase(p, "copy", 1);
	gpucr_progress_close(p);
	close(null);
	return 0;
}

static int pretend(unsigned int mib, unsigned int seconds)
{
	struct gpucr_progress *p;
	unsigned int i;

	run = open("/run", O_RDONLY | O_DIRECTORY);
	p = gpucr_progress_open(run, "dump");
	if (!p)
		return 1;
	gpucr_progress_expect(p, mib * MIB);
	gpucr_progress_phase(p, "copy", 4711);
	for (i = 0; i < seconds * 20; i++) {
		usleep(50000);
		gpucr_progress_add(p, mib * MIB / (seconds * 20));
	}
	gpucr_progress_phase(p, "done", 0);
	/* Until it is killed: the files of the dead are not shown. */
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct ktap_test tests[] = {
		{ "a record, for all to read", record },
		{ "a torn record is refused", torn },
		{ "many writers, whole records", many_writers },
		{ "files of dead processes go", dead_ones_go },
		{ "where there is no place for it", nowhere },
	};

	if (argc == 3)
		return pretend(atoi(argv[1]), atoi(argv[2]));
	run = sample_dir();
	if (run < 0)
		return 1;
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
