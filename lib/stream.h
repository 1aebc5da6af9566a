/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CRIU's image streamer in place of an image directory. A file is a pipe,
 * opened by its name and once, and written or read from its start to its end.
 * A process has one streamer or none; its tasks have it by fork.
 *
 * One that serves gives one file at a time: what was opened for reading is
 * read to its end before the next is opened.
 */
#ifndef GPUCR_STREAM_H
#define GPUCR_STREAM_H

#include <stdbool.h>
#include <stddef.h>

/* Our end of the pipe, or -errno; -ENOENT: the streamer has no such file. */
typedef int (*gpucr_stream_open_fn)(const char *name);

/* From now on files of images go there; NULL: to their directory again. */
void gpucr_stream_set(gpucr_stream_open_fn open);
bool gpucr_stream_on(void);

/* A pipe that is the caller's. -errno, logged unless it is -ENOENT. */
int gpucr_stream_open(const char *name);
/*
 * All of buf. Where *stop becomes other than 0 (stop may be NULL), -ECANCELED.
 * -errno, logged.
 */
int gpucr_stream_write(int fd, const char *name, const void *buf, size_t len,
		       const int *stop);
/* All of buf, or -errno, not logged; -EBADMSG: the file ends before. */
int gpucr_stream_read(int fd, void *buf, size_t len);
/* Is this the end of the file? -errno, not logged; -EBADMSG: it goes on. */
int gpucr_stream_end(int fd);

#endif
