#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# GPU memory is filled by CRIU's own process while the tasks go on with their restore, where CRIU has the hook for it (4.2).
# What is restored is the same with it and without, of one process and of a tree, on two GPUs. That it overlaps is seen by
# holding the fill at its first read until CRIU has come to its last hook. A fill that fails, at once or at the very end,
# fails the restore and leaves nothing; so does a task that is killed meanwhile; without threads the tasks fill themselves.
#
# A fill whose failure is not looked at, neither in the task nor in the last hook, turns it red.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

HIT=$W/hit

# --- the processes ---------------------------------------------------------------------------------------------

none_left() {
	[[ -z $(app_pids) ]]
}

all_digests() {
	local pid
	for pid in $(app_pids); do
		echo "pid $pid"
		digest "$pid"
	done
}

# dumped PROCESSES: stopped, so that no BO changes and each restore is of the same.
dumped() {
	local pid
	rm -rf "$IMG" "$W"/app.log*
	app_start --procs "$1" --gpus 2 --heap vram,gtt --bos 1 --size 1M --small-bos 300
	app_goes_on 2
	for pid in $(app_pids); do
		kill -STOP "$pid"
	done
	# Their queues run dry.
	sleep 1
	app_pids >"$W/pids"
	[[ $(wc -l <"$W/pids") -eq $1 ]] || fail "processes: $(app_pids)"
	all_digests >"$W/digest"
	[[ $(wc -l <"$W/digest") -ge $((600 * $1)) ]] || fail "$(wc -l <"$W/digest") BOs"
	criu_dump
	sim_becomes_empty
	rm -rf "$W/good"
	cp -a "$IMG" "$W/good"
}

as_before() {
	all_digests | diff "$W/digest" - || fail "not as it was"
	app_pids | xargs kill -KILL
	wait_for "$PATIENCE" none_left
	sim_becomes_empty
}

summary() {
	grep -a 'gpucr: restored ' "$IMG/restore.log"
}

off() {
	GPUCR_OVERLAP=off criu_restore
	summary | grep -F ', not overlapped (overlap = off)' || fail "$(summary)"
	as_before
}

on() {
	criu_restore
	summary | grep -F ", overlapped for $1 of them: filled in " || fail "$(summary)"
	[[ $(grep -a -c "CRIU's own process fills" "$IMG/restore.log") -eq $1 ]] || fail "$(grep -a gpucr "$IMG/restore.log")"
	as_before
}

# --- a restore that is held still ------------------------------------------------------------------------------

# held GATE-POINT: at a hook ("": nowhere), and at the first byte of GPU memory that is read.
held() {
	rm -rf "${W:?}/lib" "$GATE" "$HIT"
	mkdir "$W/lib"
	cp "$HELPERS/gate.so" "$W/lib/"
	env GATE_PLUGIN="$PLUGIN" GATE_FILE="$GATE" ${1:+"GATE_AT=$1"} LD_PRELOAD="$HELPERS/iofault.so" \
		IOFAULT_AT='read@amdgpu-pages-*:1' IOFAULT_DO=hold IOFAULT_FILE="$HIT" \
		setsid criu restore -d -L "$W/lib" -D "$IMG" -o restore.log -v4 >"$W/criu.out" 2>&1 </dev/null &
	echo $! >"$W/criu.pid"
}

reached_both() {
	[[ -e $GATE && -e $HIT ]]
}

wait_both() {
	wait_for "$PATIENCE" reached_both || fail "gate: $(ls "$GATE" "$HIT" 2>&1); $(tail -n 5 "$IMG/restore.log")"
}

ended_with() {
	local rc=0
	wait_for "$PATIENCE" criu_ended || fail "criu does not end: $(tail -n 5 "$IMG/restore.log")"
	wait "$(criu_pid)" || rc=$?
	[[ $rc -eq $1 ]] || fail "status $rc: $(grep -a -E 'Error|gpucr' "$IMG/restore.log")"
}

# CRIU has done all of its own while not one byte of GPU memory was read; and then it waits for that.
overlaps() {
	held resume:before:1
	wait_both
	rm "$GATE"
	sleep 1
	! criu_ended || fail "it did not wait"
	if summary; then fail "it went on"; fi
	rm "$HIT"
	ended_with 0
	summary | grep -F ', overlapped for 1 of them'
	as_before
}

