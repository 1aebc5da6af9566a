// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver that is not on the list: refused, never guessed at.
 *
 * Mutation that must turn this red: gpucr_drm_supported() returns true.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <drm.h>
#include <drm_mode.h>

#include "../ktap.h"
#include "raw.h"
#include "util.h"

static struct raw nl;
static struct raw_ans *ans;

static char *map_dumb(int fd)
{
	struct drm_mode_create_dumb c = { .width = 64, .height = 64, .bpp = 32 };
	struct drm_mode_map_dumb m = { 0 };

	if (ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &c))
		return MAP_FAILED;
	m.handle = c.handle;
	if (ioctl(fd, DRM_IOCTL_MODE_MAP_DUMB, &m))
		return MAP_FAILED;
	return mmap(NULL, c.size, PROT_READ, MAP_SHARED, fd, m.offset);
}

static void ask_vmas(int fd)
{
	raw_ask_vmas(&nl, ans, getpid(), fd);
}

int main(void)
{
	const struct raw_msg *m;
	char *map;
	int fd;

	ktap_plan(3);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	fd = open_card("bochs-drm");
	if (fd < 0)
		ktap_bail("no bochs-drm device");
	map = map_dumb(fd);
	if (map == MAP_FAILED)
		ktap_bail("no buffer");
	raw_ask(&nl, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD, fd, 0, 0);
	ktap_ok(refused(ans, EOPNOTSUPP, "not amdgpu, vgem or virtio_gpu") &&
		points_to(ans, GPUCR_A_BO_FD), "bo-get is refused");
	ask_vmas(fd);
	ktap_ok(refused(ans, EOPNOTSUPP, "not amdgpu, vgem or virtio_gpu"),
		"vma-get of that file is refused");
	ask_vmas(-1);
	m = &ans->msgs[0];
	ktap_ok(!ans->err && ans->num == 1 &&
		raw_u64(m, GPUCR_A_VMA_START) == (uintptr_t)map &&
		raw_u32(m, GPUCR_A_VMA_KIND) == GPUCR_VMA_KIND_UNKNOWN &&
		!raw_has(m, GPUCR_A_VMA_SHARE_ID),
		"among all mappings it is told as unknown, without a buffer");
	return ktap_exit();
}
