// SPDX-License-Identifier: GPL-2.0-only
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_LEN	512

struct gpucr_log_line {
	enum gpucr_log_level level;
	char text[LINE_MAX_LEN];
};

static gpucr_log_sink log_sink;
static char first_error[LINE_MAX_LEN];
static __thread struct gpucr_log_capture *capture;

void gpucr_log_set_sink(gpucr_log_sink sink)
{
	log_sink = sink;
}

const char *gpucr_log_first_error(void)
{
	return first_error;
}

void gpucr_log_reset(void)
{
	first_error[0] = '\0';
}

void gpucr_log_capture(struct gpucr_log_capture *c)
{
	capture = c;
}

static void keep(struct gpucr_log_capture *c, enum gpucr_log_level level,
		 const char *text)
{
	struct gpucr_log_line *more;

	more = reallocarray(c->lines, c->num + 1, sizeof(*more));
	if (!more)
		return;
	c->lines = more;
	more[c->num].level = level;
	strcpy(more[c->num++].text, text);
}

static void tell(enum gpucr_log_level level, const char *text)
{
	if (level == GPUCR_LOG_ERROR && !first_error[0])
		snprintf(first_error, sizeof(first_error), "%s", text);
	if (log_sink)
		log_sink(level, text);
	else if (level <= GPUCR_LOG_WARN)
		fprintf(stderr, "gpucr: %s\n", text);
}

void gpucr_log_release(struct gpucr_log_capture *c)
{
	size_t i;

	for (i = 0; i < c->num; i++) {
		if (capture)
			keep(capture, c->lines[i].level, c->lines[i].text);
		else
			tell(c->lines[i].level, c->lines[i].text);
	}
	free(c->lines);
	memset(c, 0, sizeof(*c));
}

void gpucr_log(enum gpucr_log_level level, const char *fmt, ...)
{
	char text[LINE_MAX_LEN];
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (capture)
		keep(capture, level, text);
	else
		tell(level, text);
	errno = saved;
}
