// SPDX-License-Identifier: GPL-2.0-only
/* A CRIU that has a connection to an image streamer is known by it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../plugin/amdgpu/host.h"
#include "../../plugin/amdgpu/plugin.h"
#include "../ktap.h"

/* What host.c compares others with. */
struct plugin_desc CR_PLUGIN_DESC = { .name = PLUGIN_NAME };

/* A connected pair, of which the listener has that name; -1. */
static int connect_to(const char *dir, const char *name, int listener[1])
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	*listener = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", dir, name);
	if (fd < 0 || *listener < 0 ||
	    bind(*listener, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(*listener, 1) ||
	    connect(fd, (struct sockaddr *)&a, sizeof(a)))
		ktap_bail("no socket %s", a.sun_path);
	unlink(a.sun_path);
	return fd;
}

static bool seen(const char *dir, const char *name)
{
	int listener, fd = connect_to(dir, name, &listener);
	bool is = host_is_streaming();

	close(fd);
	close(listener);
	return is;
}

int main(void)
{
	char dir[] = "/tmp/gpucr-stream.XXXXXX";

	if (!mkdtemp(dir))
		ktap_bail("no directory");
	ktap_plan(6);
	ktap_ok(!host_is_streaming(), "without a streamer");
	ktap_ok(seen(dir, "streamer-capture.sock"), "one that takes images");
	ktap_ok(seen(dir, "streamer-serve.sock"), "one that gives them");
	ktap_ok(!seen(dir, "other-streamer-capture.sock"), "another socket");
	ktap_ok(!host_is_streaming(), "none is left");
	/* This program exports nothing, as no CRIU that is known. */
	ktap_ok(!host_can_stream() && host_stream_open("x", true) == -ENOSYS,
		"a host without a way there");
	rmdir(dir);
	return ktap_exit();
}
