// SPDX-License-Identifier: GPL-2.0-only
/* Options and process set-up of the test programs. */
#include "app.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage_text[] =
	"usage: %s [OPTION]...\n"
	"  --gpus N         GPUs to use (1)\n"
	"  --bos N          BOs rewritten in each step, per heap and GPU (1)\n"
	"  --size BYTES     size of each, K, M or G may follow (1M)\n"
	"  --heap LIST      of vram, gtt, userptr (these three), svm\n"
	"  --queues N       user queues per GPU (1)\n"
	"  --procs N        processes (1)\n"
	"  --steps N        end after N steps (0: never)\n"
	"  --delay-ms N     pause between steps (0)\n"
	"  --small-bos N    more BOs of 64 KiB in VRAM, constant (0)\n"
	"  --idle-vram N    vecloop: a BO of N bytes in VRAM of each GPU, which nobody ever writes (0)\n"
	"  --zero-vram N    vecloop: a BO of N bytes in VRAM of each GPU, which holds zeros (0)\n"
	"  --digest         print each BO's digest in each step\n"
	"  --log FILE       append output to FILE, go to the background when the first step is done\n"
	"  --hold FILE      keep FILE open, for reading\n"
	"  --threads N      more threads, idle, in each process (0)\n"
	"  --children N     idle children of each process, forked without exec (0)\n"
	"  --fill-fds N     take the first N descriptors from 3 on (0)\n"
	"  --kfd-last       KFD's descriptor above those of the render nodes\n"
	"  --no-stdin       close descriptor 0\n"
	"  --half-socket    keep one end of a socket pair whose other end a process outside the tree has\n"
	"  --shared KIND    shareloop: anon, memfd or sysv\n"
	"  --pidfile FILE   write the process id there\n";

/* Where a process tells the front that it is ready; -1 when it has. */
static int ready_fd = -1;
/* Where the processes that we forked tell us; -1 where there are none. */
static int procs_fd = -1;
/* Our end of --half-socket; -1 without it. */
static int half_fd = -1;

static void die_usage(const char *fmt, const char *arg)
{
	fprintf(stderr, "%s: ", program_invocation_short_name);
	fprintf(stderr, fmt, arg);
	fprintf(stderr, "; see --help\n");
	exit(APP_USAGE);
}

static uint64_t number(const char *text, uint64_t min, uint64_t max)
{
	unsigned int shift = 0;
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 0);
	switch (*end) {
	case 'G':
		shift += 10;
		/* fall through */
	case 'M':
		shift += 10;
		/* fall through */
	case 'K':
		shift += 10;
		end++;
		break;
	}
	if (errno || end == text || *end || *text == '-' || v > max >> shift ||
	    v << shift < min)
		die_usage("bad number '%s'", text);
	return v << shift;
}

static unsigned int heap_list(char *text)
{
	unsigned int heaps = 0;
	char *name;

	while ((name = strsep(&text, ","))) {
		if (!strcmp(name, "vram"))
			heaps |= APP_VRAM;
		else if (!strcmp(name, "gtt"))
			heaps |= APP_GTT;
		else if (!strcmp(name, "userptr"))
			heaps |= APP_USERPTR;
		else if (!strcmp(name, "svm"))
			heaps |= APP_SVM;
		else
			die_usage("no heap '%s'", name);
	}
	return heaps;
}

static const struct option options[] = {
	{ "gpus", required_argument, NULL, 'g' },
	{ "bos", required_argument, NULL, 'b' },
	{ "size", required_argument, NULL, 's' },
	{ "heap", required_argument, NULL, 'H' },
	{ "queues", required_argument, NULL, 'q' },
	{ "procs", required_argument, NULL, 'p' },
	{ "steps", required_argument, NULL, 'n' },
	{ "delay-ms", required_argument, NULL, 'd' },
	{ "small-bos", required_argument, NULL, 'S' },
	{ "idle-vram", required_argument, NULL, 'I' },
	{ "zero-vram", required_argument, NULL, 'Z' },
	{ "digest", no_argument, NULL, 'D' },
	{ "log", required_argument, NULL, 'l' },
	{ "hold", required_argument, NULL, 'o' },
	{ "shared", required_argument, NULL, 'm' },
	{ "threads", required_argument, NULL, 't' },
	{ "children", required_argument, NULL, 'c' },
	{ "fill-fds", required_argument, NULL, 'f' },
	{ "kfd-last", no_argument, NULL, 'k' },
	{ "no-stdin", no_argument, NULL, 'i' },
	{ "half-socket", no_argument, NULL, 'u' },
	{ "pidfile", required_argument, NULL, 'P' },
	{ "help", no_argument, NULL, 'h' },
	{ }
};

