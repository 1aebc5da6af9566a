// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process with something that cannot be dumped, until it is killed.
 *
 *	oddfd uring	an io_uring
 *	oddfd perf	a perf event
 *	oddfd bo	a BO made through the render node
 *	oddfd orphan	a KFD file of a parent that has ended
 *	oddfd none	nothing of the kind
 *
 * Prints its pid when it is ready.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <amdgpu_drm.h>

static int make_uring(void)
{
	struct io_uring_params p = { 0 };

	return (int)syscall(SYS_io_uring_setup, 4, &p);
}

static int make_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static int make_bo(void)
{
	union drm_amdgpu_gem_create c = {
		.in = {
			.bo_size = 65536, .alignment = 4096,
			.domains = AMDGPU_GEM_DOMAIN_GTT,
		},
	};
	int fd = open("/dev/dri/renderD128", O_RDWR);

	return fd < 0 ? fd : ioctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &c);
}

static int make_orphan(void)
{
	int fd = open("/dev/kfd", O_RDWR), ready[2];
	char c;

	if (fd < 0 || pipe(ready))
		return -1;
	if (fork()) {
		close(ready[1]);
		/* Nothing is said: the child prints. */
		_exit(0);
	}
	close(ready[1]);
	return read(ready[0], &c, 1) == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*make)(void);
	} things[] = {
		{ "uring", make_uring }, { "perf", make_perf },
		{ "bo", make_bo }, { "orphan", make_orphan },
	};
	size_t i;

	if (argc != 2)
		return 2;
	for (i = 0; i < sizeof(things) / sizeof(things[0]); i++) {
		if (strcmp(things[i].name, argv[1]))
			continue;
		if (things[i].make() < 0) {
			perror(argv[1]);
			return 1;
		}
	}
	printf("%d\n", getpid());
	fflush(stdout);
	for (;;)
		pause();
}
