#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A dump that fails leaves the process running, its queues moving and no page file behind.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

SMALL=$W/small

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
	mkdir -p "$SMALL" "$W/wd"
	mount -t tmpfs -o "size=$1" small "$SMALL"
}

paused_then_full() {
	local paused full
	paused=$(grep -a -n -m 1 'gpucr: pid [0-9]*: paused' "$W/wd/dump.log") &&
		full=$(grep -a -n -m 1 'gpucr.*No space left' "$W/wd/dump.log") &&
		[[ ${paused%%:*} -lt ${full%%:*} ]]
}

# Disk full when 60 of 100 bytes are written. The check for space in advance is off: it would refuse at once.
disk_full() {
	small_dir $(($(cat "$W/bytes") * 6 / 10))
	! GPUCR_SPACE_CHECK=off criu dump -t "$(app_pid)" -D "$SMALL" -W "$W/wd" -o dump.log -v4 ||
		fail "the dump succeeded"
	paused_then_full || fail "$(grep -a -n gpucr "$W/wd/dump.log")"
	still_runs
	! compgen -G "$SMALL/amdgpu-pages-*" || fail "page files are left"
	umount "$SMALL"
}

# With the check for space the same dump is refused before anything is paused.
no_space() {
	small_dir $(($(cat "$W/bytes") * 6 / 10))
	! criu dump -t "$(app_pid)" -D "$SMALL" -W "$W/wd" -o dump.log -v4 || fail "the dump succeeded"
	grep -a 'no-space' "$W/wd/dump.log" || fail "$(grep -a gpucr "$W/wd/dump.log")"
	! grep -a -E 'gpucr.*paused' "$W/wd/dump.log" || fail "it was paused for nothing"
	still_runs
	umount "$SMALL"
}

read_only() {
	small_dir 64m
	mount -o remount,ro "$SMALL"
	! criu dump -t "$(app_pid)" -D "$SMALL" -W "$W/wd" -o dump.log -v4 || fail "the dump succeeded"
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

# UNPAUSE fails once, after the pause. CRIU does not ask the plugin any more whether the dump is good, so only what
# becomes of the process counts.
unpause_again() {
	fault "point=criu-unpause errno=5 count=1 nth=2"
	criu_dump --leave-running || true
	faults_clear
	still_runs
	rm -rf "$IMG"
}

# With GPUCR_CANARY every UNPAUSE is lost but that before the pause. The check must go red for it.
lose_unpause() {
	[[ ${GPUCR_CANARY-} == 1 ]] || return 0
	PATIENCE=15
	fault "point=criu-unpause errno=5 count=0 nth=2"
}

leave_running() {
	lose_unpause
	criu_dump --leave-running || [[ ${GPUCR_CANARY-} == 1 ]]
	still_runs
	rm -rf "$IMG"
}

# The module is about to be exchanged: refused by name, and not for good.
draining() {
	gpucr session drain on
	! criu_dump --leave-running || fail "the dump succeeded"
	grep -a '(module-draining)' "$IMG/dump.log" || fail "$(grep -a gpucr "$IMG/dump.log")"
	gpucr session drain off
	rm -rf "$IMG"
	criu_dump --leave-running
	still_runs
	rm -rf "$IMG"
}

round() {
	export GPUCR_BACKEND=$1
	must "$1: --leave-running leaves it running" leave_running
	must "$1: a whole dump, for the size" measure
	check "$1: disk full after the pause" disk_full
	check "$1: no space is found out before the pause" no_space
	check "$1: read-only image directory" read_only
	check "$1: error at PROCESS_INFO" driver_error process-info
	check "$1: error at CHECKPOINT" driver_error checkpoint
	check "$1: error at the UNPAUSE before the pause" driver_error unpause
	check "$1: error at the UNPAUSE after it" unpause_again
}

plan 21
must "start" start
round ioctl
if has_gpucr; then
	round netlink
	check "netlink: while the module is drained" draining
else
	for i in 1 2 3 4 5 6 7 8 9 10; do
		check "netlink $i" skip "module gpucr is not loaded"
	done
fi
check "the process dies as it should" app_kill
finish
