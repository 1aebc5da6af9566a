/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the plugin share, and CRIU's side of the contract. */
#ifndef GPUCR_PLUGIN_H
#define GPUCR_PLUGIN_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "opt.h"

/*
 * As upstream's: one of the two can be loaded. Entries of the inventory are
 * those of the image's format (imgformat.h), so that upstream's plugin never
 * parses native images.
 */
#define PLUGIN_NAME	"amdgpu_plugin"
#define PLUGIN_VERSION	(2 << 8)	/* 0.2.0: every CRIU accepts it */
#define PLUGIN_MAX_HOOKS 32

enum plugin_stage {
	STAGE_DUMP,
	STAGE_PRE_DUMP,
	STAGE_RESTORE,
};

enum plugin_hook {
	HOOK_DUMP_EXT_FILE = 2,
	HOOK_RESTORE_EXT_FILE = 3,
	HOOK_HANDLE_DEVICE_VMA = 7,
	HOOK_UPDATE_VMA_MAP = 8,
	HOOK_RESUME_DEVICES_LATE = 9,
	HOOK_CHECKPOINT_DEVICES = 11,
	HOOK_POST_FORKING = 12,
};

/* CRIU's cr_plugin_desc_t; it reads max_hooks of the hooks. */
struct plugin_desc {
	const char *name;
	int (*init)(int stage);
	void (*exit)(int stage, int ret);
	unsigned int version;
	unsigned int max_hooks;
	void *hooks[PLUGIN_MAX_HOOKS];
};

extern struct plugin_desc CR_PLUGIN_DESC;

struct gpucr_report;

/* Of the dump or restore that runs; NULL: none. Tasks have it by fork. */
extern struct gpucr_report *plugin_report;

/* Memory for copies, see design of the copy engine in copy.h. */
#define MAIN_SLOTS	4
#define MAIN_SLOT_SIZE	((size_t)16 << 20)
#define MAIN_BUFFER_SUM	((uint64_t)256 << 20)	/* of all GPUs */
#define TASK_SLOTS	4
#define TASK_SLOT_SIZE	((size_t)2 << 20)

#define GIB			((double)(1 << 30))

/*
 * What a hook returns for an error of ours: -EOPNOTSUPP is the number of
 * -ENOTSUP too, by which CRIU would ask the next plugin.
 */
static inline int hook_error(int err)
{
	return err == -ENOTSUP ? -EINVAL : err;
}

/* dump.c */
int dump_init(dev_t kfd);
/* Pause the tree. 0: pid is a GPU process of ours; -ENOTSUP: it is not. */
int dump_checkpoint_devices(int pid);
int dump_handle_vma(const struct stat *st);
int dump_file(int fd, int id);
/* Undo what is to be undone, in the process that did it. */
void dump_exit(int ret);
/* The same from the destructor, where CRIU exits without its hooks. */
void dump_abandon(void);

/* restore.c */
int restore_init(bool have_kfd, dev_t kfd);
void restore_post_forking(void);
int restore_file(int id);
int restore_update_vma(uint64_t addr, uint64_t old_offset,
		       uint64_t *new_offset, int *fd);
int restore_resume(int pid);
/* ret: of the restore as a whole. */
void restore_exit(int ret);
/* From the destructor: no thread may outlive the object. */
void restore_abandon(void);

#endif
