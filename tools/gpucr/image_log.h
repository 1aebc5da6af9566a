/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The library's messages while images are read: "SUBJECT: what (token); what
 * to do". Warnings become those of the output, the first error becomes the
 * command's failure.
 */
#ifndef IMAGE_LOG_H
#define IMAGE_LOG_H

#include <stddef.h>

/* Collects from now on; what was collected before is forgotten. */
void image_log_begin(void);
/* To standard error again. Returns how many errors there were. */
size_t image_log_end(void);
/*
 * Cuts " (token); what to do" off a message; the token goes to name, "" where
 * there is none. Returns what to do, or NULL.
 */
const char *image_log_split(char *text, char *name, size_t size);
/* Fails with the first error; err where there was none. Exit status. */
int image_log_fail(const char *path, int err);

#endif
