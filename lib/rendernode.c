// SPDX-License-Identifier: GPL-2.0-only
#include "rendernode.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <amdgpu_drm.h>

#define DRM_DIR		"/dev/dri"
/* Handles are given out lowest first: so many free ones end the search. */
#define HANDLE_GAP	64

/* Linux 6.19 and newer; with no room for entries it only counts. */
struct gem_list_handles {
	__u64 entries;
	__u32 num_entries;
	__u32 padding;
};

#define IOCTL_GEM_LIST_HANDLES \
	DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct gem_list_handles)

bool gpucr_drm_is_render(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && major(st->st_rdev) == GPUCR_DRM_MAJOR &&
	       minor(st->st_rdev) >= GPUCR_DRM_FIRST_RENDER;
}

bool gpucr_drm_is_amdgpu(int fd)
{
	char name[16] = "";
	struct drm_version v = {
		.name = name,
		.name_len = sizeof(name) - 1,
	};

	if (ioctl(fd, DRM_IOCTL_VERSION, &v))
		return false;
	return v.name_len < sizeof(name) && !strcmp(name, "amdgpu");
}

static int open_node(int dir, const char *name, uint32_t minor)
{
	struct stat st;
	int fd;

	/* Looked at first: opening another device may have effects. */
	if (fstatat(dir, name, &st, 0))
		return -errno;
	if (!gpucr_drm_is_render(&st) || minor(st.st_rdev) != minor)
		return -ENOENT;
	fd = openat(dir, name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (gpucr_drm_is_amdgpu(fd))
		return fd;
	close(fd);
	return -EXDEV;
}

static int search_node(int dir, uint32_t minor)
{
	struct dirent *de;
	int err = -ENOENT, copy;
	DIR *d;

	copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = copy >= 0 ? fdopendir(copy) : NULL;
	if (!d) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		return err;
	}
	while (err == -ENOENT && (de = readdir(d)))
		err = open_node(dir, de->d_name, minor);
	closedir(d);
	return err;
}

int gpucr_drm_open_render(uint32_t minor)
{
	char name[32];
	int dir, fd;

	dir = open(DRM_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	snprintf(name, sizeof(name), "renderD%u", minor);
	fd = open_node(dir, name, minor);
	if (fd == -ENOENT)
		fd = search_node(dir, minor);
	close(dir);
	return fd;
}

static int handle_exists(int fd, uint32_t handle)
{
	struct drm_amdgpu_gem_create_in info = { 0 };
	struct drm_amdgpu_gem_op op = {
		.handle = handle,
		.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
		.value = (uintptr_t)&info,
	};

	if (!ioctl(fd, DRM_IOCTL_AMDGPU_GEM_OP, &op))
		return 1;
	if (errno == ENOENT)
		return 0;
	/* Refused for another reason: then there is such a handle. */
	return errno == EPERM || errno == EINVAL ? 1 : -errno;
}

static int probe_handles(int fd, uint32_t *ret)
{
	uint32_t handle, last = 0;

	*ret = 0;
	for (handle = 1; handle <= last + HANDLE_GAP; handle++) {
		int found = handle_exists(fd, handle);

		if (found < 0)
			return found;
		if (!found)
			continue;
		last = handle;
		++*ret;
	}
	return 0;
}

int gpucr_drm_count_handles(int fd, uint32_t *ret)
{
	struct gem_list_handles list = { 0 };

	if (ioctl(fd, IOCTL_GEM_LIST_HANDLES, &list))
		return probe_handles(fd, ret);
	*ret = list.num_entries;
	return 0;
}

bool gpucr_drm_may_map(int fd, uint64_t offset, uint64_t size)
{
	void *p;

	/* Only the permission is asked; the mapping is never touched. */
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, offset);
	if (p == MAP_FAILED)
		return false;
	munmap(p, size);
	return true;
}
