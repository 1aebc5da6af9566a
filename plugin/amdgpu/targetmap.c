// SPDX-License-Identifier: GPL-2.0-only
#include "targetmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "kfd.h"
#include "kfdoffset.h"
#include "log.h"
#include "rendernode.h"
#include "task.h"

/* A BO by what a mapping of it shows. */
struct bo_key {
	uint32_t gpu_id;
	uint64_t offset;
	uint64_t size;
	uint32_t index;
};

struct matcher {
	pid_t pid;
	dev_t kfd;
	struct gpucr_img_kfd *img;
	struct bo_key *keys;	/* sorted */
	size_t num_keys;
};

static int compare_keys(const void *a, const void *b)
{
	const struct bo_key *x = a, *y = b;

	if (x->gpu_id != y->gpu_id)
		return x->gpu_id < y->gpu_id ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int make_keys(struct matcher *m)
{
	const struct gpucr_img_kfd *img = m->img;
	size_t i;

	m->keys = calloc(img->num_bos + 1, sizeof(*m->keys));
	if (!m->keys)
		return -ENOMEM;
	for (i = 0; i < img->num_bos; i++) {
		const struct gpucr_img_bo *bo = &img->bos[i];

		if (!gpucr_kfd_bo_has_content(bo->alloc_flags))
			continue;
		m->keys[m->num_keys++] = (struct bo_key){
			.gpu_id = bo->gpu_id, .offset = bo->offset,
			.size = bo->size, .index = i,
		};
	}
	qsort(m->keys, m->num_keys, sizeof(*m->keys), compare_keys);
	return 0;
}

/* The BO that holds the offset; NULL: none. */
static const struct bo_key *find_bo(const struct matcher *m, uint32_t gpu_id,
				    uint64_t offset)
{
	size_t lo = 0, hi = m->num_keys;
	const struct bo_key *k;

	/* The last key that is not above. */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		k = &m->keys[mid];
		if (k->gpu_id < gpu_id ||
		    (k->gpu_id == gpu_id && k->offset <= offset))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	k = &m->keys[lo - 1];
	if (k->gpu_id != gpu_id || offset - k->offset >= k->size)
		return NULL;
	return k;
}

static int refuse(const struct matcher *m, const struct gpucr_task_map *map,
		  const char *why)
{
	gpucr_err("pid %d: the mapping at 0x%llx-0x%llx %s (vma-unsupported)",
		  m->pid, (unsigned long long)map->start,
		  (unsigned long long)map->end, why);
	return -EOPNOTSUPP;
}

static int match_render(const struct matcher *m,
			const struct gpucr_task_map *map,
			struct gpucr_img_vma *v)
{
	const struct gpucr_img_kfd *img = m->img;
	const struct bo_key *k = NULL;
	size_t i;

	for (i = 0; i < img->num_devices; i++) {
		if (img->devices[i].render_minor == minor(map->rdev))
			k = find_bo(m, img->devices[i].user_gpu_id,
				    map->offset);
	}
	if (!k)
		return refuse(m, map, "is of a buffer object that KFD does not have; those made through a render node cannot be restored yet");
	if (k->offset != map->offset)
		return refuse(m, map, "does not begin where its buffer object begins; such a part cannot be restored yet");
	v->kind = GPUCR_IMG_VMA_RENDER;
	v->gpu_id = k->gpu_id;
	v->bo = k->index;
	return 0;
}

static int match_kfd(const struct matcher *m, const struct gpucr_task_map *map,
		     struct gpucr_img_vma *v)
{
	const struct gpucr_img_kfd *img = m->img;
	uint32_t id = gpucr_kfd_offset_gpu(map->offset);
	size_t i;

	v->bo = GPUCR_IMG_NO_BO;
	if (!gpucr_kfd_offset_has_gpu(map->offset)) {
		v->kind = GPUCR_IMG_VMA_KFD_EVENTS;
		return 0;
	}
	v->kind = GPUCR_IMG_VMA_KFD_GPU;
	/* The offset has the user id on some kernels, the local on others. */
	for (i = 0; i < img->num_devices && !v->gpu_id; i++) {
		if (img->devices[i].user_gpu_id == id ||
		    img->devices[i].local_gpu_id == id)
			v->gpu_id = img->devices[i].user_gpu_id;
	}
	if (!v->gpu_id)
		return refuse(m, map, "is of a GPU that the process does not use");
	return 0;
}

static int match(const struct matcher *m, const struct gpucr_task_map *map,
		 struct gpucr_img_vma *v)
{
	v->start = map->start;
	v->end = map->end;
	v->offset = map->offset;
	if (map->rdev == m->kfd)
		return match_kfd(m, map, v);
	return match_render(m, map, v);
}

static bool is_render(dev_t rdev)
{
	return major(rdev) == GPUCR_DRM_MAJOR &&
	       minor(rdev) >= GPUCR_DRM_FIRST_RENDER;
}

int targetmap_fill(pid_t pid, dev_t kfd, struct gpucr_img_kfd *img)
{
	struct matcher m = { .pid = pid, .kfd = kfd, .img = img };
	struct gpucr_task_map *maps;
	size_t i, num;
	int err;

	err = gpucr_task_device_maps(pid, &maps, &num);
	if (err) {
		gpucr_err("pid %d: its mappings cannot be read: %s", pid,
			  strerror(-err));
		return err;
	}
	img->vmas = calloc(num + 1, sizeof(*img->vmas));
	err = img->vmas ? make_keys(&m) : -ENOMEM;
	for (i = 0; i < num && !err; i++) {
		if (maps[i].rdev != kfd && !is_render(maps[i].rdev))
			continue;
		err = match(&m, &maps[i], &img->vmas[img->num_vmas]);
		img->num_vmas += !err;
	}
	free(m.keys);
	free(maps);
	return err;
}
