/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The GPU memory of one restored process, filled from its page files: by the
 * task itself, or by CRIU's own process for it.
 */
#ifndef GPUCR_FILL_H
#define GPUCR_FILL_H

#include <stddef.h>
#include <stdint.h>

#include "content.h"
#include "devmap.h"
#include "image.h"
#include "kfd.h"

struct fill_env {
	int dir;			/* image directory */
	const struct gpucr_devmap *devmap;
	uint64_t max_buffer;		/* bytes per GPU; 0: no limit */
	unsigned int copy_ms;		/* for each copy */
	struct gpucr_pace *pace;
	struct gpucr_progress *progress;	/* or NULL */
	/*
	 * In CRIU's own process: a thread for each GPU, with the buffers of a
	 * dump, and watch is asked meanwhile. NULL: in a task, single-threaded.
	 */
	const struct content_watch *watch;
};

/* Every byte is checked before it is copied. -errno, logged. */
int fill_process(const struct fill_env *env, const struct gpucr_img_kfd *img,
		 const struct gpucr_kfd_state *s);

/*
 * The dma-bufs of all BOs with content, in the image's order; they stay s's.
 * *ret is free()d. -EBADF where one is missing.
 */
int fill_list(const struct gpucr_kfd_state *s, int **ret, size_t *num);
/*
 * What fill_process() needs to know of a state, from the image and such a list,
 * whose dma-bufs stay the caller's. s->bos is free()d. -EPROTO where the list
 * is not this image's.
 */
int fill_unlist(const struct gpucr_img_kfd *img, const int *fds, size_t num,
		struct gpucr_kfd_state *s);

#endif