/* What the process is beside its work. */
static bool parse_shape(struct app_opt *opt, int c)
{
	switch (c) {
	case 'm':
		opt->shared = optarg;
		break;
	case 't':
		opt->threads = number(optarg, 0, 10000);
		break;
	case 'c':
		opt->children = number(optarg, 0, 1000);
		break;
	case 'f':
		opt->fill_fds = number(optarg, 0, 10000);
		break;
	case 'k':
		opt->kfd_last = true;
		break;
	case 'i':
		opt->no_stdin = true;
		break;
	case 'u':
		opt->half_socket = true;
		break;
	default:
		return false;
	}
	return true;
}

static void parse_one(struct app_opt *opt, int c)
{
	if (parse_shape(opt, c))
		return;
	switch (c) {
	case 'g':
		opt->gpus = number(optarg, 1, 64);
		break;
	case 'b':
		opt->bos = number(optarg, 0, 100000);
		break;
	case 's':
		opt->size = (number(optarg, 4096, 1ULL << 36) + 4095) & ~4095ULL;
		break;
	case 'H':
		opt->heaps = heap_list(optarg);
		break;
	case 'q':
		opt->queues = number(optarg, 1, 64);
		break;
	case 'p':
		opt->procs = number(optarg, 1, 64);
		break;
	case 'n':
		opt->steps = number(optarg, 0, UINT64_MAX);
		break;
	case 'd':
		opt->delay_ms = number(optarg, 0, 3600000);
		break;
	case 'S':
		opt->small_bos = number(optarg, 0, 100000);
		break;
	case 'I':
		opt->idle_vram = number(optarg, 0, 1ULL << 40) & ~4095ULL;
		break;
	case 'Z':
		opt->zero_vram = number(optarg, 0, 1ULL << 40) & ~4095ULL;
		break;
	case 'D':
		opt->digest = true;
		break;
	case 'l':
		opt->log = optarg;
		break;
	case 'o':
		opt->hold = optarg;
		break;
	case 'P':
		opt->pidfile = optarg;
		break;
	case 'h':
		printf(usage_text, program_invocation_short_name);
		exit(APP_OK);
	default:
		exit(APP_USAGE);
	}
}

void app_parse(struct app_opt *opt, int argc, char **argv)
{
	int c;

	*opt = (struct app_opt){
		.gpus = 1, .bos = 1, .size = 1 << 20, .queues = 1, .procs = 1,
		.heaps = APP_VRAM | APP_GTT | APP_USERPTR,
	};
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		parse_one(opt, c);
	if (optind != argc)
		die_usage("unexpected '%s'", argv[optind]);
}

void app_err(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
}

static void die_errno(const char *what)
{
	app_err("%s: %s", what, strerror(errno));
	exit(APP_FAILED);
}

/* The front process: lives until the one behind it is ready or gone. */
static void front(pid_t child, int fd)
{
	int status;
	char c;

	if (read(fd, &c, 1) == 1)
		_exit(APP_OK);
	if (waitpid(child, &status, 0) == child && WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	_exit(APP_FAILED);
}

static void go_background(void)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		die_errno("pipe");
	pid = fork();
	if (pid < 0)
		die_errno("fork");
	if (pid) {
		close(fds[1]);
		front(pid, fds[0]);
	}
	close(fds[0]);
	ready_fd = fds[1];
}

/* Those that are in use already (the one of readiness) stay as they are. */
static void take_fds(unsigned int n)
{
	int null = open("/dev/null", O_RDONLY);
	unsigned int fd;

	for (fd = 3; fd < 3 + n && null >= 0; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && dup2(null, fd) < 0)
			die_errno("dup2");
	}
	if (null >= (int)(3 + n))
		close(null);
}

/* The process outside the tree: init's child, until the other end is closed. */
static void hold_end(int fd)
{
	char c;

	if (fork())
		_exit(0);
	dup2(fd, 0);
	close_range(1, ~0U, 0);
	/* Not one of those that a test looks for by name. */
	prctl(PR_SET_NAME, "socketholder");
	while (read(0, &c, 1) > 0)
		;
	_exit(0);
}

/* Before there is any GPU memory that the other process would inherit. */
static void make_half_socket(void)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		die_errno("socketpair");
	pid = fork();
	if (pid < 0)
		die_errno("fork");
	if (!pid)
		hold_end(fds[1]);
	waitpid(pid, NULL, 0);
	close(fds[1]);
	half_fd = fds[0];
}

