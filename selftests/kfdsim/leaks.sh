#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Loaded, used and unloaded again and again, the simulator leaves nothing: no place of the kernel has then allocated one
# object more each time. Wants slub_debug=U, with which the kernel knows who allocated what.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

W=$TMPDIR
TRACES=/sys/kernel/debug/slab/kmalloc-1k/alloc_traces
ROUNDS=8

# Objects by the place that allocated them.
places() {
	cat "${TRACES%/*/*}"/kmalloc-*/alloc_traces | awk '$1 ~ /^[0-9]+$/ { n[$2] += $1 } END { for (p in n) print p, n[p] }'
}

once() {
	modprobe kfdsim topology=mi210-8 gpus=2 vram_mb=64
	(exec 5<>/dev/kfd 6<>/dev/dri/renderD128)
	modprobe -r kfdsim
}

# What a first time makes for good is there after two.
rounds() {
	local n
	# To look makes objects too, the first time.
	places >"$W/before"
	for ((n = 0; n < ROUNDS + 2; n++)); do
		[[ $n -ne 2 ]] || { sleep 2 && places >"$W/before"; }
		once
	done
	# What RCU frees.
	sleep 2
	places >"$W/after"
}

nothing_left() {
	awk -v rounds=$ROUNDS '
		FNR == NR { before[$1] = $2; next }
		$2 - before[$1] >= rounds { print $1 ": " before[$1] + 0 ", then " $2; bad = 1 }
		END { exit bad }' "$W/before" "$W/after"
}

[[ -e $TRACES ]] || bail "no $TRACES: booted without slub_debug=U?"
plan 2
must "loaded and unloaded $((ROUNDS + 2)) times" rounds
check "no place has allocated an object more each time" nothing_left
finish
