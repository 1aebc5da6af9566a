// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CRIU plugin that stands between CRIU and the real plugin, and holds CRIU
 * still at one point: before or after the n-th call of a hook. A test can look
 * at it there, and kill it there.
 *
 *	GATE_PLUGIN  path of the real plugin
 *	GATE_AT      HOOK:before|after:N, where HOOK is init, checkpoint-devices,
 *	             handle-vma, dump-file, restore-file, update-vma,
 *	             post-forking, resume or exit; unset: never
 *	GATE_FILE    made when the point is reached; CRIU goes on when it is gone
 *	GATE_DO      hold (as said), error:ERRNO, delay:MS, or swallow: no call of
 *	             the hook comes to the real plugin, as another one in front of
 *	             it may do
 *
 * The N-th call is that of all of CRIU's processes.
 *
 * Files that the real plugin does not want are claimed, so that a process that
 * has nothing to do with GPUs can be dumped with a device file and meets the
 * same hooks.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fire.h"

#define MAX_HOOKS	32

enum hook {
	HOOK_DUMP_FILE = 2,
	HOOK_RESTORE_FILE = 3,
	HOOK_HANDLE_VMA = 7,
	HOOK_UPDATE_VMA = 8,
	HOOK_RESUME = 9,
	HOOK_CHECKPOINT_DEVICES = 11,
	HOOK_POST_FORKING = 12,
	/* no hooks of the table */
	HOOK_EXIT = MAX_HOOKS,
	HOOK_INIT,
	HOOK_NONE,
};

/* All that hooks are called with fits into so many registers. */
typedef long (*hook_fn)(long a, long b, long c, long d, long e);

/* CRIU's cr_plugin_desc_t; it reads max_hooks of the hooks. */
struct plugin_desc {
	const char *name;
	int (*init)(int stage);
	void (*exit)(int stage, int ret);
	unsigned int version;
	unsigned int max_hooks;
	hook_fn hooks[MAX_HOOKS];
};

static struct plugin_desc *real;
static struct {
	struct fire fire;
	enum hook hook;
	bool after;
	bool swallow;
} gate = { .hook = HOOK_NONE };

static int pass(enum hook hook, bool after)
{
	if (hook != gate.hook || after != gate.after)
		return 0;
	return -fire_pass(&gate.fire);
}

static long call(enum hook hook, long a, long b, long c, long d, long e)
{
	hook_fn fn = real->hooks[hook];
	long ret;
	int err;

	if (gate.swallow && hook == gate.hook)
		return 0;
	err = pass(hook, false);
	if (err)
		return err;
	ret = fn ? fn(a, b, c, d, e) : -ENOTSUP;
	err = pass(hook, true);
	if (err)
		return err;
	if (hook == HOOK_DUMP_FILE && (int)ret == -ENOTSUP)
		return 0;
	return ret;
}

#define GATE_HOOK(name, hook)						\
static long name(long a, long b, long c, long d, long e)		\
{									\
	return call(hook, a, b, c, d, e);				\
}

GATE_HOOK(on_dump_file, HOOK_DUMP_FILE)
GATE_HOOK(on_restore_file, HOOK_RESTORE_FILE)
GATE_HOOK(on_handle_vma, HOOK_HANDLE_VMA)
GATE_HOOK(on_update_vma, HOOK_UPDATE_VMA)
GATE_HOOK(on_resume, HOOK_RESUME)
GATE_HOOK(on_checkpoint_devices, HOOK_CHECKPOINT_DEVICES)
GATE_HOOK(on_post_forking, HOOK_POST_FORKING)

static int on_init(int stage)
{
	int ret = real ? pass(HOOK_INIT, false) : -1;

	if (ret)
		return ret;
	ret = real->init(stage);
	return ret ? ret : pass(HOOK_INIT, true);
}

static void on_exit_hook(int stage, int ret)
{
	pass(HOOK_EXIT, false);
	real->exit(stage, ret);
	pass(HOOK_EXIT, true);
}

__attribute__((visibility("default")))
struct plugin_desc CR_PLUGIN_DESC = {
	.name = "gate",
	.init = on_init,
	.exit = on_exit_hook,
};

static const struct {
	const char *name;
	enum hook hook;
	hook_fn fn;
} hooks[] = {
	{ "dump-file", HOOK_DUMP_FILE, on_dump_file },
	{ "restore-file", HOOK_RESTORE_FILE, on_restore_file },
	{ "handle-vma", HOOK_HANDLE_VMA, on_handle_vma },
	{ "update-vma", HOOK_UPDATE_VMA, on_update_vma },
	{ "resume", HOOK_RESUME, on_resume },
	{ "checkpoint-devices", HOOK_CHECKPOINT_DEVICES, on_checkpoint_devices },
	{ "post-forking", HOOK_POST_FORKING, on_post_forking },
	{ "exit", HOOK_EXIT, NULL },
	{ "init", HOOK_INIT, NULL },
};

#define NUM_HOOKS	(sizeof(hooks) / sizeof(hooks[0]))

static void parse(char *at)
{
	const char *hook = strsep(&at, ":"), *when = strsep(&at, ":");
	const char *what = getenv("GATE_DO");
	unsigned int i;

	gate.swallow = what && !strcmp(what, "swallow");
	if (gate.swallow)
		what = NULL;
	for (i = 0; i < NUM_HOOKS; i++)
		if (!strcmp(hook, hooks[i].name))
			gate.hook = hooks[i].hook;
	gate.after = when && !strcmp(when, "after");
	gate.fire.nth = at ? strtoul(at, NULL, 10) : 0;
	if (gate.hook != HOOK_NONE && gate.fire.nth && gate.fire.file &&
	    fire_parse(&gate.fire, what))
		return;
	fprintf(stderr, "gate: GATE_AT, GATE_DO or GATE_FILE is wrong\n");
	_exit(2);
}

/* CRIU reads the table after this. */
__attribute__((constructor))
static void load_real(void)
{
	const char *path = getenv("GATE_PLUGIN");
	char *at = getenv("GATE_AT");
	unsigned int i;
	void *h = path ? dlopen(path, RTLD_NOW) : NULL;

	real = h ? dlsym(h, "CR_PLUGIN_DESC") : NULL;
	if (!real) {
		fprintf(stderr, "gate: %s\n", path ? dlerror() : "no GATE_PLUGIN");
		_exit(2);
	}
	gate.fire.file = getenv("GATE_FILE");
	if (at)
		parse(strdup(at));
	CR_PLUGIN_DESC.version = real->version;
	CR_PLUGIN_DESC.max_hooks = real->max_hooks;
	memcpy(CR_PLUGIN_DESC.hooks, real->hooks, sizeof(real->hooks));
	/* A hook that the real one lacks is there for the gate alone. */
	for (i = 0; i < NUM_HOOKS; i++)
		if (hooks[i].fn && real->max_hooks > hooks[i].hook)
			CR_PLUGIN_DESC.hooks[hooks[i].hook] = hooks[i].fn;
}
