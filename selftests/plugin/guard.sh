#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Without the module a guard undoes the pause of a killed CRIU. It is there before anything is paused, holds nothing of
# CRIU's open, and what it cannot do can be done by hand.
#
# Each must turn this red: descriptors that are not closed before the exec; a guard that is a child of CRIU's; a dump
# that goes on without its guard.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

PAUSED_AT=dump-file:before:2

guard_pid() {
	pgrep -f "session watch pid $(criu_pid)"
}

go_on() {
	rm -f "$GATE"
}

still_runs() {
	local pid
	pid=$(app_pid)
	wait_for "$PATIENCE" runnable "$pid" || fail "stopped or traced"
	app_goes_on 3
	queues_move "$pid"
	wait_for 10 no_guard || fail "a guard is left"
}

# What says no before anything is stopped.
refused() {
	! criu_dump || fail "the dump succeeded"
	grep -a "$1" "$IMG/dump.log" || fail "no $1: $(grep -a gpucr "$IMG/dump.log")"
	! grep -a -E 'gpucr.* paused, ' "$IMG/dump.log" || fail "it was paused for nothing"
	rm -rf "$IMG"
	still_runs
}

cannot_start() {
	GPUCR_GUARD=/nonexistent/gpucr refused 'No such file or directory (guard-failed)'
	GPUCR_GUARD=/bin/true refused '(guard-failed)'
}

switched_off() {
	GPUCR_GUARD=off criu_dump --leave-running
	! grep -a 'guard' "$IMG/dump.log" || fail "a guard is spoken of"
	rm -rf "$IMG"
	still_runs
}

stopped_at_pause() {
	gated_dump "$(app_pid)" "$PAUSED_AT" --leave-running
	wait_reached ""
	is_evicted "$(app_pid)" || fail "not paused"
	[[ -n $(guard_pid) ]] || fail "no guard"
}

# Its own socket and CRIU's pidfd, /dev/null for errors; no child of CRIU's, in a session of its own.
holds_nothing() {
	local guard
	stopped_at_pause
	guard=$(guard_pid)
	ls -l "/proc/$guard/fd"
	[[ $(find "/proc/$guard/fd" -lname 'socket:*' | wc -l) -eq 2 ]] || fail "its socket"
	[[ $(find "/proc/$guard/fd" -mindepth 1 | wc -l) -le 4 ]] || fail "more than it needs"
	! find "/proc/$guard/fd" -lname 'pipe:*' -o -lname "$W/*" | grep . || fail "files of CRIU's"
	awk '/^PPid:/ && $2 != 1 { exit 1 }' "/proc/$guard/status" || fail "not a child of init"
	[[ $(ps -o sid= -p "$guard") -ne $(ps -o sid= -p "$(criu_pid)") ]] || fail "in CRIU's session"
	go_on
	wait_for "$PATIENCE" criu_ended || fail "criu does not end"
	still_runs
}

# Container runtimes wait for the end of CRIU's pipes. The guard is stopped, so it is there for as long as we look.
pipe_ends() {
	local guard
	mkfifo "$W/pipe"
	cat "$W/pipe" >"$W/pipe.out" &
	echo $! >"$W/cat.pid"
	disown
	rm -rf "${W:?}/lib" "$W/gimg"
	mkdir -p "$W/lib" "$W/gimg"
	cp "$HELPERS/gate.so" "$W/lib/"
	GATE_PLUGIN=$PLUGIN GATE_FILE=$GATE GATE_AT=$PAUSED_AT setsid \
		criu dump -t "$(app_pid)" -L "$W/lib" -D "$W/gimg" -o dump.log -v4 >"$W/pipe" 2>&1 </dev/null &
	echo $! >"$W/criu.pid"
	disown
	wait_reached ""
	guard=$(guard_pid)
	kill -STOP "$guard"
	criu_kill
	wait_for "$PATIENCE" cat_ended || fail "the pipe has not ended"
	kill -0 "$guard" || fail "the guard has ended: this proves nothing"
	is_evicted "$(app_pid)" || fail "not paused: this proves nothing"
	kill -CONT "$guard"
	go_on
	still_runs
}

