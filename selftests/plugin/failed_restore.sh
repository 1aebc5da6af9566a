#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A restore that fails leaves nothing, no task and no memory, and the same images restore the second time: RESUME fails for
# one of two processes, the GPU has too little memory, the GPUs are not there.
#
# A RESUME whose failure is only logged turns it red on every CRIU before 4.3.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

none_left() {
	[[ -z $(app_pids) ]]
}

dumped() {
	rm -rf "$IMG" "$LOG".*
	app_start "$@"
	app_goes_on 2
	app_pid >"$W/dumped"
	criu_dump
	wait_for "$PATIENCE" none_left || fail "a process is left"
	sim_becomes_empty
	mkdir -p "$W/logs"
	rm -f "$W"/logs/*
	cp -p "$LOG"* "$W/logs/"
}

# CRIU wants the logs as long as they were.
restore() {
	cp -p "$W"/logs/* "$W/"
	criu_restore >"$W/restore.out" 2>&1
}

refused() {
	! restore || fail "the restore succeeded"
	wait_for "$PATIENCE" none_left || fail "left: $(pgrep -ax vecloop)"
	sim_becomes_empty
	[[ -z $(pgrep -x criu) ]] || fail "a criu is left"
	! has_gpucr || wait_for 10 module_idle || fail "a session is left"
}

works_now() {
	restore || fail "$(cat "$W/restore.out")"
	app_goes_on 3
	for pid in $(app_pids); do
		queues_move "$pid"
	done
	app_pids | xargs kill -KILL
	sim_becomes_empty
}

# resume_fails N: for the n-th of two
resume_fails() {
	fault "point=criu-resume errno=5 count=1 nth=$1"
	refused
	faults_clear
	grep -a '(resume-failed)' "$IMG/restore.log" || fail "$(grep -a gpucr "$IMG/restore.log")"
}

# CRIU takes an error for "not mine" and maps what was there: the task must end itself. A few descriptors are copied before, of
# the topology, of KFD and of the render node; then one for each mapping.
no_descriptor() {
	dumped --heap vram,gtt --bos 2 --size 64K
	LD_PRELOAD=$HELPERS/iofault.so IOFAULT_AT=dup:9 IOFAULT_DO=error:24 IOFAULT_FILE=$W/hit refused
	[[ -e $W/hit ]] || fail "the point was not met"
	grep -a '(vma-lost); the task is ended' "$IMG/restore.log" || fail "$(grep -a gpucr "$IMG/restore.log")"
	sed '1,/(vma-lost)/d' "$IMG/restore.log" >"$W/later"
	! grep -a "^([0-9.]*) *$(cat "$W/dumped"): " "$W/later" || fail "the task went on"
	works_now
}

# A GPU of 64 MiB, another process has most of it.
memory() {
	local hog
	rmmod gpucr 2>/dev/null || true
	modprobe -r kfdsim
	modprobe kfdsim vram_mb=64
	[[ ! -e $W/had_gpucr ]] || modprobe gpucr
	dumped --heap vram --bos 4 --size 4M
	LOG=$W/hog.log APP=vecloop app_start --heap vram --bos 2 --size 12M
	hog=$(app_pid)
	[[ -n $hog && $hog != $(cat "$W/dumped") ]]
	cp -p "$W"/logs/* "$W/"
	! criu_restore >"$W/restore.out" 2>&1 || fail "the restore succeeded: $(cat "$SIM/stats")"
	grep -a -E 'Cannot allocate memory|no-memory' "$IMG/restore.log" | head -n 2
	[[ $(app_pids) == "$hog" ]] || fail "left: $(pgrep -ax vecloop)"
	[[ $(stat_value processes) -eq 1 ]] || fail "$(cat "$SIM/stats")"
	kill -KILL "$hog"
	sim_becomes_empty
	works_now
}

usual() {
	no_session_left
	rmmod gpucr 2>/dev/null || true
	modprobe -r kfdsim
	modprobe kfdsim
	[[ ! -e $W/had_gpucr ]] || modprobe gpucr
}

round() {
	export GPUCR_BACKEND=$1
	must "$1: two processes dumped" dumped --procs 2 --heap vram,gtt --bos 2 --queues 2 --size 256K
	check "$1: RESUME fails for the first of two: no task is left" resume_fails 1
	check "$1: RESUME fails for the second" resume_fails 2
	check "$1: the same images restore" works_now
	check "$1: no descriptor for a mapping: the task ends itself" no_descriptor
	check "$1: too little VRAM: all is freed; later it restores" memory
	check "$1: nothing left" usual
}

! has_gpucr || touch "$W/had_gpucr"
read -ra backends <<<"${BACKENDS:-netlink ioctl}"
has_gpucr || backends=(ioctl)
plan $((7 * ${#backends[@]}))
for backend in "${backends[@]}"; do
	round "$backend"
done
finish
