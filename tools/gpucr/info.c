// SPDX-License-Identifier: GPL-2.0-only
/* gpucr info: module, KFD, sessions and counters. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "fail.h"
#include "gpu.h"
#include "kfd.h"
#include "kfdrules.h"
#include "log.h"
#include "module.h"
#include "out.h"

static struct json_object *get(struct json_object *o, const char *key)
{
	return json_object_object_get(o, key);
}

static void cell_module(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *m = get(row, key);

	if (!get(m, "version")) {
		fputs("gpucr is not loaded", to);
	} else {
		fputs("gpucr ", to);
		out_text(m, "version", to);
		fputs(", protocol ", to);
		out_text(m, "protocol", to);
	}
	fputs(" (installed ", to);
	out_text(m, "installed", to);
	fputc(')', to);
}

static void cell_drivers(struct json_object *row, const char *key, FILE *to)
{
	out_list(get(row, "module"), key, to);
}

static void cell_limits(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *m = get(row, key);

	out_text(m, "max_objects", to);
	fputs(" objects, ", to);
	out_text(m, "max_sessions", to);
	fputs(" sessions", to);
}

static void cell_kfd(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *k = get(row, key);

	if (!json_object_get_boolean(get(k, "present"))) {
		fputs("absent", to);
		return;
	}
	out_text(k, "driver", to);
	fputs(", interface ", to);
	out_text(k, "version", to);
	fputs(", GPUs: ", to);
	out_text(k, "gpus", to);
}

static const char *text_of(struct json_object *k, const char *key)
{
	return json_object_get_string(get(k, key));
}

static void cell_record(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *k = get(row, key);
	const char *known = text_of(k, "bo_record_known");

	if (!json_object_get_boolean(get(k, "present")))
		fputc('-', to);
	else if (!known)
		fputs("of a BO: not yet known (a dump finds it)", to);
	else
		fprintf(to, "of a BO: %s bytes (%s)", text_of(k, "bo_record"),
			strcmp(known, "btf") ? "seen" : "known from BTF");
}

static void cell_offsets(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *k = get(row, key);
	const char *rule = text_of(k, "offsets");

	if (!json_object_get_boolean(get(k, "present")))
		fputc('-', to);
	else if (!rule)
		fputs("not yet known (a restore onto another GPU finds it)", to);
	else
		fprintf(to, "hold %s (seen)", strcmp(rule, "user") ?
			"the GPU's own id" : "the id that the process knows");
}

/* No harmless question tells, so nobody asks. */
static void cell_pause(struct json_object *row, const char *key, FILE *to)
{
	(void)row;
	(void)key;
	fputs("taken to count: one for each process, and UNPAUSE before it", to);
}

static void cell_recovery(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *m = get(row, "module");

	if (get(m, "version") && !get(row, key))
		fputs("off", to);
	else
		out_text(row, key, to);
}

static void cell_sessions(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *s = get(row, key);

	if (!s) {
		fputc('-', to);
		return;
	}
	out_text(s, "open", to);
	fputs(" open, ", to);
	out_text(s, "total", to);
	fputs(" since load, ", to);
	out_text(s, "abandoned", to);
	fputs(" abandoned, ", to);
	out_text(s, "recovered", to);
	fputs(" recovered", to);
	if (json_object_get_int64(get(s, "recovery_failed"))) {
		fputs(", ", to);
		out_text(s, "recovery_failed", to);
		fputs(" failed to", to);
	}
	if (json_object_get_boolean(get(s, "draining")))
		fputs("; draining: no new ones", to);
}

static const struct out_column columns[] = {
	{ "module", "module", cell_module, 0 },
	{ "drivers", "drivers", cell_drivers, 0 },
	{ "limits", "module", cell_limits, OUT_VERBOSE },
	{ "kfd", "kfd", cell_kfd, 0 },
	{ "record", "kfd", cell_record, 0 },
	{ "offsets", "kfd", cell_offsets, 0 },
	{ "pause", "kfd", cell_pause, OUT_VERBOSE },
	{ "recovery", "recovery_helper", cell_recovery, 0 },
	{ "sessions", "sessions", cell_sessions, 0 },
	{ 0 }
};

/* Version of the module that modprobe would load; "" where there is none. */
static void installed_version(char *text, size_t size)
{
	FILE *f = popen("PATH=/usr/sbin:/sbin:/usr/bin:/bin; exec modinfo -F version gpucr 2>/dev/null",
			"re");

	text[0] = '\0';
	if (!f)
		return;
	if (!fgets(text, (int)size, f))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	pclose(f);
}

static void add_names(struct json_object *m, const struct gpucr_nl_info *info)
{
	struct json_object *list = out_add_array(m, "drivers");
	unsigned int i;

	for (i = 0; i < info->num_drivers; i++)
		json_object_array_add(list,
				json_object_new_string(info->drivers[i]));
	list = out_add_array(m, "ops");
	for (i = 0; i < info->num_ops; i++)
		json_object_array_add(list,
				json_object_new_int64(info->ops[i]));
}

