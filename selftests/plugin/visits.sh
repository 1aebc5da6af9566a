#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The tool looks at a process all the time while that is dumped, goes on, is dumped again and restored: no visit disturbs
# a dump, and no dump a visit.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

# Visits until $W/visiting is gone; a line of object and exit status each in $W/visits.
visitor() {
	local object rc
	while [[ -e $W/visiting ]]; do
		for object in bo vma file ps queue; do
			rc=0
			gpucr -j "$object" pid "$(app_pid)" >"$W/visit.out" 2>&1 || rc=$?
			echo "$object $rc $(jq -r '.error.token // "-"' "$W/visit.out" 2>/dev/null)" >>"$W/visits"
		done
		gpucr -j session >/dev/null 2>&1
		echo "session $? -" >>"$W/visits"
	done
}

visit_on() {
	: >"$W/visits"
	touch "$W/visiting"
	visitor &
	echo $! >"$W/visitor.pid"
	disown
	wait_for "$PATIENCE" visited 6 || fail "no visits"
}

visited() {
	[[ $(wc -l <"$W/visits") -ge $1 ]]
}

visit_off() {
	rm -f "$W/visiting"
	wait_for "$PATIENCE" visitor_ended
}

visitor_ended() {
	! kill -0 "$(cat "$W/visitor.pid")" 2>/dev/null
}

# A round of them at least has fallen into it.
dumps() {
	local i before
	visit_on
	for i in 1 2 3; do
		before=$(wc -l <"$W/visits")
		criu_dump --leave-running
		rm -rf "$IMG"
		app_goes_on 3
		echo "dump $i: $(($(wc -l <"$W/visits") - before)) visits meanwhile"
	done
	visit_off
	[[ $(wc -l <"$W/visits") -ge 12 ]] || fail "too few visits"
	! grep -v ' 0 -$' "$W/visits" || fail "a visit failed"
	queues_move "$(app_pid)"
}

# The process ends in the middle of visits, and there is a time without it.
dump_restore() {
	visit_on
	criu_dump
	criu_restore
	app_goes_on 3
	visit_off
	! grep -vE ' 0 -$| [15] (no-process|process-gone|list-changed|no-kfd-process|no-gpu-file|no-ptrace-access)$' "$W/visits" ||
		fail "a visit failed in another way"
	queues_move "$(app_pid)"
}

ends() {
	app_kill
	sim_becomes_empty
	no_session_left
}

has_gpucr || skip_all "module gpucr is not loaded"
plan 6
must "start" app_start --heap vram,gtt --bos 2 --queues 2 --size 256K
export GPUCR_BACKEND=netlink
check "netlink: three dumps under visits" dumps
check "netlink: dumped and restored under visits" dump_restore
rm -rf "$IMG"
export GPUCR_BACKEND=ioctl
check "ioctl: three dumps under visits" dumps
check "ioctl: dumped and restored under visits" dump_restore
check "nothing left" ends
finish
