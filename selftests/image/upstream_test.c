// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images in upstream's format: what is written for it is read as what it was;
 * what is missing or cut is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "criusample.h"
#include "imgset.h"
#include "kfdoffset.h"
#include "sample.h"
#include "table.h"
#include "upstream.h"

#define ID	7
#define RENDER	9

static int dir;
static char path[64];
static struct gpucr_node nodes[3];
static const struct gpucr_node *gpus[2];
static struct gpucr_link links[2][3];
static struct gpucr_topology topo = {
	.nodes = nodes, .num_nodes = 3, .gpus = gpus, .num_gpus = 2,
};

static void make_topology(const struct gpucr_img_kfd *img)
{
	size_t i;

	nodes[0].cpu_cores_count = 8;
	for (i = 0; i < 2; i++) {
		struct gpucr_node *n = &nodes[i + 1];
		const struct gpucr_img_device *d = &img->devices[i];

		n->node = (uint32_t)i + 1;
		n->gpu_id = d->local_gpu_id;
		n->drm_render_minor = d->render_minor;
		n->vendor_id = d->vendor_id;
		n->device_id = d->device_id;
		n->simd_count = d->simd_count;
		n->vram_size = d->vram_bytes;
		n->vram_public = 1;
		n->hive_id = UINT64_C(0x8000000000000001);
		n->io_links_count = 2;
		links[i][0] = (struct gpucr_link){ 0, GPUCR_LINK_PCIE, false };
		links[i][1] = (struct gpucr_link){ 2 - (uint32_t)i,
						   GPUCR_LINK_XGMI, false };
		links[i][2] = (struct gpucr_link){ 2 - (uint32_t)i,
						   GPUCR_LINK_PCIE, true };
		n->links = links[i];
		n->num_links = 3;
		gpus[i] = n;
	}
}

static int write_pages(const struct gpucr_img_kfd *img, uint32_t gpu_id)
{
	uint64_t pos, bytes = gpucr_img_content_bytes(img, gpu_id);
	char name[GPUCR_IMG_NAME_MAX];
	struct gpucr_pages_writer w;
	struct gpucr_chunks done;
	static uint8_t buf[GPUCR_CHUNK_SIZE];
	int err;

	gpucr_up_pages_name(name, ID, gpu_id);
	err = gpucr_pages_create(&w, dir, name, bytes);
	if (!err)
		err = gpucr_pages_set_plain(&w);
	for (pos = 0; !err && pos < bytes; pos += sizeof(buf)) {
		size_t n = bytes - pos < sizeof(buf) ? bytes - pos :
						       sizeof(buf);

		/* The second chunk is zeros: they are there all the same. */
		memset(buf, pos == sizeof(buf) ? 0 : (int)gpu_id, sizeof(buf));
		err = gpucr_pages_append(&w, buf, n);
	}
	if (err)
		return err;
	err = gpucr_pages_commit(&w, &done);
	gpucr_chunks_clear(&done);
	return err;
}

/* A set of images that is whole. */
static int make(struct gpucr_img_kfd *img)
{
	static const char * const plugins[] = { GPUCR_ENTRY_UPSTREAM, NULL };
	static const uint32_t ids[] = { ID, RENDER };
	struct gpucr_img_render r = { .id = RENDER };

	if (sample_kfd(img))
		return -1;
	/* The sample's doorbells name no GPU; KFD's do. */
	img->vmas[4].offset = gpucr_kfd_offset_set_gpu(img->vmas[4].offset,
						       img->vmas[4].gpu_id);
	make_topology(img);
	img->upstream = true;
	r.device = img->devices[1];
	if (write_pages(img, img->devices[0].user_gpu_id) ||
	    write_pages(img, img->devices[1].user_gpu_id) ||
	    gpucr_up_kfd_write(dir, img, &topo) ||
	    gpucr_up_render_write(dir, &r) ||
	    criusample_write(dir, plugins, ids, 2, img->pid) ||
	    criusample_mm(dir, img->pid, img->vmas, img->num_vmas))
		return -1;
	return 0;
}

