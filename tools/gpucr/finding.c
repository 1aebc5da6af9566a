// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "finding.h"
#include "out.h"

void finding_fill(struct json_object *row, const char *token, const char *fix,
		  const char *fmt, va_list ap)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	out_add_str(row, "token", token);
	out_add_str(row, "message", text);
	out_add_str(row, "fix", fix);
	free(text);
}

void finding_cell(struct json_object *row, const char *key, FILE *to)
{
	out_text(row, key, to);
	if (!json_object_object_get(row, "token"))
		return;
	fputs(" (", to);
	out_text(row, "token", to);
	fputc(')', to);
	if (!json_object_object_get(row, "fix"))
		return;
	fputs("; fix: ", to);
	out_text(row, "fix", to);
}
