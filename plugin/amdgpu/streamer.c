// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU's process opens the pipes, but for the page files of a restore, which
 * the restoring tasks open: CRIU opens its own images there in the same way,
 * one at a time under a lock that all of them share.
 */
#include "streamer.h"

#include <errno.h>

#include "log.h"
#include "stream.h"
#include "streamlist.h"

#include "host.h"

static int put_file(const char *name)
{
	return host_stream_open(name, true);
}

static int take_file(const char *name)
{
	return host_stream_open(name, false);
}

static int refuse_format(void)
{
	gpucr_err("CRIU has an image streamer, and upstream's image format does not go there (image-stream); use the native format, or a directory");
	return -EOPNOTSUPP;
}

static int begin(gpucr_stream_open_fn open)
{
	if (!host_can_stream()) {
		gpucr_err("CRIU has an image streamer, and this CRIU has no way there for plugins (image-stream); use a directory");
		return -EOPNOTSUPP;
	}
	gpucr_stream_set(open);
	return 0;
}

int streamer_begin_dump(enum gpucr_img_format format)
{
	if (!host_is_streaming())
		return 0;
	if (format == GPUCR_FORMAT_UPSTREAM)
		return refuse_format();
	return begin(put_file);
}

int streamer_begin_restore(bool native)
{
	int err;

	if (!host_is_streaming())
		return 0;
	if (!native)
		return refuse_format();
	err = begin(take_file);
	if (err)
		return err;
	err = gpucr_streamlist_read();
	/* Older CRIU does not say whose images they are: none of ours. */
	if (err == -ENOENT && !host_lists_plugins())
		return 0;
	if (err == -ENOENT)
		gpucr_err("the stream has GPU processes and no manifest of them (image-incomplete); restore another checkpoint");
	if (err)
		streamer_end();
	return err;
}

void streamer_end(void)
{
	gpucr_streamlist_clear();
	gpucr_stream_set(NULL);
}
