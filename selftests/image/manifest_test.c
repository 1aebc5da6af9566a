// SPDX-License-Identifier: GPL-2.0-only
/* Manifests: what is written is read; what is not whole is refused. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "imgformat.h"
#include "imgmsg.h"
#include "table.h"
#include "sample.h"

static int dir;

static int write_sample(uint8_t **file, size_t *len)
{
	struct gpucr_img_kfd img;
	int err;

	if (sample_kfd(&img))
		return -1;
	err = gpucr_img_kfd_write(dir, &img);
	gpucr_img_kfd_clear(&img);
	if (err)
		return err;
	*file = sample_read(dir, "gpucr-kfd-7.img", len);
	return *file ? 0 : -1;
}

static int same(const struct gpucr_img_kfd *a, const struct gpucr_img_kfd *b)
{
	size_t i;

	if (a->num_devices != b->num_devices || a->num_bos != b->num_bos ||
	    a->num_vmas != b->num_vmas || a->num_pages != b->num_pages ||
	    a->priv_size != b->priv_size || a->id != b->id ||
	    a->pid != b->pid || a->time != b->time ||
	    a->num_objects != b->num_objects ||
	    a->bo_record_size != b->bo_record_size ||
	    strcmp(a->kernel_release, b->kernel_release) ||
	    memcmp(a->devices, b->devices, sizeof(*a->devices) * 2) ||
	    memcmp(a->bos, b->bos, sizeof(*a->bos) * a->num_bos) ||
	    memcmp(a->priv, b->priv, a->priv_size))
		return 0;
	for (i = 0; i < a->num_vmas; i++) {
		if (a->vmas[i].start != b->vmas[i].start ||
		    a->vmas[i].offset != b->vmas[i].offset ||
		    a->vmas[i].bo != b->vmas[i].bo ||
		    a->vmas[i].kind != b->vmas[i].kind)
			return 0;
	}
	for (i = 0; i < a->num_pages; i++) {
		if (strcmp(a->pages[i].file, b->pages[i].file) ||
		    a->pages[i].chunks.num != b->pages[i].chunks.num ||
		    a->pages[i].chunks.v[0].xxh3 != b->pages[i].chunks.v[0].xxh3)
			return 0;
	}
	return 1;
}

static int round_trip(void)
{
	struct gpucr_img_kfd img, *back;

	CHECK(!sample_kfd(&img));
	CHECK(!gpucr_img_kfd_fault(&img));
	CHECK(!gpucr_img_kfd_write(dir, &img));
	CHECK(!gpucr_img_kfd_read(dir, 7, &back));
	CHECK(same(&img, back));
	gpucr_img_kfd_free(back);
	gpucr_img_kfd_clear(&img);
	return 0;
}

static int render_round_trip(void)
{
	struct gpucr_img_render r = { .id = 9, .kfd_vm = true }, back;

	sample_device(&r.device, 0x3333);
	CHECK(!gpucr_img_render_write(dir, &r));
	CHECK(!gpucr_img_render_read(dir, 9, &back));
	CHECK(back.id == 9 && back.kfd_vm);
	CHECK(!memcmp(&back.device, &r.device, sizeof(r.device)));
	return 0;
}

static int private_whatever_umask(void)
{
	mode_t old = umask(0777);
	struct stat st;
	uint8_t *file;
	size_t len;
	int err = write_sample(&file, &len);

	umask(old);
	CHECK(!err);
	free(file);
	CHECK(!fstatat(dir, "gpucr-kfd-7.img", &st, 0));
	CHECK((st.st_mode & 07777) == 0600);
	CHECK(sample_no_tmp(dir));
	return 0;
}

static int replaced_not_overwritten(void)
{
	struct stat st;
	uint8_t *file;
	char byte;
	size_t len;
	int fd;

	CHECK(!sample_write(dir, "gpucr-kfd-7.img", "old", 3));
	fd = openat(dir, "gpucr-kfd-7.img", O_RDONLY);
	CHECK(fd >= 0);
	CHECK(!write_sample(&file, &len));
	free(file);
	CHECK(!fstat(fd, &st) && st.st_size == 3 && !st.st_nlink);
	CHECK(read(fd, &byte, 1) == 1 && byte == 'o');
	close(fd);
	return 0;
}

/* A failed write leaves what was there, and nothing else. */
static int failed_write_leaves_old(void)
{
	struct gpucr_img_kfd img, *back;
	uint8_t *file;
	size_t len;
	int err;

	CHECK(!write_sample(&file, &len));
	free(file);
	CHECK(!sample_kfd(&img));
	/* A directory where the new file is to be made. */
	CHECK(!mkdirat(dir, "gpucr-kfd-7.img.tmp", 0700));
	err = gpucr_img_kfd_write(dir, &img);
	unlinkat(dir, "gpucr-kfd-7.img.tmp", AT_REMOVEDIR);
	gpucr_img_kfd_clear(&img);
	CHECK(err < 0);
	CHECK(!gpucr_img_kfd_read(dir, 7, &back));
	gpucr_img_kfd_free(back);
	return 0;
}

