// SPDX-License-Identifier: GPL-2.0-only
#include "imgformat.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "criuimg.h"
#include "stream.h"
#include "streamlist.h"
#include "upstream.h"

static const char * const prefixes[][GPUCR_IMG_RENDER + 1] = {
	[GPUCR_FORMAT_NATIVE] = {
		[GPUCR_IMG_KFD] = "gpucr-kfd-",
		[GPUCR_IMG_RENDER] = "gpucr-renderD-",
	},
	[GPUCR_FORMAT_UPSTREAM] = {
		[GPUCR_IMG_KFD] = "amdgpu-kfd-",
		[GPUCR_IMG_RENDER] = "amdgpu-renderD-",
	},
};

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The id in <prefix><id>.img. */
static int name_id(const char *name, const char *prefix, uint32_t *ret)
{
	char again[GPUCR_IMG_NAME_MAX];
	unsigned long id;

	if (strncmp(name, prefix, strlen(prefix)) ||
	    !isdigit((unsigned char)name[strlen(prefix)]))
		return -EINVAL;
	id = strtoul(name + strlen(prefix), NULL, 10);
	snprintf(again, sizeof(again), "%s%lu.img", prefix, id);
	if (id > UINT32_MAX || strcmp(name, again))
		return -EINVAL;
	*ret = id;
	return 0;
}

static int append_id(uint32_t **list, size_t *num, uint32_t id)
{
	uint32_t *more;

	if (!(*num & (*num - 1))) {
		more = realloc(*list, (*num ? *num * 2 : 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		*list = more;
	}
	(*list)[(*num)++] = id;
	return 0;
}

static int list_dir(int dir, const char *prefix, uint32_t **ret, size_t *num)
{
	struct dirent *de;
	int err = 0, fd;
	uint32_t id;
	DIR *d;

	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		err = -errno;
		close(fd);
		return err;
	}
	while (!err && (de = readdir(d))) {
		if (!name_id(de->d_name, prefix, &id))
			err = append_id(ret, num, id);
	}
	closedir(d);
	return err;
}

static int list_stream(const char *prefix, uint32_t **ret, size_t *num)
{
	const char *name;
	uint32_t id;
	size_t i;
	int err = 0;

	for (i = 0; !err && (name = gpucr_streamlist_name(i)); i++) {
		if (!name_id(name, prefix, &id))
			err = append_id(ret, num, id);
	}
	return err;
}

int gpucr_image_list(int dir, enum gpucr_img_format format,
		     enum gpucr_img_kind kind, uint32_t **ret, size_t *num)
{
	const char *prefix = prefixes[format][kind];
	int err;

	*ret = NULL;
	*num = 0;
	err = gpucr_stream_on() ? list_stream(prefix, ret, num) :
				  list_dir(dir, prefix, ret, num);
	if (err) {
		free(*ret);
		*ret = NULL;
		return err;
	}
	if (*num)
		qsort(*ret, *num, sizeof(**ret), compare_ids);
	return 0;
}

static bool has_files(int dir, enum gpucr_img_format format)
{
	size_t kfds = 0, renders = 0;
	uint32_t *ids;

	if (!gpucr_image_list(dir, format, GPUCR_IMG_KFD, &ids, &kfds))
		free(ids);
	if (!gpucr_image_list(dir, format, GPUCR_IMG_RENDER, &ids, &renders))
		free(ids);
	return kfds || renders;
}

enum gpucr_img_format gpucr_image_format(int dir)
{
	struct gpucr_criuimg c;
	size_t i;
	int err;

	/* Upstream's is not streamed, and CRIU has read the inventory. */
	if (gpucr_stream_on())
		return GPUCR_FORMAT_NATIVE;
	err = gpucr_criuimg_read_plugins(dir, &c);
	for (i = 0; !err && i < c.num_plugins; i++) {
		if (!strcmp(c.plugins[i], GPUCR_ENTRY_NATIVE))
			return GPUCR_FORMAT_NATIVE;
		if (!strcmp(c.plugins[i], GPUCR_ENTRY_UPSTREAM))
			return GPUCR_FORMAT_UPSTREAM;
	}
	return !has_files(dir, GPUCR_FORMAT_NATIVE) &&
	       has_files(dir, GPUCR_FORMAT_UPSTREAM) ?
	       GPUCR_FORMAT_UPSTREAM : GPUCR_FORMAT_NATIVE;
}

int gpucr_image_kfd_read(int dir, enum gpucr_img_format format, uint32_t id,
			 struct gpucr_img_kfd **ret)
{
	return format == GPUCR_FORMAT_UPSTREAM ?
	       gpucr_up_kfd_read(dir, id, ret) :
	       gpucr_img_kfd_read(dir, id, ret);
}

int gpucr_image_render_read(int dir, enum gpucr_img_format format,
			    uint32_t id, struct gpucr_img_render *ret)
{
	return format == GPUCR_FORMAT_UPSTREAM ?
	       gpucr_up_render_read(dir, id, ret) :
	       gpucr_img_render_read(dir, id, ret);
}

void gpucr_image_kfd_name(char name[GPUCR_IMG_NAME_MAX],
			  enum gpucr_img_format format, uint32_t id)
{
	snprintf(name, GPUCR_IMG_NAME_MAX, "%s%u.img",
		 prefixes[format][GPUCR_IMG_KFD], id);
}

void gpucr_image_render_name(char name[GPUCR_IMG_NAME_MAX],
			     enum gpucr_img_format format, uint32_t id)
{
	snprintf(name, GPUCR_IMG_NAME_MAX, "%s%u.img",
		 prefixes[format][GPUCR_IMG_RENDER], id);
}
