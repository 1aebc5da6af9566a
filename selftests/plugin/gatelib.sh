# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# For tests that stop CRIU at one point and do something to it or to its target there. Sourced after lib.sh.

PLUGIN=${PLUGIN:-/usr/lib/criu/amdgpu_plugin.so}
HELPERS=${O:-/src/build/trixie}/selftests/plugin
GATE=$W/gate
# Where a queue must move again, in milliseconds of guest time; without KVM that is slow time.
LIMIT_MS=${LIMIT_MS:-5000}
TWIN_LOG=$W/twin.log

now_ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}

# A device file that CRIU does not know, for a process without GPU: the plugins are asked about it.
TWIN_DEVICE=/dev/cpu_dma_latency

twin_start() {
	rm -f "$TWIN_LOG"
	cpuloop --log "$TWIN_LOG" --pidfile "$W/twin.pid" --delay-ms 20 --size 64K --hold "$TWIN_DEVICE"
}

twin_step() {
	sed -n 's/^step \([0-9]*\) ok.*/\1/p' "$TWIN_LOG" | tail -n 1
}

# CRIU 3.17 has no CHECKPOINT_DEVICES: there the first file is the first that a plugin hears of.
has_checkpoint_devices() {
	[[ $(criu --version | sed -n 's/^Version: \([0-9]*\).*/\1/p') -ge 4 ]]
}

# gated_dump PID AT [OPTION]...: in the background, held still at AT ("": nowhere); CRIU's pid in $W/criu.pid
gated_dump() {
	local pid=$1 at=$2
	shift 2
	rm -rf "${W:?}/lib" "$W/gimg" "$GATE"
	mkdir -p "$W/lib" "$W/gimg"
	cp "$HELPERS/gate.so" "$W/lib/"
	GATE_PLUGIN=$PLUGIN GATE_FILE=$GATE ${at:+env "GATE_AT=$at"} setsid \
		criu dump -t "$pid" -L "$W/lib" -D "$W/gimg" -o dump.log -v4 "$@" >"$W/criu.out" 2>&1 </dev/null &
	echo $! >"$W/criu.pid"
	disown
}

criu_pid() {
	cat "$W/criu.pid"
}

criu_ended() {
	! kill -0 "$(criu_pid)" 2>/dev/null
}

# It may have died of what was done to its target.
criu_kill() {
	kill -KILL "$(criu_pid)" 2>/dev/null || true
	wait_for "$PATIENCE" criu_ended || fail "criu does not die"
}

# An operation that hangs by a fault of the simulator: it was reached when the fault has fired.
fault_fired() {
	grep -q "^point=$1 .*fired=[1-9]" "$SIM/fault"
}

# reached FAULT: CRIU stands still, at the gate or ("" or a point of the simulator) in an operation.
reached() {
	criu_ended && return
	if [[ -n $1 ]]; then
		fault_fired "$1"
	else
		[[ -e $GATE ]]
	fi
}

wait_reached() {
	wait_for "$PATIENCE" reached "$1" && ! criu_ended && return
	grep -a -E 'Error|Warn|gpucr|amdgpu' "$W/gimg/dump.log" | tail -n 25
	fail "CRIU did not come to ${1:-the gate}"
}

# --- what became of the target ---------------------------------------------------------------------------------

# Nobody traces it, and it is not stopped.
runnable() {
	awk '/^State:/ && $2 ~ /[tTZX]/ { bad = 1 } /^TracerPid:/ && $2 { bad = 1 } END { exit bad || !NR }' \
		"/proc/$1/status" 2>/dev/null
}

# One line: how many of its queues are stopped, and how many there are.
evicted() {
	awk -v pid="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["pid"] == pid { n++; e += $col["evicted"] != 0 } END { print e + 0, n + 0 }' "$SIM/queues"
}

is_evicted() {
	local e n
	read -r e n < <(evicted "$1")
	[[ $n -gt 0 && $e -eq $n ]]
}

none_evicted() {
	local e n
	read -r e n < <(evicted "$1")
	[[ $n -gt 0 && $e -eq 0 ]]
}

# State of the one session that there is; "none".
session_state() {
	gpucr -j session | jq -r 'if .data | length > 1 then "many" else .data[0].state // "none" end'
}

# Who has GPU files open, but the process: CRIU and its like must have left none.
gpu_file_holders() {
	find /proc/[0-9]*/fd -lname '/dev/kfd' -o -lname '/dev/dri/renderD*' 2>/dev/null |
		sed 's|^/proc/\([0-9]*\)/.*|\1|' | sort -u | grep -vx "$1" || true
}

no_guard() {
	! pgrep -f 'gpucr session watch' >/dev/null
}
