// SPDX-License-Identifier: GPL-2.0-only
/* Rules that a KFD manifest must obey before anything is made from it. */
#include <string.h>

#include <gpucr_kfdpriv.h>

#include "image.h"
#include "kfd.h"
#include "upstream.h"

/* More than any address space holds: sums of sizes cannot overflow. */
#define MAX_BYTES	(UINT64_C(1) << 56)

const struct gpucr_img_device *
gpucr_img_find_device(const struct gpucr_img_kfd *img, uint32_t user_gpu_id)
{
	size_t i;

	for (i = 0; i < img->num_devices; i++) {
		if (img->devices[i].user_gpu_id == user_gpu_id)
			return &img->devices[i];
	}
	return NULL;
}

uint64_t gpucr_img_content_bytes(const struct gpucr_img_kfd *img,
				 uint32_t user_gpu_id)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < img->num_bos; i++) {
		const struct gpucr_img_bo *bo = &img->bos[i];

		if (gpucr_kfd_bo_has_content(bo->alloc_flags) &&
		    (!user_gpu_id || bo->gpu_id == user_gpu_id))
			sum += bo->size;
	}
	return sum;
}

static const char *devices_fault(const struct gpucr_img_kfd *img)
{
	size_t i;

	if (img->num_devices > GPUCR_IMG_MAX_DEVICES)
		return "more GPUs than a machine has";
	for (i = 0; i < img->num_devices; i++) {
		const struct gpucr_img_device *d = &img->devices[i];

		if (!d->user_gpu_id || !d->local_gpu_id)
			return "a GPU has no id";
		if (gpucr_img_find_device(img, d->user_gpu_id) != d)
			return "two GPUs have one id";
	}
	return NULL;
}

static const char *bos_fault(const struct gpucr_img_kfd *img)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < img->num_bos; i++) {
		const struct gpucr_img_bo *bo = &img->bos[i];

		if (!bo->size || bo->size % GPUCR_PAGE_SIZE ||
		    bo->size > MAX_BYTES)
			return "a buffer object's size is not possible";
		sum += bo->size;
		if (sum > MAX_BYTES)
			return "the buffer objects are too long in all";
		if (!gpucr_img_find_device(img, bo->gpu_id))
			return "a buffer object is on a GPU that is not listed";
	}
	return NULL;
}

static const char *vma_fault(const struct gpucr_img_kfd *img,
			     const struct gpucr_img_vma *v)
{
	const struct gpucr_img_bo *bo;

	switch (v->kind) {
	case GPUCR_IMG_VMA_KFD_GPU:
		if (!gpucr_img_find_device(img, v->gpu_id))
			return "a mapping is of a GPU that is not listed";
		/* fallthrough */
	case GPUCR_IMG_VMA_KFD_EVENTS:
		return v->bo == GPUCR_IMG_NO_BO ?
			NULL : "a mapping of KFD names a buffer object";
	case GPUCR_IMG_VMA_RENDER:
		break;
	default:
		return "a mapping is of an unknown kind";
	}
	if (v->bo >= img->num_bos)
		return "a mapping is of a buffer object that is not listed";
	bo = &img->bos[v->bo];
	if (bo->offset != v->offset || bo->gpu_id != v->gpu_id ||
	    v->end - v->start > bo->size)
		return "a mapping does not fit its buffer object";
	if (!gpucr_kfd_bo_has_content(bo->alloc_flags))
		return "a mapping is of a buffer object without memory";
	return NULL;
}

static const char *vmas_fault(const struct gpucr_img_kfd *img)
{
	uint64_t last = 0;
	size_t i;

	for (i = 0; i < img->num_vmas; i++) {
		const struct gpucr_img_vma *v = &img->vmas[i];
		const char *fault = vma_fault(img, v);

		if (v->start < last || v->end <= v->start ||
		    (v->start | v->end) % GPUCR_PAGE_SIZE)
			return "the mappings are out of order";
		if (fault)
			return fault;
		last = v->end;
	}
	return NULL;
}

static const char *pages_fault(const struct gpucr_img_kfd *img, size_t i)
{
	const struct gpucr_img_pages *p = &img->pages[i];
	char name[GPUCR_IMG_NAME_MAX];
	size_t j;

	for (j = 0; j < i; j++) {
		if (img->pages[j].gpu_id == p->gpu_id)
			return "two page files of one GPU";
	}
	if (!gpucr_img_find_device(img, p->gpu_id))
		return "a page file of a GPU that is not listed";
	/* The name is known: an image cannot lead out of its directory. */
	if (img->upstream)
		gpucr_up_pages_name(name, img->id, p->gpu_id);
	else
		gpucr_img_pages_name(name, img->id, p->gpu_id);
	if (strcmp(name, p->file))
		return "a page file has another name than its GPU's";
	if (p->chunks.raw_bytes != gpucr_img_content_bytes(img, p->gpu_id))
		return "a page file's content is not that of the buffer objects";
	return gpucr_chunks_fault(&p->chunks);
}

/* Every GPU with content has a page file. */
static const char *content_fault(const struct gpucr_img_kfd *img)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < img->num_pages; i++) {
		const char *fault = pages_fault(img, i);

		if (fault)
			return fault;
		sum += img->pages[i].chunks.raw_bytes;
	}
	if (sum != gpucr_img_content_bytes(img, 0))
		return "the page files do not cover the buffer objects";
	return NULL;
}

static const char *priv_fault(const struct gpucr_img_kfd *img)
{
	struct gpucr_kfdpriv p = {
		.data = img->priv,
		.size = img->priv_size,
		.num_devices = img->num_devices,
		.num_bos = img->num_bos,
		.num_objects = img->num_objects,
	};

	if (gpucr_kfdpriv_open(&p, img->bo_record_size))
		return "KFD's private records are malformed";
	return NULL;
}

const char *gpucr_img_kfd_fault(const struct gpucr_img_kfd *img)
{
	const char *fault;

	if (img->alias_of && img->alias_of == img->id)
		return "a file is said to be another open of itself";
	if (img->alias_of || img->no_gpu) {
		if (img->num_devices || img->num_bos || img->num_vmas ||
		    img->num_pages || img->priv_size)
			return "a file without a process of its own has content";
		return NULL;
	}
	if (!img->num_devices)
		return "no GPU is listed";
	fault = devices_fault(img);
	if (!fault)
		fault = bos_fault(img);
	if (!fault)
		fault = vmas_fault(img);
	if (!fault)
		fault = content_fault(img);
	if (!fault)
		fault = priv_fault(img);
	return fault;
}
