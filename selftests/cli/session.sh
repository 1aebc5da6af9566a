#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# Sessions: shown in every state, abandoned when their owner is killed, recovered by hand and by the module.
. "$(dirname "$0")/lib.sh"

kfd_fd() {
	"$GPUCR" -j file pid "$PID" | jq '.data[] | select(.kind == "kfd") | .fd'
}

# hold [new]: a session on the application; its id in $W/id, its owner's pid in $W/hold.started
hold() {
	rm -f "$W/id"
	"$HELPERS/holdsession" "$PID" "$(kfd_fd)" "$@" >"$W/id" 2>"$W/hold.err" &
	started hold $!
	disown
	wait_for "$PATIENCE" test -s "$W/id" || fail "no session: $(cat "$W/hold.err")"
}

id() {
	cat "$W/id"
}

release() {
	kill -KILL "$(pid_of hold)"
}

# state_is STATE: of the session
state_is() {
	"$GPUCR" -j session id "$(id)" >"$W/out" 2>"$W/err" && jq -e ".data[0].state == \"$1\"" "$W/out" >/dev/null
}

gone() {
	local rc=0
	"$GPUCR" session id "$(id)" >/dev/null 2>&1 || rc=$?
	[[ $rc -eq 1 ]]
}

counter() {
	"$GPUCR" -j info | jq ".data[0].sessions.$1"
}

stands_still() {
	local before
	sleep 0.5
	before=$(step)
	sleep 2
	[[ $(step) == "$before" ]] || fail "steps go on: $before, $(step)"
}

nothing_there() {
	answered session
	is_json '.data == []'
	refused 1 no-session session id 1234
	refused 1 no-session session recover id 0xabcdef
}

new_session() {
	hold new
	answered session
	is_json ".data | length == 1 and .[0].id == \"$(id)\" and .[0].pid == $PID and .[0].kind == \"dump\" and
		.[0].state == \"new\" and .[0].owner == {pid: $(pid_of hold), comm: \"holdsession\", gone: false} and
		.[0].paused_us == null and .[0].hint == null and .[0].age_us >= 0"
	answered ps pid "$PID"
	is_json '.data[0].state == "running"'
	release
	wait_for "$PATIENCE" gone || fail "the session outlives its owner"
	app_goes_on
}

id_forms() {
	local form
	hold
	for form in "$(id)" "0x$(id)" "$(id | tr a-f A-F)" "$(printf '%u' "0x$(id)")"; do
		answered session id "$form"
		is_json ".data | length == 1 and .[0].id == \"$(id)\""
	done
}

paused() {
	state_is paused || fail "not paused"
	stands_still
	answered ps pid "$PID"
	is_json ".data[0].state == \"paused\" and .data[0].session == \"$(id)\""
	expect 0 ps pid "$PID"
	grep -q "paused by $(id)$" "$W/out" || fail "the table does not say who paused it"
	answered session id "$(id)"
	is_json '.data[0].paused_us > 0 and .data[0].num_devices == 1 and .data[0].num_bos > 0 and .data[0].priv_size > 0'
}

live_is_refused() {
	refused 1 session-live session recover id "$(id)"
	state_is paused || fail "no longer paused"
}

abandoned() {
	release
	wait_for "$PATIENCE" state_is abandoned || fail "not abandoned: $(cat "$W/out" "$W/err")"
	is_json ".data[0].owner.gone and .data[0].hint == \"run: gpucr session recover id $(id)\""
	expect 0 session
	grep -qE "^$(id) +$PID +dump +abandoned +holdsession .*\(gone\).* run: gpucr session recover id $(id)$" "$W/out" || {
		show_run
		fail "the table does not say what to do"
	}
	answered ps pid "$PID"
	is_json ".data[0].state == \"paused\" and .data[0].session == \"$(id)\""
	stands_still
}

# Somebody else traces the target: a sentence, and another try works.
traced() {
	local tracer
	strace -qq -o /dev/null -p "$PID" &
	tracer=$!
	started tracer "$tracer"
	wait_for "$PATIENCE" grep -q "^TracerPid:[[:space:]]*$tracer" "/proc/$PID/status"
	refused 1 target-traced session recover id "$(id)"
	kill -INT "$tracer"
	wait "$tracer" || true
	state_is abandoned
}

# Signals that come meanwhile stop a traced process: it must not stay so.
by_hand() {
	local before signals
	before=$(counter recovered)
	(while kill -WINCH "$PID"; do sleep 0.002; done) 2>/dev/null &
	signals=$!
	started signals "$signals"
	expect 0 -j session recover id "$(id)"
	is_json ".data[0] == {id: \"$(id)\", pid: $PID, state: \"recovered\"}"
	kill "$signals"
	app_goes_on
	grep -q '^State:[[:space:]]*[RSD]' "/proc/$PID/status" || fail "stopped: $(grep State "/proc/$PID/status")"
	[[ $(counter recovered) -eq $((before + 1)) ]] || fail "not counted as recovered"
	grep -q '^TracerPid:[[:space:]]*0$' "/proc/$PID/status" || fail "still traced"
	answered ps pid "$PID"
	is_json '.data[0].state == "running"'
}

# The module runs the tool itself.
by_module() {
	local before
	modprobe -r gpucr
	modprobe gpucr
	answered info
	is_json '.data[0].recovery_helper == "/usr/sbin/gpucr"'
	before=$(counter recovered)
	hold
	state_is paused
	stands_still
	release
	app_goes_on
	[[ $(counter recovered) -eq $((before + 1)) ]] || fail "not counted as recovered"
}

# Before an upgrade: nothing new, until it is said that it may.
draining() {
	answered session drain on
	is_json '.data == [{draining: true, open: 0}]'
	answered info
	is_json '.data[0].sessions.draining == true'
	rm -f "$W/id"
	if timeout 10 "$HELPERS/holdsession" "$PID" "$(kfd_fd)" new >"$W/id" 2>"$W/hold.err"; then
		fail "a session while draining"
	fi
	grep -q 'being upgraded' "$W/hold.err" || fail "refused without the sentence: $(cat "$W/hold.err")"
	refused 2 usage session drain maybe
	answered session drain off
	is_json '.data == [{draining: false, open: 0}]'
	new_session
}

need_modules kfdsim
modprobe -r gpucr
modprobe gpucr recovery_helper= || bail "gpucr does not load"
app_start --queues 1 >"$W/app.out" 2>&1 || bail "vecloop does not run: $(tail -n 1 "$W/app.out")"
PID=$(cat "$W/app.pid")
plan 10
check "no session, unknown id" nothing_there
check "a session that is opened and ends" new_session
check "draining keeps new sessions out" draining
check "ids in hexadecimal, with 0x, and decimal" id_forms
check "a paused process is shown as such" paused
check "a session whose owner lives is not recovered" live_is_refused
check "the owner is killed: abandoned, with what to do" abandoned
check "a traced target is refused by name" traced
check "recovered by hand" by_hand
check "recovered by the module" by_module
finish
