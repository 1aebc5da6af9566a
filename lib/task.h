/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks that the caller traces, and their device mappings. */
#ifndef GPUCR_TASK_H
#define GPUCR_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gpucr_task {
	pid_t pid;		/* in the caller's pid namespace */
	pid_t ns_pid;		/* in the task's innermost one */
	unsigned int depth;	/* pid namespaces that see the task */
	bool foreign_userns;	/* another user namespace than the caller's */
};

/* -ESRCH where it is gone. */
int gpucr_task_read(pid_t pid, struct gpucr_task *ret);
/* Has it ended, or is it a zombie? */
bool gpucr_task_is_gone(pid_t pid);
/* Thread groups whose leader the calling thread traces, by rising pid. */
int gpucr_task_list_traced(struct gpucr_task **ret, size_t *num);

struct gpucr_task_map {
	uint64_t start, end;
	uint64_t offset;	/* bytes */
	dev_t rdev;		/* of the mapped character device */
};

/* Mappings of character devices, by rising address. */
int gpucr_task_device_maps(pid_t pid, struct gpucr_task_map **ret, size_t *num);

#endif
