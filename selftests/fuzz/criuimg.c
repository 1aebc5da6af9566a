// SPDX-License-Identifier: GPL-2.0-only
/* CRIU's images: inventory, files, ids, fdinfo, stats, mm, pstree, core, pagemap, in this order. */
#include <fcntl.h>

#include "criuimg.h"
#include "criuwhole.h"
#include "fuzz.h"

static const char * const files[] = {
	"inventory.img", "files.img", "ids-7.img", "fdinfo-5.img",
	"stats-dump", "mm-7.img", "pstree.img", "core-7.img", "pagemap-7.img",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64];
	static int dir;
	struct gpucr_criuimg_map *maps;
	struct gpucr_criuimg c;
	const uint8_t *part;
	size_t i, len, num;

	if (!*path)
		dir = fuzz_dir(path);
	for (i = 0; i < 9; i++) {
		len = fuzz_part(&data, &size, &part);
		fuzz_put(dir, files[i], part, len);
	}
	if (!gpucr_criuimg_read(dir, &c)) {
		HOLDS(c.num_plugins <= GPUCR_CRIUIMG_MAX_PLUGINS);
		for (i = 0; i < c.num_fds; i++)
			HOLDS(c.fds[i].pid == 7);
	}
	gpucr_criuimg_clear(&c);
	if (!gpucr_criuimg_maps(dir, 7, &maps, &num))
		free(maps);
	HOLDS(gpucr_criu_missing(dir) >= 0);
	return 0;
}
