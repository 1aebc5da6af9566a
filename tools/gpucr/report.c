// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpucr report: one file with what a maintainer asks for. It holds what the
 * tool's own commands print, properties of the GPUs and lines of the kernel's
 * log; never memory of a process, and no serial numbers.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "doctor.h"
#include "fail.h"
#include "out.h"

#define TOPOLOGY	"/sys/class/kfd/kfd/topology"
#define MAX_ARGS	12
#define MAX_LINES	400	/* of the kernel's log, the last ones */
#define SECONDS		30	/* that a command may take */

static void heading(FILE *to, const char *text)
{
	fprintf(to, "\n== %s\n", text);
}

/* The tool itself with these arguments, its output to the file. */
static void self(FILE *to, const char *const *argv)
{
	char *args[MAX_ARGS + 1] = { "gpucr", "-j" };
	int status = 0, i;
	pid_t pid;

	fputs("\n== gpucr -j", to);
	for (i = 0; argv[i] && i + 2 < MAX_ARGS; i++) {
		args[i + 2] = (char *)argv[i];
		fprintf(to, " %s", argv[i]);
	}
	fputc('\n', to);
	if (fflush(to))
		return;
	pid = fork();
	if (!pid) {
		dup2(fileno(to), STDOUT_FILENO);
		dup2(fileno(to), STDERR_FILENO);
		alarm(SECONDS);
		execv("/proc/self/exe", args);
		_exit(127);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		fprintf(to, "(status %d)\n", WEXITSTATUS(status));
	else
		fputs("(did not end well)\n", to);
	/* The child wrote behind the stream's back. */
	fseek(to, 0, SEEK_END);
}

static void system_lines(FILE *to)
{
	char text[32], now[40] = "";
	time_t t = time(NULL);
	struct utsname u;
	struct tm tm;

	if (gmtime_r(&t, &tm))
		strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(to, "gpucr " GPUCR_VERSION " report, %s\n", now);
	heading(to, "system");
	if (!uname(&u))
		fprintf(to, "%s %s %s %s\n", u.sysname, u.release, u.version,
			u.machine);
	if (doctor_read("/proc/sys/kernel", "tainted", text, sizeof(text)))
		fprintf(to, "tainted: %s\n", text);
}

static bool is_serial(const char *line)
{
	return !strncmp(line, "unique_id ", 10) ||
	       !strncmp(line, "hive_id ", 8);
}

static void node(FILE *to, const char *number)
{
	char path[300], line[256];
	FILE *f;

	snprintf(path, sizeof(path), TOPOLOGY "/nodes/%s", number);
	if (!doctor_read(path, "gpu_id", line, sizeof(line)))
		snprintf(line, sizeof(line), "not readable");
	fprintf(to, "node %s, gpu_id %s\n", number, line);
	snprintf(path, sizeof(path), TOPOLOGY "/nodes/%s/properties", number);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (is_serial(line))
			fprintf(to, "  %.*s (left out)\n",
				(int)strcspn(line, " "), line);
		else
			fprintf(to, "  %s", line);
	if (f)
		fclose(f);
}

static void topology(FILE *to)
{
	struct dirent **list;
	int i, num;

	heading(to, TOPOLOGY);
	num = scandir(TOPOLOGY "/nodes", &list, NULL, versionsort);
	if (num < 0) {
		fprintf(to, "%s\n", strerror(errno));
		return;
	}
	for (i = 0; i < num; i++) {
		if (isdigit((unsigned char)list[i]->d_name[0]))
			node(to, list[i]->d_name);
		free(list[i]);
	}
	free(list);
}

static void devices(FILE *to)
{
	struct dirent **list;
	struct stat st;
	char path[300];
	int i, num;

	heading(to, "devices");
	num = scandir("/dev/dri", &list, NULL, versionsort);
	if (!stat("/dev/kfd", &st))
		fprintf(to, "/dev/kfd %o\n", st.st_mode & 07777);
	for (i = 0; i < num; i++) {
		snprintf(path, sizeof(path), "/dev/dri/%s", list[i]->d_name);
		if (!stat(path, &st) && S_ISCHR(st.st_mode))
			fprintf(to, "%s %o\n", path, st.st_mode & 07777);
		free(list[i]);
	}
	if (num >= 0)
		free(list);
}

static bool of_interest(const char *line)
{
	static const char * const words[] = { "gpucr", "amdgpu", "kfd" };
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(line, words[i]))
			return true;
	return false;
}

