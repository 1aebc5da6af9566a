// SPDX-License-Identifier: GPL-2.0-only
/*
 * Indexes of page files: the head of the input is what the manifest says. The
 * rest is also a compressed chunk, of the length that the head tells.
 */
#include <string.h>

#include "fuzz.h"
#include "pages.h"

/* Each chunk of an index that is taken lies within stream and file. */
static void check(const struct gpucr_chunks *c)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < c->num; i++) {
		const struct gpucr_chunk *k = &c->v[i];

		HOLDS(k->raw_len && k->raw_len <= GPUCR_CHUNK_SIZE);
		HOLDS(k->stored_len <= c->file_bytes);
		HOLDS(!k->stored_len ||
		      k->offset <= c->file_bytes - k->stored_len);
		sum += k->raw_len;
	}
	HOLDS(sum == c->raw_bytes);
}

static void unpack(const uint8_t *data, size_t size, uint64_t want)
{
	static struct gpucr_unzip *u;
	size_t len = want % GPUCR_CHUNK_SIZE + 1;
	uint8_t *buf = malloc(len);

	if (!u)
		u = gpucr_unzip_open(GPUCR_CHUNK_SIZE);
	HOLDS(u && buf);
	/* A byte too many is seen by the sanitizer. */
	if (size <= GPUCR_CHUNK_SIZE) {
		memcpy(gpucr_unzip_input(u), data, size);
		gpucr_unzip_unpack(u, size, buf, len);
	}
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpucr_chunks c = { 0 };
	uint8_t *packed;
	size_t len;

	if (size < 20)
		return 0;
	memcpy(&c.raw_bytes, data, 8);
	memcpy(&c.file_bytes, data + 8, 8);
	memcpy(&c.chunk_size, data + 16, 4);
	unpack(data + 20, size - 20, c.raw_bytes);
	if (!gpucr_chunks_unpack(&c, data + 20, size - 20)) {
		if (!gpucr_chunks_fault(&c))
			check(&c);
		HOLDS(!gpucr_chunks_pack(&c, &packed, &len));
		HOLDS(len == size - 20);
		HOLDS(!memcmp(packed, data + 20, len));
		free(packed);
	}
	gpucr_chunks_clear(&c);
	return 0;
}
