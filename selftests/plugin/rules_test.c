// SPDX-License-Identifier: GPL-2.0-only
/*
 * How KFD's record of a BO is found out: by BTF of a module, made here in the
 * kernel's format, and by the data; what is done where they disagree; and what
 * the reader of BTF does with damaged ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpucr_kfdpriv.h>

#include "btf.h"
#include "kfd.h"
#include "kfdrules.h"
#include "log.h"

#include "../image/table.h"

#define BASE		1000	/* bytes of names that vmlinux has */
#define NAME		"kfd_criu_bo_priv_data"

struct blob {
	uint8_t data[4096];
	size_t len;
	size_t types;		/* bytes */
};

static char last_error[512];

static void to_last(enum gpucr_log_level level, const char *text)
{
	if (level == GPUCR_LOG_ERROR)
		snprintf(last_error, sizeof(last_error), "%s", text);
}

static void put(struct blob *b, const void *p, size_t n)
{
	memcpy(b->data + b->len, p, n);
	b->len += n;
}

static void put32(struct blob *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void type(struct blob *b, uint32_t name, uint32_t kind, uint32_t members,
		 uint32_t size, unsigned int more)
{
	put32(b, name);
	put32(b, kind << 24 | members);
	put32(b, size);
	while (more--)
		put32(b, 0);
}

/* Every kind, with the members' space, then a struct that is found by name. */
static void make(struct blob *b, uint32_t base, uint32_t size)
{
	static const char names[] = "\0other\0" NAME "x\0" NAME;
	const uint32_t wanted = base + sizeof("\0other\0" NAME "x") ;
	struct {
		uint16_t magic;
		uint8_t version, flags;
		uint32_t v[5];
	} h = { 0xeb9f, 1, 0, { sizeof(h) } };

	memset(b, 0, sizeof(*b));
	b->len = sizeof(h);
	type(b, base + 1, 1, 0, 4, 1);
	type(b, 0, 2, 0, 1, 0);
	type(b, 0, 3, 0, 0, 3);
	type(b, base + 7, 4, 2, 99, 6);		/* NAME "x" */
	type(b, wanted, 5, 1, 98, 3);		/* a union of that name */
	type(b, base + 1, 6, 3, 4, 6);
	type(b, wanted, 7, 0, 0, 0);
	type(b, wanted, 8, 0, 1, 0);
	type(b, 0, 9, 0, 1, 0);
	type(b, 0, 10, 0, 1, 0);
	type(b, 0, 11, 0, 1, 0);
	type(b, 1, 12, 1, 13, 0);		/* a function: no member */
	type(b, 0, 13, 2, 1, 4);
	type(b, 1, 14, 0, 1, 1);
	type(b, 1, 15, 1, 4, 3);
	type(b, 1, 16, 0, 4, 0);
	type(b, 1, 17, 0, 1, 1);
	type(b, 1, 18, 0, 1, 0);
	type(b, 1, 19, 1, 8, 3);
	type(b, wanted, 4, 3, size, 9);
	h.v[2] = b->len - sizeof(h);
	b->types = h.v[2];
	h.v[3] = h.v[2];
	h.v[4] = sizeof(names);
	put(b, names, sizeof(names));
	memcpy(b->data, &h, sizeof(h));
}

static int look(const struct blob *b, size_t len, uint32_t base, uint32_t *size)
{
	/* Of that length exactly, so that a byte too far is seen. */
	uint8_t *copy = malloc(len ? len : 1);
	int err;

	memcpy(copy, b->data, len);
	err = gpucr_btf_struct_size(copy, len, base, NAME, size);
	free(copy);
	return err;
}

static int found(void)
{
	struct blob b;
	uint32_t size = 0;

	make(&b, BASE, 272);
	CHECK(!look(&b, b.len, BASE, &size) && size == 272);
	make(&b, 0, 80);
	CHECK(!look(&b, b.len, 0, &size) && size == 80);
	/* With the wrong base its names are others. */
	CHECK(look(&b, b.len, BASE, &size) == -ENOENT);
	return 0;
}

static int damaged(void)
{
	struct blob b;
	uint32_t size;
	size_t i;

	make(&b, BASE, 272);
	for (i = 0; i < b.len; i++)
		CHECK(look(&b, i, BASE, &size) == -EBADMSG);
	for (i = 0; i < b.len; i++) {
		struct blob bad = b;

		bad.data[i] = 0xff;
		look(&bad, bad.len, BASE, &size);
	}
	b.data[2] = 2;
	CHECK(look(&b, b.len, BASE, &size) == -EPROTO);
	make(&b, BASE, 272);
	/* A kind that came later: what follows it cannot be read. */
	b.data[24 + 7] = 20;
	CHECK(look(&b, b.len, BASE, &size) == -EPROTO);
	return 0;
}

/* --- data and BTF ------------------------------------------------------------------ */

static uint8_t priv[4096];

static struct gpucr_kfd_state state(uint32_t bos, uint32_t record)
{
	struct gpucr_kfdpriv_process head = { .version = 1 };
	struct gpucr_kfdpriv_event event = { .type = GPUCR_KFDPRIV_EVENT };
	struct gpucr_kfd_state s = {
		.n = { .num_devices = 1, .num_bos = bos, .num_objects = 1 },
		.priv = priv,
	};
	size_t at = sizeof(head) + 8 + (size_t)bos * record;

	memset(priv, 0, sizeof(priv));
	memcpy(priv, &head, sizeof(head));
	memcpy(priv + at, &event, sizeof(event));
	s.n.priv_size = at + sizeof(event);
	return s;
}

static struct gpucr_kfd_rules rules(uint32_t record, enum gpucr_known known)
{
	struct gpucr_kfd_rules r = {
		.provider = "module", .bo_record = record, .bo_known = known,
	};

	return r;
}

static int by_data(void)
{
	struct gpucr_kfd_rules r = rules(0, GPUCR_KNOWN_NOT);
	struct gpucr_kfd_state s = state(3, 80);
	uint32_t size;

	CHECK(!gpucr_kfd_rules_match(&r, &s, &size) && size == 80);
	s = state(3, 272);
	CHECK(!gpucr_kfd_rules_match(&r, &s, &size) && size == 272);
	s = state(0, 0);
	CHECK(!gpucr_kfd_rules_match(&r, &s, &size) && size == 0);
	s = state(3, 144);
	CHECK(gpucr_kfd_rules_match(&r, &s, &size) == -EPROTO);
	CHECK(strstr(last_error, "(layout-unknown)") &&
	      strstr(last_error, "module"));
	return 0;
}

static int by_btf(void)
{
	struct gpucr_kfd_rules r = rules(272, GPUCR_KNOWN_BTF);
	struct gpucr_kfd_state s = state(3, 272);
	uint32_t size;

	CHECK(!gpucr_kfd_rules_match(&r, &s, &size) && size == 272);
	/* A kernel yet to come. */
	r.bo_record = 144;
	s = state(3, 144);
	CHECK(!gpucr_kfd_rules_match(&r, &s, &size) && size == 144);
	s = state(3, 80);
	CHECK(gpucr_kfd_rules_match(&r, &s, &size) == -EPROTO);
	CHECK(strstr(last_error, "(layout-mismatch)") &&
	      strstr(last_error, "144") && strstr(last_error, "80"));
	s = state(3, 160);
	CHECK(gpucr_kfd_rules_match(&r, &s, &size) == -EPROTO);
	CHECK(strstr(last_error, "(layout-unknown)"));
	/* What a dump saw before does not bind. */
	r = rules(272, GPUCR_KNOWN_SEEN);
	s = state(3, 80);
	CHECK(!gpucr_kfd_rules_match(&r, &s, &size) && size == 80);
	return 0;
}

/* One BO and one event behind 272 bytes, or a queue with an MQD behind 80. */
static int both_fit(void)
{
	struct gpucr_kfdpriv_queue q = { .type = GPUCR_KFDPRIV_QUEUE };
	struct gpucr_kfd_rules r = rules(0, GPUCR_KNOWN_NOT);
	struct gpucr_kfd_state s = state(1, 272);
	uint32_t size;

	q.mqd_size = 272 - 80 + sizeof(struct gpucr_kfdpriv_event) - sizeof(q);
	memcpy(priv + 16 + 80, &q, sizeof(q));
	CHECK(gpucr_kfd_rules_match(&r, &s, &size) == -EPROTO);
	CHECK(strstr(last_error, "(layout-unknown)"));
	r = rules(272, GPUCR_KNOWN_BTF);
	CHECK(!gpucr_kfd_rules_match(&r, &s, &size) && size == 272);
	r = rules(80, GPUCR_KNOWN_BTF);
	CHECK(!gpucr_kfd_rules_match(&r, &s, &size) && size == 80);
	return 0;
}

/* rules_test blob SIZE BASE: one on standard output, for a test in a guest */
static int print_blob(char **argv)
{
	struct blob b;

	make(&b, strtoul(argv[3], NULL, 10), strtoul(argv[2], NULL, 10));
	return fwrite(b.data, b.len, 1, stdout) == 1 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct ktap_test tests[] = {
		{ "a struct is found in BTF", found },
		{ "damaged BTF is refused, and read no further", damaged },
		{ "without BTF the data tell", by_data },
		{ "BTF tells, and the data must agree", by_btf },
		{ "where both sizes fit only BTF can tell", both_fit },
	};

	if (argc == 4 && !strcmp(argv[1], "blob"))
		return print_blob(argv);
	gpucr_log_set_sink(to_last);
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
