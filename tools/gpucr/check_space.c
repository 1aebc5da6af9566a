// SPDX-License-Identifier: GPL-2.0-only
/* Does the dump fit the directory, and how long will the GPU stand still? */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "out.h"

#define PROBE_CHUNK	((size_t)8 << 20)
#define PROBE_CHUNKS	8
#define ALIGNMENT	4096

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Bytes a second of some writes to fd; 0: it cannot be written. */
static uint64_t write_rate(int fd)
{
	uint64_t start = now_us(), done = 0, took;
	void *buf = NULL;
	int i;

	if (posix_memalign(&buf, ALIGNMENT, PROBE_CHUNK))
		return 0;
	memset(buf, 0xa5, PROBE_CHUNK);
	for (i = 0; i < PROBE_CHUNKS; i++) {
		if (pwrite(fd, buf, PROBE_CHUNK, (off_t)done) !=
		    (ssize_t)PROBE_CHUNK)
			break;
		done += PROBE_CHUNK;
	}
	if (fdatasync(fd))
		done = 0;
	free(buf);
	took = now_us() - start;
	return took ? done * 1000000 / took : 0;
}

/* A file without a name: nothing is left of it, whatever happens. */
static uint64_t probe(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
	uint64_t rate;

	if (fd < 0 && errno == EINVAL)
		fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return 0;
	rate = write_rate(fd);
	close(fd);
	return rate;
}

static void say_size(const struct check_size *s, const char *dir,
		     uint64_t rate, uint64_t free_bytes)
{
	uint64_t us = rate ? (s->bytes / rate + 1) * 1000000 : 0;
	char bytes[OUT_SIZE_TEXT], room[OUT_SIZE_TEXT], text[256];
	struct json_object *row;
	int n;

	out_format_size(s->bytes, bytes);
	n = s->bos ? snprintf(text, sizeof(text), "%s in %zu BOs", bytes,
			      s->bos) :
		     snprintf(text, sizeof(text), "%s of VRAM", bytes);
	if (dir) {
		out_format_size(free_bytes, room);
		n += snprintf(text + n, sizeof(text) - n, "; %s free in %.64s",
			      room, dir);
	}
	if (us)
		snprintf(text + n, sizeof(text) - n,
			 "; about %" PRIu64 " s paused", us / 1000000);
	row = check_say(CHECK_YES, "GPU memory", NULL, NULL, "%s", text);
	out_add_u64(row, "bytes", s->bytes);
	if (s->bos)
		out_add_u64(row, "bos", s->bos);
	if (dir)
		out_add_u64(row, "free_bytes", free_bytes);
	if (us)
		out_add_u64(row, "paused_us", us);
}

void check_space(const struct check_size *s, const char *dir)
{
	uint64_t need = s->bytes + s->bytes / 20, room = 0;
	struct statvfs st;

	if (dir && statvfs(dir, &st)) {
		check_say(CHECK_NO, "directory", "io-error",
			  "name one that is there", "%s: %s", dir,
			  strerror(errno));
		return;
	}
	if (dir)
		room = (uint64_t)st.f_bavail * st.f_frsize;
	if (dir && need > room) {
		char a[OUT_SIZE_TEXT], b[OUT_SIZE_TEXT];

		out_format_size(need, a);
		out_format_size(room, b);
		check_say(CHECK_NO, "directory", "no-space",
			  "a larger one, or space-check = off",
			  "%s: %s free, GPU memory and 5 %% need %s", dir, b,
			  a);
		return;
	}
	say_size(s, dir, dir && s->bytes ? probe(dir) : 0, room);
}
