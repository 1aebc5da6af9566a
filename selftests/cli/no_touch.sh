#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# Looking at a process leaves no trace in it: no ptrace, no ioctl, no signal, and nobody becomes its tracer.
. "$(dirname "$0")/lib.sh"

# traced ARG...: system calls of gpucr in $W/trace
traced() {
	strace -f -o "$W/trace" "$GPUCR" "$@" >"$W/out" 2>"$W/err" || fail "gpucr $*: status $?: $(cat "$W/err")"
	grep -q 'execve(' "$W/trace" || fail "strace saw nothing"
}

untouched() {
	traced "$@"
	! grep -E '[0-9]+ +(ptrace|kill|tkill|tgkill|pidfd_send_signal|process_vm_readv|process_vm_writev|process_madvise)\(' \
		"$W/trace" || fail "gpucr $*: touches processes"
	# A question to its own standard output (is it a terminal?) is none to the target.
	! grep -E 'ioctl\(' "$W/trace" | grep -v 'ioctl(1, TCGETS' || fail "gpucr $*: issues an ioctl"
}

asks_through_copies() {
	grep -q 'pidfd_getfd(' "$W/trace" || fail "no descriptor was copied"
}

bo() {
	untouched -j bo pid "$PID"
	asks_through_copies
	is_json '.data | length > 0'
}

vma() {
	untouched -j vma pid "$PID"
	asks_through_copies
	is_json '.data | length > 0'
}

state_of() {
	grep -E '^(State|TracerPid|SigPnd|ShdPnd|SigBlk):' "/proc/$PID/status"
	cat "/proc/$PID/wchan"
}

# strace itself is asked to prove that it would see what is searched for.
strace_sees() {
	strace -f -o "$W/trace" strace -o /dev/null true || true
	grep -q 'ptrace(' "$W/trace"
}

state_kept() {
	local before i
	before=$(state_of)
	for ((i = 0; i < 7; i++)); do
		answered bo pid "$PID"
		answered vma pid "$PID"
		answered file pid "$PID"
	done
	[[ $(state_of) == "$before" ]] || fail "before: $before; after: $(state_of)"
	grep -q '^TracerPid:[[:space:]]*0$' "/proc/$PID/status"
}

need_modules gpucr vgem
command -v strace >/dev/null || bail "no strace"
gem_start gem vgem || bail "gemtruth does not run on vgem"
app_start --queues 1 >"$W/app.out" 2>&1 || bail "vecloop does not run: $(tail -n 1 "$W/app.out")"
PID=$(pid_of gem)
plan 8
check "strace sees a ptrace where there is one" strace_sees
check "bo: no ptrace, no ioctl, no signal" bo
check "vma: no ptrace, no ioctl, no signal" vma
check "file: no ptrace, no ioctl, no signal" untouched -j file pid "$PID"
check "ps: no ptrace, no ioctl, no signal" untouched -j ps
check "queue: no ptrace, no ioctl, no signal" untouched -j queue pid "$(cat "$W/app.pid")"
check "state and tracer of the process are as before" state_kept
check "it lives" kill -0 "$PID"
finish
