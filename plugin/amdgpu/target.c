// SPDX-License-Identifier: GPL-2.0-only
#include "target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <gpucr_kfdpriv.h>

#include "log.h"
#include "rendernode.h"
#include "version.h"

#include "content.h"
#include "plugin.h"
#include "targetmap.h"

static int compare_keys(const void *a, const void *b)
{
	const struct target_key *x = a, *y = b;

	if (x->local_gpu_id != y->local_gpu_id)
		return x->local_gpu_id < y->local_gpu_id ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static uint32_t local_gpu_id(const struct target *t, uint32_t user_gpu_id)
{
	uint32_t i;

	for (i = 0; i < t->counts.num_devices; i++) {
		if (t->state.devices[i].user_gpu_id == user_gpu_id)
			return t->state.devices[i].actual_gpu_id;
	}
	return 0;
}

static int make_keys(struct target *t)
{
	uint32_t i;

	t->keys = calloc((size_t)t->counts.num_bos + 1, sizeof(*t->keys));
	if (!t->keys)
		return -ENOMEM;
	for (i = 0; i < t->counts.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &t->state.bos[i];

		if (!gpucr_kfd_bo_has_content(b->alloc_flags))
			continue;
		t->keys[t->num_keys++] = (struct target_key){
			.local_gpu_id = local_gpu_id(t, b->gpu_id),
			.offset = b->offset,
		};
	}
	qsort(t->keys, t->num_keys, sizeof(*t->keys), compare_keys);
	for (i = 1; i < t->num_keys; i++) {
		if (compare_keys(&t->keys[i - 1], &t->keys[i]))
			continue;
		gpucr_err("pid %d has the buffer object at offset 0x%llx of GPU 0x%04x twice (bo-shared); such a one cannot be restored yet",
			  t->task.pid, (unsigned long long)t->keys[i].offset,
			  t->keys[i].local_gpu_id);
		return -EOPNOTSUPP;
	}
	return 0;
}

int target_refuse_shared(const struct target *a, const struct target *b)
{
	size_t i = 0, j = 0;

	while (i < a->num_keys && j < b->num_keys) {
		int c = compare_keys(&a->keys[i], &b->keys[j]);

		if (!c) {
			gpucr_err("pid %d and pid %d share the buffer object at offset 0x%llx of GPU 0x%04x (bo-shared); shared ones cannot be restored yet",
				  a->task.pid, b->task.pid,
				  (unsigned long long)a->keys[i].offset,
				  a->keys[i].local_gpu_id);
			return -EOPNOTSUPP;
		}
		i += c < 0;
		j += c > 0;
	}
	return 0;
}

void target_free(struct target *t)
{
	gpucr_ckpt_close(t->ckpt);
	gpucr_kfd_state_clear(&t->state);
	free(t->keys);
	free(t);
}

int target_read(struct target *t)
{
	int err;

	if (t->read)
		return 0;
	err = gpucr_kfd_state_alloc(&t->state, &t->counts);
	if (err) {
		gpucr_err("pid %d: no memory for %u buffer objects and %llu bytes of private data",
			  t->task.pid, t->counts.num_bos,
			  (unsigned long long)t->counts.priv_size);
		return err;
	}
	err = gpucr_ckpt_read(t->ckpt, &t->state);
	if (!err)
		err = make_keys(t);
	if (err)
		gpucr_kfd_state_clear(&t->state);
	t->read = !err;
	return err;
}

int target_check_space(int dir, uint64_t bytes)
{
	struct statvfs st;
	uint64_t need = bytes + bytes / 20, have;

	if (fstatvfs(dir, &st))
		return 0;
	have = (uint64_t)st.f_bavail * st.f_frsize;
	if (need <= have)
		return 0;
	gpucr_err("the image directory has %llu MiB free, GPU memory and 5 %% need %llu MiB (no-space); use a larger one, or space-check = off",
		  (unsigned long long)have >> 20,
		  (unsigned long long)need >> 20);
	return -ENOSPC;
}

void img_device_from_node(struct gpucr_img_device *ret,
			  const struct gpucr_node *node, uint32_t user_gpu_id)
{
	*ret = (struct gpucr_img_device){
		.user_gpu_id = user_gpu_id,
		.local_gpu_id = node->gpu_id,
		.render_minor = node->drm_render_minor,
		.vendor_id = node->vendor_id,
		.device_id = node->device_id,
		.gfx_target_version = node->gfx_target_version,
		.simd_count = node->simd_count,
		.num_xcc = node->num_xcc,
		.location_id = node->location_id,
		.domain = node->domain,
		.fw_version = node->fw_version,
		.sdma_fw_version = node->sdma_fw_version,
		.capability = node->capability,
		.num_gws = node->num_gws,
		.caches_count = node->caches_count,
		.vram_bytes = node->vram_size,
		.unique_id = node->unique_id,
		.hive_id = node->hive_id,
	};
	snprintf(ret->name, sizeof(ret->name), "%s", node->name);
}

int target_device(const struct target *t, const struct gpucr_topology *topo,
		  uint32_t index, struct gpucr_img_device *ret)
{
	const struct kfd_criu_device_bucket *b = &t->state.devices[index];
	const struct gpucr_node *node;

	node = gpucr_topology_find_by_gpu_id(topo, b->actual_gpu_id);
	if (!node) {
		gpucr_err("pid %d uses GPU 0x%04x, which the topology does not show here (no-gpu); run criu where that GPU is visible",
			  t->task.pid, b->actual_gpu_id);
		return -ENODEV;
	}
	img_device_from_node(ret, node, b->user_gpu_id);
	return 0;
}

static int fill_devices(const struct target *t, const struct target_env *env,
			struct gpucr_img_kfd *img)
{
	uint32_t i;
	int err;

	img->devices = calloc((size_t)t->counts.num_devices + 1,
			      sizeof(*img->devices));
	if (!img->devices)
		return -ENOMEM;
	for (i = 0; i < t->counts.num_devices; i++) {
		err = target_device(t, env->topo, i, &img->devices[i]);
		if (err)
			return err;
		img->num_devices++;
	}
	return 0;
}

static int fill_bos(const struct target *t, struct gpucr_img_kfd *img)
{
	uint32_t i;

	img->bos = calloc((size_t)t->counts.num_bos + 1, sizeof(*img->bos));
	if (!img->bos)
		return -ENOMEM;
	for (i = 0; i < t->counts.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &t->state.bos[i];

		img->bos[i] = (struct gpucr_img_bo){
			.addr = b->addr,
			.size = b->size,
			.offset = b->offset,
			.alloc_flags = b->alloc_flags,
			.gpu_id = b->gpu_id,
		};
	}
	img->num_bos = t->counts.num_bos;
	return 0;
}

static int fill_priv(const struct target *t, struct gpucr_img_kfd *img)
{
	struct gpucr_kfdpriv p = {
		.data = t->state.priv,
		.size = t->counts.priv_size,
		.num_devices = t->counts.num_devices,
		.num_bos = t->counts.num_bos,
		.num_objects = t->counts.num_objects,
	};

	if (gpucr_kfdpriv_open(&p, 0)) {
		gpucr_err("pid %d: private data of kernel %s have a layout that is not known (layout-unknown)",
			  t->task.pid, img->kernel_release);
		return -EPROTO;
	}
	img->bo_record_size = p.bo_size;
	img->priv = malloc(t->counts.priv_size + 1);
	if (!img->priv)
		return -ENOMEM;
	memcpy(img->priv, t->state.priv, t->counts.priv_size);
	img->priv_size = t->counts.priv_size;
	return 0;
}

static int dump_gpu(struct target *t, struct target_env *env,
		    struct gpucr_img_kfd *img,
		    const struct gpucr_img_device *d)
{
	struct content_config cfg = {
		.dir = env->dir,
		.gpu_id = d->user_gpu_id,
		.slots = MAIN_SLOTS,
		.slot_size = MAIN_SLOT_SIZE,
		.max_buffer = env->opts->max_buffer_size,
	};
	struct gpucr_img_pages *p = &img->pages[img->num_pages];
	int err;

	if (!gpucr_img_content_bytes(img, d->user_gpu_id))
		return 0;
	cfg.drm_fd = gpucr_drm_open_render(d->render_minor);
	if (cfg.drm_fd < 0) {
		gpucr_err("GPU 0x%04x: render node renderD%u cannot be opened: %s (no-render-node)",
			  d->local_gpu_id, d->render_minor,
			  strerror(-cfg.drm_fd));
		return cfg.drm_fd;
	}
	p->gpu_id = d->user_gpu_id;
	gpucr_img_pages_name(p->file, img->id, d->user_gpu_id);
	env->writing(p->file);
	err = content_dump(&cfg, &t->state, p);
	close(cfg.drm_fd);
	if (err)
		return err;
	img->num_pages++;
	env->wrote(p->file);
	env->raw_bytes += p->chunks.raw_bytes;
	env->stored_bytes += p->chunks.file_bytes;
	return 0;
}

static int write_content(struct target *t, struct target_env *env,
			 struct gpucr_img_kfd *img)
{
	size_t i;
	int err = 0;

	img->pages = calloc(img->num_devices + 1, sizeof(*img->pages));
	if (!img->pages)
		return -ENOMEM;
	for (i = 0; i < img->num_devices && !err; i++)
		err = dump_gpu(t, env, img, &img->devices[i]);
	return err;
}

static void fill_head(const struct target *t, struct gpucr_img_kfd *img,
		      uint32_t id)
{
	struct utsname u;

	memset(img, 0, sizeof(*img));
	img->id = id;
	img->pid = t->task.ns_pid;
	img->num_objects = t->counts.num_objects;
	img->time = time(NULL);
	snprintf(img->writer, sizeof(img->writer), "gpucr %s",
		 GPUCR_LIB_VERSION);
	if (!uname(&u))
		snprintf(img->kernel_release, sizeof(img->kernel_release),
			 "%s", u.release);
}

static int write_process(struct target *t, struct target_env *env,
			 struct gpucr_img_kfd *img)
{
	const char *fault;
	int err;

	err = target_read(t);
	if (!err)
		err = fill_devices(t, env, img);
	if (!err)
		err = fill_bos(t, img);
	if (!err)
		err = fill_priv(t, img);
	if (!err)
		err = targetmap_fill(t->task.pid, env->kfd, img);
	if (!err && env->opts->space_check)
		err = target_check_space(env->dir,
					 gpucr_img_content_bytes(img, 0));
	if (!err)
		err = write_content(t, env, img);
	if (err)
		return err;
	/* What the reader would refuse must not be called a dump. */
	fault = gpucr_img_kfd_fault(img);
	if (!fault)
		return 0;
	gpucr_err("pid %d: %s (image-fault)", t->task.pid, fault);
	return -EPROTO;
}

int target_write(struct target *t, struct target_env *env, uint32_t id)
{
	char name[GPUCR_IMG_NAME_MAX];
	struct gpucr_img_kfd img;
	int err = 0;

	fill_head(t, &img, id);
	if (t->image_id) {
		img.alias_of = t->image_id;
		img.num_objects = 0;
	} else if (t->no_gpu) {
		img.no_gpu = true;
	} else {
		err = write_process(t, env, &img);
	}
	gpucr_img_kfd_name(name, id);
	env->writing(name);
	if (!err)
		err = gpucr_img_kfd_write(env->dir, &img);
	gpucr_img_kfd_clear(&img);
	if (err)
		return err;
	env->wrote(name);
	if (!t->image_id)
		t->image_id = id;
	/* The dma-bufs pin nothing any more. */
	gpucr_kfd_state_close_bos(&t->state);
	return 0;
}
