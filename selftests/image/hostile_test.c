// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads that carry a right checksum and lie: somebody made them so. Each
 * test changes one thing of a good image and wants it refused.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gpucr_kfdpriv.h>

#include "imgmsg.h"
#include "kfd.h"
#include "table.h"
#include "sample.h"

static struct gpucr_img_kfd img;

/* Encode what is in img, decode it again: is it refused? */
static bool refused(void)
{
	struct gpucr_img_kfd *back = NULL;
	uint8_t *payload;
	size_t len;
	int err;

	if (gpucr_imgmsg_pack_kfd(&img, &payload, &len))
		return false;
	err = gpucr_img_kfd_parse("sample", payload, len, &back);
	free(payload);
	gpucr_img_kfd_free(back);
	return err == -EBADMSG;
}

#define LIE(name, change) \
static int name(void) \
{ \
	CHECK(!sample_kfd(&img)); \
	change; \
	CHECK(refused()); \
	gpucr_img_kfd_clear(&img); \
	return 0; \
}

static int good_is_taken(void)
{
	CHECK(!sample_kfd(&img));
	CHECK(!refused());
	gpucr_img_kfd_clear(&img);
	return 0;
}

/* The first chunk, as if it were compressed. */
static void zstd_chunk(uint64_t offset, uint32_t stored)
{
	struct gpucr_chunk *k = &img.pages[0].chunks.v[0];

	k->codec = GPUCR_CODEC_ZSTD;
	k->offset = offset;
	k->stored_len = stored;
}

static int good_zstd_is_taken(void)
{
	CHECK(!sample_kfd(&img));
	zstd_chunk(0, 1);
	CHECK(!refused());
	gpucr_img_kfd_clear(&img);
	return 0;
}

LIE(bo_size_zero, img.bos[0].size = 0)
LIE(bo_size_odd, img.bos[0].size = 4097)
LIE(bo_size_huge, img.bos[4].size = UINT64_MAX & ~UINT64_C(4095))
LIE(bo_unknown_gpu, img.bos[0].gpu_id = 5)
LIE(bo_more_content, img.bos[4].alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM)
LIE(device_twice, img.devices[1].user_gpu_id = img.devices[0].user_gpu_id)
LIE(device_no_id, img.devices[1].local_gpu_id = 0)
LIE(no_device, img.num_devices = 0)
LIE(vma_bo_out_of_range, img.vmas[0].bo = 6)
LIE(vma_bo_max, img.vmas[0].bo = UINT32_MAX)
LIE(vma_kind, img.vmas[0].kind = 9)
LIE(vma_offset, img.vmas[0].offset += 4096)
LIE(vma_too_long, img.vmas[0].end += 4096)
LIE(vma_backwards, img.vmas[0].end = img.vmas[0].start)
LIE(vma_order, img.vmas[1].start = 0; img.vmas[1].end = 4096)
LIE(vma_of_doorbell, img.vmas[3].bo = 5)
LIE(pages_path, strcpy(img.pages[0].file, "../../etc/shadow"))
LIE(pages_other_gpu, strcpy(img.pages[0].file, img.pages[1].file))
LIE(pages_twice, img.pages[1].gpu_id = img.pages[0].gpu_id)
LIE(pages_missing, gpucr_chunks_clear(&img.pages[--img.num_pages].chunks))
LIE(chunk_size_zero, img.pages[0].chunks.chunk_size = 0)
LIE(chunk_size_huge, img.pages[0].chunks.chunk_size = 1u << 31)
LIE(chunk_size_odd, img.pages[0].chunks.chunk_size = 3 << 12)
LIE(chunk_too_few, img.pages[0].chunks.num--)
LIE(chunk_outside, img.pages[0].chunks.v[0].offset = UINT64_MAX - 4095)
LIE(chunk_codec, img.pages[0].chunks.v[0].codec = 99)
LIE(zstd_not_shorter, img.pages[0].chunks.v[0].codec = GPUCR_CODEC_ZSTD)
LIE(zstd_nothing, zstd_chunk(0, 0))
LIE(zstd_outside, zstd_chunk(img.pages[0].chunks.file_bytes, 1))
LIE(zstd_far_outside, zstd_chunk(UINT64_MAX - 4095, 1))
LIE(zstd_not_aligned, zstd_chunk(512, 1))
LIE(chunk_length, img.pages[0].chunks.v[0].raw_len -= 4096)
LIE(chunk_stored, img.pages[0].chunks.v[0].stored_len = UINT32_MAX)
LIE(chunk_zero_stored, img.pages[0].chunks.v[1].stored_len = 4096)
LIE(raw_bytes_huge, img.pages[0].chunks.raw_bytes = UINT64_MAX)
LIE(priv_short, img.priv_size--)
LIE(priv_version, img.priv[0] = 2)
LIE(objects_huge, img.num_objects = UINT32_MAX)
LIE(record_size, img.bo_record_size = UINT32_MAX)
LIE(alias_with_content, img.alias_of = 3)
LIE(no_gpu_with_content, img.no_gpu = true)

