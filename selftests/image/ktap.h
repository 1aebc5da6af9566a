/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests of one program: a table of functions, KTAP out. */
#ifndef GPUCR_KTAP_H
#define GPUCR_KTAP_H

#include <stdio.h>
#include <stdlib.h>

struct ktap_test {
	const char *name;
	int (*run)(void);	/* 0: passed */
};

static int ktap_line;

/* In a test: leave it as failed, saying where and what. */
#define CHECK(cond) do { \
	if (!(cond)) { \
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
		return 1; \
	} \
} while (0)

static inline int ktap_run(const struct ktap_test *tests, int num)
{
	int i, bad = 0;

	printf("KTAP version 1\n1..%d\n", num);
	for (i = 0; i < num; i++) {
		int failed = tests[i].run();

		printf("%sok %d %s\n", failed ? "not " : "", ++ktap_line,
		       tests[i].name);
		fflush(stdout);
		bad += failed;
	}
	return bad ? 1 : 0;
}

#endif
