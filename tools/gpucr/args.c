// SPDX-License-Identifier: GPL-2.0-only
/* Parsing of COMMAND [KEY VALUE]... and its help. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "fail.h"
#include "out.h"

enum backend backend;

static const struct {
	const char *name;		/* "": its place tells, not a name */
	const char *value;		/* NULL: the key stands alone */
	int base;			/* 0: the value is text */
	uint64_t min, max;
} keys[] = {
	[KEY_PID] = { "pid", "N", 10, 1, INT_MAX },
	[KEY_FD] = { "fd", "F", 10, 0, INT_MAX },
	[KEY_GPU] = { "gpu", "ID", 10, 1, UINT32_MAX },
	[KEY_ADDR] = { "addr", "A", 16, 0, UINT64_MAX },
	[KEY_SHARED] = { "shared", NULL, 0, 0, 0 },
	[KEY_ID] = { "id", "ID", 16, 1, UINT64_MAX },
	[KEY_SESSION] = { "session", "ID", 16, 1, UINT64_MAX },
	[KEY_IMAGES] = { "", "DIR", 0, 0, 0 },
	[KEY_PART] = { "", "gpu|bo|queue|event|vma|share|phase", 0, 0, 0 },
	[KEY_OUT] = { "out", "FILE", 0, 0, 0 },
	[KEY_CRIU] = { "criu", "PATH", 0, 0, 0 },
	[KEY_LIBDIR] = { "libdir", "DIR", 0, 0, 0 },
	[KEY_IMAGE] = { "image", "DIR", 0, 0, 0 },
	[KEY_SWITCH] = { "", "on|off", 0, 0, 0 },
	[KEY_COUNT] = { "count", "N", 10, 1, UINT32_MAX },
	[KEY_TIMEOUT] = { "timeout", "S", 10, 1, UINT32_MAX },
	[KEY_DIR] = { "dir", "DIR", 0, 0, 0 },
	[KEY_MAP] = { "device-map", "MAP", 0, 0, 0 },
};

static void print_keys(unsigned int set, bool optional)
{
	int k;

	for (k = 0; k < KEY_NUM; k++) {
		if (!(set & KEY(k)))
			continue;
		printf(" %s%s%s%s%s", optional ? "[" : "", keys[k].name,
		       *keys[k].name && keys[k].value ? " " : "",
		       keys[k].value ? keys[k].value : "",
		       optional ? "]" : "");
	}
}

void object_usage(const struct object *o)
{
	const struct command *c;

	for (c = o->commands; c->name; c++) {
		printf("gpucr %s %s%s%s", o->name,
		       c == o->commands ? "[" : "", c->name,
		       c == o->commands ? "]" : "");
		print_keys(c->required, false);
		print_keys(c->optional, true);
		putchar('\n');
	}
}

static int help(const struct object *o)
{
	printf("%s: %s\n\n", o->name, o->what);
	object_usage(o);
	printf("gpucr %s help\n", o->name);
	return out_flush(EXIT_DONE);
}

int args_parse(enum key k, const char *text, int base, uint64_t *ret)
{
	char *end;

	/* strtoull takes signs and blanks; nobody means those here. */
	if (!strchr("0123456789abcdefABCDEF", *text) || !*text)
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, base);
	if (errno || *end || *ret < keys[k].min || *ret > keys[k].max)
		return -EINVAL;
	return 0;
}

static int parse_value(enum key k, const char *text, uint64_t *ret)
{
	int err = args_parse(k, text, keys[k].base, ret);

	/* Session ids come in decimal too; session_find() tells which it is. */
	if (err && (k == KEY_ID || k == KEY_SESSION))
		err = args_parse(k, text, 10, ret);
	return err;
}

/* By name, else the first without a name that is not given yet. */
static int find_key(const struct command *c, const char *name,
		    const struct args *args)
{
	int k, place = -1;

	for (k = 0; k < KEY_NUM; k++) {
		if (!((c->required | c->optional) & KEY(k)))
			continue;
		if (*keys[k].name && !strcmp(keys[k].name, name))
			return k;
		if (place < 0 && !*keys[k].name && !args->has[k])
			place = k;
	}
	return *name == '-' ? -1 : place;
}

static int parse_keys(const struct command *c, int argc, char **argv,
		      struct args *args)
{
	int i, k;

	for (i = 0; i < argc; i++) {
		k = find_key(c, argv[i], args);
		if (k < 0)
			return fail(TOKEN_USAGE, 0, "\"%s\": not a key of %s%s",
				    argv[i], c->name, *argv[i] == '-' ?
				    ", and options come before the object" : "");
		if (args->has[k])
			return fail(TOKEN_USAGE, 0, "%s: given twice", argv[i]);
		args->has[k] = true;
		if (!keys[k].value)
			continue;
		if (*keys[k].name && ++i == argc)
			return fail(TOKEN_USAGE, 0, "%s: its value is missing",
				    keys[k].name);
		args->text[k] = argv[i];
		if (!keys[k].base && !*argv[i])
			return fail(TOKEN_USAGE, 0, "%s: it is empty",
				    keys[k].value);
		if (keys[k].base && parse_value(k, argv[i], &args->value[k]))
			return fail(TOKEN_USAGE, 0, "%s \"%s\": not a number that fits",
				    keys[k].name, argv[i]);
	}
	for (k = 0; k < KEY_NUM; k++)
		if (c->required & KEY(k) && !args->has[k])
			return fail(TOKEN_USAGE, 0, "%s: %s%s%s is missing",
				    c->name, keys[k].name,
				    *keys[k].name ? " " : "", keys[k].value);
	return EXIT_DONE;
}

/* "help" as the command; as an option it may stand anywhere. */
static bool wants_help(int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++)
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help"))
			return true;
	return argc && !strcmp(argv[0], "help");
}

/* A key in place of a command means the default command. */
static bool is_key(const char *name)
{
	int k;

	for (k = 0; k < KEY_NUM; k++)
		if (*keys[k].name && !strcmp(keys[k].name, name))
			return true;
	return false;
}

int object_run(const struct object *o, int argc, char **argv)
{
	const struct command *c = o->commands;
	struct args args = { 0 };
	int status;

	out_begin(o->name);
	if (wants_help(argc, argv))
		return help(o);
	if (argc && !is_key(argv[0])) {
		while (c->name && strcmp(c->name, argv[0]))
			c++;
		if (!c->name)
			return fail(TOKEN_USAGE, 0,
				    "\"%s\": not a command or key of %s",
				    argv[0], o->name);
		argc--;
		argv++;
	}
	status = parse_keys(c, argc, argv, &args);
	return status ? status : c->run(&args);
}

bool args_gpu_matches(const struct args *args, uint32_t gpu)
{
	return !args->has[KEY_GPU] || args->value[KEY_GPU] == gpu;
}