/* The one object, as a queue whose tail would end far beyond the data. */
static void long_queue(uint32_t mqd, uint32_t stack)
{
	struct gpucr_kfdpriv_queue q = {
		.type = GPUCR_KFDPRIV_QUEUE, .mqd_size = mqd,
		.ctl_stack_size = stack,
	};
	size_t head = img.priv_size - sizeof(struct gpucr_kfdpriv_event);

	img.priv = realloc(img.priv, head + sizeof(q));
	img.priv_size = head + sizeof(q);
	memcpy(img.priv + head, &q, sizeof(q));
}

static void object_type(uint32_t type)
{
	memcpy(img.priv + img.priv_size - sizeof(struct gpucr_kfdpriv_event),
	       &type, sizeof(type));
}

LIE(queue_mqd_huge, long_queue(UINT32_MAX, 0))
LIE(queue_stack_huge, long_queue(0, UINT32_MAX))
LIE(queue_both_huge, long_queue(UINT32_MAX, UINT32_MAX))
LIE(queue_one_byte, long_queue(1, 0))
LIE(object_unknown, object_type(3))
LIE(object_svm, object_type(GPUCR_KFDPRIV_SVM))
LIE(objects_none, img.num_objects = 0)
LIE(record_size_other, img.bo_record_size = GPUCR_KFDPRIV_BO_16)
LIE(alias_of_itself, gpucr_img_kfd_clear(&img); img.id = img.alias_of = 3)

/* Many empty submessages in few bytes: memory must not follow. */
static int amplification(void)
{
	struct gpucr_img_kfd *back;
	size_t len = 1 << 20, i;
	uint8_t *p = malloc(len);

	CHECK(p);
	for (i = 0; i < len; i += 2) {
		p[i] = 11 << 3 | 2;	/* bos, length-delimited */
		p[i + 1] = 0;
	}
	CHECK(gpucr_img_kfd_parse("sample", p, len, &back) == -EBADMSG);
	free(p);
	return 0;
}

/* Every byte of a good payload set to each of some values: no crash. */
static int mutations(void)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct gpucr_img_kfd *back;
	uint8_t *payload;
	size_t len, i, v;

	CHECK(!sample_kfd(&img));
	CHECK(!gpucr_imgmsg_pack_kfd(&img, &payload, &len));
	for (i = 0; i < len; i++) {
		uint8_t old = payload[i];

		for (v = 0; v < sizeof(values); v++) {
			payload[i] = values[v];
			if (!gpucr_img_kfd_parse("sample", payload, len, &back))
				gpucr_img_kfd_free(back);
		}
		payload[i] = old;
	}
	free(payload);
	gpucr_img_kfd_clear(&img);
	return 0;
}

/* Cut anywhere, with the checksum made right again. */
static int cut_payloads(void)
{
	struct gpucr_img_kfd *back;
	uint8_t *payload;
	size_t len, i;

	CHECK(!sample_kfd(&img));
	/* The last fields, which older images do not have. */
	img.read_us = img.copy_us = 0;
	CHECK(!gpucr_imgmsg_pack_kfd(&img, &payload, &len));
	for (i = 0; i < len; i++)
		CHECK(gpucr_img_kfd_parse("sample", payload, i, &back) ==
		      -EBADMSG);
	free(payload);
	gpucr_img_kfd_clear(&img);
	return 0;
}

static int render_without_gpu(void)
{
	struct gpucr_img_render r;

	CHECK(gpucr_img_render_parse("sample", (const uint8_t *)"", 0, &r) ==
	      -EBADMSG);
	return 0;
}

#define TEST(f) { #f, f }

int main(void)
{
	static const struct ktap_test tests[] = {
		TEST(good_is_taken), TEST(bo_size_zero), TEST(bo_size_odd),
		TEST(bo_size_huge), TEST(bo_unknown_gpu),
		TEST(bo_more_content), TEST(device_twice), TEST(device_no_id),
		TEST(no_device), TEST(vma_bo_out_of_range), TEST(vma_bo_max),
		TEST(vma_kind), TEST(vma_offset), TEST(vma_too_long),
		TEST(vma_backwards), TEST(vma_order), TEST(vma_of_doorbell),
		TEST(pages_path), TEST(pages_other_gpu), TEST(pages_twice),
		TEST(pages_missing), TEST(chunk_size_zero),
		TEST(chunk_size_huge), TEST(chunk_size_odd),
		TEST(chunk_too_few), TEST(chunk_outside), TEST(chunk_codec),
		TEST(good_zstd_is_taken), TEST(zstd_not_shorter),
		TEST(zstd_nothing), TEST(zstd_outside),
		TEST(zstd_far_outside), TEST(zstd_not_aligned),
		TEST(chunk_length), TEST(chunk_stored),
		TEST(chunk_zero_stored), TEST(raw_bytes_huge),
		TEST(priv_short), TEST(priv_version), TEST(objects_huge),
		TEST(record_size), TEST(alias_with_content),
		TEST(no_gpu_with_content), TEST(queue_mqd_huge),
		TEST(queue_stack_huge), TEST(queue_both_huge),
		TEST(queue_one_byte), TEST(object_unknown), TEST(object_svm),
		TEST(objects_none), TEST(record_size_other),
		TEST(alias_of_itself),
		TEST(amplification),
		TEST(mutations), TEST(cut_payloads), TEST(render_without_gpu),
	};

	sample_quiet();
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
