// SPDX-License-Identifier: GPL-2.0-only
#include "upstream.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gpucr_kfdpriv.h>

#include "criuimg.h"
#include "imgformat.h"
#include "kfd.h"
#include "kfdoffset.h"
#include "log.h"
#include "pbdecode.h"
#include "upstream.pb-c.h"

#define HEADER	8	/* length of what follows */

#define SAME_NODE(X) \
	X(node) X(vendor_id) X(device_id) X(simd_count) X(domain) \
	X(fw_version) X(sdma_fw_version) X(capability) X(num_gws) \
	X(caches_count) X(hive_id) X(mem_banks_count) X(io_links_count) \
	X(max_waves_per_simd) X(lds_size_in_kb) X(gds_size_in_kb) \
	X(wave_front_size) X(array_count) X(simd_arrays_per_engine) \
	X(cu_per_simd_array) X(simd_per_cu) X(max_slots_scratch_cu) \
	X(num_sdma_engines) X(num_sdma_xgmi_engines) \
	X(num_sdma_queues_per_engine) X(num_cp_queues) X(vram_public)

void gpucr_up_kfd_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id)
{
	snprintf(name, GPUCR_IMG_NAME_MAX, "amdgpu-kfd-%u.img", id);
}

void gpucr_up_render_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id)
{
	snprintf(name, GPUCR_IMG_NAME_MAX, "amdgpu-renderD-%u.img", id);
}

void gpucr_up_pages_name(char name[GPUCR_IMG_NAME_MAX], uint32_t id,
			 uint32_t gpu_id)
{
	snprintf(name, GPUCR_IMG_NAME_MAX, "amdgpu-pages-%u-%04x.img", id,
		 gpu_id);
}

static int bad(const char *name, const char *what)
{
	gpucr_err("%s: %s (image-damaged); restore another checkpoint", name,
		  what);
	return -EBADMSG;
}

static int read_payload(int fd, const char *name, uint8_t **ret, size_t *len)
{
	struct stat st;
	uint64_t size;
	int err;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return bad(name, "not a regular file");
	if (st.st_size < HEADER)
		return bad(name, "shorter than its header");
	err = gpucr_pread_all(fd, &size, sizeof(size), 0);
	if (err)
		return err;
	size = le64toh(size);
	/* An older file that was longer may have been written over. */
	if (size > (uint64_t)st.st_size - HEADER || size > GPUCR_IMG_MAX)
		return bad(name, "its length is not the one it states");
	*ret = malloc(size + 1);
	if (!*ret)
		return -ENOMEM;
	*len = size;
	err = gpucr_pread_all(fd, *ret, size, HEADER);
	if (err)
		free(*ret);
	return err;
}

/* -ENOENT, not logged, where there is none. */
static int read_file(int dir, const char *name, uint8_t **ret, size_t *len)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err = fd < 0 ? -errno : 0;

	if (err == -ENOENT)
		return err;
	if (!err) {
		err = read_payload(fd, name, ret, len);
		close(fd);
	}
	if (err && err != -EBADMSG)
		gpucr_err("%s: cannot be read: %s (io-error)", name,
			  strerror(-err));
	return err;
}

static bool is_cpu(const Gpucr__Up__Process *p, uint32_t node)
{
	size_t i;

	for (i = 0; i < p->n_nodes; i++) {
		if (p->nodes[i]->node == node)
			return !p->nodes[i]->gpu_id;
	}
	return false;
}

