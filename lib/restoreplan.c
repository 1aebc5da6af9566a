// SPDX-License-Identifier: GPL-2.0-only
#include "restoreplan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "log.h"
#include "stream.h"
#include "topology.h"

/*
 * Their checksums are for the task; that they are there and whole is seen now,
 * before anything exists that would have to be undone.
 */
static int check_pages(int dir, const struct gpucr_img_kfd *img)
{
	struct gpucr_pages_reader r;
	size_t i;
	int err;

	/* A streamer gives each once: there the task finds it out. */
	if (gpucr_stream_on())
		return 0;
	for (i = 0; i < img->num_pages; i++) {
		err = gpucr_pages_open(&r, dir, img->pages[i].file,
				       &img->pages[i].chunks);
		if (err)
			return err;
		gpucr_pages_close(&r);
	}
	return 0;
}

/* KFD would say EINVAL, when the task has its memory and half of its BOs. */
static int check_layout(const struct gpucr_kfd_rules *r,
			const struct gpucr_img_kfd *img)
{
	if (!img->bo_record_size || !r->bo_record ||
	    img->bo_record_size == r->bo_record)
		return 0;
	gpucr_err("pid %u: KFD's record of a BO has %u bytes in the image, of kernel %s, and %u here, by %s of %s (layout-mismatch)",
		  img->pid, img->bo_record_size, img->kernel_release,
		  r->bo_record,
		  r->bo_known == GPUCR_KNOWN_BTF ? "BTF" : "an earlier dump",
		  r->provider);
	return -EPROTO;
}

/* Not refused: KFD's interface is stable, its private layout is compared. */
static void warn_other_kernel(const struct gpucr_kfd_rules *r,
			      const struct gpucr_img_kfd *img)
{
	char driver[sizeof(img->driver)];
	struct utsname u;

	gpucr_kfd_driver(r, driver, sizeof(driver));
	if (*img->kernel_release && !uname(&u) &&
	    strcmp(img->kernel_release, u.release))
		gpucr_warn("pid %u was dumped under kernel %s, here is %s (other-kernel)",
			   img->pid, img->kernel_release, u.release);
	else if (*img->driver && strcmp(img->driver, driver))
		gpucr_warn("pid %u was dumped under driver %s, here is %s (other-kernel)",
			   img->pid, img->driver, driver);
}

static int read_kfd(struct gpucr_plan *p, int dir, uint32_t id)
{
	struct gpucr_img_kfd *img;
	size_t i;
	int err;

	err = gpucr_image_kfd_read(dir, p->format, id, &img);
	if (err)
		return err;
	for (i = 0; i < img->num_devices && !err; i++)
		err = gpucr_devmap_add(&p->devmap, &img->devices[i]);
	if (!err)
		err = check_layout(&p->rules, img);
	if (!err)
		err = check_pages(dir, img);
	if (!err && img->num_devices)
		warn_other_kernel(&p->rules, img);
	p->num_images += img->num_devices > 0;
	p->num_pages += img->num_pages;
	p->content_bytes += gpucr_img_content_bytes(img, 0);
	gpucr_img_kfd_free(img);
	return err;
}

static int read_render(struct gpucr_plan *p, int dir, uint32_t id)
{
	struct gpucr_plan_vm_file *more;
	struct gpucr_img_render img;
	int err;

	err = gpucr_image_render_read(dir, p->format, id, &img);
	if (!err)
		err = gpucr_devmap_add(&p->devmap, &img.device);
	if (err || !img.kfd_vm)
		return err;
	more = reallocarray(p->vm_files, p->num_vm_files + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	p->vm_files = more;
	p->vm_files[p->num_vm_files++] = (struct gpucr_plan_vm_file){
		.owner_pid = img.owner_pid,
		.gpu_id = img.device.local_gpu_id,
	};
	return 0;
}

static int read_kind(struct gpucr_plan *p, int dir, enum gpucr_img_kind kind)
{
	uint32_t *ids;
	size_t i, num;
	int err;

	err = gpucr_image_list(dir, p->format, kind, &ids, &num);
	for (i = 0; i < num && !err; i++)
		err = kind == GPUCR_IMG_KFD ? read_kfd(p, dir, ids[i]) :
					      read_render(p, dir, ids[i]);
	free(ids);
	return err;
}

int gpucr_plan_read(struct gpucr_plan *p, int dir)
{
	int err;

	p->format = gpucr_image_format(dir);
	err = read_kind(p, dir, GPUCR_IMG_KFD);
	return err ? err : read_kind(p, dir, GPUCR_IMG_RENDER);
}

int gpucr_plan_map(struct gpucr_plan *p, int (*open_render)(uint32_t minor))
{
	struct gpucr_here here = {
		.opts = &p->opts, .open_render = open_render,
	};
	struct gpucr_topology *topo;
	int err;

	err = gpucr_topology_read(NULL, &topo);
	if (err) {
		gpucr_err("KFD's topology cannot be read: %s (no-kfd)",
			  strerror(-err));
		return err;
	}
	here.topo = topo;
	err = gpucr_devmap_solve(&p->devmap, &here);
	gpucr_topology_free(topo);
	return err;
}

unsigned int gpucr_plan_vm_files(const struct gpucr_plan *p,
				 uint32_t owner_pid, uint32_t gpu_id)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < p->num_vm_files; i++)
		n += p->vm_files[i].owner_pid == owner_pid &&
		     p->vm_files[i].gpu_id == gpu_id;
	return n;
}

void gpucr_plan_clear(struct gpucr_plan *p)
{
	gpucr_devmap_clear(&p->devmap);
	free(p->vm_files);
	p->vm_files = NULL;
	p->num_vm_files = 0;
	p->num_images = 0;
	p->num_pages = 0;
	p->content_bytes = 0;
}
