/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KTAP for test programs: plan, results, exit status 0 (passed), 1 (failed) or
 * 4 (everything skipped). Included by one file of a program.
 *
 *	ktap_plan(2);
 *	ktap_ok(x == 1, "x is %d", x);
 *	ktap_skip("no y here");
 *	return ktap_exit();
 */
#ifndef GPUCR_KTAP_H
#define GPUCR_KTAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	int planned;
	int done;
	int failed;
	int skipped;
} ktap;

static inline void ktap_plan(int n)
{
	ktap.planned = n;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..%d\n", n);
}

static inline void ktap_vresult(bool ok, const char *directive,
				const char *fmt, va_list ap)
{
	printf("%sok %d - ", ok ? "" : "not ", ++ktap.done);
	vprintf(fmt, ap);
	printf("%s\n", directive);
}

/* One result. Returns ok, so that what depends on it can be left out. */
__attribute__((format(printf, 2, 3)))
static inline bool ktap_ok(bool ok, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ktap_vresult(ok, "", fmt, ap);
	va_end(ap);
	if (!ok)
		ktap.failed++;
	return ok;
}

/* A table of cases, a result each. */
struct ktap_case {
	bool (*run)(void);
	const char *name;
};

/* Plan and all results. */
static inline void ktap_cases(const struct ktap_case *cases, size_t n)
{
	size_t i;

	ktap_plan((int)n);
	for (i = 0; i < n; i++)
		ktap_ok(cases[i].run(), "%s", cases[i].name);
}

/* One result that cannot be had here; the text says what is missing. */
__attribute__((format(printf, 1, 2)))
static inline void ktap_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ktap_vresult(true, " # SKIP", fmt, ap);
	va_end(ap);
	ktap.skipped++;
}

/* A detail of the next or last result. */
__attribute__((format(printf, 1, 2)))
static inline void ktap_note(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* The test cannot go on. */
__attribute__((format(printf, 1, 2), noreturn))
static inline void ktap_bail(const char *fmt, ...)
{
	va_list ap;

	printf("Bail out! ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	exit(1);
}

static inline int ktap_exit(void)
{
	if (ktap.failed || ktap.done != ktap.planned)
		return 1;
	return ktap.skipped == ktap.planned ? 4 : 0;
}

/* Is this run there to prove that the suite can fail? */
static inline bool ktap_canary(void)
{
	const char *v = getenv("GPUCR_CANARY");

	return v && !strcmp(v, "1");
}

#endif
