// SPDX-License-Identifier: GPL-2.0-only
/*
 * A streamer that serves anything: records of manifests and manifests, in the
 * order in which they are asked for, with their checksums made right.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "fuzz.h"
#include "stream.h"
#include "streamlist.h"

static const uint8_t *left;
static size_t left_size;

static void put_u64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

static void make_right(uint8_t *file, size_t size)
{
	if (size < GPUCR_IMG_HEADER)
		return;
	put_u64(file + 24, XXH3_64bits(file + GPUCR_IMG_HEADER,
				       size - GPUCR_IMG_HEADER));
	put_u64(file + 32, XXH3_64bits(file, 32));
}

/* The next part of the input, whatever it is called. */
static int serve(const char *name)
{
	const uint8_t *part;
	uint8_t *file;
	size_t size;
	int fd;

	HOLDS(*name && strlen(name) < NAME_MAX);
	if (!left_size)
		return -ENOENT;
	size = fuzz_part(&left, &left_size, &part);
	file = malloc(size + 1);
	fd = memfd_create("part", MFD_CLOEXEC);
	HOLDS(file && fd >= 0);
	memcpy(file, part, size);
	make_right(file, size);
	HOLDS(!size || write(fd, file, size) == (ssize_t)size);
	HOLDS(!lseek(fd, 0, SEEK_SET));
	free(file);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *name;
	uint8_t *payload;
	size_t i, len;
	int err;

	left = data;
	left_size = size;
	gpucr_stream_set(serve);
	if (!gpucr_streamlist_read()) {
		HOLDS(gpucr_streamlist_name(0));
		for (i = 0; (name = gpucr_streamlist_name(i)); i++) {
			err = gpucr_streamlist_get(name, GPUCR_IMG_KFD,
						   &payload, &len);
			if (err)
				err = gpucr_streamlist_get(name,
							   GPUCR_IMG_RENDER,
							   &payload, &len);
			HOLDS(!err && len < size);
			free(payload);
		}
	}
	gpucr_streamlist_clear();
	gpucr_stream_set(NULL);
	return 0;
}
