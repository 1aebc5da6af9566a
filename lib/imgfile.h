/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files of an image directory: written beside and renamed, so that a file is
 * whole or absent; read with every length checked against the file first.
 * With an image streamer (stream.h) they go through it, and the directory that
 * is given is not looked at. Layout: docs/image-format.md.
 */
#ifndef GPUCR_IMGFILE_H
#define GPUCR_IMGFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUCR_IMG_MAGIC		"GPUCRIMG"
#define GPUCR_IMG_VERSION	1
#define GPUCR_IMG_HEADER	40
/* A manifest above this is refused: no real one comes near. */
#define GPUCR_IMG_MAX		(UINT64_C(1) << 30)

enum gpucr_img_kind {
	GPUCR_IMG_KFD = 1,
	GPUCR_IMG_RENDER = 2,
	GPUCR_IMG_RECORD = 3,	/* of a stream, see streamlist.h */
};

/* A file being written. */
struct gpucr_outfile {
	int dir;
	int fd;
	char name[NAME_MAX - 8];
	char tmp[NAME_MAX];
	bool pipe;		/* to a streamer */
	uint64_t pos;		/* of a pipe: where the next byte goes */
	const int *stop;	/* of a pipe: not 0: give up; or NULL */
};

/* Errors are -errno and logged with the file's name. */
int gpucr_outfile_create(struct gpucr_outfile *o, int dir, const char *name);
/*
 * On a pipe to a streamer, which is closed with it. Writes go on where the one
 * before has ended, else they are -ESPIPE.
 */
int gpucr_outfile_on_pipe(struct gpucr_outfile *o, int fd, const char *name);
int gpucr_outfile_write(struct gpucr_outfile *o, const void *buf, size_t len,
			uint64_t pos);
/*
 * Makes it durable and gives it its name; a pipe is closed. On failure it is
 * gone, but for what a streamer has.
 */
int gpucr_outfile_commit(struct gpucr_outfile *o);
void gpucr_outfile_abort(struct gpucr_outfile *o);

int gpucr_imgfile_write(int dir, const char *name, enum gpucr_img_kind kind,
			const void *payload, size_t len);
/*
 * -ENOENT, not logged, where there is none. -EBADMSG where it is damaged,
 * -EPROTONOSUPPORT where it has a newer format. *payload is free()d.
 */
int gpucr_imgfile_read(int dir, const char *name, enum gpucr_img_kind kind,
		       uint8_t **payload, size_t *len);
/* The same of a streamer's file, of which this is the only time. */
int gpucr_imgfile_take(const char *name, enum gpucr_img_kind kind,
		       uint8_t **payload, size_t *len);
/* The same on a file in memory; name is for messages. */
int gpucr_imgfile_check(const char *name, enum gpucr_img_kind kind,
			const uint8_t *file, uint64_t size);

/* All of buf, or -errno; -EBADMSG at the end of the file. */
int gpucr_pread_all(int fd, void *buf, size_t len, uint64_t pos);

#endif