/* Nothing of the terminal may stay open: CRIU would have to dump it. */
static void set_up_io(const struct app_opt *opt)
{
	int fd = open("/dev/null", O_RDONLY);

	if (fd < 0 || dup2(fd, 0) < 0)
		die_errno("/dev/null");
	if (fd != 0)
		close(fd);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (opt->log) {
		fd = open(opt->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
		if (fd < 0 || dup2(fd, 1) < 0)
			die_errno(opt->log);
		close(fd);
	}
	take_fds(opt->fill_fds);
	if (opt->hold && open(opt->hold, O_RDONLY) < 0)
		die_errno(opt->hold);
	if (opt->half_socket)
		make_half_socket();
	if (chdir("/"))
		die_errno("/");
}

static void write_pidfile(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f || fprintf(f, "%d\n", getpid()) < 0 || fclose(f))
		die_errno(path);
}

/* Process 0 is the parent; each has a log of its own, LOG and LOG.1, LOG.2, ... */
static void fork_procs(struct app_opt *opt)
{
	static char log[4096];
	int fds[2], fd;
	unsigned int i;
	pid_t pid;

	if (opt->procs == 1)
		return;
	if (pipe2(fds, O_CLOEXEC))
		die_errno("pipe");
	for (i = 1; i < opt->procs; i++) {
		pid = fork();
		if (pid < 0)
			die_errno("fork");
		if (pid)
			continue;
		opt->proc = i;
		close(fds[0]);
		if (ready_fd >= 0)
			close(ready_fd);
		ready_fd = fds[1];
		if (!opt->log)
			return;
		snprintf(log, sizeof(log), "%s.%u", opt->log, i);
		fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
		if (fd < 0 || dup2(fd, 1) < 0)
			die_errno(log);
		close(fd);
		return;
	}
	close(fds[1]);
	procs_fd = fds[0];
}

void app_start(struct app_opt *opt)
{
	/* What a caller left open is none of ours, and CRIU would have to dump it. */
	close_range(3, ~0U, 0);
	if (opt->log)
		go_background();
	/* Fails for a process group leader, which then is a session's too or has a caller that waits. */
	setsid();
	set_up_io(opt);
	if (opt->pidfile)
		write_pidfile(opt->pidfile);
	fork_procs(opt);
}

static void *idle(void *arg)
{
	for (;;)
		app_sleep(1000);
	return arg;
}

void app_extras(const struct app_opt *opt)
{
	pthread_attr_t small;
	pthread_t t;
	unsigned int i;
	pid_t pid;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (i = 0; i < opt->threads; i++) {
		if (pthread_create(&t, &small, idle, NULL)) {
			app_err("no thread %u", i);
			exit(APP_FAILED);
		}
	}
	for (i = 0; i < opt->children; i++) {
		pid = fork();
		if (pid < 0)
			die_errno("fork");
		if (pid)
			continue;
		if (ready_fd >= 0)
			close(ready_fd);
		if (procs_fd >= 0)
			close(procs_fd);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		idle(NULL);
	}
	if (opt->no_stdin)
		close(0);
	/* Above all others: CRIU dumps them in their order. */
	if (half_fd >= 0) {
		if (fcntl(half_fd, F_DUPFD, 900) < 0)
			die_errno("F_DUPFD");
		close(half_fd);
	}
}

void app_ready(const struct app_opt *opt)
{
	unsigned int n;
	char c;

	for (n = 1; procs_fd >= 0 && n < opt->procs; n++) {
		if (read(procs_fd, &c, 1) != 1) {
			app_err("a process ended before its first step");
			exit(APP_FAILED);
		}
	}
	if (procs_fd >= 0)
		close(procs_fd);
	procs_fd = -1;
	if (opt->log && dup2(1, 2) < 0)
		die_errno("stderr");
	if (ready_fd >= 0) {
		if (write(ready_fd, "", 1) != 1)
			die_errno("ready");
		close(ready_fd);
	}
	ready_fd = -1;
}

int app_children(const struct app_opt *opt, bool wait)
{
	int status, code;
	pid_t pid;

	if (opt->proc || opt->procs == 1)
		return 0;
	while ((pid = waitpid(-1, &status, wait ? 0 : WNOHANG)) > 0) {
		code = WIFEXITED(status) ? WEXITSTATUS(status) : APP_FAILED;
		if (!code)
			continue;
		app_err("process %d ended with %d", pid, code);
		return code;
	}
	return 0;
}

void app_sleep(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	/* A pause cut short by a signal, or by a restore, is long enough. */
	if (ms)
		nanosleep(&ts, NULL);
}

void app_step(uint64_t step, uint64_t digest)
{
	printf("step %llu ok digest %016llx\n", (unsigned long long)step,
	       (unsigned long long)digest);
}
