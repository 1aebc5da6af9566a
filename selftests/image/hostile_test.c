// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads that carry a right checksum and lie: somebody made them so. Each
 * test changes one thing of a good image and wants it refused.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

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
LIE(chunk_codec, img.pages[0].chunks.v[0].codec = 2)
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
		TEST(chunk_length), TEST(chunk_stored),
		TEST(chunk_zero_stored), TEST(raw_bytes_huge),
		TEST(priv_short), TEST(priv_version), TEST(objects_huge),
		TEST(record_size), TEST(alias_with_content),
		TEST(no_gpu_with_content), TEST(amplification),
		TEST(mutations), TEST(cut_payloads), TEST(render_without_gpu),
	};

	sample_quiet();
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
