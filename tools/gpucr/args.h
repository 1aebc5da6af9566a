/* SPDX-License-Identifier: GPL-2.0-only */
/* OBJECT [COMMAND] [KEY VALUE]...: tables, parsing, help. */
#ifndef ARGS_H
#define ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum key {
	KEY_PID,
	KEY_FD,
	KEY_GPU,
	KEY_ADDR,
	KEY_SHARED,
	KEY_ID,
	KEY_SESSION,
	KEY_IMAGES,
	KEY_PART,
	KEY_OUT,
	KEY_CRIU,
	KEY_LIBDIR,
	KEY_IMAGE,
	KEY_SWITCH,
	KEY_COUNT,
	KEY_TIMEOUT,
	KEY_DIR,
	KEY_MAP,
	KEY_NUM,
};

struct args {
	bool has[KEY_NUM];
	uint64_t value[KEY_NUM];
	const char *text[KEY_NUM];	/* as it was typed */
};

#define KEY(k)		(1u << (k))

struct command {
	const char *name;
	unsigned int required;		/* KEY() | KEY() ... */
	unsigned int optional;
	int (*run)(const struct args *args);
};

struct object {
	const char *name;
	const char *what;
	const struct command *commands;	/* the first is the default */
};

extern const struct object info_object, ps_object, file_object, bo_object,
	vma_object, queue_object, session_object, image_object, doctor_object,
	report_object;
extern const struct object remap_object, check_object, monitor_object;

/* Runs what argv says of the object; exit status. */
int object_run(const struct object *object, int argc, char **argv);
/* Prints one line a command. */
void object_usage(const struct object *object);

/* The text as a value of the key in that base; -EINVAL. */
int args_parse(enum key key, const char *text, int base, uint64_t *ret);

/* Is the gpu key absent, or this GPU? gpu 0: none. */
bool args_gpu_matches(const struct args *args, uint32_t gpu);

enum backend {
	BACKEND_AUTO,
	BACKEND_NETLINK,
	BACKEND_IOCTL,
};

extern enum backend backend;

#endif
