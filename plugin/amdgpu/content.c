// SPDX-License-Identifier: GPL-2.0-only
#include "content.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "copy.h"
#include "log.h"
#include "pages.h"

/* The GPU's BOs that have content, in the order of the image. */
static int list_bos(const struct content_config *cfg,
		    const struct gpucr_kfd_state *s,
		    struct gpucr_copy_bo **ret, size_t *num, uint64_t *bytes)
{
	uint32_t i;

	*num = 0;
	*bytes = 0;
	*ret = calloc((size_t)s->n.num_bos + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (i = 0; i < s->n.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &s->bos[i];

		if (b->gpu_id != cfg->gpu_id ||
		    !gpucr_kfd_bo_has_content(b->alloc_flags))
			continue;
		(*ret)[(*num)++] = (struct gpucr_copy_bo){
			.dmabuf_fd = b->dmabuf_fd,
			.index = i,
			.size = b->size,
		};
		*bytes += b->size;
	}
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tell_rate(const struct content_config *cfg, const char *what,
		      size_t num, uint64_t bytes, uint64_t since_ms)
{
	gpucr_info("GPU 0x%04x: %s %zu BOs, %llu bytes in %llu ms",
		   cfg->gpu_id, what, num, (unsigned long long)bytes,
		   (unsigned long long)(now_ms() - since_ms));
}

static int open_copy(const struct content_config *cfg, struct gpucr_copy **ret)
{
	struct gpucr_copy_config c = {
		.drm_fd = cfg->drm_fd,
		.gpu_id = cfg->gpu_id,
		.deadline_ms = GPUCR_COPY_DEADLINE_MS,
	};

	gpucr_copy_size(&c, cfg->slots, cfg->slot_size, cfg->max_buffer);
	return gpucr_copy_open(&c, ret);
}

static int to_file(void *arg, uint64_t pos, void *buf, size_t len)
{
	(void)pos;
	return gpucr_pages_append(arg, buf, len);
}

static int from_file(void *arg, uint64_t pos, void *buf, size_t len)
{
	return gpucr_pages_read(arg, pos, buf, len);
}

static int dump_bos(const struct content_config *cfg,
		    const struct gpucr_copy_bo *bos, size_t num, uint64_t bytes,
		    struct gpucr_img_pages *ret)
{
	struct gpucr_pages_writer w;
	struct gpucr_copy *c;
	int err;

	err = open_copy(cfg, &c);
	if (err)
		return err;
	err = gpucr_pages_create(&w, cfg->dir, ret->file, bytes);
	if (!err)
		err = gpucr_copy_from_gpu(c, bos, num, to_file, &w);
	if (err)
		gpucr_pages_abort(&w);
	else
		err = gpucr_pages_commit(&w, &ret->chunks);
	gpucr_copy_close(c);
	return err;
}

int content_dump(const struct content_config *cfg,
		 const struct gpucr_kfd_state *s, struct gpucr_img_pages *ret)
{
	uint64_t bytes, start = now_ms();
	struct gpucr_copy_bo *bos;
	size_t num;
	int err;

	err = list_bos(cfg, s, &bos, &num, &bytes);
	if (!err && bytes)
		err = dump_bos(cfg, bos, num, bytes, ret);
	if (!err)
		tell_rate(cfg, "read", num, bytes, start);
	free(bos);
	return err;
}

int content_restore(const struct content_config *cfg,
		    const struct gpucr_kfd_state *s,
		    const struct gpucr_img_pages *pages)
{
	struct gpucr_pages_reader r;
	struct gpucr_copy_bo *bos;
	struct gpucr_copy *c;
	uint64_t bytes, start = now_ms();
	size_t num;
	int err;

	err = list_bos(cfg, s, &bos, &num, &bytes);
	if (err)
		return err;
	err = gpucr_pages_open(&r, cfg->dir, pages->file, &pages->chunks);
	if (err)
		goto out_bos;
	err = open_copy(cfg, &c);
	if (err)
		goto out_pages;
	err = gpucr_copy_to_gpu(c, bos, num, from_file, &r);
	gpucr_copy_close(c);
	if (!err)
		tell_rate(cfg, "filled", num, bytes, start);
out_pages:
	gpucr_pages_close(&r);
out_bos:
	free(bos);
	return err;
}
