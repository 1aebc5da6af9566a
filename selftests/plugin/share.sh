#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A queue of one process writes memory that another process of the tree shares, while it is dumped. From CRIU 4.0 on the
# tree is paused before CRIU reads any of it, and what comes back has no hole; where the plugin is not asked in time (an
# older CRIU, another plugin that keeps the question) the dump is refused, by address.
#
# A pause in any later hook turns it red: the hole, and the refusals.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

SLOTS=1024

slot() {
	sed -n 's/^at \([0-9]*\)$/\1/p' "$LOG" | tail -n 1
}

slot_reached() {
	[[ $(slot) -ge $1 ]]
}

# The queue is in the middle of it. SysV memory is dumped with its namespace only.
start() {
	local wrap=()
	rm -rf "$IMG" "$LOG".*
	[[ $1 != sysv ]] || wrap=(unshare --ipc)
	rm -f "$LOG"
	"${wrap[@]}" shareloop --log "$LOG" --pidfile "$W/pid" --shared "$1"
	wait_for "$PATIENCE" slot_reached 10 || fail "the queue does not come to slot 10: $(cat "$LOG" "$LOG.1")"
}

whole() {
	grep -qx 'shared memory whole' "$LOG" && grep -qx 'vram whole' "$LOG.1"
}

becomes_whole() {
	wait_for $((2 * PATIENCE)) whole || fail "not whole: $(tail -n 2 "$LOG" "$LOG.1")"
	! grep -h shareloop: "$LOG" "$LOG.1" || fail "a hole"
}

ends() {
	app_pids | xargs -r kill -KILL
	sim_becomes_empty
}

consistent() {
	start "$1"
	criu_dump
	[[ -z $(app_pids) ]] || fail "a process is left"
	echo "dumped at slot $(slot)"
	[[ $(slot) -lt $SLOTS ]] || fail "the queue was done before the dump"
	sim_becomes_empty
	criu_restore
	becomes_whole
	ends
}

# refused OPTION...: of a dump that comes too late
refused() {
	local at
	! criu_dump "$@" >"$W/out" || fail "the dump succeeded"
	at=$(sed -n 's/.*a GPU can write the shared mapping at 0x\([0-9a-f]*\),.*(shared-early).*/\1/p' "$IMG/dump.log" | head -n 1)
	[[ -n $at ]] || fail "$(cat "$W/out")"
	cat /proc/"$(app_pid)"/maps >"$W/maps"
	grep -E "^0*$at-[0-9a-f]* rw-s " "$W/maps" || fail "nothing shared at $at: $(cat "$W/maps")"
	becomes_whole
	ends
}

# The numbers of a page are the same in both processes, since it was there before the fork.
either() {
	if has_checkpoint_devices; then
		consistent "$1"
	else
		start "$1"
		refused
	fi
}

swallowed() {
	has_checkpoint_devices || skip "CRIU has no such hook"
	start anon
	mkdir -p "$W/lib"
	cp "$HELPERS/gate.so" "$W/lib/"
	GATE_PLUGIN=$PLUGIN GATE_FILE=$GATE GATE_AT=checkpoint-devices:before:1 GATE_DO=swallow refused -L "$W/lib"
}

plan 5
check "MAP_SHARED|MAP_ANONYMOUS" either anon
check "memfd" either memfd
check "SysV" either sysv
check "a plugin in front keeps the first question: refused" swallowed
check "nothing left" no_session_left
finish
