/* SPDX-License-Identifier: GPL-2.0-only */
/* Dump and restore where CRIU has an image streamer (--stream). */
#ifndef GPUCR_STREAMER_H
#define GPUCR_STREAMER_H

#include <stdbool.h>

#include "imgformat.h"

/*
 * Files of the dump go to the streamer, if there is one. -EOPNOTSUPP, logged,
 * where they cannot.
 */
int streamer_begin_dump(enum gpucr_img_format format);
/*
 * Files of the restore come from it, and all manifests are read. native: the
 * inventory may name our own format. -errno, logged.
 */
int streamer_begin_restore(bool native);
void streamer_end(void);

#endif