static int device_from(struct gpucr_img_device *to, const Gpucr__Up__Process *p,
		       const Gpucr__Up__Node *from)
{
	size_t i;

	if (from->n_links > GPUCR_IMG_MAX_LINKS)
		return -EBADMSG;
#define COPY(f) to->f = from->f;
	SAME_NODE(COPY)
#undef COPY
	/* The id here is not told; the first one it had will do. */
	to->user_gpu_id = from->gpu_id;
	to->local_gpu_id = from->gpu_id;
	to->render_minor = from->drm_render_minor;
	to->vram_bytes = from->vram_size;
	to->has_topology = true;
	to->upstream = true;
	for (i = 0; i < from->n_links; i++) {
		to->links[to->num_links++] = (struct gpucr_img_link){
			.to = from->links[i]->to,
			.type = from->links[i]->type,
			.cpu = is_cpu(p, from->links[i]->to),
		};
	}
	return 0;
}

static int devices_from(struct gpucr_img_kfd *img, const Gpucr__Up__Process *p)
{
	size_t i;
	int err = 0;

	if (p->n_nodes > 2 * GPUCR_IMG_MAX_DEVICES)
		return -EBADMSG;
	img->devices = calloc(p->n_nodes + 1, sizeof(*img->devices));
	if (!img->devices)
		return -ENOMEM;
	for (i = 0; i < p->n_nodes && !err; i++) {
		if (!p->nodes[i]->gpu_id)
			continue;
		err = device_from(&img->devices[img->num_devices], p,
				  p->nodes[i]);
		img->num_devices += !err;
	}
	return err;
}

static int bos_from(struct gpucr_img_kfd *img, const Gpucr__Up__Process *p)
{
	size_t i;

	img->bos = calloc(p->n_bos + 1, sizeof(*img->bos));
	if (!img->bos)
		return -ENOMEM;
	for (i = 0; i < p->n_bos; i++) {
		const Gpucr__Up__Bo *b = p->bos[i];

		img->bos[i] = (struct gpucr_img_bo){
			.addr = b->addr, .size = b->size, .offset = b->offset,
			.alloc_flags = b->alloc_flags, .gpu_id = b->gpu_id,
		};
	}
	img->num_bos = p->n_bos;
	return 0;
}

static int priv_from(struct gpucr_img_kfd *img, const Gpucr__Up__Process *p)
{
	struct gpucr_kfdpriv priv = {
		.data = p->priv_data.data,
		.size = p->priv_data.len,
		.num_devices = img->num_devices,
		.num_bos = img->num_bos,
		.num_objects = p->num_of_objects,
	};

	if (gpucr_kfdpriv_open(&priv, 0))
		return -EBADMSG;
	img->bo_record_size = priv.bo_size;
	img->num_objects = p->num_of_objects;
	img->priv = malloc(p->priv_data.len + 1);
	if (!img->priv)
		return -ENOMEM;
	if (p->priv_data.len)
		memcpy(img->priv, p->priv_data.data, p->priv_data.len);
	img->priv_size = p->priv_data.len;
	return 0;
}

int gpucr_up_kfd_parse(const uint8_t *payload, size_t len,
		       struct gpucr_img_kfd *img)
{
	const Gpucr__Up__Process *p;
	struct gpucr_pb pb;
	int err;

	memset(img, 0, sizeof(*img));
	p = gpucr_pb_unpack(&pb, &gpucr__up__process__descriptor, payload, len);
	if (!p)
		return -EBADMSG;
	img->upstream = true;
	img->pid = p->pid;
	strcpy(img->writer, "upstream's plugin");
	err = devices_from(img, p);
	if (!err)
		err = bos_from(img, p);
	if (!err)
		err = priv_from(img, p);
	gpucr_pb_free(&pb);
	if (err)
		gpucr_img_kfd_clear(img);
	return err;
}

