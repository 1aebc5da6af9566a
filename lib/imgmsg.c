// SPDX-License-Identifier: GPL-2.0-only
#include "imgmsg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpucr.pb-c.h"
#include "pbdecode.h"

#define DEVICE_NUMBERS(X) \
	X(user_gpu_id) X(local_gpu_id) X(render_minor) X(vendor_id) \
	X(device_id) X(gfx_target_version) X(simd_count) X(num_xcc) \
	X(location_id) X(domain) X(fw_version) X(sdma_fw_version) \
	X(capability) X(num_gws) X(caches_count) X(vram_bytes) X(unique_id) \
	X(hive_id) X(has_topology) X(node) X(mem_banks_count) \
	X(io_links_count) X(max_waves_per_simd) X(lds_size_in_kb) \
	X(gds_size_in_kb) X(wave_front_size) X(array_count) \
	X(simd_arrays_per_engine) X(cu_per_simd_array) X(simd_per_cu) \
	X(max_slots_scratch_cu) X(num_sdma_engines) \
	X(num_sdma_xgmi_engines) X(num_sdma_queues_per_engine) \
	X(num_cp_queues) X(vram_public)
#define LINK_NUMBERS(X) X(to) X(type) X(cpu) X(p2p)
#define BO_NUMBERS(X) X(addr) X(size) X(offset) X(alloc_flags) X(gpu_id)
#define VMA_NUMBERS(X) X(start) X(end) X(offset) X(kind) X(gpu_id) X(bo)
#define KFD_NUMBERS(X) \
	X(id) X(pid) X(num_objects) X(bo_record_size) X(alias_of) X(no_gpu) \
	X(time) X(read_us) X(copy_us)

#define COPY(f) to->f = from->f;

/* A device and what it points to. */
struct device_msg {
	Gpucr__Img__Device m;
	Gpucr__Img__Link links[GPUCR_IMG_MAX_LINKS];
	Gpucr__Img__Link *p[GPUCR_IMG_MAX_LINKS];
};

static void link_to_msg(Gpucr__Img__Link *to, const struct gpucr_img_link *from)
{
	gpucr__img__link__init(to);
	LINK_NUMBERS(COPY)
}

static void link_from_msg(struct gpucr_img_link *to,
			  const Gpucr__Img__Link *from)
{
	LINK_NUMBERS(COPY)
}

static void device_to_msg(struct device_msg *d,
			  const struct gpucr_img_device *from)
{
	Gpucr__Img__Device *to = &d->m;
	uint32_t i;

	gpucr__img__device__init(to);
	DEVICE_NUMBERS(COPY)
	to->name = (char *)from->name;
	for (i = 0; i < from->num_links; i++) {
		link_to_msg(&d->links[i], &from->links[i]);
		d->p[i] = &d->links[i];
	}
	to->links = d->p;
	to->n_links = from->num_links;
}

static int text_from_msg(char *to, size_t size, const char *from)
{
	if (strlen(from) >= size)
		return -EBADMSG;
	strcpy(to, from);
	return 0;
}

static int device_from_msg(struct gpucr_img_device *to,
			   const Gpucr__Img__Device *from)
{
	DEVICE_NUMBERS(COPY)
	if (from->n_links > GPUCR_IMG_MAX_LINKS)
		return -EBADMSG;
	for (; to->num_links < from->n_links; to->num_links++)
		link_from_msg(&to->links[to->num_links],
			      from->links[to->num_links]);
	return text_from_msg(to->name, sizeof(to->name), from->name);
}

static void bo_to_msg(Gpucr__Img__Bo *to, const struct gpucr_img_bo *from)
{
	gpucr__img__bo__init(to);
	BO_NUMBERS(COPY)
}

static void vma_to_msg(Gpucr__Img__Vma *to, const struct gpucr_img_vma *from)
{
	gpucr__img__vma__init(to);
	VMA_NUMBERS(COPY)
}

static int pages_to_msg(Gpucr__Img__Pages *to,
			const struct gpucr_img_pages *from)
{
	gpucr__img__pages__init(to);
	to->gpu_id = from->gpu_id;
	to->file = (char *)from->file;
	to->raw_bytes = from->chunks.raw_bytes;
	to->file_bytes = from->chunks.file_bytes;
	to->chunk_size = from->chunks.chunk_size;
	return gpucr_chunks_pack(&from->chunks, &to->chunks.data,
				 &to->chunks.len);
}

