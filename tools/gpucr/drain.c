// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpucr session drain on|off: keep new sessions out, so that those which are
 * open end and the module can be exchanged.
 */
#include <string.h>

#include "fail.h"
#include "module.h"
#include "out.h"
#include "session.h"

static void cell_draining(struct json_object *row, const char *key, FILE *to)
{
	fputs(json_object_get_boolean(json_object_object_get(row, key)) ?
	      "on" : "off", to);
}

static const struct out_column columns[] = {
	{ "DRAINING", "draining", cell_draining, 0 },
	{ "OPEN SESSIONS", "open", out_text, 0 },
	{ 0 }
};

int session_drain(const struct args *args)
{
	const char *text = args->text[KEY_SWITCH];
	struct gpucr_nl_info info = { 0 };
	struct json_object *row;
	struct gpucr_nl *nl;
	int err, status;

	if (strcmp(text, "on") && strcmp(text, "off"))
		return fail(TOKEN_USAGE, 0, "drain \"%s\": on or off", text);
	status = module_open(&nl);
	if (status)
		return status;
	err = gpucr_nl_session_drain(nl, !strcmp(text, "on"));
	if (!err)
		err = gpucr_nl_info(nl, &info);
	if (err) {
		status = module_fail(nl, err, "drain %s", text);
	} else {
		row = out_row();
		out_add_bool(row, "draining", info.draining);
		out_add_u64(row, "open", info.sessions_open);
	}
	gpucr_nl_close(nl);
	return status ? status : out_finish(columns);
}
