/* SPDX-License-Identifier: GPL-2.0-only */
/* What doctor and check found: a sentence, a token, what to do. */
#ifndef FINDING_H
#define FINDING_H

#include <stdarg.h>
#include <stdio.h>
#include <json-c/json.h>

/* Members token, message and fix of a row; token and fix may be NULL. */
void finding_fill(struct json_object *row, const char *token, const char *fix,
		  const char *fmt, va_list ap);
/* A cell "message (token); fix: fix". */
void finding_cell(struct json_object *row, const char *key, FILE *to);

#endif
