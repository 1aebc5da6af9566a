// SPDX-License-Identifier: GPL-2.0-only
/* Options: what is read, what is refused, and by which line. */
#include <errno.h>
#include <string.h>

#include "table.h"
#include "opt.h"
#include "sample.h"

static struct gpucr_opts o;

static int parse(const char *text, bool from_image)
{
	char *copy = strdup(text);
	int err;

	gpucr_opts_defaults(&o);
	sample_errors();
	err = gpucr_opts_parse(&o, copy, "file", from_image);
	free(copy);
	return err;
}

static int all_are_read(void)
{
	CHECK(!parse("# comment\n\n backend = netlink\nmax-buffer-size=64M\n"
		     "space-check = off\nimage-format = native\n"
		     "fw-ver-check = no\ndevice-map = 12=0x22,13=23\n", false));
	CHECK(o.backend == GPUCR_BACKEND_NETLINK);
	CHECK(o.max_buffer_size == 64 << 20);
	CHECK(!o.space_check && !o.check_fw_ver && o.check_vram_size);
	CHECK(!strcmp(o.guard, GPUCR_OPT_GUARD));
	CHECK(!o.zstd_level && !o.bandwidth && !o.pause_limit);
	CHECK(!parse("bandwidth-limit = 2G\npause-limit = 90", false));
	CHECK(o.bandwidth == UINT64_C(2) << 30 && o.pause_limit == 90);
	CHECK(o.copy_deadline == 60);
	CHECK(!parse("copy-deadline = 5", false) && o.copy_deadline == 5);
	CHECK(!parse("compress = zstd", false) && o.zstd_level == 1);
	CHECK(!parse("compress = zstd:19", false) && o.zstd_level == 19);
	CHECK(!parse("compress=zstd\ncompress=none", false) && !o.zstd_level);
	CHECK(o.overlap);
	CHECK(!parse("overlap = off", false) && !o.overlap);
	CHECK(!parse("guard = off", false) && !*o.guard);
	CHECK(!parse("guard = off\nguard = on", false) && *o.guard);
	CHECK(!parse("guard = /opt/gpucr", false));
	CHECK(!strcmp(o.guard, "/opt/gpucr"));
	return 0;
}

static int told;

static void count(void *arg, const char *name, const char *value)
{
	const char *want = arg;
	size_t len = strlen(name);

	told += !strncmp(want, name, len) && want[len] == '=' &&
		!strcmp(want + len + 1, value);
}

static int tells(const char *want)
{
	told = 0;
	gpucr_opts_tell(&o, count, (void *)want);
	return told == 1;
}

/* What is in effect, in the words in which it is set. */
static int all_are_told(void)
{
	CHECK(!parse("backend = ioctl\nspace-check = no\nimage-format = upstream-4.2\n"
		     "max-buffer-size = 1M\nguard = off\nkeep-partial = on\noverlap = no\ndevice-map = 1=2\n",
		     false));
	CHECK(tells("backend=ioctl") && tells("space-check=off") &&
	      tells("image-format=upstream-4.2") &&
	      tells("max-buffer-size=1048576") && tells("guard=off") &&
	      tells("keep-partial=on") && tells("overlap=off") && tells("device-map=1 pairs") &&
	      tells("link-check=on"));
	return 0;
}

static int map_is_read(void)
{
	CHECK(!parse("device-map = 12=0x22,13=23\n", false));
	CHECK(o.map_len == 2 && o.map[0].image.value == 12 &&
	      o.map[0].local.value == 0x22);
	return 0;
}

static int refused_map_changes_nothing(void)
{
	CHECK(parse("device-map = 12=13\ndevice-map = 7=8,9=", false) ==
	      -EINVAL);
	CHECK(o.map_len == 1 && o.map[0].image.value == 12 &&
	      o.map[0].local.value == 13);
	return 0;
}

static int later_lines_win(void)
{
	CHECK(!parse("backend = ioctl\nbackend = auto", false));
	CHECK(o.backend == GPUCR_BACKEND_AUTO);
	return 0;
}

