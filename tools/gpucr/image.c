// SPDX-License-Identifier: GPL-2.0-only
/* gpucr image: what is in an image directory, offline. */
#include <errno.h>
#include <string.h>

#include "args.h"
#include "fail.h"
#include "image.h"
#include "image_log.h"

static int open_set(const struct args *args, struct gpucr_imgset *set)
{
	const char *path = args->text[KEY_IMAGES];
	int err;

	image_log_begin();
	err = gpucr_imgset_open(path, set);
	if (!err)
		return EXIT_DONE;
	gpucr_imgset_close(set);
	if (err != -ENOENT || image_log_end())
		return image_log_fail(path, err);
	return fail(TOKEN_NO_IMAGE, ENOENT,
		    "%s: it has no image of GPU processes", path);
}

static int image_show(const struct args *args)
{
	const struct image_part *part = image_part(args->text[KEY_PART]);
	struct gpucr_imgset set;
	int status;

	if (!part)
		return fail(TOKEN_USAGE, 0, "\"%s\": not a part of an image",
			    args->text[KEY_PART]);
	status = open_set(args, &set);
	if (status)
		return status;
	part->rows(&set);
	image_log_end();
	gpucr_imgset_close(&set);
	return out_finish(part->columns);
}

static const struct out_column verify_columns[] = {
	{ "FILE", "file", out_text, 0 },
	{ "CHUNKS", "chunks", out_text, 0 },
	{ "STORED", "stored", out_size, 0 },
	{ "CONTENT", "content", out_size, 0 },
	{ "ZSTD", "zstd", out_size, OUT_VERBOSE },
	{ 0 }
};

static void verified_manifest(const char *name)
{
	struct json_object *row = out_row();

	out_add_str(row, "file", name);
	out_add_null(row, "chunks");
	out_add_null(row, "stored");
	out_add_null(row, "content");
	out_add_null(row, "zstd");
}

static void verified_pages(const struct gpucr_img_pages *p)
{
	struct gpucr_imgset_pages n = { 0 };
	struct json_object *row = out_row();

	gpucr_imgset_count(&p->chunks, &n);
	out_add_str(row, "file", p->file);
	out_add_u64(row, "chunks", n.chunks);
	out_add_u64(row, "stored", n.file_bytes);
	out_add_u64(row, "content", n.raw_bytes);
	out_add_u64(row, "zstd", n.zstd_bytes);
}

/* Everything is looked at, whatever is found, so that the count is right. */
static void verify(const struct gpucr_imgset *set)
{
	char name[GPUCR_IMG_NAME_MAX];
	size_t i, j;

	gpucr_imgset_missing(set);
	for (i = 0; i < set->num_kfds; i++) {
		gpucr_image_kfd_name(name, set->format, set->kfds[i]->id);
		verified_manifest(name);
		for (j = 0; j < set->kfds[i]->num_pages; j++) {
			gpucr_imgset_verify_pages(set,
						  &set->kfds[i]->pages[j]);
			verified_pages(&set->kfds[i]->pages[j]);
		}
	}
	for (i = 0; i < set->num_renders; i++) {
		gpucr_image_render_name(name, set->format,
					set->renders[i].id);
		verified_manifest(name);
	}
}

static int image_verify(const struct args *args)
{
	struct gpucr_imgset set;
	int status;

	status = open_set(args, &set);
	if (status)
		return status;
	verify(&set);
	gpucr_imgset_close(&set);
	if (image_log_end())
		return image_log_fail(args->text[KEY_IMAGES], -EBADMSG);
	return out_finish(verify_columns);
}

static int image_html(const struct args *args)
{
	struct gpucr_imgset set;
	int status;

	status = open_set(args, &set);
	if (status)
		return status;
	image_log_end();
	status = image_html_write(&set, args->text[KEY_IMAGES],
				  args->text[KEY_OUT]);
	gpucr_imgset_close(&set);
	return status;
}

static const struct command commands[] = {
	{ "show", KEY(KEY_IMAGES), KEY(KEY_PART), image_show },
	{ "verify", KEY(KEY_IMAGES), 0, image_verify },
	{ "html", KEY(KEY_IMAGES) | KEY(KEY_OUT), 0, image_html },
	{ 0 }
};

const struct object image_object = {
	"image", "what is in the images of a dump, and are they whole",
	commands,
};