static void add_sessions(struct json_object *row,
			 const struct gpucr_nl_info *info)
{
	struct json_object *s = out_add_object(row, "sessions");

	out_add_u64(s, "open", info->sessions_open);
	out_add_u64(s, "total", info->sessions_total);
	out_add_u64(s, "abandoned", info->sessions_abandoned);
	out_add_u64(s, "recovered", info->sessions_recovered);
	out_add_u64(s, "recovery_failed", info->sessions_recovery_failed);
	out_add_bool(s, "draining", info->draining);
}

static void add_module(struct json_object *row, const struct gpucr_nl_info *info)
{
	struct json_object *m = out_add_object(row, "module");
	char installed[32];

	installed_version(installed, sizeof(installed));
	if (info) {
		out_add_str(m, "version", info->version);
		out_add_u64(m, "protocol", info->protocol);
		out_add_u64(m, "max_objects", info->max_objects);
		out_add_u64(m, "max_sessions", info->max_sessions);
		add_names(m, info);
	} else {
		out_add_null(m, "version");
		out_add_null(m, "protocol");
		out_add_null(m, "drivers");
	}
	out_add_str(m, "installed", installed);
	out_add_str(row, "recovery_helper", info ? info->helper : NULL);
	if (info)
		add_sessions(row, info);
	else
		out_add_null(row, "sessions");
}

static void no_log(enum gpucr_log_level level, const char *text)
{
	(void)level;
	(void)text;
}

static void add_version(struct json_object *k, dev_t dev)
{
	uint32_t maj, min;
	int fd;

	gpucr_log_set_sink(no_log);
	fd = gpucr_kfd_open(dev);
	if (fd >= 0 && !gpucr_kfd_version(fd, &maj, &min))
		out_add_fmt(k, "version", "%u.%u", maj, min);
	else
		out_add_null(k, "version");
	if (fd >= 0)
		close(fd);
	gpucr_log_set_sink(NULL);
}

/* What lib/kfdrules.h knows, and how. */
static void add_rules(struct json_object *k)
{
	static const char * const known[] = {
		[GPUCR_KNOWN_SEEN] = "seen", [GPUCR_KNOWN_BTF] = "btf",
	};
	static const char * const rules[] = {
		[GPUCR_OFFSET_LOCAL] = "local", [GPUCR_OFFSET_USER] = "user",
	};
	struct gpucr_kfd_rules r;

	gpucr_kfd_rules_read(&r);
	out_add_str(k, "module", r.provider);
	if (r.bo_record)
		out_add_u64(k, "bo_record", r.bo_record);
	else
		out_add_null(k, "bo_record");
	out_add_str(k, "bo_record_known", known[r.bo_known]);
	out_add_str(k, "offsets", rules[r.offsets]);
	out_add_str(k, "pause", "counts-assumed");
}

static void add_kfd(struct json_object *row)
{
	struct json_object *k = out_add_object(row, "kfd");
	char driver[64];
	dev_t dev;

	if (gpucr_kfd_dev(&dev)) {
		out_add_bool(k, "present", false);
		return;
	}
	gpu_driver(driver, sizeof(driver));
	out_add_bool(k, "present", true);
	out_add_str(k, "driver", driver);
	add_version(k, dev);
	out_add_u64(k, "gpus", gpu_count());
	add_rules(k);
}

/* The only command that is content without the module. */
static int ask_module(struct gpucr_nl_info *info, bool *there)
{
	struct gpucr_nl *nl;
	int err;

	*there = false;
	if (backend == BACKEND_IOCTL)
		return EXIT_DONE;
	err = gpucr_nl_open(&nl);
	if (err == -ENOENT && backend == BACKEND_AUTO) {
		out_warn("no-module", "module gpucr is not loaded: bo, vma and session need it");
		return EXIT_DONE;
	}
	if (err == -ENOENT)
		return fail(TOKEN_NO_MODULE, ENOENT,
			    "module gpucr: not loaded, and could not be");
	if (err)
		return fail(TOKEN_KERNEL_REFUSED, -err, "module gpucr: %s",
			    strerror(-err));
	err = gpucr_nl_info(nl, info);
	*there = !err;
	err = err ? module_fail(nl, err, "module gpucr") : EXIT_DONE;
	gpucr_nl_close(nl);
	return err;
}

static int info_show(const struct args *args)
{
	struct gpucr_nl_info info;
	struct json_object *row;
	bool there;
	int status;

	(void)args;
	status = ask_module(&info, &there);
	if (status)
		return status;
	row = out_row();
	add_module(row, there ? &info : NULL);
	add_kfd(row);
	if (there && info.protocol != GPUCR_FAMILY_VERSION)
		out_warn("protocol-mismatch", "the module speaks protocol %u, this tool %d",
			 info.protocol, GPUCR_FAMILY_VERSION);
	return out_finish_record(columns);
}

static const struct command commands[] = {
	{ "show", 0, 0, info_show },
	{ 0 }
};

const struct object info_object = {
	"info", "module, KFD, sessions and counters", commands,
};
