// SPDX-License-Identifier: GPL-2.0-only
#include "pace.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "clock.h"

/* How long a stop may go unseen. */
#define NAP_NS		UINT64_C(50000000)

static bool is_stopped(const int *stop)
{
	return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

void gpucr_pace_take(struct gpucr_pace *p, uint64_t len, const int *stop)
{
	uint64_t cost, now, old, until;

	if (!p || !p->rate)
		return;
	cost = (double)len * 1e9 / p->rate;
	now = gpucr_now_ns();
	old = atomic_load(&p->free_ns);
	do {
		/* Idle time is not saved up. */
		until = (old > now ? old : now) + cost;
	} while (!atomic_compare_exchange_weak(&p->free_ns, &old, until));
	while (now < until && !is_stopped(stop)) {
		uint64_t nap = until - now < NAP_NS ? until - now : NAP_NS;
		struct timespec t = { .tv_nsec = (long)nap };

		nanosleep(&t, NULL);
		now = gpucr_now_ns();
	}
}
