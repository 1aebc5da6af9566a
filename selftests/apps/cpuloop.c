// SPDX-License-Identifier: GPL-2.0-only
/* cpuloop: vecloop's twin without a GPU, in what CRIU sees of it. */
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "work.h"

/* One buffer per buffer that vecloop would have; the CPU does what its queues do. */
static int step(struct work *w, char *scratch, uint64_t nr)
{
	uint64_t digest = nr;
	unsigned int i;

	for (i = 0; i < w->nbufs; i++) {
		struct work_buf *b = &w->bufs[i];
		uint64_t by = pattern_stride(b->size), own = 0;
		char *mem = (char *)b->mem;

		if (!b->constant) {
			memcpy(scratch, mem, b->size);
			memcpy(mem, scratch + by, b->size - by);
			memcpy(mem + b->size - by, scratch, by);
		}
		if (pattern_check(&w->pattern, mem, b->size, b->number,
				  b->constant ? 0 : pattern_rotation(b->size, nr), &own) >= 0) {
			app_err("mismatch in buffer %u", i);
			return APP_FAILED;
		}
		digest = (digest ^ own) * 0x100000001b3;
	}
	app_step(nr, digest);
	return APP_OK;
}

static int run(struct work *w, char *scratch)
{
	const struct app_opt *opt = w->opt;
	uint64_t nr;
	int ret;

	for (nr = 1; !opt->steps || nr <= opt->steps; nr++) {
		ret = step(w, scratch, nr);
		if (ret)
			return ret;
		if (nr == 1)
			app_ready(opt);
		ret = app_children(opt, false);
		if (ret)
			return ret;
		app_sleep(opt->delay_ms);
	}
	return app_children(opt, true);
}

int main(int argc, char **argv)
{
	static struct work work;
	struct app_opt opt;
	char *scratch;
	unsigned int i;

	app_parse(&opt, argc, argv);
	app_start(&opt);
	scratch = malloc(opt.size);
	if (!scratch || work_init(&work, &opt)) {
		app_err("out of memory");
		return APP_FAILED;
	}
	for (i = 0; i < work.nbufs; i++) {
		struct work_buf *b = &work.bufs[i];
		char *mem = malloc(b->size);

		if (!mem) {
			app_err("out of memory");
			return APP_FAILED;
		}
		memcpy(mem, work.pattern.word + b->number, b->size);
		b->mem = mem;
	}
	return run(&work, scratch);
}
