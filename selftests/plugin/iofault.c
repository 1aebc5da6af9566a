// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into CRIU: stands before calls of the C library that the plugin
 * makes, and holds, delays or fails the n-th of them.
 *
 *	IOFAULT_AT    CALL[@PATTERN]:N; calls with a file count only where the
 *	              file's name matches the shell pattern, others where the
 *	              plugin itself is the caller
 *	IOFAULT_DO    hold, error:ERRNO or delay:MS
 *	IOFAULT_FILE  made when the point is met; hold ends when it is gone
 *	IOFAULT_OBJECT  part of the caller's path [amdgpu_plugin.so]
 */
#include <dlfcn.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <linux/aio_abi.h>

#include "fire.h"

#define EXPORT	__attribute__((visibility("default")))

static struct {
	struct fire fire;
	char call[32];
	char pattern[64];
	const char *object;
} at;

__attribute__((constructor))
static void parse(void)
{
	const char *text = getenv("IOFAULT_AT");

	at.object = getenv("IOFAULT_OBJECT") ?: "amdgpu_plugin.so";
	at.fire.file = getenv("IOFAULT_FILE");
	if (!text)
		return;
	if (sscanf(text, "%31[^@:]@%63[^:]:%u", at.call, at.pattern,
		   &at.fire.nth) != 3 &&
	    sscanf(text, "%31[^@:]:%u", at.call, &at.fire.nth) != 2)
		at.fire.nth = 0;
	if (at.fire.nth && at.fire.file &&
	    fire_parse(&at.fire, getenv("IOFAULT_DO")))
		return;
	fprintf(stderr, "iofault: IOFAULT_AT, IOFAULT_DO or IOFAULT_FILE is wrong\n");
	_exit(2);
}

static bool by_plugin(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && strstr(info.dli_fname, at.object);
}

static bool is(const char *call)
{
	return !strcmp(call, at.call);
}

/* Sets errno where it is true. */
static bool fails(void)
{
	int err = fire_pass(&at.fire);

	if (err)
		errno = err;
	return err;
}

static bool name_fails(const char *call, const char *path)
{
	const char *name = path ? strrchr(path, '/') : NULL;

	if (!is(call) || !path || !*at.pattern)
		return false;
	return !fnmatch(at.pattern, name ? name + 1 : path, 0) && fails();
}

static bool fd_fails(const char *call, int fd)
{
	char link[64], path[4096];
	ssize_t n;

	if (!is(call) || !*at.pattern)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = 0;
	return name_fails(call, path);
}

static bool plain_fails(const char *call, const void *caller)
{
	return is(call) && !*at.pattern && by_plugin(caller) && fails();
}

#define REAL(ret, name, ...)						\
	static ret (*real)(__VA_ARGS__);				\
	if (!real)							\
		*(void **)&real = dlsym(RTLD_NEXT, name)
#define CALLER	__builtin_return_address(0)

static mode_t mode_of(int flags, va_list ap)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

#define OPENAT(name)							\
EXPORT int name(int dir, const char *path, int flags, ...)		\
{									\
	REAL(int, #name, int, const char *, int, ...);			\
	va_list ap;							\
	mode_t mode;							\
									\
	va_start(ap, flags);						\
	mode = mode_of(flags, ap);					\
	va_end(ap);							\
	if (by_plugin(CALLER) && name_fails("open", path))		\
		return -1;						\
	return real(dir, path, flags, mode);				\
}

OPENAT(openat)
OPENAT(openat64)

#define OPEN(name)							\
EXPORT int name(const char *path, int flags, ...)			\
{									\
	REAL(int, #name, const char *, int, ...);			\
	va_list ap;							\
	mode_t mode;							\
									\
	va_start(ap, flags);						\
	mode = mode_of(flags, ap);					\
	va_end(ap);							\
	if (by_plugin(CALLER) && name_fails("open", path))		\
		return -1;						\
	return real(path, flags, mode);					\
}

OPEN(open)
OPEN(open64)

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	REAL(ssize_t, "write", int, const void *, size_t);
	if (fd_fails("write", fd))
		return -1;
	return real(fd, buf, len);
}

#define PIO(name, call, type)						\
EXPORT ssize_t name(int fd, type buf, size_t len, off_t pos)		\
{									\
	REAL(ssize_t, #name, int, type, size_t, off_t);			\
	if (fd_fails(call, fd))						\
		return -1;						\
	return real(fd, buf, len, pos);					\
}

PIO(pwrite, "write", const void *)
PIO(pwrite64, "write", const void *)
PIO(pread, "read", void *)
PIO(pread64, "read", void *)

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	REAL(ssize_t, "read", int, void *, size_t);
	if (fd_fails("read", fd))
		return -1;
	return real(fd, buf, len);
}

EXPORT int fsync(int fd)
{
	REAL(int, "fsync", int);
	if (fd_fails("fsync", fd))
		return -1;
	return real(fd);
}

EXPORT int fdatasync(int fd)
{
	REAL(int, "fdatasync", int);
	if (fd_fails("fsync", fd))
		return -1;
	return real(fd);
}

EXPORT int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	REAL(int, "renameat", int, const char *, int, const char *);
	if (name_fails("rename", to))
		return -1;
	return real(from_dir, from, to_dir, to);
}

