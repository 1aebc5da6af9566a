// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hook table of the CRIU plugin. Each hook asks whether the thing is ours
 * and calls dump.c or restore.c; all else answers -ENOTSUP, so that CRIU goes
 * on as if the plugin were not there.
 */
#include "plugin.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "kfd.h"
#include "log.h"
#include "proc.h"
#include "rendernode.h"

#include "host.h"

static int stage = -1;
static bool active;	/* there is a KFD, or an image of ours */
static dev_t kfd_dev;

static bool is_ours(const struct stat *st)
{
	/* Thousands of mappings in a row are of one render node. */
	static dev_t last;
	static bool last_ours;
	char driver[32];

	if (S_ISCHR(st->st_mode) && st->st_rdev == kfd_dev)
		return true;
	if (!gpucr_drm_is_render(st))
		return false;
	if (st->st_rdev != last) {
		gpucr_dev_driver(minor(st->st_rdev), driver, sizeof(driver));
		last_ours = !strcmp(driver, "amdgpu");
		last = st->st_rdev;
	}
	return last_ours;
}

struct gpucr_report *plugin_report;

static int on_checkpoint_devices(int pid)
{
	if (!active || stage != STAGE_DUMP)
		return -ENOTSUP;
	return dump_checkpoint_devices(pid);
}

static int on_handle_device_vma(int fd, const struct stat *st)
{
	(void)fd;
	if (!active || stage == STAGE_RESTORE || !is_ours(st))
		return -ENOTSUP;
	/* A pre-dump has no exit hook: nothing may be stopped there. */
	if (stage == STAGE_PRE_DUMP)
		return 0;
	return dump_handle_vma(st);
}

/* CRIU's own message has numbers only, and people look for the GPU's. */
static void name_foreign(const struct stat *st)
{
	char driver[32];

	if (!S_ISCHR(st->st_mode) || major(st->st_rdev) != GPUCR_DRM_MAJOR)
		return;
	gpucr_dev_driver(minor(st->st_rdev), driver, sizeof(driver));
	gpucr_warn("a task has DRM device %u:%u of driver %s open: left to CRIU and other plugins",
		   major(st->st_rdev), minor(st->st_rdev), driver);
}

static int on_dump_ext_file(int fd, int id)
{
	struct stat st;

	if (!active || stage != STAGE_DUMP || fstat(fd, &st))
		return -ENOTSUP;
	if (is_ours(&st))
		return dump_file(fd, id);
	name_foreign(&st);
	return -ENOTSUP;
}

static int on_restore_ext_file(int id)
{
	if (!active || stage != STAGE_RESTORE)
		return -ENOTSUP;
	return restore_file(id);
}

static int on_restore_ext_file_retry(int id, bool *retry_needed)
{
	/* CRIU does not initialise it. */
	*retry_needed = false;
	return on_restore_ext_file(id);
}

static int on_update_vma_map(const char *path, const uint64_t addr,
			     const uint64_t old_pgoff, uint64_t *new_pgoff,
			     int *plugin_fd)
{
	(void)path;
	if (!active || stage != STAGE_RESTORE)
		return -ENOTSUP;
	return restore_update_vma(addr, old_pgoff, new_pgoff, plugin_fd);
}

/* Other plugins are to be asked too. */
static int on_post_forking(void)
{
	if (active && stage == STAGE_RESTORE)
		restore_post_forking();
	return -ENOTSUP;
}

static int on_resume_devices_late(int pid)
{
	if (!active || stage != STAGE_RESTORE)
		return -ENOTSUP;
	return restore_resume(pid);
}

static int plugin_init(int stage_now)
{
	bool have_kfd;
	int err;

	stage = stage_now;
	active = false;
	host_log_init();
	have_kfd = !gpucr_kfd_dev(&kfd_dev);
	if (host_unknown()) {
		if (have_kfd)
			gpucr_warn("this CRIU's plugin interface is not known: GPU processes are left alone");
		return 0;
	}
	if (stage == STAGE_RESTORE) {
		err = restore_init(have_kfd, kfd_dev);
		active = err > 0;
		return err < 0 ? -1 : 0;
	}
	/* Never a reason to fail: the tree may have nothing to do with GPUs. */
	if (have_kfd)
		active = stage != STAGE_DUMP || !dump_init(kfd_dev);
	return 0;
}

static void plugin_exit(int stage_now, int ret)
{
	if (stage_now == STAGE_DUMP)
		dump_exit(ret);
	else if (stage_now == STAGE_RESTORE)
		restore_exit(ret);
	active = false;
}

__attribute__((visibility("default")))
struct plugin_desc CR_PLUGIN_DESC = {
	.name = PLUGIN_NAME,
	.init = plugin_init,
	.exit = plugin_exit,
	.version = PLUGIN_VERSION,
	.max_hooks = HOST_MIN_HOOKS,
	.hooks = {
		[HOOK_DUMP_EXT_FILE] = on_dump_ext_file,
		[HOOK_RESTORE_EXT_FILE] = on_restore_ext_file,
		[HOOK_HANDLE_DEVICE_VMA] = on_handle_device_vma,
		[HOOK_UPDATE_VMA_MAP] = on_update_vma_map,
		[HOOK_RESUME_DEVICES_LATE] = on_resume_devices_late,
		[HOOK_CHECKPOINT_DEVICES] = on_checkpoint_devices,
		[HOOK_POST_FORKING] = on_post_forking,
	},
};

/* CRIU reads the table after dlopen(): it can still be fitted to that CRIU. */
__attribute__((constructor))
static void fit_table(void)
{
	CR_PLUGIN_DESC.max_hooks = host_max_hooks();
	if (host_has_retry())
		CR_PLUGIN_DESC.hooks[HOOK_RESTORE_EXT_FILE] =
			on_restore_ext_file_retry;
}

/* CRIU may exit without calling plugin_exit(), when a task dies at a bad time. */
__attribute__((destructor))
static void last_chance(void)
{
	dump_abandon();
	restore_abandon();
}
