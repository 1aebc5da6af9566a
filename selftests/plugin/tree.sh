#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A tree of processes, each with its own KFD on the same GPUs; with one GPU and with two.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

PROCS=3

# Every process writes a log of its own.
all_go_on() {
	local i log=$LOG
	for ((i = 0; i < PROCS; i++)); do
		LOG=$log
		[[ $i -eq 0 ]] || LOG=$log.$i
		app_goes_on 5
	done
}

all_queues_move() {
	local pid
	[[ $(app_pids | wc -l) -eq $PROCS ]] || fail "processes: $(app_pids)"
	for pid in $(app_pids); do
		queues_move "$pid"
	done
}

dump() {
	rm -rf "$IMG" "$LOG".*
	app_start --procs "$PROCS" --gpus "$1" --heap vram,gtt,userptr --size 256K --queues 2
	all_go_on
	all_queues_move
	criu_dump
	[[ -z $(app_pids) ]] || fail "processes are left: $(app_pids)"
	[[ $(find "$IMG" -name 'gpucr-kfd-*.img' | wc -l) -eq $PROCS ]]
	sim_becomes_empty
}

restore() {
	criu_restore
	all_go_on
	all_queues_move
}

ends() {
	app_pids | xargs kill -KILL
	sim_becomes_empty
	no_session_left
}

round() {
	export GPUCR_BACKEND=$1
	must "$1, GPUs: $2: dump" dump "$2"
	must "$1, GPUs: $2: restore, every process and queue goes on" restore
	check "$1, GPUs: $2: nothing left" ends
}

if has_gpucr; then
	plan 12
	round netlink 1
	round netlink 2
else
	plan 6
fi
round ioctl 1
round ioctl 2
finish