cat_ended() {
	! kill -0 "$(cat "$W/cat.pid")" 2>/dev/null
}

# When a dump is done CRIU waits for any child that it has.
stands_still() {
	local guard
	gated_dump "$(app_pid)" "$PAUSED_AT"
	wait_reached ""
	guard=$(guard_pid)
	kill -STOP "$guard"
	go_on
	wait_for "$PATIENCE" criu_ended || {
		kill -CONT "$guard"
		fail "criu waits for it"
	}
	app_gone || fail "it was not dumped: $(tail -n 3 "$W/gimg/dump.log")"
	kill -CONT "$guard"
	wait_for 10 no_guard || fail "it is left"
	IMG=$W/gimg criu_restore
	still_runs
}

# A killed guard leaves it to people.
by_hand() {
	local pid
	pid=$(app_pid)
	stopped_at_pause
	kill -KILL "$(guard_pid)"
	criu_kill
	go_on
	wait_for "$PATIENCE" runnable "$pid"
	sleep 2
	is_evicted "$pid" || fail "not paused: this proves nothing"
	gpucr -j session recover pid "$pid" >"$W/recover.json"
	jq -e ".data[0] == {id: null, pid: $pid, state: \"recovered\"}" "$W/recover.json"
	still_runs
	gpucr -j session recover pid "$pid" >"$W/recover.json"
	jq -e '.data[0].state == "running" and .warnings[0].token == "nothing-paused"' "$W/recover.json"
	still_runs
}

# While CRIU lives nobody else unpauses its target.
not_under_criu() {
	stopped_at_pause
	! gpucr -j session recover pid "$(app_pid)" >"$W/recover.json" || fail "it was recovered"
	jq -e '.error.token == "target-traced"' "$W/recover.json"
	is_evicted "$(app_pid)" || fail "not paused any more"
	go_on
	wait_for "$PATIENCE" criu_ended
	still_runs
}

forbidden() {
	local pid
	pid=$(app_pid)
	mkdir -p /run/gpucr
	touch /run/gpucr/no-recover
	stopped_at_pause
	criu_kill
	go_on
	wait_for "$PATIENCE" no_guard || fail "the guard does not end"
	is_evicted "$pid" || fail "it was recovered"
	gpucr session recover pid "$pid"
	rm /run/gpucr/no-recover
	still_runs
}

# UNPAUSE fails at the end of the dump, and after it: the guard goes on asking.
stubborn() {
	local pid
	pid=$(app_pid)
	fault "point=criu-unpause errno=5 count=0 nth=2"
	criu_dump --leave-running || true
	grep -a "(unpause-failed).*gpucr session recover pid $pid" "$IMG/dump.log" ||
		fail "what to do is not said: $(grep -a gpucr "$IMG/dump.log")"
	is_evicted "$pid" || fail "not paused: this proves nothing"
	sleep 2
	faults_clear
	still_runs
	rm -rf "$IMG"
}

ends() {
	app_kill
	sim_becomes_empty
	no_session_left
}

export GPUCR_BACKEND=ioctl
plan 12
must "start" app_start --heap vram,gtt --bos 2 --queues 2 --size 256K
check "no guard, no dump" cannot_start
check "guard = off" switched_off
check "it holds nothing of CRIU's" holds_nothing
check "a pipe of CRIU's ends when CRIU is killed, though the guard lives" pipe_ends
check "a killed guard: recovered by hand, without a session" by_hand
check "the target of a living CRIU is left alone" not_under_criu
check "no-recover forbids it, but not to people" forbidden
check "UNPAUSE keeps failing: it says what to do, and the guard goes on" stubborn
check "CRIU ends a dump while its guard stands still" stands_still
check "it still runs" still_runs
check "nothing left" ends
finish
