// SPDX-License-Identifier: GPL-2.0-only
#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "log.h"

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };

#define NUM_SIGNALS	(sizeof(signals) / sizeof(signals[0]))

static struct sigaction old[NUM_SIGNALS];
static bool replaced[NUM_SIGNALS];
static volatile sig_atomic_t got;
static bool told;

static void note(int sig)
{
	got = sig;
}

void watch_begin(void)
{
	struct sigaction sa = { .sa_handler = note, .sa_flags = SA_RESTART };
	size_t i;

	got = 0;
	told = false;
	sigemptyset(&sa.sa_mask);
	for (i = 0; i < NUM_SIGNALS; i++) {
		/* What is ignored, or somebody else's, stays so. */
		replaced[i] = !sigaction(signals[i], NULL, &old[i]) &&
			      old[i].sa_handler == SIG_DFL &&
			      !sigaction(signals[i], &sa, NULL);
	}
}

static int cancelled(void)
{
	if (!got)
		return 0;
	if (!told)
		gpucr_err("the dump is given up for signal %d (dump-cancelled)",
			  (int)got);
	told = true;
	return -ECANCELED;
}

int watch_end(void)
{
	size_t i;

	for (i = 0; i < NUM_SIGNALS; i++) {
		if (replaced[i])
			sigaction(signals[i], &old[i], NULL);
	}
	return cancelled();
}

int watch_pause(const struct watch *w)
{
	uint64_t ms;

	if (!w->pause_limit)
		return 0;
	ms = w->paused_ms();
	if (ms <= w->pause_limit * UINT64_C(1000))
		return 0;
	gpucr_err("GPU processes have been paused for %llu ms, pause-limit is %u s (pause-limit); the dump is given up",
		  (unsigned long long)ms, w->pause_limit);
	return -ETIME;
}

int watch_tick(void *arg)
{
	int err = cancelled();

	return err ? err : watch_pause(arg);
}
