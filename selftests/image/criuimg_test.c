// SPDX-License-Identifier: GPL-2.0-only
/* CRIU's images beside ours: what is read from them, and that damage is told. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "criuimg.h"
#include "criusample.h"
#include "sample.h"
#include "table.h"

static const uint32_t ids[] = { 7, 9, 300 };
static const char * const plugins[] = { "gpucr", "cuda_plugin", NULL };
static const char * const names[] = {
	"inventory.img", "files.img", "ids-4711.img", "fdinfo-5.img",
	"stats-dump",
};
static int dir;

static int write_all(void)
{
	return criusample_write(dir, plugins, ids, 3, 4711);
}

static int all_is_read(void)
{
	struct gpucr_criuimg c;

	CHECK(!write_all());
	CHECK(!gpucr_criuimg_read(dir, &c));
	CHECK(c.has_inventory && c.has_files && c.has_stats && c.has_plugins);
	CHECK(c.num_plugins == 2 && !strcmp(c.plugins[1], "cuda_plugin"));
	CHECK(c.num_ext_ids == 3 && c.ext_ids[2] == 300);
	CHECK(c.num_fds == 3 && c.fds[1].pid == 4711 && c.fds[1].fd == 4 &&
	      c.fds[1].id == 9);
	CHECK(c.freezing_us == 1000 && c.memwrite_us == 4000);
	gpucr_criuimg_clear(&c);
	return 0;
}

static int absent_is_no_error(void)
{
	struct gpucr_criuimg c;
	int empty = sample_dir();

	CHECK(empty >= 0);
	CHECK(!gpucr_criuimg_read(empty, &c));
	CHECK(!c.has_inventory && !c.has_files && !c.has_stats && !c.num_fds);
	gpucr_criuimg_clear(&c);
	close(empty);
	return 0;
}

/* Refused with the file's name, once; or taken, where the cut is between entries. */
static int told(const char *name, bool may_pass)
{
	struct gpucr_criuimg c;
	int err;

	sample_errors();
	err = gpucr_criuimg_read(dir, &c);
	gpucr_criuimg_clear(&c);
	if (!err)
		return may_pass ? 0 : 1;
	CHECK(err == -EBADMSG && sample_errors() == 1);
	CHECK(strstr(sample_last_error(), name));
	return 0;
}

static int cut_everywhere(void)
{
	size_t i, len, n, passed;
	uint8_t *file;

	for (i = 0; i < 5; i++) {
		CHECK(!write_all());
		file = sample_read(dir, names[i], &len);
		CHECK(file);
		for (n = passed = 0; n < len; n++) {
			struct gpucr_criuimg c;

			CHECK(!sample_write(dir, names[i], file, n));
			CHECK(!told(names[i], true));
			passed += !gpucr_criuimg_read(dir, &c);
			gpucr_criuimg_clear(&c);
		}
		/* At the ends of the head and of entries only. */
		CHECK(passed <= 5);
		free(file);
	}
	return 0;
}

static int each_bit(void)
{
	size_t i, len, bit;
	uint8_t *file;

	for (i = 0; i < 5; i++) {
		CHECK(!write_all());
		file = sample_read(dir, names[i], &len);
		CHECK(file);
		for (bit = 0; bit < len * 8; bit++) {
			file[bit / 8] ^= 1 << bit % 8;
			CHECK(!sample_write(dir, names[i], file, len));
			CHECK(!told(names[i], true));
			file[bit / 8] ^= 1 << bit % 8;
		}
		free(file);
	}
	return 0;
}

static int huge_entry(void)
{
	uint8_t *file;
	size_t len;

	CHECK(!write_all());
	file = sample_read(dir, "files.img", &len);
	CHECK(file);
	memset(file + 8, 0xff, 4);
	CHECK(!sample_write(dir, "files.img", file, len));
	free(file);
	return told("files.img", false);
}

/* A pipe would keep the reader for ever. */
static int no_regular_file(void)
{
	CHECK(!write_all());
	CHECK(!unlinkat(dir, "stats-dump", 0));
	CHECK(!mkfifoat(dir, "stats-dump", 0600));
	CHECK(!told("stats-dump", false));
	CHECK(!unlinkat(dir, "stats-dump", 0));
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "all is read", all_is_read },
		{ "absent is no error", absent_is_no_error },
		{ "cut at each byte", cut_everywhere },
		{ "each bit flipped", each_bit },
		{ "an entry longer than any", huge_entry },
		{ "a pipe in place of a file", no_regular_file },
	};

	dir = sample_dir();
	if (dir < 0)
		return 1;
	sample_quiet();
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
