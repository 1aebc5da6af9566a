// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader of KFD's private records: both sizes of BO records, objects of
 * all kinds, and data that lies. Runs natively, with sanitizers.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <gpucr_layout.h>

#include "../ktap.h"

#define DEVICES	2
#define BOS	3

static uint8_t *build(uint32_t bo_size, size_t *size)
{
	struct gpucr_kfdpriv_process process = { 1, 0 };
	struct gpucr_kfdpriv_queue q = {
		.type = GPUCR_KFDPRIV_QUEUE, .gpu_id = 77, .q_id = 4,
		.mqd_size = 37, .ctl_stack_size = 11,
	};
	struct gpucr_kfdpriv_event e = {
		.type = GPUCR_KFDPRIV_EVENT, .event_id = 9,
	};
	struct gpucr_kfdpriv_svm s = {
		.type = GPUCR_KFDPRIV_SVM, .start = 5, .size = 6,
	};
	struct gpucr_kfdpriv_attr a = { 3, 8 };
	size_t len = 0;
	uint8_t *p = calloc(1, 8192);
	uint32_t i, id;

	memcpy(p, &process, sizeof(process));
	len = sizeof(process) + DEVICES * sizeof(struct gpucr_kfdpriv_device);
	for (i = 0; i < BOS; i++) {
		uint64_t addr = 0x1000 * (i + 1);
		uint32_t handle = i + 100;

		memcpy(p + len, &addr, 8);
		memcpy(p + len + 8, &handle, 4);
		id = 1000 + i;
		memcpy(p + len + 12, &id, 4);
		len += bo_size;
	}
	memcpy(p + len, &q, sizeof(q));
	len += sizeof(q) + q.mqd_size + q.ctl_stack_size;
	memcpy(p + len, &e, sizeof(e));
	len += sizeof(e);
	memcpy(p + len, &s, sizeof(s));
	len += sizeof(s);
	for (i = 0; i < GPUCR_KFDPRIV_SVM_ATTRS + DEVICES; i++) {
		a.value = i;
		memcpy(p + len, &a, sizeof(a));
		len += sizeof(a);
	}
	*size = len;
	/* Exactly as long as it is, so that a sanitizer sees one byte too far. */
	return realloc(p, len);
}

static struct gpucr_kfdpriv reader(const uint8_t *data, size_t size)
{
	return (struct gpucr_kfdpriv) {
		.data = data, .size = size, .num_devices = DEVICES,
		.num_bos = BOS, .num_objects = 3,
	};
}

static void test_layout(uint32_t bo_size)
{
	size_t size;
	uint8_t *data = build(bo_size, &size);
	struct gpucr_kfdpriv p = reader(data, size);
	struct gpucr_kfdpriv_object o = { 0 };
	struct gpucr_kfdpriv_bo bo;
	struct gpucr_kfdpriv_queue q;
	struct gpucr_kfdpriv_event e;
	struct gpucr_kfdpriv_svm s;
	struct gpucr_kfdpriv_attr a;

	ktap_ok(!gpucr_kfdpriv_open(&p, 0) && p.bo_size == bo_size,
		"records of %u bytes are recognised", bo_size);
	ktap_ok(!gpucr_kfdpriv_bo(&p, 2, &bo) && bo.user_addr == 0x3000 &&
		bo.idr_handle == 102 && gpucr_kfdpriv_bo_gpu(&p, 2, 0) == 1002 &&
		!gpucr_kfdpriv_bo_gpu(&p, 2, 1) &&
		gpucr_kfdpriv_bo(&p, BOS, &bo) == -EINVAL,
		"BO records are read, and none beyond the last");
	ktap_ok(gpucr_kfdpriv_next(&p, &o) == 1 &&
		!gpucr_kfdpriv_queue(&p, &o, &q) && q.gpu_id == 77 &&
		q.q_id == 4 && o.length == 120 + 37 + 11 &&
		gpucr_kfdpriv_event(&p, &o, &e) == -EINVAL,
		"a queue with its MQD and control stack is read");
	ktap_ok(gpucr_kfdpriv_next(&p, &o) == 1 &&
		!gpucr_kfdpriv_event(&p, &o, &e) && e.event_id == 9,
		"an event is read");
	ktap_ok(gpucr_kfdpriv_next(&p, &o) == 1 &&
		!gpucr_kfdpriv_svm(&p, &o, &s) && s.start == 5 &&
		o.num_attrs == 6 && !gpucr_kfdpriv_svm_attr(&p, &o, 5, &a) &&
		a.value == 5 && gpucr_kfdpriv_svm_attr(&p, &o, 6, &a) == -EINVAL &&
		gpucr_kfdpriv_next(&p, &o) == 0,
		"an SVM range with its attributes is read, and nothing after it");
	free(data);
}

