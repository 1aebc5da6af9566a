// SPDX-License-Identifier: GPL-2.0-only
/*
 * A stand-in for CRIU: it exports a hook table of HOOKS hooks and loads the
 * plugin, all symbols bound at once. Built once for each size.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "table.h"

/* What CRIU exports; the plugin reads its size alone. */
void *cr_plugin_ctl[2 * (1 + HOOKS)];

struct desc {
	const char *name;
	int (*init)(int stage);
	void (*exit)(int stage, int ret);
	unsigned int version;
	unsigned int max_hooks;
	void *hooks[];
};

static struct desc *desc;
static void *handle;

static int loads(void)
{
	handle = dlopen(PLUGIN, RTLD_NOW);
	if (!handle)
		printf("# %s\n", dlerror());
	CHECK(handle);
	desc = dlsym(handle, "CR_PLUGIN_DESC");
	CHECK(desc);
	return 0;
}

static int describes_itself(void)
{
	CHECK(!strcmp(desc->name, "amdgpu_plugin"));
	CHECK(desc->version == 0x200);
	CHECK(desc->max_hooks == HOOKS);
	CHECK(desc->init && desc->exit);
	return 0;
}

static int fills_no_hook_too_many(void)
{
	CHECK(desc->hooks[2] && desc->hooks[3] && desc->hooks[7] &&
	      desc->hooks[8] && desc->hooks[9]);
	CHECK(!desc->hooks[0] && !desc->hooks[1] && !desc->hooks[4]);
	CHECK(HOOKS < 12 || desc->hooks[11]);
	CHECK(HOOKS < 13 || desc->hooks[12]);
	return 0;
}

/* Without a KFD, as where this runs: nothing is claimed, nothing fails. */
static int leaves_all_alone(void)
{
	int (*dump)(int fd, int id);
	int stage;

	*(void **)&dump = desc->hooks[2];
	for (stage = 0; stage < 2; stage++) {
		CHECK(!desc->init(stage));
		CHECK(dump(0, 1) == -95);
		desc->exit(stage, 0);
	}
	return 0;
}

static int writes_retry_where_there_is_one(void)
{
	bool retry = true;

	if (HOOKS >= 14) {
		int (*restore)(int id, bool *retry);

		*(void **)&restore = desc->hooks[3];
		CHECK(restore(1, &retry) == -95 && !retry);
	} else {
		int (*restore)(int id);

		*(void **)&restore = desc->hooks[3];
		CHECK(restore(1) == -95);
	}
	return 0;
}

static int unloads(void)
{
	CHECK(!dlclose(handle));
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "loads with all symbols bound", loads },
		{ "name, version, number of hooks", describes_itself },
		{ "hooks", fills_no_hook_too_many },
		{ "leaves all alone", leaves_all_alone },
		{ "second argument of RESTORE_EXT_FILE",
		  writes_retry_where_there_is_one },
		{ "unloads", unloads },
	};

	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