static int same_bos(const struct gpucr_img_kfd *a,
		    const struct gpucr_img_kfd *b)
{
	size_t i;

	CHECK(a->num_bos == b->num_bos && a->num_vmas == b->num_vmas);
	CHECK(!memcmp(a->bos, b->bos, a->num_bos * sizeof(*a->bos)));
	for (i = 0; i < a->num_vmas; i++) {
		CHECK(a->vmas[i].start == b->vmas[i].start &&
		      a->vmas[i].end == b->vmas[i].end &&
		      a->vmas[i].offset == b->vmas[i].offset &&
		      a->vmas[i].kind == b->vmas[i].kind &&
		      a->vmas[i].gpu_id == b->vmas[i].gpu_id &&
		      a->vmas[i].bo == b->vmas[i].bo);
	}
	CHECK(a->priv_size == b->priv_size &&
	      !memcmp(a->priv, b->priv, a->priv_size));
	CHECK(a->bo_record_size == b->bo_record_size &&
	      a->num_objects == b->num_objects && a->pid == b->pid);
	return 0;
}

static int same_devices(const struct gpucr_img_kfd *a,
			const struct gpucr_img_kfd *b)
{
	size_t i;

	CHECK(b->num_devices == 2 && b->upstream);
	for (i = 0; i < 2; i++) {
		const struct gpucr_img_device *d = &b->devices[i];

		CHECK(d->user_gpu_id == a->devices[i].user_gpu_id);
		CHECK(d->local_gpu_id == d->user_gpu_id && d->upstream);
		CHECK(d->simd_count == a->devices[i].simd_count);
		CHECK(d->vram_bytes == a->devices[i].vram_bytes);
		CHECK(d->hive_id == UINT64_C(0x8000000000000001));
		CHECK(d->num_links == 2 && d->links[0].cpu &&
		      !d->links[1].cpu && d->links[1].to == 2 - i &&
		      d->links[1].type == GPUCR_LINK_XGMI);
	}
	return 0;
}

static int round_trip(void)
{
	struct gpucr_img_kfd img, *back;

	CHECK(!make(&img));
	CHECK(!gpucr_up_kfd_read(dir, ID, &back));
	CHECK(!same_bos(&img, back));
	CHECK(!same_devices(&img, back));
	CHECK(back->num_pages == 2 && back->pages[0].chunks.unchecked);
	gpucr_img_kfd_free(back);
	gpucr_img_kfd_clear(&img);
	return 0;
}

static int render_is_its_owners(void)
{
	struct gpucr_img_render r;
	struct gpucr_img_kfd img;

	CHECK(!make(&img));
	CHECK(!gpucr_up_render_read(dir, RENDER, &r));
	CHECK(r.kfd_vm && r.owner_pid == img.pid);
	CHECK(r.device.user_gpu_id == img.devices[1].user_gpu_id);
	CHECK(r.device.render_minor == img.devices[1].render_minor);
	gpucr_img_kfd_clear(&img);
	return 0;
}

static int content(void)
{
	struct gpucr_img_kfd img, *back;
	struct gpucr_imgset set;
	static uint8_t buf[GPUCR_CHUNK_SIZE];
	struct gpucr_pages_reader r = { .fd = -1 };

	CHECK(!make(&img));
	CHECK(!gpucr_up_kfd_read(dir, ID, &back));
	CHECK(!gpucr_pages_open(&r, dir, back->pages[0].file,
				&back->pages[0].chunks));
	CHECK(!gpucr_pages_read(&r, 0, buf, sizeof(buf)));
	CHECK(buf[0] == (img.devices[0].user_gpu_id & 0xff) &&
	      buf[sizeof(buf) - 1] == buf[0]);
	CHECK(!gpucr_pages_read(&r, sizeof(buf), buf, sizeof(buf)));
	CHECK(!buf[0] && !buf[sizeof(buf) - 1]);
	gpucr_pages_close(&r);
	gpucr_img_kfd_free(back);
	gpucr_img_kfd_clear(&img);
	CHECK(!gpucr_imgset_open(path, &set));
	CHECK(set.format == GPUCR_FORMAT_UPSTREAM);
	CHECK(set.num_kfds == 1 && set.num_renders == 1);
	CHECK(!gpucr_imgset_missing(&set));
	gpucr_imgset_close(&set);
	return 0;
}