static bool rejects(struct gpucr_kfdpriv p)
{
	int err = gpucr_kfdpriv_open(&p, GPUCR_KFDPRIV_BO_64);

	return err == -EINVAL || err == -EPROTO;
}

static void test_lies(void)
{
	size_t size, cut;
	uint8_t *data = build(GPUCR_KFDPRIV_BO_64, &size);
	struct gpucr_kfdpriv p = reader(data, size);
	uint32_t big = 0xffffffff;
	bool all = true;

	for (cut = 0; cut < size; cut++) {
		uint8_t *part = malloc(cut ? cut : 1);

		memcpy(part, data, cut);
		all &= rejects(reader(part, cut));
		free(part);
	}
	ktap_ok(all, "data that was cut anywhere is refused");
	p.num_bos = big;
	ktap_ok(rejects(p), "four billion BOs are refused");
	p = reader(data, size);
	p.num_devices = big;
	ktap_ok(rejects(p), "four billion devices are refused");
	p = reader(data, size);
	p.num_objects = 4;
	ktap_ok(rejects(p), "one object more than there is, is refused");
	p.num_objects = 2;
	ktap_ok(rejects(p), "one object less than there is, is refused");
	/* mqd_size of the queue, which is the first object */
	memcpy(data + 8 + 16 + BOS * 272 + 112, &big, sizeof(big));
	ktap_ok(rejects(reader(data, size)), "an MQD of four GiB is refused");
	memcpy(data, &big, sizeof(big));
	ktap_ok(rejects(reader(data, size)), "another version is refused");
	free(data);
}

/* Whatever the bytes are, no read goes out of bounds (sanitizers watch). */
static void test_noise(void)
{
	uint8_t *data = malloc(2048);
	unsigned int i, k, seed = 1;
	bool sane = true;

	for (i = 0; i < 20000; i++) {
		struct gpucr_kfdpriv p = reader(data, 2048);
		struct gpucr_kfdpriv_object o = { 0 };
		struct gpucr_kfdpriv_bo bo;
		int r;

		for (k = 0; k < 2048; k += 4)
			*(uint32_t *)(data + k) = rand_r(&seed) & 3 ?
				rand_r(&seed) & 7 : (uint32_t)rand_r(&seed);
		*(uint32_t *)data = 1;
		p.num_bos = rand_r(&seed) % 30;
		p.num_objects = rand_r(&seed) % 40;
		if (gpucr_kfdpriv_open(&p, rand_r(&seed) & 1 ? 80 : 0))
			continue;
		gpucr_kfdpriv_bo(&p, rand_r(&seed), &bo);
		do {
			r = gpucr_kfdpriv_next(&p, &o);
			sane &= o.offset <= p.size;
		} while (r > 0);
	}
	ktap_ok(sane, "20000 random records are read or refused in bounds");
	free(data);
}

int main(void)
{
	ktap_plan(18);
	test_layout(GPUCR_KFDPRIV_BO_16);
	test_layout(GPUCR_KFDPRIV_BO_64);
	test_lies();
	test_noise();
	return ktap_exit();
}
