/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests of one program as a table of functions. */
#ifndef GPUCR_TABLE_H
#define GPUCR_TABLE_H

#include "../ktap.h"

struct ktap_test {
	const char *name;
	int (*run)(void);	/* 0: passed */
};

/* In a test: leave it as failed, saying where and what. */
#define CHECK(cond) do { \
	if (!(cond)) { \
		ktap_note("%s:%d: %s", __FILE__, __LINE__, #cond); \
		return 1; \
	} \
} while (0)

static inline int ktap_run(const struct ktap_test *tests, int num)
{
	int i;

	ktap_plan(num);
	for (i = 0; i < num; i++)
		ktap_ok(!tests[i].run(), "%s", tests[i].name);
	return ktap_exit();
}

#endif
