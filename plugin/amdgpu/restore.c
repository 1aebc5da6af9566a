// SPDX-License-Identifier: GPL-2.0-only
/*
 * The restore. restore_init() runs in CRIU itself and reads all that the
 * restoring tasks need: their /etc, /sys and /run are not the host's.
 * restore_file() and restore_update_vma() run in the task, single-threaded;
 * every descriptor they open is closed, returned or kept by the vmamap.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "log.h"
#include "owner.h"
#include "rendernode.h"
#include "topology.h"

#include "content.h"
#include "devmap.h"
#include "host.h"
#include "plugin.h"
#include "vmamap.h"

/* A render node file of a process whose GPU address space KFD uses. */
struct vm_file {
	uint32_t owner_pid;
	uint32_t gpu_id;	/* where dumped */
};

/* Made in CRIU itself, inherited by the tasks. */
static struct {
	struct gpucr_owner owner;
	dev_t kfd;
	struct gpucr_opts opts;
	struct devmap devmap;
	struct gpucr_backend *backend;
	struct gpucr_restore *session;
	struct vm_file *vm_files;
	size_t num_vm_files;
	unsigned int num_images;	/* KFD processes */
	unsigned int num_resumed;
} restore;

/* Of one restoring task. */
static struct {
	pid_t pid;
	bool filled;
	struct vmamap map;
} task;

/*
 * Their checksums are for the task; that they are there and whole is seen now,
 * before anything exists that would have to be undone.
 */
static int check_pages(int dir, const struct gpucr_img_kfd *img)
{
	struct gpucr_pages_reader r;
	size_t i;
	int err;

	for (i = 0; i < img->num_pages; i++) {
		err = gpucr_pages_open(&r, dir, img->pages[i].file,
				       &img->pages[i].chunks);
		if (err)
			return err;
		gpucr_pages_close(&r);
	}
	return 0;
}

static int read_kfd_image(int dir, uint32_t id)
{
	struct gpucr_img_kfd *img;
	size_t i;
	int err;

	err = gpucr_img_kfd_read(dir, id, &img);
	if (err)
		return err;
	for (i = 0; i < img->num_devices && !err; i++)
		err = devmap_add(&restore.devmap, &img->devices[i]);
	if (!err)
		err = check_pages(dir, img);
	restore.num_images += img->num_devices > 0;
	gpucr_img_kfd_free(img);
	return err;
}

static int read_render_image(int dir, uint32_t id)
{
	struct gpucr_img_render img;
	struct vm_file *more;
	int err;

	err = gpucr_img_render_read(dir, id, &img);
	if (!err)
		err = devmap_add(&restore.devmap, &img.device);
	if (err || !img.kfd_vm)
		return err;
	more = reallocarray(restore.vm_files, restore.num_vm_files + 1,
			    sizeof(*more));
	if (!more)
		return -ENOMEM;
	restore.vm_files = more;
	restore.vm_files[restore.num_vm_files++] = (struct vm_file){
		.owner_pid = img.owner_pid,
		.gpu_id = img.device.local_gpu_id,
	};
	return 0;
}

/* How many files of the process share the GPU address space that KFD uses? */
static unsigned int count_vm_files(uint32_t owner_pid, uint32_t gpu_id)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < restore.num_vm_files; i++)
		n += restore.vm_files[i].owner_pid == owner_pid &&
		     restore.vm_files[i].gpu_id == gpu_id;
	return n;
}

static int read_images(int dir, enum gpucr_img_kind kind)
{
	uint32_t *ids;
	size_t i, num;
	int err;

	err = gpucr_img_list(dir, kind, &ids, &num);
	for (i = 0; i < num && !err; i++)
		err = kind == GPUCR_IMG_KFD ? read_kfd_image(dir, ids[i]) :
					      read_render_image(dir, ids[i]);
	free(ids);
	return err;
}

static int map_devices(void)
{
	struct gpucr_topology *topo;
	int err;

	err = gpucr_topology_read(NULL, &topo);
	if (err) {
		gpucr_err("KFD's topology cannot be read: %s", strerror(-err));
		return err;
	}
	err = devmap_solve(&restore.devmap, topo, &restore.opts);
	gpucr_topology_free(topo);
	return err;
}

static int open_session(void)
{
	int err;

	if (!restore.num_images)
		return 0;
	err = gpucr_backend_open(restore.opts.backend, restore.kfd,
				 &restore.backend);
	if (err)
		return err;
	return gpucr_restore_open(restore.backend, restore.num_images,
				  &restore.session);
}

static int prepare(int dir, bool have_kfd)
{
	const char *self, *twin = host_find_twin(PLUGIN_NAME, &self);
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
	err = gpucr_opts_load(&restore.opts, GPUCR_OPT_FILE, dir);
	if (!err)
		err = read_images(dir, GPUCR_IMG_KFD);
	if (!err)
		err = read_images(dir, GPUCR_IMG_RENDER);
	if (!err)
		err = map_devices();
	if (!err)
		err = open_session();
	return err;
}

static bool has_images(int dir)
{
	size_t num_kfd = 0, num_render = 0;
	uint32_t *ids;

	if (!gpucr_img_list(dir, GPUCR_IMG_KFD, &ids, &num_kfd))
		free(ids);
	if (!gpucr_img_list(dir, GPUCR_IMG_RENDER, &ids, &num_render))
		free(ids);
	return num_kfd || num_render;
}