/* Chunks of a file that has no index: one after the other, nothing to check. */
static int chunks_of(struct gpucr_chunks *c, uint64_t bytes)
{
	size_t i;

	c->raw_bytes = bytes;
	c->file_bytes = bytes + HEADER;
	c->chunk_size = GPUCR_CHUNK_SIZE;
	c->unchecked = true;
	c->num = (bytes + GPUCR_CHUNK_SIZE - 1) / GPUCR_CHUNK_SIZE;
	c->v = calloc(c->num + 1, sizeof(*c->v));
	if (!c->v)
		return -ENOMEM;
	for (i = 0; i < c->num; i++) {
		uint64_t at = (uint64_t)i * GPUCR_CHUNK_SIZE;
		uint64_t left = bytes - at;

		c->v[i].offset = at + HEADER;
		c->v[i].raw_len = left < GPUCR_CHUNK_SIZE ? left :
							    GPUCR_CHUNK_SIZE;
		c->v[i].stored_len = c->v[i].raw_len;
	}
	return 0;
}

static bool is_there(int dir, const char *name, uint64_t file_bytes)
{
	struct stat st;

	return !fstatat(dir, name, &st, 0) && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == file_bytes;
}

/* The length of the file bounds what is allocated for its index. */
static int pages_from(int dir, struct gpucr_img_kfd *img)
{
	size_t i;
	int err;

	img->pages = calloc(img->num_devices + 1, sizeof(*img->pages));
	if (!img->pages)
		return -ENOMEM;
	for (i = 0; i < img->num_devices; i++) {
		struct gpucr_img_pages *p = &img->pages[img->num_pages];
		uint64_t bytes;

		p->gpu_id = img->devices[i].user_gpu_id;
		bytes = gpucr_img_content_bytes(img, p->gpu_id);
		if (!bytes)
			continue;
		gpucr_up_pages_name(p->file, img->id, p->gpu_id);
		if (!is_there(dir, p->file, bytes + HEADER)) {
			gpucr_err("%s: it is missing, or not %llu bytes long (image-damaged); restore another checkpoint",
				  p->file, (unsigned long long)bytes + HEADER);
			return -EBADMSG;
		}
		img->num_pages++;
		err = chunks_of(&p->chunks, bytes);
		if (err)
			return err;
	}
	return 0;
}

/* The BO that a mapping shows: at its own address, as upstream wants it. */
static const struct gpucr_img_bo *find_bo(const struct gpucr_img_kfd *img,
					  const struct gpucr_criuimg_map *m)
{
	size_t i;

	for (i = 0; i < img->num_bos; i++) {
		if (img->bos[i].addr == m->start &&
		    img->bos[i].offset == m->offset)
			return &img->bos[i];
	}
	return NULL;
}

static bool vma_from(const struct gpucr_img_kfd *img,
		     const struct gpucr_criuimg_map *m, struct gpucr_img_vma *v)
{
	const struct gpucr_img_bo *bo = find_bo(img, m);

	*v = (struct gpucr_img_vma){
		.start = m->start, .end = m->end, .offset = m->offset,
		.bo = GPUCR_IMG_NO_BO,
	};
	if (bo && gpucr_kfd_bo_has_content(bo->alloc_flags)) {
		v->kind = GPUCR_IMG_VMA_RENDER;
		v->bo = bo - img->bos;
		v->gpu_id = bo->gpu_id;
	} else if (!gpucr_kfd_offset_has_gpu(m->offset)) {
		v->kind = GPUCR_IMG_VMA_KFD_EVENTS;
	} else {
		v->gpu_id = bo ? bo->gpu_id : gpucr_kfd_offset_gpu(m->offset);
		/* Else it is none of KFD's, and upstream would leave it. */
		if (gpucr_img_find_device(img, v->gpu_id))
			v->kind = GPUCR_IMG_VMA_KFD_GPU;
	}
	return v->kind;
}

static int vmas_from(int dir, struct gpucr_img_kfd *img)
{
	struct gpucr_criuimg_map *maps;
	size_t i, num;
	int err;

	err = gpucr_criuimg_maps(dir, img->pid, &maps, &num);
	if (err)
		return err;
	img->vmas = calloc(num + 1, sizeof(*img->vmas));
	for (i = 0; img->vmas && i < num; i++)
		img->num_vmas += vma_from(img, &maps[i],
					  &img->vmas[img->num_vmas]);
	free(maps);
	return img->vmas ? 0 : -ENOMEM;
}