EXPORT int ftruncate(int fd, off_t size)
{
	REAL(int, "ftruncate", int, off_t);
	if (fd_fails("truncate", fd))
		return -1;
	return real(fd, size);
}

EXPORT int pthread_create(pthread_t *t, const pthread_attr_t *a,
			  void *(*fn)(void *), void *arg)
{
	REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *,
	     void *(*)(void *), void *);
	if (plain_fails("thread", CALLER))
		return errno;
	return real(t, a, fn, arg);
}

EXPORT int socketpair(int domain, int type, int protocol, int fds[2])
{
	REAL(int, "socketpair", int, int, int, int *);
	if (plain_fails("socketpair", CALLER))
		return -1;
	return real(domain, type, protocol, fds);
}

EXPORT int poll(struct pollfd *p, nfds_t n, int ms)
{
	REAL(int, "poll", struct pollfd *, nfds_t, int);
	if (plain_fails("poll", CALLER))
		return -1;
	return real(p, n, ms);
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t pos)
{
	REAL(void *, "mmap", void *, size_t, int, int, int, off_t);
	if (plain_fails("mmap", CALLER))
		return MAP_FAILED;
	return real(addr, len, prot, flags, fd, pos);
}

EXPORT int fstatvfs(int fd, struct statvfs *st)
{
	REAL(int, "fstatvfs", int, struct statvfs *);
	if (plain_fails("statvfs", CALLER))
		return -1;
	return real(fd, st);
}

EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	REAL(ssize_t, "send", int, const void *, size_t, int);
	if (plain_fails("send", CALLER))
		return -1;
	return real(fd, buf, len, flags);
}

#define FCNTL(name)							\
EXPORT int name(int fd, int cmd, ...)					\
{									\
	REAL(int, #name, int, int, ...);				\
	va_list ap;							\
	long arg;							\
									\
	va_start(ap, cmd);						\
	arg = va_arg(ap, long);						\
	va_end(ap);							\
	if (cmd == F_DUPFD_CLOEXEC && plain_fails("dup", CALLER))	\
		return -1;						\
	return real(fd, cmd, arg);					\
}

FCNTL(fcntl)
FCNTL(fcntl64)

static const char *syscall_name(long nr)
{
	switch (nr) {
	case SYS_pidfd_open:
		return "pidfd_open";
	case SYS_pidfd_getfd:
		return "pidfd_getfd";
	case SYS_kcmp:
		return "kcmp";
	}
	return "syscall";
}

/* A read in flight is met at its end: its result is what fails. */
static long aio_end(long nr, const long *args, long num)
{
	struct io_event *ev = (struct io_event *)args[3];
	long i;

	for (i = 0; nr == SYS_io_getevents && i < num; i++) {
		const struct iocb *cb = (const struct iocb *)ev[i].obj;

		if (cb->aio_lio_opcode == IOCB_CMD_PREAD &&
		    fd_fails("read", (int)cb->aio_fildes))
			ev[i].res = -errno;
	}
	return num;
}

EXPORT long syscall(long nr, ...)
{
	REAL(long, "syscall", long, ...);
	va_list ap;
	long a[6];
	int i;

	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (plain_fails(syscall_name(nr), CALLER))
		return -1;
	return aio_end(nr, a, real(nr, a[0], a[1], a[2], a[3], a[4], a[5]));
}
