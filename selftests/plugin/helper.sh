#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The module's recovery helper is missing, fails, is killed, or is forbidden: the session stays abandoned, "gpucr
# session" says what to run, and running just that mends it.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

PAUSED_AT=dump-file:before:2

load_with() {
	wait_for 10 module_idle
	modprobe -r gpucr
	modprobe gpucr "$@"
}

# How often the module has tried: a helper that leaves a trace, or none.
helper() {
	printf '#!/bin/bash\necho tried >>%s/tries\n%s\n' "$W" "$1" >"$W/helper"
	chmod +x "$W/helper"
	: >"$W/tries"
}

tried_thrice() {
	[[ $(wc -l <"$W/tries") -eq 3 ]]
}

# killed_when_paused: CRIU; the session stays as it is.
killed_when_paused() {
	gated_dump "$(app_pid)" "$PAUSED_AT"
	wait_reached ""
	criu_kill
	rm -f "$GATE"
	wait_for 10 is_abandoned || fail "not abandoned: $(gpucr session)"
}

is_abandoned() {
	[[ $(session_state) == abandoned ]]
}

# The very command that the tool prints.
mended_as_told() {
	local hint
	is_abandoned || fail "not abandoned any more"
	is_evicted "$(app_pid)" || fail "its queues run"
	gpucr session
	hint=$(gpucr -j session | jq -r '.data[0].hint')
	[[ $hint == "run: gpucr session recover id "* ]] || fail "no hint: $hint"
	bash -c "${hint#run: }"
	queues_move "$(app_pid)"
	app_goes_on 3
	[[ $(session_state) == none ]] || fail "a session is left"
}

missing() {
	load_with recovery_helper=/nonexistent/gpucr
	killed_when_paused
	sleep 4
	mended_as_told
}

disabled() {
	load_with recovery_helper=
	killed_when_paused
	sleep 1
	mended_as_told
}

failing() {
	helper "$1"
	load_with recovery_helper="$W/helper"
	killed_when_paused
	wait_for 20 tried_thrice || fail "tried: $(wc -l <"$W/tries")"
	sleep 2
	tried_thrice || fail "tried more than three times"
	mended_as_told
}

forbidden() {
	load_with
	mkdir -p /run/gpucr
	touch /run/gpucr/no-recover
	killed_when_paused
	sleep 4
	mended_as_told
	rm /run/gpucr/no-recover
}

# By pid it is the same.
by_pid() {
	load_with recovery_helper=
	killed_when_paused
	gpucr -j session recover pid "$(app_pid)" | jq -e '.data[0].state == "recovered" and .data[0].id != null'
	queues_move "$(app_pid)"
	[[ $(session_state) == none ]] || fail "a session is left"
}

# KFD refuses every UNPAUSE after the first, the helper's too; later it can be mended.
stubborn() {
	load_with
	fault "point=criu-unpause errno=5 count=0 nth=2"
	criu_dump --leave-running || true
	grep -a "(unpause-failed).*gpucr session recover pid" "$IMG/dump.log" || fail "what to do is not said"
	wait_for 20 is_abandoned || fail "not abandoned: $(gpucr session)"
	sleep 4
	faults_clear
	mended_as_told
	rm -rf "$IMG"
}

works_again() {
	load_with
	killed_when_paused_any
	queues_move "$(app_pid)"
	app_goes_on 3
	app_kill
	sim_becomes_empty
	no_session_left
}

killed_when_paused_any() {
	gated_dump "$(app_pid)" "$PAUSED_AT"
	wait_reached ""
	criu_kill
	rm -f "$GATE"
}

has_gpucr || skip_all "module gpucr is not loaded"
export GPUCR_BACKEND=netlink
plan 9
must "start" app_start --heap vram,gtt --bos 2 --queues 2 --size 256K
check "the helper is missing" missing
check "the helper is switched off" disabled
check "the helper fails" failing "exit 1"
check "the helper is killed" failing 'kill -KILL $$'
check "the helper is forbidden by /run/gpucr/no-recover" forbidden
check "recovered by pid" by_pid
check "KFD refuses for long" stubborn
check "with a helper that works, it goes on by itself" works_again
finish