static int without(const char *name)
{
	struct gpucr_img_kfd img, *back;
	int err;

	CHECK(!make(&img));
	gpucr_img_kfd_clear(&img);
	CHECK(!unlinkat(dir, name, 0));
	sample_errors();
	err = gpucr_up_kfd_read(dir, ID, &back);
	CHECK(err && err != -ENOENT && sample_errors() == 1);
	return 0;
}

static int missing(void)
{
	struct gpucr_img_kfd img, *back;

	CHECK(!without("mm-4711.img"));
	CHECK(strstr(sample_last_error(), "(image-incomplete)"));
	CHECK(!make(&img));
	gpucr_img_kfd_clear(&img);
	unlinkat(dir, "amdgpu-kfd-7.img", 0);
	sample_errors();
	CHECK(gpucr_up_kfd_read(dir, ID, &back) == -ENOENT);
	CHECK(!sample_errors());
	return 0;
}

static int pages_of_wrong_length(void)
{
	char name[GPUCR_IMG_NAME_MAX];
	struct gpucr_img_kfd img;
	int fd, by;

	for (by = -1; by <= 1; by += 2) {
		struct gpucr_img_kfd *back;

		CHECK(!make(&img));
		gpucr_up_pages_name(name, ID, img.devices[0].user_gpu_id);
		fd = openat(dir, name, O_WRONLY);
		CHECK(fd >= 0);
		CHECK(!ftruncate(fd, lseek(fd, 0, SEEK_END) + by));
		close(fd);
		CHECK(gpucr_up_kfd_read(dir, ID, &back) == -EBADMSG);
		CHECK(strstr(sample_last_error(), "(image-damaged)"));
		gpucr_img_kfd_clear(&img);
	}
	return 0;
}

/* Nothing is believed, whatever is cut; a longer file is an older one's. */
static int cut(void)
{
	struct gpucr_img_kfd img, *back;
	uint8_t *file;
	size_t len, i;

	CHECK(!make(&img));
	gpucr_img_kfd_clear(&img);
	file = sample_read(dir, "amdgpu-kfd-7.img", &len);
	CHECK(file);
	for (i = 0; i < len; i++) {
		CHECK(!sample_write(dir, "amdgpu-kfd-7.img", file, i));
		CHECK(gpucr_up_kfd_read(dir, ID, &back));
	}
	CHECK(!sample_write(dir, "amdgpu-kfd-7.img", file, len));
	CHECK(!gpucr_up_kfd_read(dir, ID, &back));
	gpucr_img_kfd_free(back);
	free(file);
	return 0;
}

/* There are no checksums: flipped bits must do no harm, more is not asked. */
static int flipped(void)
{
	struct gpucr_img_kfd img, *back;
	uint8_t *file;
	size_t len, i;

	CHECK(!make(&img));
	gpucr_img_kfd_clear(&img);
	file = sample_read(dir, "amdgpu-kfd-7.img", &len);
	CHECK(file);
	for (i = 0; i < len * 8; i++) {
		file[i / 8] ^= 1 << i % 8;
		CHECK(!sample_write(dir, "amdgpu-kfd-7.img", file, len));
		if (!gpucr_up_kfd_read(dir, ID, &back))
			gpucr_img_kfd_free(back);
		file[i / 8] ^= 1 << i % 8;
	}
	free(file);
	return 0;
}

static int not_told_in_it(void)
{
	struct gpucr_img_kfd img = { .id = ID, .no_gpu = true };

	CHECK(gpucr_up_kfd_write(dir, &img, &topo) == -EOPNOTSUPP);
	CHECK(strstr(sample_last_error(), "(format-limit)"));
	img.no_gpu = false;
	img.alias_of = 3;
	CHECK(gpucr_up_kfd_write(dir, &img, &topo) == -EOPNOTSUPP);
	return 0;
}

static const struct ktap_test tests[] = {
	{ "what is written is read", round_trip },
	{ "a render node is its owner's", render_is_its_owners },
	{ "contents, and the set as a whole", content },
	{ "what is missing", missing },
	{ "page files of another length", pages_of_wrong_length },
	{ "truncated at each byte", cut },
	{ "each bit flipped", flipped },
	{ "what the format cannot tell", not_told_in_it },
};

int main(void)
{
	dir = sample_dir();
	if (dir < 0)
		return 1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	sample_quiet();
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