static int refused(const uint8_t *data, size_t len)
{
	struct gpucr_img_kfd *img;

	sample_errors();
	CHECK(!sample_write(dir, "gpucr-kfd-7.img", data, len));
	CHECK(gpucr_img_kfd_read(dir, 7, &img) < 0);
	/* Once, and with the file's name. */
	CHECK(sample_errors() == 1);
	CHECK(strstr(sample_last_error(), "gpucr-kfd-7.img"));
	return 0;
}

static int truncated_everywhere(void)
{
	uint8_t *file;
	size_t len, n;

	CHECK(!write_sample(&file, &len));
	for (n = 0; n < len; n++)
		CHECK(!refused(file, n));
	free(file);
	return 0;
}

static int every_bit_counts(void)
{
	uint8_t *file;
	size_t len, bit;

	CHECK(!write_sample(&file, &len));
	for (bit = 0; bit < len * 8; bit++) {
		file[bit / 8] ^= 1 << bit % 8;
		CHECK(!refused(file, len));
		file[bit / 8] ^= 1 << bit % 8;
	}
	free(file);
	return 0;
}

static int longer_than_it_says(void)
{
	uint8_t *file;
	size_t len;

	CHECK(!write_sample(&file, &len));
	file[len] = 0;
	CHECK(!refused(file, len + 1));
	free(file);
	return 0;
}

static int of_another_id(void)
{
	struct gpucr_img_kfd *img;
	uint8_t *file;
	size_t len;

	CHECK(!write_sample(&file, &len));
	CHECK(!sample_write(dir, "gpucr-kfd-8.img", file, len));
	CHECK(gpucr_img_kfd_read(dir, 8, &img) == -EBADMSG);
	unlinkat(dir, "gpucr-kfd-8.img", 0);
	free(file);
	return 0;
}

static int of_another_kind(void)
{
	struct gpucr_img_render r;
	uint8_t *file;
	size_t len;

	CHECK(!write_sample(&file, &len));
	CHECK(!sample_write(dir, "gpucr-renderD-7.img", file, len));
	CHECK(gpucr_img_render_read(dir, 7, &r) == -EBADMSG);
	unlinkat(dir, "gpucr-renderD-7.img", 0);
	free(file);
	return 0;
}

static int newer_format(void)
{
	struct gpucr_img_kfd *img;
	uint8_t *file;
	size_t len;

	CHECK(!write_sample(&file, &len));
	file[8] = 2;
	CHECK(!sample_write(dir, "gpucr-kfd-7.img", file, len));
	CHECK(gpucr_img_kfd_read(dir, 7, &img) == -EPROTONOSUPPORT);
	free(file);
	return 0;
}

static int absent_is_told_apart(void)
{
	struct gpucr_img_kfd *img;

	sample_errors();
	CHECK(gpucr_img_kfd_read(dir, 4000, &img) == -ENOENT);
	CHECK(!sample_errors());
	return 0;
}

static int lists_ids(void)
{
	uint32_t *ids;
	uint8_t *file;
	size_t len, num;

	CHECK(!write_sample(&file, &len));
	free(file);
	CHECK(!sample_write(dir, "gpucr-kfd-12.img", "", 0));
	CHECK(!sample_write(dir, "gpucr-kfd-012.img", "", 0));
	CHECK(!sample_write(dir, "gpucr-kfd-12.img.tmp", "", 0));
	CHECK(!sample_write(dir, "gpucr-kfd-99999999999.img", "", 0));
	CHECK(!gpucr_image_list(dir, GPUCR_FORMAT_NATIVE, GPUCR_IMG_KFD,
				&ids, &num));
	CHECK(num == 2 && ids[0] == 7 && ids[1] == 12);
	free(ids);
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "what is written is read", round_trip },
		{ "a render node's too", render_round_trip },
		{ "mode 0600 whatever the umask", private_whatever_umask },
		{ "an existing file is replaced", replaced_not_overwritten },
		{ "a failed write leaves the old", failed_write_leaves_old },
		{ "truncated at each byte", truncated_everywhere },
		{ "each bit flipped", every_bit_counts },
		{ "a byte too many", longer_than_it_says },
		{ "image of another id", of_another_id },
		{ "image of another kind", of_another_kind },
		{ "newer format", newer_format },
		{ "absent is ENOENT, without a word", absent_is_told_apart },
		{ "ids are listed", lists_ids },
	};

	dir = sample_dir();
	if (dir < 0)
		return 1;
	sample_quiet();
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
