// SPDX-License-Identifier: GPL-2.0-only
/*
 * The restore. restore_init() runs in CRIU itself and reads all that the
 * restoring tasks need: their /etc, /sys and /run are not the host's.
 * restore_file() and restore_update_vma() run in the task, single-threaded;
 * every descriptor they open is closed, returned or kept by the vmamap. Where
 * CRIU lets us (overlap.h), threads of its own process fill GPU memory for the
 * tasks; they are gone before any of them is resumed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"
#include "log.h"
#include "owner.h"
#include "rendernode.h"
#include "report.h"
#include "restoreplan.h"
#include "stream.h"

#include "content.h"
#include "fill.h"
#include "host.h"
#include "overlap.h"
#include "plugin.h"
#include "streamer.h"
#include "vmamap.h"

/* What tasks tell CRIU. */
struct shared_page {
	_Atomic int offsets;	/* enum gpucr_offset_rule, as found */
};

/* Made in CRIU itself, inherited by the tasks. */
static struct {
	struct gpucr_owner owner;
	dev_t kfd;
	struct gpucr_plan plan;
	struct shared_page *shared;
	struct gpucr_backend *backend;
	struct gpucr_restore *session;
	struct gpucr_progress *progress;	/* or NULL */
	unsigned int num_resumed;
	bool reported;
	bool overlap;			/* tasks may hand over */
	int dir;			/* for the threads that fill for them */
	int fill_err;
	struct overlap_result filled;
} restore;

/* Of one restoring task. */
static struct {
	pid_t pid;
	bool filled;
	struct vmamap map;
	struct gpucr_pace pace;
} task;

static int open_session(void)
{
	int err;

	if (!restore.plan.num_images)
		return 0;
	err = gpucr_backend_open(restore.plan.opts.backend, restore.kfd,
				 &restore.backend);
	if (err)
		return err;
	return gpucr_restore_open(restore.backend, restore.plan.num_images,
				  &restore.session);
}

