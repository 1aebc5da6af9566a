// SPDX-License-Identifier: GPL-2.0-only
/* gpucr check: can this be dumped, can that be restored? */
#include <stdarg.h>

#include "args.h"
#include "check.h"
#include "fail.h"
#include "finding.h"
#include "out.h"

static size_t refusals;

static const struct out_column columns[] = {
	{ "ANSWER", "answer", out_text, 0 },
	{ "SUBJECT", "subject", out_text, 0 },
	{ "FOUND", "message", finding_cell, 0 },
	{ 0 }
};

struct json_object *check_say(enum check_answer answer, const char *subject,
			      const char *token, const char *fix,
			      const char *fmt, ...)
{
	static const char * const words[] = {
		[CHECK_YES] = "yes", [CHECK_WARN] = "warn", [CHECK_NO] = "no",
	};
	struct json_object *row = out_row();
	va_list ap;

	out_add_str(row, "answer", words[answer]);
	out_add_str(row, "subject", subject);
	va_start(ap, fmt);
	finding_fill(row, token, fix, fmt, ap);
	va_end(ap);
	refusals += answer == CHECK_NO;
	return row;
}

static int check_show(const struct args *args)
{
	int status;

	if (args->has[KEY_PID] == args->has[KEY_IMAGE])
		return fail(TOKEN_USAGE, 0,
			    "either pid N or image DIR must be given");
	if (args->has[args->has[KEY_PID] ? KEY_MAP : KEY_DIR])
		return fail(TOKEN_USAGE, 0, "dir goes with pid, device-map with image");
	if (args->has[KEY_PID])
		status = check_pid((pid_t)args->value[KEY_PID],
				   args->text[KEY_DIR]);
	else
		status = check_image(args->text[KEY_IMAGE],
				     args->text[KEY_MAP]);
	if (!status)
		status = out_finish(columns);
	return status ? status : refusals ? EXIT_NO : EXIT_DONE;
}

static const struct command commands[] = {
	{ "show", 0, KEY(KEY_PID) | KEY(KEY_IMAGE) | KEY(KEY_DIR) |
	  KEY(KEY_MAP), check_show },
	{ 0 }
};

const struct object check_object = {
	"check", "can a process be dumped, can an image be restored",
	commands,
};
