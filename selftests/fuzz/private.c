// SPDX-License-Identifier: GPL-2.0-only
/* KFD's private records: all that the reader gives lies within the data. */
#include <stdbool.h>
#include <string.h>

#include <gpucr_kfdpriv.h>

#include "fuzz.h"

static void look_at(const struct gpucr_kfdpriv *p,
		    const struct gpucr_kfdpriv_object *o)
{
	struct gpucr_kfdpriv_attr a;
	struct gpucr_kfdpriv_queue q;
	struct gpucr_kfdpriv_event e;
	struct gpucr_kfdpriv_svm s;
	uint32_t i;

	HOLDS(o->offset <= p->size && o->length <= p->size - o->offset);
	HOLDS(o->length);
	if (!gpucr_kfdpriv_queue(p, o, &q))
		HOLDS(o->head + q.mqd_size + (uint64_t)q.ctl_stack_size ==
		      o->length);
	gpucr_kfdpriv_event(p, o, &e);
	gpucr_kfdpriv_svm(p, o, &s);
	for (i = 0; i < o->num_attrs; i++)
		HOLDS(!gpucr_kfdpriv_svm_attr(p, o, i, &a));
	HOLDS(gpucr_kfdpriv_svm_attr(p, o, o->num_attrs, &a));
}

static void walk(struct gpucr_kfdpriv *p)
{
	struct gpucr_kfdpriv_object o = { 0 };
	struct gpucr_kfdpriv_bo bo;
	uint32_t i, n, seen = 0;
	int r;

	for (i = 0; i < p->num_bos && i < 64; i++) {
		HOLDS(!gpucr_kfdpriv_bo(p, i, &bo));
		for (n = 0; gpucr_kfdpriv_bo_gpu(p, i, n); n++)
			HOLDS(n < 64);
	}
	HOLDS(gpucr_kfdpriv_bo(p, p->num_bos, &bo));
	while ((r = gpucr_kfdpriv_next(p, &o)) > 0) {
		look_at(p, &o);
		seen++;
	}
	HOLDS(!r && seen == p->num_objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t sizes[] = {
		0, GPUCR_KFDPRIV_BO_16, GPUCR_KFDPRIV_BO_64, 0xffffffff,
	};
	uint8_t *exact;
	size_t i;

	if (size < 12)
		return 0;
	/* A copy of its own, so that a byte beyond is seen. */
	exact = malloc(size - 12 + !(size - 12));
	HOLDS(exact);
	memcpy(exact, data + 12, size - 12);
	for (i = 0; i < 4; i++) {
		struct gpucr_kfdpriv p = { .data = exact, .size = size - 12 };

		memcpy(&p.num_devices, data, 4);
		memcpy(&p.num_bos, data + 4, 4);
		memcpy(&p.num_objects, data + 8, 4);
		if (!gpucr_kfdpriv_open(&p, sizes[i]))
			walk(&p);
	}
	free(exact);
	return 0;
}
