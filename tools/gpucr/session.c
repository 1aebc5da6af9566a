// SPDX-License-Identifier: GPL-2.0-only
/* gpucr session: sessions that the module holds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "module.h"
#include "out.h"
#include "session.h"

static void cell_owner(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *owner = json_object_object_get(row, key);

	out_text(owner, "comm", to);
	fputc(' ', to);
	out_text(owner, "pid", to);
	if (json_object_get_boolean(json_object_object_get(owner, "gone")))
		fputs(" (gone)", to);
}

static void cell_hint(struct json_object *row, const char *key, FILE *to)
{
	if (json_object_object_get(row, key))
		out_text(row, key, to);
}

static const struct out_column columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "PID", "pid", out_text, 0 },
	{ "KIND", "kind", out_text, 0 },
	{ "STATE", "state", out_text, 0 },
	{ "OWNER", "owner", cell_owner, 0 },
	{ "AGE", "age_us", out_seconds, 0 },
	{ "PAUSED", "paused_us", out_seconds, 0 },
	{ "ERROR", "errno", out_text, OUT_VERBOSE },
	{ "GPUS", "num_devices", out_text, OUT_VERBOSE },
	{ "BOS", "num_bos", out_text, OUT_VERBOSE },
	{ "OBJECTS", "num_objects", out_text, OUT_VERBOSE },
	{ "PRIVATE", "priv_size", out_size, OUT_VERBOSE },
	{ "TASKS", "tasks", out_text, OUT_VERBOSE },
	{ "", "hint", cell_hint, 0 },
	{ 0 }
};

const char *session_state(uint32_t state)
{
	static const char * const names[] = {
		[GPUCR_SESSION_STATE_NEW] = "new",
		[GPUCR_SESSION_STATE_PAUSED] = "paused",
		[GPUCR_SESSION_STATE_CHECKPOINTED] = "checkpointed",
		[GPUCR_SESSION_STATE_UNPAUSED] = "unpaused",
		[GPUCR_SESSION_STATE_RESTORING] = "restoring",
		[GPUCR_SESSION_STATE_RESTORED] = "restored",
		[GPUCR_SESSION_STATE_RESUMED] = "resumed",
		[GPUCR_SESSION_STATE_ABANDONED] = "abandoned",
		[GPUCR_SESSION_STATE_RECOVERED] = "recovered",
		[GPUCR_SESSION_STATE_FAILED] = "failed",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state]
							: "unknown";
}

bool session_holds_paused(const struct gpucr_nl_session *s)
{
	return s->state == GPUCR_SESSION_STATE_PAUSED ||
	       s->state == GPUCR_SESSION_STATE_CHECKPOINTED ||
	       s->state == GPUCR_SESSION_STATE_ABANDONED;
}

static void add_owner(struct json_object *row, const struct gpucr_nl_session *s)
{
	struct json_object *owner = out_add_object(row, "owner");

	if (s->owner_pid)
		out_add_u64(owner, "pid", s->owner_pid);
	else
		out_add_null(owner, "pid");
	out_add_str(owner, "comm", s->owner_comm);
	out_add_bool(owner, "gone", s->owner_gone);
}

static void add_row(const struct gpucr_nl_session *s)
{
	struct json_object *row = out_row();

	out_add_fmt(row, "id", "%llx", (unsigned long long)s->id);
	if (s->pid)
		out_add_u64(row, "pid", s->pid);
	else
		out_add_null(row, "pid");
	out_add_str(row, "kind", s->direction == GPUCR_DIRECTION_RESTORE ?
		    "restore" : "dump");
	out_add_str(row, "state", session_state(s->state));
	add_owner(row, s);
	out_add_u64(row, "age_us", s->age_ms * 1000);
	if (s->was_paused)
		out_add_u64(row, "paused_us", s->paused_ms * 1000);
	else
		out_add_null(row, "paused_us");
	out_add_str(row, "errno", s->error ? strerrorname_np((int)s->error)
					   : NULL);
	out_add_u64(row, "num_devices", s->num_devices);
	out_add_u64(row, "num_bos", s->num_bos);
	out_add_u64(row, "num_objects", s->num_objects);
	out_add_u64(row, "priv_size", s->priv_size);
	out_add_u64(row, "tasks", s->tasks);
	if (s->state == GPUCR_SESSION_STATE_ABANDONED)
		out_add_fmt(row, "hint", "run: gpucr session recover id %llx",
			    (unsigned long long)s->id);
	else
		out_add_null(row, "hint");
}

/* -ENOENT where no session has that id. */
static int get_one(struct gpucr_nl *nl, uint64_t id,
		   struct gpucr_nl_session *ret)
{
	struct gpucr_nl_session *s;
	size_t num;
	int err;

	err = gpucr_nl_sessions(nl, id, &s, &num);
	if (err)
		return err;
	err = num ? 0 : -ENOENT;
	if (num)
		*ret = s[0];
	free(s);
	return err;
}

/*
 * Ids are hexadecimal, as they are shown. A number of decimal digits alone
 * that names no session so is read as decimal: the kernel's own messages and
 * its call of the recovery helper have it that way.
 */
int session_find(struct gpucr_nl *nl, const struct args *args,
		 struct gpucr_nl_session *ret)
{
	const char *text = args->text[KEY_ID];
	struct gpucr_nl_session other = { 0 };
	uint64_t hex, dec;
	int err = -ENOENT, err_dec = -ENOENT;

	if (!args_parse(KEY_ID, text, 16, &hex))
		err = get_one(nl, hex, ret);
	if (!args_parse(KEY_ID, text, 10, &dec))
		err_dec = get_one(nl, dec, &other);
	if (!err && !err_dec && other.id != ret->id)
		return fail(TOKEN_USAGE, 0,
			    "id \"%s\": one session in hexadecimal, another in decimal; write 0x before it",
			    text);
	if (err == -ENOENT && err_dec != -ENOENT) {
		err = err_dec;
		*ret = other;
	}
	if (err == -ENOENT)
		return fail(TOKEN_NO_SESSION, ENOENT,
			    "session %s: there is none", text);
	return err ? module_fail(nl, err, "session %s", text) : EXIT_DONE;
}

static int show_all(struct gpucr_nl *nl)
{
	struct gpucr_nl_session *s;
	size_t i, num;
	int err;

	err = gpucr_nl_sessions(nl, 0, &s, &num);
	if (err)
		return module_fail(nl, err, "sessions");
	for (i = 0; i < num; i++)
		add_row(&s[i]);
	free(s);
	return EXIT_DONE;
}

static int session_show(const struct args *args)
{
	struct gpucr_nl_session s;
	struct gpucr_nl *nl;
	int status;

	status = module_open(&nl);
	if (status)
		return status;
	if (args->has[KEY_ID]) {
		status = session_find(nl, args, &s);
		if (!status)
			add_row(&s);
	} else {
		status = show_all(nl);
	}
	gpucr_nl_close(nl);
	return status ? status : out_finish(columns);
}

static const struct command commands[] = {
	{ "show", 0, KEY(KEY_ID), session_show },
	{ "recover", 0, KEY(KEY_ID) | KEY(KEY_PID), session_recover },
	{ "watch", KEY(KEY_PID), 0, session_watch },
	{ "drain", KEY(KEY_SWITCH), 0, session_drain },
	{ 0 }
};

const struct object session_object = {
	"session", "checkpoint and restore sessions of the module", commands,
};
