#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A restored process is dumped again, and its images are as good as the first, wherever it went meanwhile: to a GPU of
# another id, another render minor, another major of KFD.
#
# An image with the ids of the machine instead of those that the process knows turns it red.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

# machine N [MODULE]...: the other modules first, so that device numbers move
machine() {
	local n=$1
	shift
	rmmod gpucr 2>/dev/null || true
	modprobe -r kfdsim
	rmmod vgem 2>/dev/null || true
	[[ $# -eq 0 ]] || modprobe -a "$@"
	modprobe kfdsim "machine=$n" gpus=2
	[[ ! -e $W/had_gpucr ]] || modprobe gpucr
	{ cat /sys/class/kfd/kfd/topology/nodes/*/gpu_id && ls /dev/dri; } | grep -vx 0 | tr '\n' ' ' >"$W/machine"
}

# Of a process that stands still, all that its BOs hold; GPU ids are the machine's own business.
content() {
	digest "$(app_pid)" | sort
}

none_left() {
	[[ -z $(app_pids) ]]
}

start() {
	machine 1
	cp "$W/machine" "$W/machine.1"
	app_start --gpus 2 --heap vram,gtt,userptr --bos 2 --queues 2 --size 256K
	app_goes_on 3
	kill -STOP "$(app_pid)"
	# Its queues run dry.
	sleep 1
	content >"$W/content"
	[[ $(wc -l <"$W/content") -ge 8 ]]
}

dump() {
	rm -rf "$IMG"
	criu_dump
	wait_for "$PATIENCE" none_left
	sim_becomes_empty
	gpucr -j image show "$IMG" bo | jq -S '[.data[] | {addr, size, heap}] | sort_by(.addr)' >"$W/bos.$1"
	[[ ! -e $W/bos.1 ]] || diff "$W/bos.1" "$W/bos.$1" || fail "other BOs"
}

# restore on a machine that is not the last one
restore() {
	local last
	last=$(cat "$W/machine")
	machine "$@"
	[[ $(cat "$W/machine") != "$last" ]] || fail "it is the same machine"
	criu_restore
	grep -q '^State:.*stopped' "/proc/$(app_pid)/status"
	content | diff "$W/content" - || fail "a BO is not as it was"
}

lives() {
	kill -CONT "$(app_pid)"
	app_goes_on 5
	queues_move "$(app_pid)"
}

ends() {
	app_pids | xargs -r kill -KILL
	sim_becomes_empty
	machine 0
	no_session_left
}

round() {
	export GPUCR_BACKEND=$1
	rm -f "$W"/bos.*
	must "$1: start" start
	must "$1: first dump" dump 1
	must "$1: restored on GPUs of other ids and minors" restore 2 vgem
	must "$1: second dump, with the same BOs" dump 2
	must "$1: restored on a third machine" restore 3
	must "$1: third dump" dump 3
	must "$1: restored where it began" restore 1
	check "$1: and it goes on" lives
	check "$1: nothing left" ends
}

! has_gpucr || touch "$W/had_gpucr"
read -ra backends <<<"${BACKENDS:-netlink ioctl}"
has_gpucr || backends=(ioctl)
plan $((9 * ${#backends[@]}))
for backend in "${backends[@]}"; do
	round "$backend"
done
finish
