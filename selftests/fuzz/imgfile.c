// SPDX-License-Identifier: GPL-2.0-only
/* Whole manifest files, header and checksums; with the checksums made right. */
#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "fuzz.h"
#include "image.h"

static void put_u64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file;

	if (!gpucr_imgfile_check("input", GPUCR_IMG_KFD, data, size))
		HOLDS(size >= GPUCR_IMG_HEADER);
	gpucr_imgfile_check("input", GPUCR_IMG_RENDER, data, size);
	if (size < GPUCR_IMG_HEADER)
		return 0;
	file = malloc(size);
	HOLDS(file);
	memcpy(file, data, size);
	put_u64(file + 24, XXH3_64bits(file + GPUCR_IMG_HEADER,
				       size - GPUCR_IMG_HEADER));
	put_u64(file + 32, XXH3_64bits(file, 32));
	gpucr_imgfile_check("input", GPUCR_IMG_KFD, file, size);
	free(file);
	return 0;
}
