#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# gpucr monitor, on the progress of a dump that only pretends. The bar on a terminal is not looked at here.
W=$(mktemp -d "${TMPDIR:-/tmp}/gpucr-monitor.XXXXXX")
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$W"' EXIT
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

GPUCR=${GPUCR:-gpucr}
DUMP=${O:-/src/build/trixie-san}/selftests/image/progress_test

monitor() {
	local status=$1 rc=0
	shift
	"$GPUCR" "$@" >"$W/out" 2>"$W/err" </dev/null || rc=$?
	[[ $rc -eq $status && ! -s $W/err ]] || fail "gpucr $*: status $rc, not $status: $(cat "$W/out" "$W/err")"
}

begin() {
	"$DUMP" 300 3 >/dev/null &
	PID=$!
	wait_for 10 test -s "/run/gpucr/$PID.json"
}

end() {
	kill "$PID"
	wait "$PID" 2>/dev/null || true
}

# Rising, to the end, each line an object of its own.
as_json() {
	begin
	monitor 4 -j monitor pid "$PID" timeout 6 count 1000
	grep -qvE '^\{"gpucr":1,"object":"progress","pid":'"$PID"',.*"kind":"dump","target":4711,.*\}$' "$W/out" &&
		fail "$(cat "$W/out")"
	[[ $(wc -l <"$W/out") -ge 3 ]] || fail "$(cat "$W/out")"
	sed 's/.*"done":\([0-9]*\),.*/\1/' "$W/out" | sort -nc
	tail -n 1 "$W/out" | grep -q '"phase":"done","done":314572800,"total":314572800,'
	grep -q '"sum"' "$W/out" && fail "the checksum is of no use any more"
	end
}

as_lines() {
	begin
	monitor 0 monitor pid 4711 count 2
	[[ $(wc -l <"$W/out") -eq 2 ]]
	grep -E '^[0-9:.]+ dump pid 4711 copy [0-9.]+ (MiB|KiB|B) of 300 MiB +[0-9]+% +[0-9.]+ GB/s +[0-9]+:[0-9]{2} left +\[#*\.*\]$' \
		"$W/out" || fail "$(cat "$W/out")"
	end
}

others() {
	begin
	monitor 0 -j monitor pid 4712 timeout 1
	[[ ! -s $W/out ]]
	monitor 0 -j monitor session abc timeout 1
	[[ ! -s $W/out ]]
	end
	monitor 0 -j monitor timeout 1
	[[ ! -s $W/out ]] || fail "a dead one: $(cat "$W/out")"
}

plan 3
check "as JSON, to the end" as_json
check "as lines" as_lines
check "nothing of others, nothing of the dead" others
finish
