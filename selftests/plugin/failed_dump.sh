#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A dump that fails leaves the process running, its queues moving and no page file behind.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

SMALL=$W/small
OPS="process-info checkpoint unpause"

start() {
	app_start --heap vram,gtt --bos 3 --queues 2 --size 4M
}

# What a whole dump writes, in page files alone; the process runs on.
measure() {
	criu_dump --leave-running
	stat -c %s "$IMG"/amdgpu-pages-gpucr-*.img | awk '{ s += $1 } END { print s }' >"$W/bytes"
	rm -rf "$IMG"
	still_runs
}

still_runs() {
	local pid
	pid=$(app_pid)
	kill -0 "$pid" || fail "the process is gone"
	grep -q '^TracerPid:[[:space:]]*0$' "/proc/$pid/status" || fail "the process is still traced"
	app_goes_on 5
	queues_move "$pid"
	no_session_left
}

small_dir() {
	mkdir -p "$SMALL" "$W/work"
	mount -t tmpfs -o "size=$1" small "$SMALL"
}

paused_then_full() {
	local paused full
	paused=$(grep -a -n -m 1 'gpucr: pid [0-9]*: paused' "$W/work/dump.log") &&
		full=$(grep -a -n -m 1 'gpucr.*No space left' "$W/work/dump.log") &&
		[[ ${paused%%:*} -lt ${full%%:*} ]]
}

# Disk full when 60 of 100 bytes are written. The check for space in advance is off: it would refuse at once.
disk_full() {
	small_dir $(($(cat "$W/bytes") * 6 / 10))
	! GPUCR_SPACE_CHECK=off criu dump -t "$(app_pid)" -D "$SMALL" -W "$W/work" -o dump.log -v4 ||
		fail "the dump succeeded"
	paused_then_full || fail "$(grep -a -n gpucr "$W/work/dump.log")"
	still_runs
	! compgen -G "$SMALL/amdgpu-pages-*" || fail "page files are left"
	umount "$SMALL"
}

# With the check for space the same dump is refused before anything is paused.
no_space() {
	small_dir $(($(cat "$W/bytes") * 6 / 10))
	! criu dump -t "$(app_pid)" -D "$SMALL" -W "$W/work" -o dump.log -v4 || fail "the dump succeeded"
	grep -a 'no-space' "$W/work/dump.log" || fail "$(grep -a gpucr "$W/work/dump.log")"
	! grep -a -E 'gpucr.*paused' "$W/work/dump.log" || fail "it was paused for nothing"
	still_runs
	umount "$SMALL"
}

read_only() {
	small_dir 64m
	mount -o remount,ro "$SMALL"
	! criu dump -t "$(app_pid)" -D "$SMALL" -W "$W/work" -o dump.log -v4 || fail "the dump succeeded"
	still_runs
	umount "$SMALL"
}

# An error of the driver at one of its operations.
driver_error() {
	fault "point=criu-$1 errno=5 count=1"
	! criu_dump || fail "the dump succeeded"
	faults_clear
	! compgen -G "$IMG/amdgpu-pages-*" || fail "page files are left"
	still_runs
	rm -rf "$IMG"
}

# The last UNPAUSE lost for good: with GPUCR_CANARY, which must turn the next check red.
lose_unpause() {
	[[ ${GPUCR_CANARY-} != 1 ]] || fault "point=criu-unpause errno=5 count=1000"
}

leave_running() {
	lose_unpause
	criu_dump --leave-running || [[ ${GPUCR_CANARY-} == 1 ]]
	still_runs
	rm -rf "$IMG"
}

round() {
	export GPUCR_BACKEND=$1
	local op
	check "$1: --leave-running leaves it running" leave_running || stop
	check "$1: a whole dump, for the size" measure || stop
	check "$1: disk full after the pause" disk_full
	check "$1: no space is found out before the pause" no_space
	check "$1: read-only image directory" read_only
	for op in $OPS; do
		check "$1: error at $op" driver_error "$op"
	done
}

plan 18
check "start" start || stop
round ioctl
if has_gpucr; then
	round netlink
else
	for i in 1 2 3 4 5 6 7 8; do
		check "netlink $i" bash -c 'echo "module gpucr is not loaded"; exit 4'
	done
fi
check "the process dies as it should" app_kill
finish
