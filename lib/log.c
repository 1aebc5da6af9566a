// SPDX-License-Identifier: GPL-2.0-only
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static gpucr_log_sink log_sink;
static char first_error[512];

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

void gpucr_log(enum gpucr_log_level level, const char *fmt, ...)
{
	char text[512];
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);

	if (level == GPUCR_LOG_ERROR && !first_error[0])
		snprintf(first_error, sizeof(first_error), "%s", text);
	if (log_sink)
		log_sink(level, text);
	else if (level <= GPUCR_LOG_WARN)
		fprintf(stderr, "gpucr: %s\n", text);
	errno = saved;
}
