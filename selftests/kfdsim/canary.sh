#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Passes, and leaves the simulator pinned, by a trigger that nobody takes back: what is asked after the tests, whether
# the modules unload, must go red, and under this suite's name.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

W=$TMPDIR

pin() {
	echo enable_event:amdgpu:amdgpu_bo_move >/sys/kernel/debug/tracing/events/sched/sched_switch/trigger
}

plan 1
check "the simulator is pinned" pin
finish