static int pages_from_msg(struct gpucr_img_pages *to,
			  const Gpucr__Img__Pages *from)
{
	int err;

	to->gpu_id = from->gpu_id;
	err = text_from_msg(to->file, sizeof(to->file), from->file);
	if (err)
		return err;
	to->chunks.raw_bytes = from->raw_bytes;
	to->chunks.file_bytes = from->file_bytes;
	to->chunks.chunk_size = from->chunk_size;
	return gpucr_chunks_unpack(&to->chunks, from->chunks.data,
				   from->chunks.len);
}

/* An array of messages and the array of pointers that protobuf-c wants. */
struct msg_array {
	char *v;
	void **p;
};

static int array_alloc(struct msg_array *a, size_t num, size_t size)
{
	size_t i;

	a->v = calloc(num + 1, size);
	a->p = calloc(num + 1, sizeof(*a->p));
	if (!a->v || !a->p)
		return -ENOMEM;
	for (i = 0; i < num; i++)
		a->p[i] = a->v + i * size;
	return 0;
}

static void array_free(struct msg_array *a)
{
	free(a->v);
	free(a->p);
}

struct kfd_msg {
	Gpucr__Img__Kfd m;
	struct msg_array devices, bos, vmas, pages;
};

static void kfd_msg_free(struct kfd_msg *k, const struct gpucr_img_kfd *img)
{
	size_t i;

	for (i = 0; k->pages.v && i < img->num_pages; i++)
		free(((Gpucr__Img__Pages *)k->pages.v)[i].chunks.data);
	array_free(&k->devices);
	array_free(&k->bos);
	array_free(&k->vmas);
	array_free(&k->pages);
}

static int kfd_msg_arrays(struct kfd_msg *k, const struct gpucr_img_kfd *img)
{
	size_t i;
	int err;

	if (array_alloc(&k->devices, img->num_devices,
			sizeof(struct device_msg)) ||
	    array_alloc(&k->bos, img->num_bos, sizeof(Gpucr__Img__Bo)) ||
	    array_alloc(&k->vmas, img->num_vmas, sizeof(Gpucr__Img__Vma)) ||
	    array_alloc(&k->pages, img->num_pages, sizeof(Gpucr__Img__Pages)))
		return -ENOMEM;
	for (i = 0; i < img->num_devices; i++)
		device_to_msg(k->devices.p[i], &img->devices[i]);
	for (i = 0; i < img->num_bos; i++)
		bo_to_msg(k->bos.p[i], &img->bos[i]);
	for (i = 0; i < img->num_vmas; i++)
		vma_to_msg(k->vmas.p[i], &img->vmas[i]);
	for (i = 0; i < img->num_pages; i++) {
		err = pages_to_msg(k->pages.p[i], &img->pages[i]);
		if (err)
			return err;
	}
	return 0;
}

static void kfd_msg_fields(Gpucr__Img__Kfd *to,
			   const struct gpucr_img_kfd *from)
{
	gpucr__img__kfd__init(to);
	KFD_NUMBERS(COPY)
	to->kernel_release = (char *)from->kernel_release;
	to->driver = (char *)from->driver;
	to->writer = (char *)from->writer;
	to->n_devices = from->num_devices;
	to->n_bos = from->num_bos;
	to->n_vmas = from->num_vmas;
	to->n_pages = from->num_pages;
	to->priv_data.data = from->priv;
	to->priv_data.len = from->priv_size;
}

int gpucr_imgmsg_pack_kfd(const struct gpucr_img_kfd *img, uint8_t **ret,
			  size_t *len)
{
	struct kfd_msg k = { 0 };
	int err;

	kfd_msg_fields(&k.m, img);
	err = kfd_msg_arrays(&k, img);
	if (!err) {
		k.m.devices = (Gpucr__Img__Device **)k.devices.p;
		k.m.bos = (Gpucr__Img__Bo **)k.bos.p;
		k.m.vmas = (Gpucr__Img__Vma **)k.vmas.p;
		k.m.pages = (Gpucr__Img__Pages **)k.pages.p;
		err = gpucr_pb_pack(&k.m.base, ret, len);
	}
	kfd_msg_free(&k, img);
	return err;
}