static int kfd_from_file(int dir, uint32_t id, const char *name,
			 struct gpucr_img_kfd *img)
{
	const char *fault;
	uint8_t *payload;
	size_t len;
	int err;

	err = read_file(dir, name, &payload, &len);
	if (err)
		return err;
	err = gpucr_up_kfd_parse(payload, len, img);
	free(payload);
	if (err)
		return err == -ENOMEM ? err : bad(name, "it cannot be decoded");
	img->id = id;
	err = pages_from(dir, img);
	if (!err)
		err = vmas_from(dir, img);
	if (err)
		return err;
	fault = gpucr_img_kfd_fault(img);
	return fault ? bad(name, fault) : 0;
}

int gpucr_up_kfd_read(int dir, uint32_t id, struct gpucr_img_kfd **ret)
{
	struct gpucr_img_kfd *img = calloc(1, sizeof(*img));
	char name[GPUCR_IMG_NAME_MAX];
	int err;

	if (!img)
		return -ENOMEM;
	gpucr_up_kfd_name(name, id);
	err = kfd_from_file(dir, id, name, img);
	if (err)
		gpucr_img_kfd_free(img);
	else
		*ret = img;
	return err;
}

static bool has_open(const struct gpucr_criuimg *c, uint32_t pid, uint32_t id)
{
	size_t i;

	for (i = 0; i < c->num_fds; i++) {
		if (c->fds[i].pid == pid && c->fds[i].id == id)
			return true;
	}
	return false;
}

/*
 * Of which process is it? Upstream gives a process one file for each GPU, so
 * whatever it has open is the one whose address space KFD uses.
 */
static int find_device(int dir, struct gpucr_img_render *r)
{
	uint32_t *ids, gpu_id = r->device.user_gpu_id;
	struct gpucr_criuimg c;
	bool found = false;
	size_t i, num = 0;
	int err;

	err = gpucr_criuimg_read(dir, &c);
	if (!err)
		err = gpucr_image_list(dir, GPUCR_FORMAT_UPSTREAM,
				       GPUCR_IMG_KFD, &ids, &num);
	for (i = 0; i < num && !err && !r->kfd_vm; i++) {
		const struct gpucr_img_device *d;
		struct gpucr_img_kfd *k;

		err = gpucr_up_kfd_read(dir, ids[i], &k);
		if (err)
			break;
		d = gpucr_img_find_device(k, gpu_id);
		if (d) {
			found = true;
			r->device = *d;
			r->kfd_vm = has_open(&c, k->pid, r->id);
			r->owner_pid = r->kfd_vm ? k->pid : 0;
		}
		gpucr_img_kfd_free(k);
	}
	if (num)
		free(ids);
	gpucr_criuimg_clear(&c);
	return err ? err : found ? 0 : -ENODEV;
}

int gpucr_up_render_read(int dir, uint32_t id, struct gpucr_img_render *ret)
{
	const Gpucr__Up__RenderNode *m;
	char name[GPUCR_IMG_NAME_MAX];
	struct gpucr_pb pb;
	uint8_t *payload;
	size_t len;
	int err;

	memset(ret, 0, sizeof(*ret));
	gpucr_up_render_name(name, id);
	err = read_file(dir, name, &payload, &len);
	if (err)
		return err;
	m = gpucr_pb_unpack(&pb, &gpucr__up__render_node__descriptor, payload,
			    len);
	ret->id = id;
	ret->device.user_gpu_id = m ? m->gpu_id : 0;
	gpucr_pb_free(&pb);
	free(payload);
	if (!ret->device.user_gpu_id)
		return bad(name, "it names no GPU");
	err = find_device(dir, ret);
	return err == -ENODEV ? bad(name, "its GPU is in no other image") : err;
}