# --- failures --------------------------------------------------------------------------------------------------

nothing_left() {
	wait_for "$PATIENCE" none_left || fail "left: $(app_pids)"
	sim_becomes_empty
	[[ -z $(pgrep -x criu) ]] || fail "a criu is left"
	no_session_left
}

damage() {
	local f at=4711 byte
	f=$(find "$IMG" -name 'amdgpu-pages-gpucr-*.img' | sort | tail -n 1)
	byte=$(od -An -tu1 -j "$at" -N 1 "$f")
	# shellcheck disable=SC2059
	printf "\\x$(printf %x $((byte ^ 16)))" | dd of="$f" bs=1 seek="$at" conv=notrunc status=none
}

names_it() {
	grep -a 'chunk-checksum' "$IMG/restore.log" || fail "$(grep -a gpucr "$IMG/restore.log")"
	grep -a 'Error.*gpucr: GPU memory of .* (fill-failed)' "$IMG/restore.log" || fail "$(grep -a gpucr "$IMG/restore.log")"
	jq -e '.result == "failed" and .error.token == "chunk-checksum" and .error.offset != null' \
		"$IMG/amdgpu-report-restore.json" || fail "$(cat "$IMG/amdgpu-report-restore.json")"
}

again() {
	rm -rf "$IMG"
	cp -a "$W/good" "$IMG"
}

damaged_late() {
	damage
	held resume:before:1
	wait_both
	rm "$HIT" "$GATE"
	ended_with 1
	names_it
	nothing_left
	again
}

# No thread but CRIU's own.
fill_over() {
	[[ $(find "/proc/$(criu_pid)/task" -mindepth 1 -maxdepth 1 | wc -l) -eq 1 ]]
}

# The task is at a hook of its own: it ends there, before any script is told of a restore.
damaged_early() {
	damage
	held update-vma:before:1
	wait_both
	rm "$HIT"
	wait_for "$PATIENCE" fill_over || fail "the fill does not end"
	rm "$GATE"
	ended_with 1
	names_it
	grep -a '(fill-failed); the task is ended' "$IMG/restore.log" || fail "the task did not end itself"
	if grep -a 'Run late stage hook' "$IMG/restore.log"; then fail "it went on to the end"; fi
	nothing_left
	again
}

driver_fails() {
	fault "point=cs-submit errno=5 count=1"
	! criu_restore || fail "it was restored"
	faults_clear
	grep -a 'copy-failed' "$IMG/restore.log"
	nothing_left
}

hit() {
	[[ -e $HIT ]]
}

task_killed() {
	held ""
	wait_for "$PATIENCE" hit || fail "$(tail -n 5 "$IMG/restore.log")"
	kill -KILL "$(cat "$W/pids")"
	sleep 1
	rm "$HIT"
	ended_with 1
	nothing_left
}

no_thread() {
	LD_PRELOAD="$HELPERS/iofault.so" IOFAULT_AT=thread:1 IOFAULT_DO=error:11 IOFAULT_FILE="$HIT" criu_restore
	[[ -e $HIT ]] || fail "it did not ask for a thread"
	summary | grep -F ', not overlapped'
	as_before
}

goes_on() {
	criu_restore
	kill -CONT "$(cat "$W/pids")"
	app_goes_on 3
	queues_move "$(cat "$W/pids")"
	app_kill
	nothing_left
}

plan 14
must "three processes on two GPUs, dumped" dumped 3
check "three processes: each fills its own" off
check "three processes: CRIU's own fills them, all BOs are the same" on 3
must "one process on two GPUs, dumped" dumped 1
check "one process: it fills its own" off
check "one process: CRIU's own fills it, all BOs are the same" on 1
check "CRIU's own work is done while the fill has not begun" overlaps
check "no thread: the task fills its own" no_thread
check "a damaged chunk, found while the task restores" damaged_early
check "a damaged chunk, found at the end" damaged_late
check "a copy that the driver refuses" driver_fails
check "a task killed meanwhile" task_killed
check "the same images restore, and it goes on" goes_on
check "nothing left" nothing_left
finish
