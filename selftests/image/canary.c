// SPDX-License-Identifier: GPL-2.0-only
/* One wrong byte of a page file, not told to the reader: must turn red. */
#include "table.h"

#include "image.h"
#include "sample.h"

static int damaged_is_taken(void)
{
	struct gpucr_img_kfd img, *back;
	uint8_t *file;
	size_t len;
	int dir = sample_dir();

	CHECK(dir >= 0 && !sample_kfd(&img));
	CHECK(!gpucr_img_kfd_write(dir, &img));
	file = sample_read(dir, "gpucr-kfd-7.img", &len);
	CHECK(file);
	file[len / 2] ^= 1;
	CHECK(!sample_write(dir, "gpucr-kfd-7.img", file, len));
	free(file);
	gpucr_img_kfd_clear(&img);
	CHECK(!gpucr_img_kfd_read(dir, 7, &back));
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "a damaged image is read", damaged_is_taken },
	};

	sample_quiet();
	return ktap_run(tests, 1);
}