static int refused_by_line(void)
{
	static const char * const bad[] = {
		"\nbackend = magic", "\nbackend", "\nfrobnicate = 1",
		"\nbandwidth-limit = fast", "\npause-limit = -1",
		"\ncopy-deadline = 0", "\ncopy-deadline = long",
		"\npause-limit = 8s", "\npause-limit = 1000001",
		"\ncompress = zstd:0", "\ncompress = zstd:20",
		"\ncompress = zstd:", "\ncompress = zstd1",
		"\ncompress = zstd:1x", "\ncompress = lz4",
		"\nmax-buffer-size = 1X", "\nmax-buffer-size = -1",
		"\nmax-buffer-size = 99999999999999999999",
		"\nmax-buffer-size = 18446744073709551615G",
		"\nspace-check = maybe", "\noverlap = always", "\nguard = gpucr", "\nimage-format = other",
		"\ndevice-map = 1", "\ndevice-map = 1=", "\ndevice-map = 0=1",
		"\ndevice-map = 1=2,", "\ndevice-map = 1=2;3=4",
		"\ndevice-map = 4294967296=1", "\n= 1",
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		printf("# %s\n", bad[i] + 1);
		CHECK(parse(bad[i], false) == -EINVAL);
		CHECK(sample_errors() == 1);
		CHECK(!strncmp(sample_last_error(), "file:2: ", 8));
	}
	return 0;
}

static int image_relaxes_nothing(void)
{
	CHECK(parse("space-check = off", true) == -EPERM);
	CHECK(parse("guard = off", true) == -EPERM);
	CHECK(parse("overlap = on", true) == -EPERM);
	CHECK(parse("fw-ver-check = off", true) == -EPERM);
	CHECK(parse("image-format = native", true) == -EPERM);
	CHECK(!parse("backend = ioctl\nmax-buffer-size = 4K\n"
		     "device-map = identity", true));
	return 0;
}

static int environment(void)
{
	setenv("KFD_MAX_BUFFER_SIZE", "2G", 1);
	setenv("KFD_FW_VER_CHECK", "NO", 1);
	setenv("GPUCR_FW_VER_CHECK", "on", 1);
	setenv("GPUCR_BACKEND", "ioctl", 1);
	CHECK(!gpucr_opts_load(&o, "/nonexistent/plugin.conf", -1));
	CHECK(o.max_buffer_size == UINT64_C(2) << 30);
	CHECK(o.check_fw_ver && o.backend == GPUCR_BACKEND_IOCTL);
	setenv("GPUCR_BACKEND", "x", 1);
	CHECK(gpucr_opts_load(&o, "/nonexistent/plugin.conf", -1) == -EINVAL);
	CHECK(strstr(sample_last_error(), "GPUCR_BACKEND"));
	unsetenv("GPUCR_BACKEND");
	return 0;
}

static int files_in_order(void)
{
	int dir = sample_dir();

	CHECK(dir >= 0);
	CHECK(!sample_write(dir, "gpucr.conf", "backend = netlink\n", 18));
	setenv("GPUCR_BACKEND", "ioctl", 1);
	CHECK(!gpucr_opts_load(&o, "/nonexistent/plugin.conf", dir));
	CHECK(o.backend == GPUCR_BACKEND_NETLINK);
	CHECK(!sample_write(dir, "gpucr.conf", "\n\nx = 1\n", 8));
	CHECK(gpucr_opts_load(&o, "/nonexistent/plugin.conf", dir) == -EINVAL);
	CHECK(!strncmp(sample_last_error(), "gpucr.conf:3: ", 14));
	unsetenv("GPUCR_BACKEND");
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "all are read", all_are_read },
		{ "the device map is read", map_is_read },
		{ "a refused map changes nothing", refused_map_changes_nothing },
		{ "what is in effect is told", all_are_told },
		{ "later lines win", later_lines_win },
		{ "refused with file and line", refused_by_line },
		{ "an image relaxes nothing", image_relaxes_nothing },
		{ "environment", environment },
		{ "the image's file comes last", files_in_order },
	};

	sample_quiet();
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