static int read_rules(void)
{
	void *p = mmap(NULL, sizeof(*restore.shared), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	restore.shared = p;
	gpucr_kfd_rules_read(&restore.plan.rules);
	return 0;
}

/* For the next restore, and for people. */
static void note_rules(void)
{
	int found = restore.shared ? atomic_load(&restore.shared->offsets) :
				     GPUCR_OFFSET_UNKNOWN;

	if (found == GPUCR_OFFSET_UNKNOWN ||
	    found == (int)restore.plan.rules.offsets)
		return;
	restore.plan.rules.offsets = found;
	gpucr_kfd_rules_note(&restore.plan.rules);
}

static void open_progress(void)
{
	int run = open("/run", O_PATH | O_DIRECTORY | O_CLOEXEC);

	restore.progress = gpucr_progress_open(run, "restore");
	gpucr_progress_expect(restore.progress, restore.plan.content_bytes);
	gpucr_progress_phase(restore.progress, "tasks", 0);
	if (run >= 0)
		close(run);
}

static int prepare(int dir, bool have_kfd)
{
	const char *self, *twin = host_find_twin(PLUGIN_NAME, &self);
	enum gpucr_offset_rule rule;
	int err;

	if (*twin) {
		gpucr_err("two plugins named %s are loaded, %s and %s (plugin-twice); keep one of them",
			  PLUGIN_NAME, self, twin);
		return -EEXIST;
	}
	if (!have_kfd) {
		gpucr_err("the image has GPU processes, but there is no KFD here (no-kfd); load amdgpu");
		return -ENODEV;
	}
	err = gpucr_opts_load(&restore.plan.opts, GPUCR_OPT_FILE, dir);
	if (!err)
		err = read_rules();
	if (!err)
		err = gpucr_plan_read(&restore.plan, dir);
	if (!err)
		err = gpucr_plan_map(&restore.plan, gpucr_drm_open_render);
	if (err)
		return err;
	rule = restore.plan.rules.offsets;
	offsetrule_prepare(&restore.plan.devmap, restore.kfd, &rule);
	atomic_store(&restore.shared->offsets, rule);
	open_progress();
	err = open_session();
	/* A streamer gives one file at a time. */
	restore.overlap = !err && restore.plan.opts.overlap &&
			  host_can_overlap() && !gpucr_stream_on();
	if (restore.overlap)
		overlap_init(restore.plan.num_images);
	return err;
}

static bool has_images(int dir)
{
	enum gpucr_img_format format = gpucr_image_format(dir);
	size_t num_kfd = 0, num_render = 0;
	uint32_t *ids;

	if (!gpucr_image_list(dir, format, GPUCR_IMG_KFD, &ids, &num_kfd))
		free(ids);
	if (!gpucr_image_list(dir, format, GPUCR_IMG_RENDER, &ids,
			      &num_render))
		free(ids);
	return num_kfd || num_render;
}

static void tell_option(void *arg, const char *name, const char *value)
{
	gpucr_report_option(arg, name, value);
}

/* Once; in CRIU itself, of whatever the tasks have noted. */
static void write_report(bool good, int err)
{
	struct gpucr_report *r = plugin_report;
	char driver[128];

	/* Beside a stream nothing is written. */
	if (restore.reported || gpucr_stream_on())
		return;
	restore.reported = true;
	gpucr_kfd_driver(&restore.plan.rules, driver, sizeof(driver));
	gpucr_report_text(r, "driver", driver);
	gpucr_report_text(r, "backend", restore.backend ?
			  gpucr_backend_name(restore.backend) : "none");
	gpucr_report_number(r, "processes", restore.plan.num_images);
	gpucr_opts_tell(&restore.plan.opts, tell_option, r);
	if (!good && *gpucr_log_first_error())
		gpucr_report_error(r, gpucr_log_first_error(), -err);
	gpucr_report_write(r, host_image_dir(), GPUCR_REPORT_RESTORE, good,
			   -err);
}

/* In a task: what it says is seen by CRIU's own process only here. */
static int noted(int ret)
{
	if (ret < 0 && ret != -ENOTSUP && *gpucr_log_first_error())
		gpucr_report_error(plugin_report, gpucr_log_first_error(),
				   -ret);
	return ret;
}

/* Memory for copies is shared out among all page files of the restore. */
static uint64_t buffer_limit(void)
{
	uint64_t limit = MAIN_BUFFER_SUM / (restore.plan.num_pages ?: 1);
	uint64_t wanted = restore.plan.opts.max_buffer_size;

	return wanted && wanted < limit ? wanted : limit;
}

/* In a thread of CRIU's process. */
static int fill_apart(uint32_t image_id, const int *fds, size_t num,
		      const struct content_watch *watch)
{
	struct gpucr_pace pace = { .rate = restore.plan.opts.bandwidth };
	const struct fill_env env = {
		.dir = restore.dir,
		.devmap = &restore.plan.devmap,
		.max_buffer = buffer_limit(),
		.copy_ms = restore.plan.opts.copy_deadline * 1000,
		.pace = &pace,
		.progress = restore.progress,
		.watch = watch,
	};
	struct gpucr_kfd_state s = { 0 };
	struct gpucr_img_kfd *img;
	int err;

	err = gpucr_image_kfd_read(restore.dir, restore.plan.format, image_id,
				   &img);
	if (err)
		return err;
	err = fill_unlist(img, fds, num, &s);
	if (err)
		gpucr_err("image %u: not the buffer objects that its task has: %s (fill-failed)",
			  image_id, strerror(-err));
	else
		err = fill_process(&env, img, &s);
	free(s.bos);
	gpucr_img_kfd_free(img);
	return err;
}

void restore_post_forking(void)
{
	if (!restore.overlap)
		return;
	restore.dir = host_image_dir();
	overlap_start(fill_apart);
}

/* No thread of ours is left. The failure of a fill is that of the restore. */
static int end_overlap(bool cancel)
{
	if (!restore.overlap)
		return restore.fill_err;
	restore.overlap = false;
	restore.fill_err = overlap_end(cancel, &restore.filled);
	if (restore.fill_err)
		gpucr_err("GPU memory of the restored processes could not be filled: %s (fill-failed)",
			  strerror(-restore.fill_err));
	return noted(restore.fill_err);
}

int restore_init(bool have_kfd, dev_t kfd)
{
	/* Files of an earlier dump may lie there: the inventory decides. */
	bool native = host_take_inventory(GPUCR_ENTRY_NATIVE);
	int dir, err, phase;

	if (!native && !host_take_inventory(GPUCR_ENTRY_UPSTREAM))
		return 0;
	err = streamer_begin_restore(native);
	if (err)
		return err;
	dir = host_image_dir();
	/* No list of plugins at all, and nothing of ours: not our image. */
	if (dir < 0 || !has_images(dir)) {
		streamer_end();
		return 0;
	}
	memset(&restore, 0, sizeof(restore));
	restore.kfd = kfd;
	gpucr_log_reset();
	plugin_report = gpucr_report_new("restore");
	phase = gpucr_report_begin(plugin_report, "prepare", 0);
	err = gpucr_owner_init(&restore.owner);
	if (!err)
		err = prepare(dir, have_kfd);
	if (!err) {
		gpucr_report_end(plugin_report, phase, 0);
		return 1;
	}
	write_report(false, err);
	restore_exit(err);
	return err;
}

/* State of this task, not that of the one it was forked from. */
static int enter_task(void)
{
	pid_t self = getpid();
	int min;

	if (task.pid == self)
		return 0;
	memset(&task, 0, sizeof(task));
	min = host_unused_fd(self);
	if (min < 0) {
		gpucr_err("CRIU tells no free descriptor for pid %d", self);
		return -EIO;
	}
	task.map.min_fd = min;
	task.pace.rate = restore.plan.opts.bandwidth;
	task.pid = self;
	return 0;
}

/* The render node that stands for a GPU of the image; opened once. */
static int gpu_file(uint32_t there_gpu_id)
{
	struct vmamap_file *f = vmamap_find_file(&task.map, there_gpu_id);
	const struct gpucr_devmap_entry *e;
	int fd;

	if (f)
		return f->fd;
	e = gpucr_devmap_find(&restore.plan.devmap, there_gpu_id);
	if (!e) {
		gpucr_err("GPU 0x%04x of a render node's image is in no image that was read (image-damaged)",
			  there_gpu_id);
		return -EBADMSG;
	}
	fd = gpucr_drm_open_render(e->render_minor);
	if (fd < 0) {
		gpucr_err("GPU 0x%04x: render node renderD%u cannot be opened: %s (no-render-node); give the container /dev/dri/renderD%u",
			  e->gpu_id, e->render_minor, strerror(-fd),
			  e->render_minor);
		return fd;
	}
	fd = vmamap_keep(&task.map, there_gpu_id, fd);
	/* The pid that the task has now is the one it had. */
	if (fd >= 0)
		vmamap_find_file(&task.map, there_gpu_id)->wanted =
			gpucr_plan_vm_files(&restore.plan, task.pid,
					    there_gpu_id);
	return fd;
}

static int fill_devices(struct gpucr_kfd_state *s,
			const struct gpucr_img_kfd *img)
{
	size_t i;

	for (i = 0; i < img->num_devices; i++) {
		const struct gpucr_img_device *d = &img->devices[i];
		int fd = gpu_file(d->local_gpu_id);

		if (fd < 0)
			return fd;
		s->devices[i] = (struct kfd_criu_device_bucket){
			.user_gpu_id = d->user_gpu_id,
			.actual_gpu_id =
				gpucr_devmap_find(&restore.plan.devmap,
						  d->local_gpu_id)->gpu_id,
			.drm_fd = fd,
		};
	}
	return 0;
}

static int fill_state(struct gpucr_kfd_state *s,
		      const struct gpucr_img_kfd *img)
{
	const struct gpucr_kfd_counts n = {
		.num_devices = img->num_devices,
		.num_bos = img->num_bos,
		.num_objects = img->num_objects,
		.priv_size = img->priv_size,
	};
	size_t i;
	int err;

	err = gpucr_kfd_state_alloc(s, &n);
	if (err)
		return err;
	s->image_pid = img->pid;
	for (i = 0; i < img->num_bos; i++) {
		s->bos[i].addr = img->bos[i].addr;
		s->bos[i].size = img->bos[i].size;
		s->bos[i].offset = img->bos[i].offset;
		s->bos[i].gpu_id = img->bos[i].gpu_id;
		s->bos[i].alloc_flags = img->bos[i].alloc_flags;
	}
	memcpy(s->priv, img->priv, img->priv_size);
	return fill_devices(s, img);
}

static bool maps_kfd(const struct gpucr_img_kfd *img)
{
	size_t i;

	for (i = 0; i < img->num_vmas; i++) {
		if (img->vmas[i].kind != GPUCR_IMG_VMA_RENDER)
			return true;
	}
	return false;
}

static int keep_kfd(const struct gpucr_img_kfd *img, int kfd_fd)
{
	int copy;

	if (!maps_kfd(img))
		return 0;
	copy = dup(kfd_fd);
	if (copy < 0)
		return -errno;
	copy = vmamap_keep(&task.map, VMAMAP_KFD, copy);
	return copy < 0 ? copy : 0;
}

static int build_map(const struct gpucr_img_kfd *img,
		     const struct gpucr_kfd_state *s)
{
	enum gpucr_offset_rule rule = atomic_load(&restore.shared->offsets);
	int err;

	err = vmamap_build(&task.map, img, s, &restore.plan.devmap, &rule);
	if (!err && rule != GPUCR_OFFSET_UNKNOWN)
		atomic_store(&restore.shared->offsets, rule);
	return err;
}

static bool hand_over(const struct gpucr_img_kfd *img,
		      const struct gpucr_kfd_state *s)
{
	bool taken = false;
	size_t num;
	int *fds;

	if (!restore.overlap)
		return false;
	if (!fill_list(s, &fds, &num))
		taken = overlap_hand_over(img->id, fds, num);
	free(fds);
	if (taken)
		gpucr_info("pid %d: CRIU's own process fills %llu bytes of GPU memory while it goes on",
			   task.pid, (unsigned long long)
			   gpucr_img_content_bytes(img, 0));
	return taken;
}

static int fill(int dir, const struct gpucr_img_kfd *img,
		const struct gpucr_kfd_state *s)
{
	const struct fill_env env = {
		.dir = dir,
		.devmap = &restore.plan.devmap,
		.max_buffer = restore.plan.opts.max_buffer_size,
		.copy_ms = restore.plan.opts.copy_deadline * 1000,
		.pace = &task.pace,
		.progress = restore.progress,
	};

	return hand_over(img, s) ? 0 : fill_process(&env, img, s);
}

static int restore_process(int dir, const struct gpucr_img_kfd *img,
			   int kfd_fd)
{
	struct gpucr_kfd_state s;
	int err, phase;

	if (task.filled) {
		gpucr_err("pid %d has two KFD images (image-damaged)",
			  task.pid);
		return -EBADMSG;
	}
	err = fill_state(&s, img);
	phase = gpucr_report_begin(plugin_report, "kfd-restore", img->pid);
	if (!err)
		err = gpucr_restore_run(restore.session, kfd_fd, &s);
	gpucr_progress_phase(restore.progress, "fill", task.pid);
	task.filled = !err;
	if (!err) {
		gpucr_report_end(plugin_report, phase, 0);
		err = fill(dir, img, &s);
	}
	if (!err)
		err = keep_kfd(img, kfd_fd);
	if (!err)
		err = build_map(img, &s);
	if (!err)
		vmamap_trim(&task.map);
	gpucr_kfd_state_clear(&s);
	return err;
}

static int restore_kfd(int dir, const struct gpucr_img_kfd *img)
{
	int fd, err = 0;

	fd = gpucr_kfd_open(restore.kfd);
	if (fd < 0)
		return fd;
	if (img->num_devices)
		err = restore_process(dir, img, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* The file whose address space KFD uses is the one that RESTORE gets. */
static int restore_vm_file(const struct gpucr_img_render *img)
{
	struct vmamap_file *f;
	int fd;

	fd = gpu_file(img->device.local_gpu_id);
	if (fd < 0)
		return fd;
	f = vmamap_find_file(&task.map, img->device.local_gpu_id);
	if (f->wanted)
		f->wanted--;
	/* Before RESTORE it is still needed, whatever its uses. */
	if (task.filled && !f->wanted)
		return vmamap_give(&task.map, f);
	fd = dup(f->fd);
	return fd < 0 ? -errno : fd;
}

static int restore_render(const struct gpucr_img_render *img)
{
	const struct gpucr_devmap_entry *e;
	int fd;

	if (img->kfd_vm)
		return restore_vm_file(img);
	e = gpucr_devmap_find(&restore.plan.devmap, img->device.local_gpu_id);
	if (!e) {
		gpucr_err("GPU 0x%04x of render node image %u is in no image that was read (image-damaged)",
			  img->device.local_gpu_id, img->id);
		return -EBADMSG;
	}
	fd = gpucr_drm_open_render(e->render_minor);
	if (fd < 0)
		gpucr_err("GPU 0x%04x: render node renderD%u cannot be opened: %s (no-render-node)",
			  e->gpu_id, e->render_minor, strerror(-fd));
	return fd;
}

int restore_file(int id)
{
	int dir = host_image_dir();
	struct gpucr_img_render render;
	struct gpucr_img_kfd *img;
	int ret;

	ret = gpucr_image_kfd_read(dir, restore.plan.format, id, &img);
	if (!ret) {
		ret = enter_task();
		if (!ret)
			ret = restore_kfd(dir, img);
		gpucr_img_kfd_free(img);
		return hook_error(noted(ret));
	}
	if (ret != -ENOENT)
		return hook_error(noted(ret));
	ret = gpucr_image_render_read(dir, restore.plan.format, id, &render);
	if (ret == -ENOENT)
		return -ENOTSUP;
	if (!ret)
		ret = enter_task();
	if (!ret)
		ret = restore_render(&render);
	return hook_error(noted(ret));
}

int restore_update_vma(uint64_t addr, uint64_t old_offset,
		       uint64_t *new_offset, int *fd)
{
	int err;

	if (task.pid != getpid())
		return -ENOTSUP;
	err = restore.overlap ? overlap_error() : 0;
	if (err) {
		/* What and where is told, and reported, by CRIU itself. */
		gpucr_warn("pid %d: GPU memory could not be filled: %s (fill-failed); the task is ended",
			   task.pid, strerror(-err));
		_exit(1);
	}
	err = vmamap_look_up(&task.map, addr, old_offset, host_adopts_vma_fd(),
			     new_offset, fd);
	if (!err)
		return 1;
	if (err == -ENOENT)
		return -ENOTSUP;
	/* CRIU would map the old offset: another buffer, or nothing. */
	gpucr_err("pid %d: the mapping at 0x%llx has no file to be made through: %s (vma-lost); the task is ended",
		  task.pid, (unsigned long long)addr, strerror(-err));
	noted(err);
	_exit(1);
}

/* "" where this CRIU has no overlap. */
static void say_overlap(char *text, size_t size)
{
	const struct overlap_result *r = &restore.filled;

	*text = '\0';
	if (!host_can_overlap())
		return;
	if (!r->processes)
		snprintf(text, size, ", not overlapped%s",
			 restore.plan.opts.overlap ? "" : " (overlap = off)");
	else
		snprintf(text, size,
			 ", overlapped for %u of them: filled in %.1f s, %.1f s of it waited for",
			 r->processes, r->fill_ms / 1000.0,
			 r->wait_ms / 1000.0);
}

static void sum_up(void)
{
	char overlap[128];

	say_overlap(overlap, sizeof(overlap));
	gpucr_warn("restored %u GPU process%s: %.2f GiB of GPU memory, backend %s%s",
		   restore.num_resumed, restore.num_resumed > 1 ? "es" : "",
		   restore.plan.content_bytes / GIB,
		   gpucr_backend_name(restore.backend), overlap);
	if (host_can_overlap())
		gpucr_report_number(plugin_report, "overlapped",
				    restore.filled.processes);
}

int restore_resume(int pid)
{
	int err, phase;

	if (!restore.session)
		return -ENOTSUP;
	err = end_overlap(false);
	if (err) {
		kill(pid, SIGKILL);
		return hook_error(err);
	}
	phase = gpucr_report_begin(plugin_report, "resume", pid);
	err = gpucr_restore_resume(restore.session, pid);
	if (!err)
		gpucr_report_end(plugin_report, phase, 0);
	if (err == -ENOENT)
		return -ENOTSUP;
	if (err) {
		noted(err);
		/* Older CRIU goes on; a task whose GPU stands still must not. */
		kill(pid, SIGKILL);
		return hook_error(err);
	}
	restore.num_resumed++;
	if (!gpucr_restore_pending(restore.session)) {
		sum_up();
		/* exit() comes only after the job's end. */
		write_report(true, 0);
		restore_exit(0);
	}
	return 0;
}

void restore_abandon(void)
{
	if (gpucr_owner_is_self(&restore.owner))
		end_overlap(true);
}

void restore_exit(int ret)
{
	if (!gpucr_owner_is_self(&restore.owner))
		return;
	end_overlap(true);
	write_report(!ret, 0);
	gpucr_report_free(plugin_report);
	plugin_report = NULL;
	note_rules();
	gpucr_progress_phase(restore.progress,
			     restore.num_resumed == restore.plan.num_images ?
			     "done" : "failed", 0);
	gpucr_progress_close(restore.progress);
	gpucr_restore_close(restore.session);
	gpucr_backend_close(restore.backend);
	if (restore.shared)
		munmap(restore.shared, sizeof(*restore.shared));
	gpucr_plan_clear(&restore.plan);
	streamer_end();
	gpucr_owner_fini(&restore.owner);
	memset(&restore, 0, sizeof(restore));
}
