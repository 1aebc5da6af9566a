/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CRIU that loaded us, as its exported symbols show it. Nothing is linked
 * against it: a symbol that one version lacks must not keep CRIU from
 * starting. Its structures are never read.
 */
#ifndef GPUCR_HOST_H
#define GPUCR_HOST_H

#include <stdbool.h>
#include <sys/types.h>

/* Hooks of the oldest CRIU with device hooks, 3.17. */
#define HOST_MIN_HOOKS	10

/* How many hooks it knows: from the size of its own table. */
unsigned int host_max_hooks(void);
/* Found nothing to recognise it by: then hooks must do nothing. */
bool host_unknown(void);
/* RESTORE_EXT_FILE has a second argument there. */
bool host_has_retry(void);
/* It closes the descriptor that UPDATE_VMA_MAP returns (3.19 and newer). */
bool host_adopts_vma_fd(void);

/* Sends the library's messages to CRIU's log. */
void host_log_init(void);
/* Descriptor of the image directory; it stays CRIU's. -1: none. */
int host_image_dir(void);
/* It sends its images to, or has them from, an image streamer. */
bool host_is_streaming(void);
/* Only where it is streaming: can plugins use that, too? */
bool host_can_stream(void);
/*
 * A pipe to (put) or from its streamer, of the kind that it has now. -ENOENT:
 * the streamer has no such file; -EIO. In CRIU itself and in restoring tasks.
 */
int host_stream_open(const char *name, bool put);
/* Lowest number above all that the task being restored will have. */
int host_unused_fd(pid_t pid);

/*
 * It asks us when the tasks are there, and has its store of descriptors by the
 * time of init(RESTORE) (4.2 and newer).
 */
bool host_can_overlap(void);
/* A copy of fd into that store: an id for the tasks; negative: a failure. */
int host_store_fd(int fd);
/* A descriptor of what has that id, in CRIU or any of its tasks. */
int host_stored_fd(int id);

/* Write name into the image's list of plugins. 0 where CRIU has no list. */
int host_add_inventory(const char *name);
/* Is name in the list (then it is taken off it)? True where there is none. */
bool host_take_inventory(const char *name);
/* Does the image that is restored have such a list? */
bool host_lists_plugins(void);

/*
 * Path of another loaded plugin that has our name; "" where there is none.
 * *self: our own path.
 */
const char *host_find_twin(const char *plugin_name, const char **self);

#endif
