// SPDX-License-Identifier: GPL-2.0-only
#include "sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gpucr_kfdpriv.h>

#include "kfd.h"
#include "log.h"

static int errors;
static char last[512];

int sample_dir(void)
{
	const char *base = getenv("TMPDIR");
	char path[256];

	snprintf(path, sizeof(path), "%s/image.XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(path))
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY);
}

void sample_device(struct gpucr_img_device *d, uint32_t gpu_id)
{
	memset(d, 0, sizeof(*d));
	d->user_gpu_id = gpu_id;
	d->local_gpu_id = gpu_id + 1;
	d->render_minor = 128 + gpu_id % 10;
	d->vendor_id = 0x1002;
	d->device_id = 0x740f;
	d->gfx_target_version = 90010;
	d->simd_count = 416;
	d->num_xcc = 1;
	d->vram_bytes = UINT64_C(64) << 30;
	d->unique_id = UINT64_C(0xfedcba9876543210);
	strcpy(d->name, "aldebaran");
}

/* Records that the reader of KFD's data accepts: one event, no queue. */
static int sample_priv(struct gpucr_img_kfd *img)
{
	struct gpucr_kfdpriv_process process = { .version = 1 };
	struct gpucr_kfdpriv_event event = { .type = GPUCR_KFDPRIV_EVENT };
	size_t head;

	img->bo_record_size = GPUCR_KFDPRIV_BO_64;
	img->num_objects = 1;
	head = sizeof(process) + img->num_devices * 8 +
	       img->num_bos * img->bo_record_size;
	img->priv_size = head + sizeof(event);
	img->priv = calloc(1, img->priv_size);
	if (!img->priv)
		return -1;
	memcpy(img->priv, &process, sizeof(process));
	memcpy(img->priv + head, &event, sizeof(event));
	return 0;
}

static int sample_pages(struct gpucr_img_pages *p, uint32_t id,
			uint32_t gpu_id, uint64_t bytes)
{
	size_t i;

	p->gpu_id = gpu_id;
	gpucr_img_pages_name(p->file, id, gpu_id);
	p->chunks.chunk_size = GPUCR_CHUNK_SIZE;
	p->chunks.raw_bytes = bytes;
	p->chunks.num = (bytes - 1) / GPUCR_CHUNK_SIZE + 1;
	p->chunks.v = calloc(p->chunks.num, sizeof(*p->chunks.v));
	if (!p->chunks.v)
		return -1;
	for (i = 0; i < p->chunks.num; i++) {
		struct gpucr_chunk *k = &p->chunks.v[i];

		k->raw_len = bytes < GPUCR_CHUNK_SIZE ? bytes :
							GPUCR_CHUNK_SIZE;
		bytes -= k->raw_len;
		k->codec = i % 2 ? GPUCR_CODEC_ZERO : GPUCR_CODEC_NONE;
		if (k->codec == GPUCR_CODEC_ZERO)
			continue;
		k->offset = p->chunks.file_bytes;
		k->stored_len = k->raw_len;
		k->xxh3 = 0x1122334455667788 + i;
		p->chunks.file_bytes += k->stored_len;
	}
	return 0;
}

static void sample_bos(struct gpucr_img_kfd *img)
{
	size_t i;

	for (i = 0; i < img->num_bos; i++) {
		struct gpucr_img_bo *bo = &img->bos[i];

		bo->addr = 0x7f0000000000 + (i << 30);
		bo->size = (i + 1) << 20;
		bo->offset = 0x100000000 + (i << 30);
		bo->gpu_id = img->devices[i % 2].user_gpu_id;
		bo->alloc_flags = i == 5 ? KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL :
				  i == 4 ? KFD_IOC_ALLOC_MEM_FLAGS_USERPTR :
				  i % 3 ? KFD_IOC_ALLOC_MEM_FLAGS_GTT :
					  KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
	}
}

static void sample_vmas(struct gpucr_img_kfd *img)
{
	size_t i;

	for (i = 0; i < 4; i++) {
		struct gpucr_img_vma *v = &img->vmas[i];

		v->start = img->bos[i].addr;
		v->end = v->start + img->bos[i].size;
		v->offset = img->bos[i].offset;
		v->gpu_id = img->bos[i].gpu_id;
		v->kind = GPUCR_IMG_VMA_RENDER;
		v->bo = i;
	}
	img->vmas[4] = (struct gpucr_img_vma){
		.start = 0x7fff00000000, .end = 0x7fff00002000,
		.offset = UINT64_C(3) << 62, .gpu_id = img->bos[5].gpu_id,
		.kind = GPUCR_IMG_VMA_KFD_GPU, .bo = GPUCR_IMG_NO_BO,
	};
}

int sample_kfd(struct gpucr_img_kfd *img)
{
	size_t i;

	memset(img, 0, sizeof(*img));
	img->id = 7;
	img->pid = 4711;
	img->time = 1234567890;
	img->read_us = 20000;
	img->copy_us = 8000000;
	strcpy(img->kernel_release, "6.12.117+deb13-amd64");
	strcpy(img->writer, "gpucr test");
	img->num_devices = 2;
	img->num_bos = 6;
	img->num_vmas = 5;
	img->num_pages = 2;
	img->devices = calloc(2, sizeof(*img->devices));
	img->bos = calloc(6, sizeof(*img->bos));
	img->vmas = calloc(5, sizeof(*img->vmas));
	img->pages = calloc(2, sizeof(*img->pages));
	if (!img->devices || !img->bos || !img->vmas || !img->pages)
		return -1;
	sample_device(&img->devices[0], 0x1111);
	sample_device(&img->devices[1], 0x2222);
	sample_bos(img);
	sample_vmas(img);
	for (i = 0; i < 2; i++) {
		uint32_t gpu_id = img->devices[i].user_gpu_id;

		if (sample_pages(&img->pages[i], img->id, gpu_id,
				 gpucr_img_content_bytes(img, gpu_id)))
			return -1;
	}
	return sample_priv(img);
}

uint8_t *sample_read(int dir, const char *name, size_t *len)
{
	int fd = openat(dir, name, O_RDONLY);
	uint8_t *data;
	off_t size;

	if (fd < 0)
		return NULL;
	size = lseek(fd, 0, SEEK_END);
	data = malloc(size + 1);
	*len = size;
	if (data && pread(fd, data, size, 0) != size) {
		free(data);
		data = NULL;
	}
	close(fd);
	return data;
}

int sample_write(int dir, const char *name, const void *data, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, data, len);
	close(fd);
	return n == (ssize_t)len ? 0 : -1;
}

int sample_no_tmp(int dir)
{
	DIR *d = fdopendir(dup(dir));
	struct dirent *de;
	int ok = 1;

	if (!d)
		return 0;
	rewinddir(d);
	while ((de = readdir(d)))
		ok &= !strstr(de->d_name, ".tmp");
	closedir(d);
	return ok;
}

static void count(enum gpucr_log_level level, const char *text)
{
	if (level != GPUCR_LOG_ERROR)
		return;
	errors++;
	snprintf(last, sizeof(last), "%s", text);
}

void sample_quiet(void)
{
	gpucr_log_set_sink(count);
}

int sample_errors(void)
{
	int n = errors;

	errors = 0;
	return n;
}

const char *sample_last_error(void)
{
	return last;
}
