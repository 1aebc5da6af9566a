#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# Processes that are not there, are no processes, or end while they are looked at: a sentence and a status each.
. "$(dirname "$0")/lib.sh"

never_there() {
	local o
	for o in file bo vma; do
		refused 1 no-process "$o" pid 2147483647
	done
}

# A program that does not know of its child never waits for it.
zombie() {
	local pid
	bash -c 'sleep 1000 & echo $! >"$1"; exec sleep 1000' bash "$W/child" &
	started zombie $!
	wait_for "$PATIENCE" test -s "$W/child"
	pid=$(cat "$W/child")
	kill -KILL "$pid"
	wait_for "$PATIENCE" grep -q '^State:.*Z' "/proc/$pid/status" || fail "no zombie"
	refused 1 no-process bo pid "$pid"
	refused 1 no-process vma pid "$pid"
}

# inject SYSCALL ERRNO STATUS TOKEN ARG...: the kernel's answer, as if the process had changed at that moment
inject() {
	local call=$1 err=$2 status=$3 token=$4 rc=0
	shift 4
	strace -o "$W/trace" -e "inject=$call:error=$err" "$GPUCR" -j "$@" >"$W/out" 2>"$W/err" || rc=$?
	grep -q INJECTED "$W/trace" || fail "$call was not called"
	[[ $rc -eq $status ]] || fail "status $rc, not $status: $(cat "$W/out")"
	is_json ".error.token == \"$token\""
}

ends_at_copy() {
	inject pidfd_getfd ESRCH 5 process-gone bo pid "$(pid_of gem)"
	inject pidfd_getfd ESRCH 5 process-gone vma pid "$(pid_of gem)"
}

closes_at_copy() {
	inject pidfd_getfd EBADF 5 list-changed bo pid "$(pid_of gem)"
	inject pidfd_getfd EBADF 5 list-changed vma pid "$(pid_of gem)"
}

# In earnest: killed at a random moment, many times. Whatever the moment, one of the right endings.
race() {
	local i rc n=0
	for ((i = 0; i < 25; i++)); do
		rm -f "$W/race.json"
		gem_start race vgem || fail "gemtruth does not run"
		(sleep "0.0$((i % 10))$((RANDOM % 10))" && kill -KILL "$(pid_of race)") &
		rc=0
		"$GPUCR" -j bo pid "$(pid_of race)" >"$W/out" 2>"$W/err" || rc=$?
		wait
		case $rc in
		0) is_json '.data | length == 5' ;;
		1) is_json '.error.token == "no-process"' ;;
		5) is_json '.error.token == "process-gone" or .error.token == "list-changed"' ;;
		*) fail "status $rc: $(cat "$W/out" "$W/err")" ;;
		esac
		[[ $rc -eq 0 ]] || n=$((n + 1))
	done
	echo "$n of 25 ended first"
	[[ $n -gt 0 && $n -lt 25 ]] || fail "$n of 25 ended first: the race was no race"
}

need_modules gpucr vgem
command -v strace >/dev/null || bail "no strace"
gem_start gem vgem || bail "gemtruth does not run on vgem"
plan 5
check "no such process" never_there
check "one that has ended but not been waited for" zombie
check "one that ends at the moment of the copy" ends_at_copy
check "a descriptor that is closed at that moment" closes_at_copy
check "killed at random moments" race
finish
