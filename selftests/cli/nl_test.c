// SPDX-License-Identifier: GPL-2.0-only
/* The netlink client over forks, and what it tells about refusals. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nl.h"

#include "../ktap.h"

static bool info_works(struct gpucr_nl *nl)
{
	struct gpucr_nl_info info;

	return !gpucr_nl_info(nl, &info) &&
	       info.protocol == GPUCR_FAMILY_VERSION;
}

/* Highest descriptor that is a socket: the handle's. */
static int find_socket(void)
{
	struct stat st;
	int fd, found = -1;

	for (fd = 3; fd < 64; fd++)
		if (!fstat(fd, &st) && S_ISSOCK(st.st_mode))
			found = fd;
	return found;
}

/*
 * In the child the number of the parent's socket means another file: nothing
 * may be written to it, and it must not be closed. Exit status: what failed.
 */
static int in_child(struct gpucr_nl *nl, int number)
{
	int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	struct stat st;

	if (file < 0 || dup2(file, number) != number)
		return 1;
	if (!info_works(nl) || !info_works(nl))
		return 2;
	if (fstat(number, &st) || !S_ISREG(st.st_mode) || st.st_size)
		return 3;
	gpucr_nl_close(nl);
	if (fstat(number, &st) || !S_ISREG(st.st_mode))
		return 4;
	return find_socket() < 0 ? 0 : 5;
}

static void test_fork(struct gpucr_nl *nl)
{
	int number = find_socket(), status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(in_child(nl, number));
	ktap_ok(pid > 0 && waitpid(pid, &status, 0) == pid && !status,
	   "a child has a socket of its own and leaves the number alone");
	if (status)
		printf("# status %d\n", WEXITSTATUS(status));
	ktap_ok(info_works(nl) && find_socket() == number,
	   "the parent's handle goes on as before");
}

/* Refusals of dumps carry the attribute from 6.2 on. */
static bool kernel_points(void)
{
	unsigned int major, minor;
	struct utsname u;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

static void test_refusals(struct gpucr_nl *nl)
{
	struct gpucr_nl_session *s;
	struct gpucr_nl_bo *bos;
	struct gpucr_nl_relay r = {
		.cmd = GPUCR_CMD_SESSION_UNPAUSE, .id = 1, .kfd_fd = -1,
	};
	size_t num = 1;
	int err;

	err = gpucr_nl_bos(nl, 0, &bos, &num);
	ktap_ok(err == -EINVAL && !bos && !num, "a dump that is refused: errno");
	ktap_ok(strstr(gpucr_nl_error(nl), "DRM") != NULL, "its sentence");
	if (kernel_points())
		ktap_ok(gpucr_nl_bad_attr(nl) == GPUCR_A_BO_FD, "its attribute");
	else
		ktap_skip("up to 6.1 a refused dump cannot name an attribute");
	ktap_ok(gpucr_nl_bos(nl, 1000, &bos, &num) == -EBADF, "a closed descriptor");
	ktap_ok(gpucr_nl_session_del(nl, 1) == -ENOENT && *gpucr_nl_error(nl),
	   "an operation that is refused: errno and sentence");
	ktap_ok(gpucr_nl_relay(nl, &r) == -ENOENT && !r.called,
	   "a relay that is refused does not call KFD");
	ktap_ok(!gpucr_nl_sessions(nl, 0, &s, &num) && !num &&
	   !*gpucr_nl_error(nl), "an answer takes the old sentence away");
	r.cmd = GPUCR_CMD_INFO_GET;
	ktap_ok(gpucr_nl_relay(nl, &r) == -EINVAL, "what is no relay is not sent");
}

int main(void)
{
	struct gpucr_nl *nl;
	int err;

	if (system("modprobe gpucr"))
		ktap_bail("gpucr does not load");
	ktap_plan(11);
	err = gpucr_nl_open(&nl);
	ktap_ok(!err && info_works(nl), "open and ask");
	if (err)
		return 1;
	test_fork(nl);
	test_refusals(nl);
	gpucr_nl_close(nl);
	return ktap_exit();
}
