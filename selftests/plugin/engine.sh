#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Options of the copy engine, with stock CRIU: what they ask for happens, and what comes back is what there was.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

# Every small BO has the content of the one before it, moved by a word: noise for itself, dull as a whole.
BOS=200

start() {
	app_start --heap vram --bos 1 --size 2M --small-bos "$BOS"
	app_goes_on 3
}

# A dump failed: the process is as it was, and its page files are gone.
goes_on_without_files() {
	! compgen -G "$IMG/amdgpu-pages-*" || fail "page files are left"
	app_goes_on 5
	queues_move "$(app_pid)"
	no_session_left
	rm -rf "$IMG"
}

# At 2 MiB/s it would be paused for 8 s.
pause_limit() {
	! GPUCR_BANDWIDTH_LIMIT=2M GPUCR_PAUSE_LIMIT=2 criu_dump || fail "the dump succeeded"
	grep -a 'pause-limit is 2 s (pause-limit)' "$IMG/dump.log"
	goes_on_without_files
}

# The kernel has io_uring for nobody: writes are done one by one, and it is said.
no_uring() {
	local knob=/proc/sys/kernel/io_uring_disabled
	[[ -e $knob ]] || skip "this kernel has no io_uring_disabled"
	echo 2 >"$knob"
	criu_dump --leave-running || {
		echo 0 >"$knob"
		return 1
	}
	echo 0 >"$knob"
	grep -a 'io_uring cannot be used here' "$IMG/dump.log"
	gpucr image verify "$IMG"
	rm -rf "$IMG"
	app_goes_on 3
}

copying() {
	compgen -G "$IMG/amdgpu-pages-*.tmp" >/dev/null
}

cancelled() {
	local criu rc=0
	mkdir -p "$IMG"
	GPUCR_BANDWIDTH_LIMIT=2M criu dump -t "$(app_pid)" -D "$IMG" -o dump.log -v4 &
	criu=$!
	wait_for "$PATIENCE" copying || fail "no page file"
	gpucr -j monitor pid "$(app_pid)" count 1 timeout 20 | tee "$W/seen"
	grep -qE '"pid":'"$criu"',.*"kind":"dump","target":'"$(app_pid)"',"phase":"copy",.*"total":[1-9]' "$W/seen"
	kill -TERM "$criu"
	wait "$criu" || rc=$?
	# It ended by itself, and not by the signal.
	[[ $rc -eq 1 ]] || fail "status $rc"
	grep -a 'signal 15 (dump-cancelled)' "$IMG/dump.log"
	goes_on_without_files
}

small_digests() {
	digest "$(app_pid)" | awk '$2 == 65536 && $3 == "vram"'
}

page_bytes() {
	stat -c %s "$IMG"/amdgpu-pages-gpucr-*.img | awk '{ s += $1 } END { print s }'
}

compressed() {
	small_digests >"$W/digest.before"
	[[ $(wc -l <"$W/digest.before") -eq $BOS ]] || fail "$(wc -l <"$W/digest.before") BOs"
	gpucr -j monitor >"$W/monitor" &
	echo $! >"$W/monitor.pid"
	GPUCR_COMPRESS=zstd:3 criu_dump
	grep -a -E 'gpucr: amdgpu-pages.*: zstd:3 took [1-9][0-9]* bytes to [1-9]' "$IMG/dump.log" ||
		fail "$(grep -a gpucr "$IMG/dump.log")"
	# The two others of 2 MiB are noise.
	[[ $(page_bytes) -lt $((BOS * 65536 / 2 + 4 * 1048576)) ]] || fail "$(page_bytes) bytes"
	sim_becomes_empty
	gpucr image verify "$IMG"
}

# The summary, the last word in /run, and what who looks on was told.
told() {
	grep -a -E 'Warn.*gpucr: dumped 1 GPU process: paused [0-9]+\.[0-9] s, 0\.[0-9]+ GiB at [0-9.]+ GB/s' "$IMG/dump.log"
	cat /run/gpucr/*.json
	[[ $(sed -n 's/.*"phase":"done","done":\([0-9]*\),"total":\1,.*/\1/p' /run/gpucr/*.json) -gt 0 ]]
	kill "$(cat "$W/monitor.pid")"
	cat "$W/monitor"
	grep -q '"object":"progress".*"kind":"dump"' "$W/monitor"
	! has_gpucr || grep -q '"object":"session".*"state":"paused","pid":'"$(app_pid)" "$W/monitor"
}

# A byte of a compressed chunk is another: nothing of that chunk goes to the GPU, and nothing is left.
damaged() {
	local f at byte
	f=$(find "$IMG" -name 'amdgpu-pages-gpucr-*.img')
	at=4711
	byte=$(od -An -tu1 -j "$at" -N 1 "$f")
	# shellcheck disable=SC2059
	printf "\\x$(printf %x $((byte ^ 16)))" | dd of="$f" bs=1 seek="$at" conv=notrunc status=none
	! gpucr image verify "$IMG" || fail "it is whole"
	! criu_restore || fail "it was restored"
	grep -a 'chunk-checksum' "$IMG/restore.log"
	app_gone || fail "a process is left"
	sim_becomes_empty
	# shellcheck disable=SC2059
	printf "\\x$(printf %x "$byte")" | dd of="$f" bs=1 seek="$at" conv=notrunc status=none
}

# CRIU restores into a time namespace, where it is as late as it was in the dump: what libdrm makes of a timeout there has
# passed already for the kernel, when the image is older than the timeout is long. The engine is slow, so that a wait is needed.
restored_late() {
	local rate=/sys/module/kfdsim/parameters/copy_mbps rc=0
	sleep 5
	echo 10 >"$rate"
	GPUCR_COPY_DEADLINE=4 criu_restore || rc=$?
	echo 0 >"$rate"
	[[ $rc -eq 0 ]] || fail "the restore failed"
	[[ $(readlink "/proc/$(app_pid)/ns/time") != "$(readlink /proc/self/ns/time)" ]] || echo "# no time namespace here"
	small_digests | diff "$W/digest.before" -
	app_goes_on 20
	queues_move "$(app_pid)"
}

plan 8
must "start" start
check "pause-limit: the dump is given up, the process goes on" pause_limit
check "SIGTERM: the same" cancelled
check "io_uring switched off" no_uring
must "compress=zstd: a dump that is smaller, and whole" compressed
check "it is told how it went" told
check "a damaged compressed chunk is refused" damaged
must "and restored, longer after it than a copy may take, every BO as before" restored_late
finish
