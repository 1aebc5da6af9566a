/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How far a dump or a restore is, for whoever looks: /run/gpucr/<pid>.json, by
 * the pid of the CRIU that does it. One line of JSON in a file of fixed length,
 * rewritten in place through a mapping, which restoring tasks inherit; they see
 * another /run. Its last member is a checksum of what is before it: a reader
 * that meets a half-written one reads again.
 */
#ifndef GPUCR_PROGRESS_H
#define GPUCR_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GPUCR_RUN_DIR		"/run/gpucr"
#define GPUCR_PROGRESS_LEN	1024	/* of the file, newline included */

struct gpucr_progress;

/* Every function below takes NULL for one that could not be made. */

/*
 * Makes the file of this process in the directory run ("gpucr" below it is
 * made where it is missing) and removes those of dead ones. NULL where that is
 * not possible: nothing depends on it.
 */
struct gpucr_progress *gpucr_progress_open(int run, const char *kind);
/* Unmaps it; the file stays until another CRIU cleans up. */
void gpucr_progress_close(struct gpucr_progress *p);

/* target 0: as before. phase is a constant. */
void gpucr_progress_phase(struct gpucr_progress *p, const char *phase,
			  pid_t target);
/* Content that is still to come. */
void gpucr_progress_expect(struct gpucr_progress *p, uint64_t bytes);
/* Content done. From any thread, and any task that inherited it. */
void gpucr_progress_add(struct gpucr_progress *p, uint64_t bytes);

/* Pids with a file in dir of a process that lives, rising; *ret is free()d. */
int gpucr_progress_list(int dir, pid_t **ret, size_t *num);
/*
 * A whole record: 0. -ESRCH: that process is gone, -ENOENT: no file, -EBADMSG:
 * none of ours, or never whole.
 */
int gpucr_progress_read(int dir, pid_t pid, char text[GPUCR_PROGRESS_LEN]);

#endif
