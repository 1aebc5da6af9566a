#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guests' halves of two_guests.sh: "dump" in one, "restore" in another that has only the image directory.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

# The same path in both guests, with the application's log in it: CRIU wants open files where they were.
IMG=/tmp/ckpt
LOG=$IMG/app.log

dump() {
	local vas
	mkdir -p "$IMG"
	far_pid
	app_start --heap vram,gtt,userptr --bos 2 --queues 2 --size 1M
	app_goes_on 5
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" >"$W/digest"
	criu_dump
	app_gone
	# What the other guest must find; the host carries it past the images.
	{
		echo "TEST_PID=$(app_pid)"
		echo "TEST_STEP=$(step)"
		echo "TEST_DIGEST=$(sha256sum <"$W/digest" | cut -c1-64)"
	} >"$LAB_OUT/expect"
	cp -a "$IMG" "$LAB_OUT/ckpt"
}

# The id that the application was started with is in its log.
expected_gpu() {
	local here there
	here=$(grep -hvx 0 /sys/class/kfd/kfd/topology/nodes/*/gpu_id)
	there=$(sed -n 's/^gpu 0 id \([0-9]*\) .*/\1/p' "$LOG")
	echo "GPU $there there, $here here"
	if [[ ${TEST_OTHER_GPU-} == 1 ]]; then
		[[ $here != "$there" ]]
	else
		[[ $here == "$there" ]]
	fi
}

receive() {
	cp -a "$LAB_IN" "$IMG"
	echo "$TEST_PID" >"$W/pid"
	[[ $(step) -eq $TEST_STEP ]]
	expected_gpu
	sim_empty || fail "this guest is not fresh"
}

restore() {
	local vas
	criu_restore
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" >"$W/digest"
	[[ $(sha256sum <"$W/digest" | cut -c1-64) == "$TEST_DIGEST" ]] || fail "$(cat "$W/digest")"
}

goes_on() {
	app_goes_on 10
	[[ $(step) -gt $TEST_STEP ]]
	queues_move "$(app_pid)"
}

case $1 in
dump)
	plan 1
	check "dump in the first guest" dump
	;;
restore)
	plan 3
	must "the second guest has the image directory and nothing else" receive
	must "restore in the second guest, constant BOs as at the pause" restore
	check "counter, pattern and queues go on" goes_on
	;;
esac
finish