int gpucr_imgmsg_pack_render(const struct gpucr_img_render *img,
			     uint8_t **ret, size_t *len)
{
	Gpucr__Img__Render m;
	struct device_msg d;

	gpucr__img__render__init(&m);
	device_to_msg(&d, &img->device);
	m.id = img->id;
	m.device = &d.m;
	m.kfd_vm = img->kfd_vm;
	m.owner_pid = img->owner_pid;
	return gpucr_pb_pack(&m.base, ret, len);
}

static int kfd_arrays_from_msg(struct gpucr_img_kfd *to,
			       const Gpucr__Img__Kfd *from)
{
	if (from->n_devices > GPUCR_IMG_MAX_DEVICES)
		return -EBADMSG;
	to->devices = calloc(from->n_devices + 1, sizeof(*to->devices));
	to->bos = calloc(from->n_bos + 1, sizeof(*to->bos));
	to->vmas = calloc(from->n_vmas + 1, sizeof(*to->vmas));
	to->pages = calloc(from->n_pages + 1, sizeof(*to->pages));
	to->priv = malloc(from->priv_data.len + 1);
	if (!to->devices || !to->bos || !to->vmas || !to->pages || !to->priv)
		return -ENOMEM;
	to->priv_size = from->priv_data.len;
	if (to->priv_size)
		memcpy(to->priv, from->priv_data.data, to->priv_size);
	return 0;
}

static void bos_from_msg(struct gpucr_img_kfd *img, const Gpucr__Img__Kfd *m)
{
	for (; img->num_bos < m->n_bos; img->num_bos++) {
		struct gpucr_img_bo *to = &img->bos[img->num_bos];
		const Gpucr__Img__Bo *from = m->bos[img->num_bos];

		BO_NUMBERS(COPY)
	}
}

static void vmas_from_msg(struct gpucr_img_kfd *img, const Gpucr__Img__Kfd *m)
{
	for (; img->num_vmas < m->n_vmas; img->num_vmas++) {
		struct gpucr_img_vma *to = &img->vmas[img->num_vmas];
		const Gpucr__Img__Vma *from = m->vmas[img->num_vmas];

		VMA_NUMBERS(COPY)
	}
}

static int kfd_from_msg(struct gpucr_img_kfd *to, const Gpucr__Img__Kfd *from)
{
	int err;

	KFD_NUMBERS(COPY)
	if (text_from_msg(to->kernel_release, sizeof(to->kernel_release),
			  from->kernel_release) ||
	    text_from_msg(to->driver, sizeof(to->driver), from->driver) ||
	    text_from_msg(to->writer, sizeof(to->writer), from->writer))
		return -EBADMSG;
	err = kfd_arrays_from_msg(to, from);
	for (; !err && to->num_devices < from->n_devices; to->num_devices++)
		err = device_from_msg(&to->devices[to->num_devices],
				      from->devices[to->num_devices]);
	if (err)
		return err;
	bos_from_msg(to, from);
	vmas_from_msg(to, from);
	while (!err && to->num_pages < from->n_pages) {
		/* Counted first: what it allocated must be freed. */
		to->num_pages++;
		err = pages_from_msg(&to->pages[to->num_pages - 1],
				     from->pages[to->num_pages - 1]);
	}
	return err;
}

int gpucr_imgmsg_unpack_kfd(const uint8_t *payload, size_t len,
			    struct gpucr_img_kfd *img)
{
	const Gpucr__Img__Kfd *m;
	struct gpucr_pb pb;
	int err;

	m = gpucr_pb_unpack(&pb, &gpucr__img__kfd__descriptor, payload, len);
	if (!m)
		return -EBADMSG;
	err = kfd_from_msg(img, m);
	gpucr_pb_free(&pb);
	return err;
}

int gpucr_imgmsg_unpack_render(const uint8_t *payload, size_t len,
			       struct gpucr_img_render *img)
{
	const Gpucr__Img__Render *r;
	struct gpucr_pb pb;
	int err = -EBADMSG;

	memset(img, 0, sizeof(*img));
	r = gpucr_pb_unpack(&pb, &gpucr__img__render__descriptor, payload, len);
	if (!r)
		return -EBADMSG;
	if (r->device) {
		img->id = r->id;
		img->kfd_vm = r->kfd_vm;
		img->owner_pid = r->owner_pid;
		err = device_from_msg(&img->device, r->device);
	}
	gpucr_pb_free(&pb);
	return err;
}
