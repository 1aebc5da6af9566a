/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages of the library: one sentence each, given to a sink.
 *
 * The first error is remembered, so that a caller can repeat it at the end of
 * a long operation. Errors are logged once, where they are found; callers up
 * the stack pass the errno on and stay silent.
 */
#ifndef GPUCR_LOG_H
#define GPUCR_LOG_H

#include <stddef.h>

enum gpucr_log_level {
	GPUCR_LOG_ERROR = 1,
	GPUCR_LOG_WARN,
	GPUCR_LOG_INFO,
	GPUCR_LOG_DEBUG,
};

/* text has no prefix and no newline. */
typedef void (*gpucr_log_sink)(enum gpucr_log_level level, const char *text);

/* NULL: standard error, warnings and errors only. */
void gpucr_log_set_sink(gpucr_log_sink sink);
/* "" where no error was logged since the last reset. */
const char *gpucr_log_first_error(void);
void gpucr_log_reset(void);

__attribute__((format(printf, 2, 3)))
void gpucr_log(enum gpucr_log_level level, const char *fmt, ...);

/*
 * Messages of the calling thread are kept in c until gpucr_log_release(), for
 * a sink that is not made for threads. NULL: no longer.
 */
struct gpucr_log_capture {
	struct gpucr_log_line *lines;
	size_t num;
};

void gpucr_log_capture(struct gpucr_log_capture *c);
/* Hands them on, in order, as if the caller said them now, and frees them. */
void gpucr_log_release(struct gpucr_log_capture *c);

#define gpucr_err(...) gpucr_log(GPUCR_LOG_ERROR, __VA_ARGS__)
#define gpucr_warn(...) gpucr_log(GPUCR_LOG_WARN, __VA_ARGS__)
#define gpucr_info(...) gpucr_log(GPUCR_LOG_INFO, __VA_ARGS__)
#define gpucr_dbg(...) gpucr_log(GPUCR_LOG_DEBUG, __VA_ARGS__)

#endif
