// SPDX-License-Identifier: GPL-2.0-only
#include "imgset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "criuwhole.h"
#include "log.h"

static int read_kfds(struct gpucr_imgset *set)
{
	uint32_t *ids;
	size_t num, i;
	int err;

	err = gpucr_image_list(set->dir, set->format, GPUCR_IMG_KFD, &ids,
			       &num);
	if (err)
		return err;
	set->kfds = calloc(num + 1, sizeof(*set->kfds));
	if (!set->kfds)
		err = -ENOMEM;
	for (i = 0; !err && i < num; i++) {
		err = gpucr_image_kfd_read(set->dir, set->format, ids[i],
					   &set->kfds[i]);
		set->num_kfds += !err;
	}
	free(ids);
	return err;
}

static int read_renders(struct gpucr_imgset *set)
{
	uint32_t *ids;
	size_t num, i;
	int err;

	err = gpucr_image_list(set->dir, set->format, GPUCR_IMG_RENDER, &ids,
			       &num);
	if (err)
		return err;
	set->renders = calloc(num + 1, sizeof(*set->renders));
	if (!set->renders)
		err = -ENOMEM;
	for (i = 0; !err && i < num; i++) {
		err = gpucr_image_render_read(set->dir, set->format, ids[i],
					      &set->renders[i]);
		set->num_renders += !err;
	}
	free(ids);
	return err;
}

int gpucr_imgset_open(const char *path, struct gpucr_imgset *set)
{
	int err;

	memset(set, 0, sizeof(*set));
	set->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (set->dir < 0) {
		err = -errno;
		gpucr_err("%s: cannot be opened: %s (io-error)", path,
			  strerror(-err));
		return err;
	}
	set->format = gpucr_image_format(set->dir);
	err = read_kfds(set);
	if (!err)
		err = read_renders(set);
	if (!err)
		err = gpucr_criuimg_read(set->dir, &set->criu);
	if (!err && !set->num_kfds && !set->num_renders)
		return -ENOENT;
	return err;
}

void gpucr_imgset_close(struct gpucr_imgset *set)
{
	size_t i;

	for (i = 0; i < set->num_kfds; i++)
		gpucr_img_kfd_free(set->kfds[i]);
	free(set->kfds);
	free(set->renders);
	gpucr_criuimg_clear(&set->criu);
	if (set->dir >= 0)
		close(set->dir);
	memset(set, 0, sizeof(*set));
	set->dir = -1;
}

const struct gpucr_img_kfd *gpucr_imgset_kfd(const struct gpucr_imgset *set,
					     uint32_t id)
{
	size_t i;

	for (i = 0; i < set->num_kfds; i++)
		if (set->kfds[i]->id == id)
			return set->kfds[i];
	return NULL;
}

const struct gpucr_img_render *
gpucr_imgset_render(const struct gpucr_imgset *set, uint32_t id)
{
	size_t i;

	for (i = 0; i < set->num_renders; i++)
		if (set->renders[i].id == id)
			return &set->renders[i];
	return NULL;
}

void gpucr_imgset_count(const struct gpucr_chunks *c,
			struct gpucr_imgset_pages *ret)
{
	size_t i;

	ret->raw_bytes += c->raw_bytes;
	ret->file_bytes += c->file_bytes;
	ret->chunks += c->num;
	for (i = 0; i < c->num; i++) {
		if (c->v[i].codec == GPUCR_CODEC_ZERO)
			ret->zero_bytes += c->v[i].raw_len;
		else if (c->v[i].codec == GPUCR_CODEC_ZSTD)
			ret->zstd_bytes += c->v[i].raw_len;
	}
}

long gpucr_imgset_verify_pages(const struct gpucr_imgset *set,
			       const struct gpucr_img_pages *pages)
{
	const struct gpucr_chunks *c = &pages->chunks;
	struct gpucr_pages_reader r;
	long wrong = 0;
	void *buf;
	size_t i;
	int err;

	/* The rules of the format bound the size. */
	buf = malloc(c->chunk_size);
	if (!buf)
		return -ENOMEM;
	err = gpucr_pages_open(&r, set->dir, pages->file, c);
	if (err) {
		free(buf);
		return err;
	}
	for (i = 0; i < c->num; i++)
		if (gpucr_pages_read(&r, (uint64_t)i * c->chunk_size, buf,
				     c->v[i].raw_len))
			wrong++;
	gpucr_pages_close(&r);
	free(buf);
	return wrong;
}

static bool listed(const struct gpucr_criuimg *c, uint32_t id)
{
	size_t i;

	for (i = 0; i < c->num_ext_ids; i++)
		if (c->ext_ids[i] == id)
			return true;
	return false;
}

/* May a file that is not ours be another plugin's? CRIU 3 does not tell. */
static bool others_possible(const struct gpucr_criuimg *c)
{
	size_t i;

	for (i = 0; i < c->num_plugins; i++)
		if (strcmp(c->plugins[i], GPUCR_ENTRY_NATIVE) &&
		    strcmp(c->plugins[i], GPUCR_ENTRY_UPSTREAM))
			return true;
	return false;
}

static long missing_manifests(const struct gpucr_imgset *set)
{
	const struct gpucr_criuimg *c = &set->criu;
	long missing = 0;
	size_t i;

	for (i = 0; i < c->num_ext_ids; i++) {
		if (gpucr_imgset_kfd(set, c->ext_ids[i]) ||
		    gpucr_imgset_render(set, c->ext_ids[i]))
			continue;
		if (others_possible(c))
			continue;
		gpucr_err("file %u: CRIU has dumped it, and it has no manifest (image-incomplete); restore another checkpoint",
			  c->ext_ids[i]);
		missing++;
	}
	return missing;
}

/* What an earlier dump left does no harm: CRIU does not ask for it. */
static void warn_if_stale(const struct gpucr_imgset *set, uint32_t id)
{
	if (set->criu.has_files && !listed(&set->criu, id))
		gpucr_warn("file %u: it has a manifest, and CRIU has not dumped it (image-stale)",
			   id);
}

long gpucr_imgset_missing(const struct gpucr_imgset *set)
{
	long missing = 0;
	size_t i;

	if (!set->criu.has_inventory) {
		gpucr_err("inventory.img: it is missing, so the dump has not ended well (image-incomplete); restore another checkpoint");
		missing++;
	}
	if (!set->criu.has_files) {
		gpucr_err("files.img: it is missing (image-incomplete); restore another checkpoint");
		missing++;
	}
	if (set->criu.has_inventory)
		missing += gpucr_criu_missing(set->dir);
	missing += missing_manifests(set);
	for (i = 0; i < set->num_kfds; i++) {
		uint32_t alias = set->kfds[i]->alias_of;

		warn_if_stale(set, set->kfds[i]->id);
		if (!alias || gpucr_imgset_kfd(set, alias))
			continue;
		gpucr_err("gpucr-kfd-%u.img: it refers to file %u, which has no manifest (image-incomplete); restore another checkpoint",
			  set->kfds[i]->id, alias);
		missing++;
	}
	for (i = 0; i < set->num_renders; i++)
		warn_if_stale(set, set->renders[i].id);
	return missing;
}
