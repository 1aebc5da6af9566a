/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The report of a dump or restore: a file beside the images that is there
 * afterwards however it ended, since logs often are not.
 *
 * It is kept in memory that forks share: the tasks of a restore write to the
 * report of CRIU itself. Any thread may write; NULL is a report that nobody
 * wants. The file is one JSON object, docs/image-format.md.
 */
#ifndef GPUCR_REPORT_H
#define GPUCR_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GPUCR_REPORT_DUMP	"amdgpu-report.json"
#define GPUCR_REPORT_RESTORE	"amdgpu-report-restore.json"

struct gpucr_report;
struct gpucr_copy_place;

/* operation: "dump" or "restore". NULL where there is no memory. */
struct gpucr_report *gpucr_report_new(const char *operation);
void gpucr_report_free(struct gpucr_report *r);

/*
 * A phase, of the process pid or (0) of all; its number for the end. Phases
 * may overlap. One that never ends is one during which it ended.
 */
int gpucr_report_begin(struct gpucr_report *r, const char *phase, pid_t pid);
/* bytes: of GPU memory that it moved. */
void gpucr_report_end(struct gpucr_report *r, int phase, uint64_t bytes);

/* A member; the last value counts. Few, and short. */
void gpucr_report_number(struct gpucr_report *r, const char *key,
			 uint64_t value);
void gpucr_report_text(struct gpucr_report *r, const char *key,
		       const char *value);
/* An option that is not as it is by default, or any other. */
void gpucr_report_option(struct gpucr_report *r, const char *name,
			 const char *value);
/*
 * A message "what (token); what to do", and its errno or 0; the first one is
 * kept.
 */
void gpucr_report_error(struct gpucr_report *r, const char *message, int err);

/* Where in GPU memory it was: a BO, by its index; the first one is kept. */
void gpucr_report_place(struct gpucr_report *r,
			const struct gpucr_copy_place *p);

/*
 * Writes the file; err: errno of a failure, 0: that of the first error. A
 * directory that cannot be written is nobody's trouble.
 */
void gpucr_report_write(struct gpucr_report *r, int dir, const char *name,
			bool good, int err);

#endif
