// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps one per-task perf event open until it is killed. CRIU sets hardware
 * breakpoints; the first per-task event makes the kernel patch code in its
 * scheduler, and the last one patches it back. QEMU's multi-threaded TCG can
 * lose that race ("Oops: int3" in __schedule): in a guest where one event
 * stays, nothing is patched while tests run.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
	};

	if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0) {
		perror("perfhold: perf_event_open");
		return 1;
	}
	for (;;)
		pause();
}
