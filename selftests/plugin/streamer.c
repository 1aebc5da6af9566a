// SPDX-License-Identifier: GPL-2.0-only
/*
 * A stand-in for CRIU's image streamer: speaks its protocol, and has a
 * directory for the stream.
 *
 *	streamer capture IMAGES STORE [PREFIX BYTES]
 *	streamer serve IMAGES STORE
 *
 * IMAGES is where CRIU looks for the socket. A request is a length of 4 bytes
 * and a message with the name of a file. Who captures gets a pipe behind each
 * request, and reads all pipes at the same time. Who serves answers whether the
 * file exists, gets a pipe if so, and fills it before the next request is read:
 * as the original does, so that who asks for a second file meanwhile waits for
 * ever. Stricter than the original: no name is put twice, and none of ours is
 * asked for twice.
 *
 * With PREFIX it leaves when BYTES bytes of a file of that prefix have come.
 * On standard output: "put NAME", "end NAME BYTES", "give NAME" and "no NAME".
 * Status: 0 CRIU is done, 1 it does not speak the protocol, 3 left as asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_FILES	4096	/* at once, or asked for */

struct file {
	int pipe;
	int store;
	uint64_t bytes;
	char name[NAME_MAX];
};

static struct {
	int criu;
	int store;		/* directory */
	const char *prefix;	/* of the file to leave at, or NULL */
	uint64_t leave_at;
	struct pollfd polls[1 + MAX_FILES];
	struct file files[MAX_FILES];
	int num;		/* of files */
	char *asked[MAX_FILES];
	int num_asked;
} s;

static void die(const char *what, const char *name)
{
	fprintf(stderr, "streamer: %s: %s (%s)\n", name, what,
		strerror(errno));
	exit(1);
}

/* False at the end, which may only be before the first byte. */
static bool read_all(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("cannot be read", "socket");
		if (!n && !done)
			return false;
		if (!n)
			die("ends within a message", "socket");
		done += n;
	}
	return true;
}

static void write_all(int fd, const void *buf, size_t len, const char *name)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("cannot be written", name);
		p += n;
		len -= n;
	}
}

/* The name of the next request: field 1, a string, and no other. */
static bool next_request(char name[NAME_MAX])
{
	uint8_t msg[2 + NAME_MAX];
	uint32_t len;

	if (!read_all(s.criu, &len, sizeof(len)))
		return false;
	/* Lengths above 127 have two bytes; no image has such a name. */
	if (len < 3 || len > 2 + 127 || !read_all(s.criu, msg, len) ||
	    msg[0] != 0x0a || msg[1] != len - 2)
		die("is no request", "message");
	memcpy(name, msg + 2, len - 2);
	name[len - 2] = '\0';
	if (strlen(name) != len - 2 || strchr(name, '/'))
		die("is no name", name);
	return true;
}

static int receive_pipe(const char *name)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof(room),
	};
	struct cmsghdr *c;
	struct stat st;
	int fd;

	if (recvmsg(s.criu, &m, MSG_CMSG_CLOEXEC) != 1)
		die("comes without a pipe", name);
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		die("comes without a descriptor", name);
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		die("comes with what is no pipe", name);
	return fd;
}

static void begin_file(const char *name)
{
	struct file *f = &s.files[s.num];

	if (s.num == MAX_FILES)
		die("is one too many", name);
	f->bytes = 0;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->pipe = receive_pipe(name);
	f->store = openat(s.store, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (f->store < 0)
		die("is put twice", name);
	s.num++;
	printf("put %s\n", name);
}

/* False where it has ended. */
static bool drain(struct file *f)
{
	static char buf[65536];
	ssize_t n = read(f->pipe, buf, sizeof(buf));

	if (n < 0)
		die("its pipe cannot be read", f->name);
	write_all(f->store, buf, n, f->name);
	f->bytes += n;
	if (s.prefix && f->bytes >= s.leave_at &&
	    !strncmp(f->name, s.prefix, strlen(s.prefix)))
		exit(3);
	return n > 0;
}

static void end_file(int i)
{
	struct file *f = &s.files[i];

	printf("end %s %llu\n", f->name, (unsigned long long)f->bytes);
	close(f->pipe);
	close(f->store);
	*f = s.files[--s.num];
}

/* What has come through pipes. Returns whether there was anything. */
static bool drain_files(void)
{
	bool any = false;
	int i;

	/* From behind: the last takes the place of one that ends. */
	for (i = s.num - 1; i >= 0; i--) {
		if (!s.polls[1 + i].revents)
			continue;
		any = true;
		if (!drain(&s.files[i]))
			end_file(i);
	}
	return any;
}

static void capture(void)
{
	char name[NAME_MAX];
	bool open = true;
	int i;

	while (open || s.num) {
		s.polls[0] = (struct pollfd){ open ? s.criu : -1, POLLIN, 0 };
		for (i = 0; i < s.num; i++)
			s.polls[1 + i] = (struct pollfd){ s.files[i].pipe,
							  POLLIN, 0 };
		if (poll(s.polls, 1 + s.num, -1) < 0)
			die("poll", "socket");
		/* So the end of a file is told before what was put after it. */
		if (drain_files() || !s.polls[0].revents)
			continue;
		open = next_request(name);
		if (open)
			begin_file(name);
	}
}

/* May it be given? Once. */
static bool ask(const char *name)
{
	int i;

	for (i = 0; i < s.num_asked; i++) {
		if (strcmp(s.asked[i], name))
			continue;
		if (strstr(name, "gpucr"))
			die("is asked for twice", name);
		return false;
	}
	if (s.num_asked == MAX_FILES)
		die("is one too many", name);
	s.asked[s.num_asked++] = strdup(name);
	return true;
}

static void give(const char *name, int store)
{
	static char buf[65536];
	int pipe = receive_pipe(name);
	ssize_t n;

	printf("give %s\n", name);
	while ((n = read(store, buf, sizeof(buf))) > 0)
		write_all(pipe, buf, n, name);
	if (n)
		die("cannot be read", name);
	close(pipe);
}

static void serve(void)
{
	/* Length, field 1 as a number, and it. */
	uint8_t reply[] = { 2, 0, 0, 0, 0x08, 0 };
	char name[NAME_MAX];

	while (next_request(name)) {
		int fd = ask(name) ? openat(s.store, name, O_RDONLY) : -1;

		reply[5] = fd >= 0;
		write_all(s.criu, reply, sizeof(reply), "socket");
		if (fd < 0) {
			printf("no %s\n", name);
			continue;
		}
		give(name, fd);
		close(fd);
	}
}

static void accept_criu(const char *images, const char *socket_name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", images,
			     socket_name) >= sizeof(a.sun_path))
		die("is too long", images);
	unlink(a.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(fd, 1))
		die("cannot be made", a.sun_path);
	s.criu = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (s.criu < 0)
		die("accept", a.sun_path);
	close(fd);
	unlink(a.sun_path);
}

int main(int argc, char **argv)
{
	bool put = argc > 1 && !strcmp(argv[1], "capture");

	if (argc < 4 || (!put && strcmp(argv[1], "serve"))) {
		fprintf(stderr, "usage: streamer capture|serve IMAGES STORE [PREFIX BYTES]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	s.store = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s.store < 0)
		die("is no directory", argv[3]);
	if (argc > 5) {
		s.prefix = argv[4];
		s.leave_at = strtoull(argv[5], NULL, 0);
	}
	accept_criu(argv[2], put ? "streamer-capture.sock" :
				   "streamer-serve.sock");
	if (put)
		capture();
	else
		serve();
	return 0;
}
