#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Shared virtual memory: what GPUs reach by the address that the program has it at. Its bytes are memory as CRIU knows it,
# its ranges travel in KFD's own records, and RESUME makes them again once the memory is there. A simulated 7.2, since
# Debian's older kernels have none.
#
# Not tried with the plugin broken on purpose.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

dump() {
	app_start --heap vram,svm --bos 2 --size 256K --queues 2
	app_goes_on 3
	criu_dump
	wait_for "$PATIENCE" app_gone || fail "the application is left"
	sim_becomes_empty
}

in_the_image() {
	local n
	n=$(gpucr -j image show "$IMG" | jq "[.data[].svm_ranges] | add")
	echo "ranges: $n"
	# two that rotate and a constant one
	[[ ${n:-0} -ge 3 ]]
}

restore() {
	criu_restore
	app_goes_on 5
	queues_move "$(app_pid)"
}

again() {
	rm -rf "$IMG"
	criu_dump
	wait_for "$PATIENCE" app_gone || fail "the application is left"
	restore
	app_kill
	sim_becomes_empty
}

plan 4
must "dumped" dump
check "the image names its ranges" in_the_image
check "restored, the GPU reaches them, and nothing is lost" restore
check "once more" again
finish