/* One read is one record: "flags;text", and lines of details after it. */
static void kernel_log(FILE *to)
{
	char *kept[MAX_LINES] = { NULL }, record[8192], *text;
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t num = 0, i;
	ssize_t n;

	heading(to, "kernel log: gpucr, amdgpu, kfd");
	if (fd < 0)
		fprintf(to, "/dev/kmsg: %s\n", strerror(errno));
	while (fd >= 0) {
		n = read(fd, record, sizeof(record) - 1);
		/* Overwritten while we read: go on with what is there. */
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			break;
		record[n] = '\0';
		text = strchr(record, ';');
		if (!text || !of_interest(text))
			continue;
		text[strcspn(text, "\n")] = '\0';
		free(kept[num % MAX_LINES]);
		kept[num++ % MAX_LINES] = strdup(text + 1);
	}
	for (i = num > MAX_LINES ? num - MAX_LINES : 0; i < num; i++)
		if (kept[i % MAX_LINES])
			fprintf(to, "%s\n", kept[i % MAX_LINES]);
	for (i = 0; i < MAX_LINES; i++)
		free(kept[i]);
	if (fd >= 0)
		close(fd);
}

static void commands_of_all(FILE *to)
{
	self(to, (const char *const[]){ "info", NULL });
	self(to, (const char *const[]){ "doctor", NULL });
	self(to, (const char *const[]){ "ps", NULL });
	self(to, (const char *const[]){ "session", NULL });
}

static void commands_of_pid(FILE *to, const char *pid)
{
	static const char * const objects[] = { "file", "bo", "vma", "queue" };
	size_t i;

	for (i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		self(to, (const char *const[]){ objects[i], "pid", pid, NULL });
}

static void commands_of_image(FILE *to, const char *dir)
{
	static const char * const parts[] = {
		"bo", "queue", "event", "vma", "share", "phase",
	};
	size_t i;

	self(to, (const char *const[]){ "image", "show", dir, NULL });
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		self(to, (const char *const[]){ "image", "show", dir, parts[i],
					       NULL });
}

static const struct out_column columns[] = {
	{ "written", "file", out_text, 0 },
	{ "bytes", "bytes", out_text, 0 },
	{ 0 }
};

static int finish(FILE *to, const char *path)
{
	struct json_object *row;
	long bytes = ftell(to);
	int err = ferror(to) || bytes < 0 ? EIO : 0;

	if (fclose(to))
		err = errno;
	if (err)
		return fail(TOKEN_IO_ERROR, err, "%s: %s", path, strerror(err));
	row = out_row();
	out_add_str(row, "file", path);
	out_add_u64(row, "bytes", (uint64_t)bytes);
	return out_finish_record(columns);
}

static int report_write(const struct args *args)
{
	const char *path = args->text[KEY_OUT];
	int fd;
	FILE *to;

	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	to = fd < 0 ? NULL : fdopen(fd, "w+");
	if (!to)
		return fail(TOKEN_IO_ERROR, errno, "%s: %s", path,
			    strerror(errno));
	system_lines(to);
	commands_of_all(to);
	if (args->has[KEY_PID])
		commands_of_pid(to, args->text[KEY_PID]);
	if (args->has[KEY_IMAGE])
		commands_of_image(to, args->text[KEY_IMAGE]);
	topology(to);
	devices(to);
	kernel_log(to);
	return finish(to, path);
}

static const struct command commands[] = {
	{ "write", KEY(KEY_OUT), KEY(KEY_PID) | KEY(KEY_IMAGE), report_write },
	{ 0 }
};

const struct object report_object = {
	"report", "one file with what a maintainer asks for", commands,
};