int restore_init(bool have_kfd, dev_t kfd)
{
	int dir, err;

	/* Files of an earlier dump may lie there: the inventory decides. */
	if (!host_take_inventory(PLUGIN_ENTRY))
		return 0;
	dir = host_image_dir();
	/* No list of plugins at all, and nothing of ours: not our image. */
	if (dir < 0 || !has_images(dir))
		return 0;
	memset(&restore, 0, sizeof(restore));
	restore.kfd = kfd;
	gpucr_log_reset();
	err = gpucr_owner_init(&restore.owner);
	if (!err)
		err = prepare(dir, have_kfd);
	if (!err)
		return 1;
	restore_exit();
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
	task.pid = self;
	return 0;
}

/* The render node that stands for a GPU of the image; opened once. */
static int gpu_file(uint32_t there_gpu_id)
{
	struct vmamap_file *f = vmamap_find_file(&task.map, there_gpu_id);
	const struct devmap_entry *e;
	int fd;

	if (f)
		return f->fd;
	e = devmap_find(&restore.devmap, there_gpu_id);
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
			count_vm_files(task.pid, there_gpu_id);
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
			.actual_gpu_id = devmap_find(&restore.devmap,
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

static int fill_gpu(int dir, const struct gpucr_img_kfd *img,
		    const struct gpucr_kfd_state *s,
		    const struct gpucr_img_pages *p)
{
	const struct gpucr_img_device *d = gpucr_img_find_device(img,
								 p->gpu_id);
	const struct devmap_entry *e = devmap_find(&restore.devmap,
						   d->local_gpu_id);
	struct content_config cfg = {
		.dir = dir,
		.gpu_id = p->gpu_id,
		.slots = TASK_SLOTS,
		.slot_size = TASK_SLOT_SIZE,
		.max_buffer = restore.opts.max_buffer_size,
	};
	int err;

	/* Not the task's own file: its address space is the application's. */
	cfg.drm_fd = gpucr_drm_open_render(e->render_minor);
	if (cfg.drm_fd < 0)
		return cfg.drm_fd;
	err = content_restore(&cfg, s, p);
	close(cfg.drm_fd);
	return err;
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

static int restore_process(int dir, const struct gpucr_img_kfd *img,
			   int kfd_fd)
{
	struct gpucr_kfd_state s;
	size_t i;
	int err;

	if (task.filled) {
		gpucr_err("pid %d has two KFD images (image-damaged)",
			  task.pid);
		return -EBADMSG;
	}
	err = fill_state(&s, img);
	if (!err)
		err = gpucr_restore_run(restore.session, kfd_fd, &s);
	task.filled = !err;
	for (i = 0; i < img->num_pages && !err; i++)
		err = fill_gpu(dir, img, &s, &img->pages[i]);
	if (!err)
		err = keep_kfd(img, kfd_fd);
	if (!err)
		err = vmamap_build(&task.map, img, &s, &restore.devmap);
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
	const struct devmap_entry *e;
	int fd;

	if (img->kfd_vm)
		return restore_vm_file(img);
	e = devmap_find(&restore.devmap, img->device.local_gpu_id);
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

	ret = gpucr_img_kfd_read(dir, id, &img);
	if (!ret) {
		ret = enter_task();
		if (!ret)
			ret = restore_kfd(dir, img);
		gpucr_img_kfd_free(img);
		return ret;
	}
	if (ret != -ENOENT)
		return ret;
	ret = gpucr_img_render_read(dir, id, &render);
	if (ret == -ENOENT)
		return -ENOTSUP;
	if (!ret)
		ret = enter_task();
	if (!ret)
		ret = restore_render(&render);
	return ret;
}

int restore_update_vma(uint64_t addr, uint64_t old_offset,
		       uint64_t *new_offset, int *fd)
{
	int err;

	if (task.pid != getpid())
		return -ENOTSUP;
	err = vmamap_look_up(&task.map, addr, old_offset, host_adopts_vma_fd(),
			     new_offset, fd);
	if (!err)
		return 1;
	if (err == -ENOENT)
		return -ENOTSUP;
	/* CRIU would map the old offset: another buffer, or nothing. */
	gpucr_err("pid %d: the mapping at 0x%llx has no file to be made through: %s (vma-lost); the task is ended",
		  task.pid, (unsigned long long)addr, strerror(-err));
	_exit(1);
}

int restore_resume(int pid)
{
	int err;

	if (!restore.session)
		return -ENOTSUP;
	err = gpucr_restore_resume(restore.session, pid);
	if (err == -ENOENT)
		return -ENOTSUP;
	if (err) {
		/* Older CRIU goes on; a task whose GPU stands still must not. */
		kill(pid, SIGKILL);
		return err;
	}
	restore.num_resumed++;
	if (!gpucr_restore_pending(restore.session)) {
		gpucr_warn("restored %u GPU process%s, backend %s",
			   restore.num_resumed,
			   restore.num_resumed > 1 ? "es" : "",
			   gpucr_backend_name(restore.backend));
		/* exit() comes only after the job's end. */
		restore_exit();
	}
	return 0;
}

void restore_exit(void)
{
	if (!gpucr_owner_is_self(&restore.owner))
		return;
	gpucr_restore_close(restore.session);
	gpucr_backend_close(restore.backend);
	devmap_clear(&restore.devmap);
	free(restore.vm_files);
	gpucr_owner_fini(&restore.owner);
	memset(&restore, 0, sizeof(restore));
}
