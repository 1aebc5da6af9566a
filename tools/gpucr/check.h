/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Can this be dumped, can that be restored? One line for each thing that was
 * looked at, or that stands in the way.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <json-c/json.h>

#include "nl.h"

enum check_answer {
	CHECK_YES,
	CHECK_WARN,
	CHECK_NO,
};

/*
 * A line; the row, for members of its own. token: explained in
 * docs/troubleshooting.md, NULL: none. fix may be NULL.
 */
struct json_object *check_say(enum check_answer answer, const char *subject,
			      const char *token, const char *fix,
			      const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* check_image.c; exit status, which is not 0 where nothing can be said. */
int check_image(const char *path, const char *device_map);

/* A process to be dumped, with those that CRIU would take along. */
struct check_tree {
	pid_t *pids;		/* the root first */
	size_t num;
};

bool check_tree_has(const struct check_tree *t, pid_t pid);

/* check_pid.c; exit status as above. */
int check_pid(pid_t pid, const char *dir);

/* check_fds.c: files that neither CRIU nor the plugin can dump. */
void check_fds(pid_t pid);

/* What of GPU memory there is to be copied. */
struct check_size {
	uint64_t bytes;
	size_t bos;		/* 0: not known, bytes are VRAM alone */
};

/* check_gpu.c: KFD and render node files, BOs and mappings of the tree. */
void check_gpu(const struct check_tree *t, struct gpucr_nl *nl,
	       struct check_size *ret);

/* check_space.c: does it fit, how long does it take? dir may be NULL. */
void check_space(const struct check_size *size, const char *dir);

#endif
