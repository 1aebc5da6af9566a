# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# For the tests of dump and restore, which run in a guest with the simulator loaded. Sourced, never run.

SIM=/sys/kernel/debug/kfdsim
# Seconds that anything may take; generous, since a failure is rare and a guest without KVM is slow.
PATIENCE=${PATIENCE:-60}
APP=${APP:-vecloop}

# Not named after us: a test looks for our name in logs that hold this path.
W=$(mktemp -d "${TMPDIR:-/tmp}/dump.XXXXXX")
IMG=$W/img
# Where the application logs. A file that it has open must be there at restore, with the same size.
LOG=$W/app.log
# shellcheck source=selftests/ktap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../ktap.sh"

cleanup() {
	local pid
	faults_clear
	for pid in $(app_pids); do
		kill -CONT "$pid" 2>/dev/null
		kill -KILL "$pid" 2>/dev/null
	done
	mountpoint -q "$W/small" && umount "$W/small"
	rm -rf "$W"
}
trap cleanup EXIT

# --- the application -------------------------------------------------------------------------------------------

app_pids() {
	# One by one: a pattern of more than 15 characters matches nothing in bookworm's pgrep.
	local name
	for name in vecloop thunkloop cpuloop shareloop; do
		pgrep -x "$name" || true
	done
}

# app_start [OPTION]...: $APP in the background, its first step done.
app_start() {
	rm -f "$LOG"
	"$APP" --log "$LOG" --pidfile "$W/pid" --delay-ms 20 "$@"
}

# Far from the ids of a young guest's own processes: the application must get its own again in another guest.
far_pid() {
	echo 20000 >/proc/sys/kernel/ns_last_pid
}

app_pid() {
	cat "$W/pid"
}

app_gone() {
	! kill -0 "$(app_pid)" 2>/dev/null
}

app_kill() {
	kill -KILL "$(app_pid)" 2>/dev/null || true
	wait_for "$PATIENCE" app_gone || fail "the application does not die"
}

# Last step that the application has reported.
step() {
	sed -n 's/^step \([0-9]*\) ok.*/\1/p' "$LOG" | tail -n 1
}

step_reached() {
	[[ $(step) -ge $1 ]]
}

# Steps go on, without a gap, without a mismatch, and the process lives.
app_goes_on() {
	local from
	from=$(step)
	wait_for "$PATIENCE" step_reached $((from + ${1:-5})) ||
		fail "step $from, then $(step): no progress; log ends with: $(tail -n 3 "$LOG")"
	app_log_good
}

app_log_good() {
	! grep -v -E '^(step|bo|gpu) ' "$LOG" || fail "the application complains"
	sed -n 's/^step \([0-9]*\) ok.*/\1/p' "$LOG" | awk '$1 != ++n { print "step " $1 " where " n " was due"; exit 1 }'
}

# --- the shape of a process -------------------------------------------------------------------------------------

# Descriptors and what they are of.
fds() {
	find "/proc/$1/fd" -mindepth 1 -printf '%f %l\n' | sed -e 's/[0-9]*\]$/N]/' | sort
}

# Ranges, rights and what is mapped; a BO's offset is another each time. Two of the CPU's own that only follow each
# other may come back as one.
maps() {
	awk '
		{ split($1, range, "-") }
		range[1] == end && $2 == rights && $6 == what && what !~ /^\/dev/ { end = range[2]; next }
		start { print start, end, rights, what }
		{ start = range[1]; end = range[2]; rights = $2; what = $6 }
		END { print start, end, rights, what }' "/proc/$1/maps"
}

# --- the simulator ---------------------------------------------------------------------------------------------

# GPU, queue and number of packets retired, a line each: columns by name, so that new ones do no harm.
progress() {
	awk -v pid="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["pid"] == pid { print $col["gpu_id"] ":" $col["qid"], $col["progress"] }' "$SIM/queues" | sort
}

queues_moved() {
	local n
	n=$(join "$2" <(progress "$1") | awk '$3 >= $2 + 2' | wc -l)
	[[ $n -gt 0 && $n -eq $(wc -l <"$2") ]]
}

# Every queue of the process retires at least two packets more.
queues_move() {
	progress "$1" >"$W/progress.1"
	[[ -s $W/progress.1 ]] || fail "process $1 has no queue"
	wait_for "$PATIENCE" queues_moved "$1" "$W/progress.1" || {
		cat "$SIM/queues"
		fail "a queue of process $1 stands still"
	}
}

# digest PID [VA...]: va, size, domain and digest of each BO of the process, or of those at these addresses.
digest() {
	local pid=$1
	shift
	awk -v pid="$pid" -v want=" $* " '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		{ va = $col["va"]; sub(/^0x/, "", va) }
		$col["pid"] == pid && (want ~ /^ *$/ || index(want, " " va " ")) {
			print va, $col["size"], $col["domain"], $col["digest"]
		}' "$SIM/digest" | sort
}

# Addresses of the BOs that no step changes.
constant_bos() {
	sed -n 's/^bo .* heap \(vram\|gtt\) va \([0-9a-f]*\) .* constant$/\2/p' "$LOG"
}

stat_value() {
	# Not print: some awk turn large numbers into others.
	awk -v key="$1" '$1 == key { sum += $NF; n++ } END { if (n) printf "%.0f\n", sum; else exit 1 }' "$SIM/stats"
}

fault() {
	echo "$*" >"$SIM/fault"
}

faults_clear() {
	[[ ! -e $SIM/fault ]] || echo clear >"$SIM/fault" 2>/dev/null || true
}

# Nothing of any process is left in the simulator.
sim_empty() {
	[[ $(stat_value bos) -eq 0 && $(stat_value processes) -eq 0 && $(stat_value queues) -eq 0 ]]
}

sim_becomes_empty() {
	wait_for "$PATIENCE" sim_empty || {
		cat "$SIM/stats" "$SIM/queues"
		fail "something is left in the simulator"
	}
}

# --- CRIU ------------------------------------------------------------------------------------------------------

# criu_dump [OPTION]...: exit status is CRIU's; the log is $IMG/dump.log.
criu_dump() {
	mkdir -p "$IMG"
	criu dump -t "$(app_pid)" -D "$IMG" -o dump.log -v4 "$@" || {
		local rc=$?
		grep -a -E 'Error|Warn|gpucr|amdgpu' "$IMG/dump.log" | tail -n 25
		return $rc
	}
}

criu_restore() {
	criu restore -d -D "$IMG" -o restore.log -v4 "$@" || {
		local rc=$?
		grep -a -E 'Error|Warn|gpucr|amdgpu' "$IMG/restore.log" | tail -n 25
		return $rc
	}
}

has_gpucr() {
	[[ -d /sys/module/gpucr ]]
}

# No session, and nobody holds the module.
no_session_left() {
	has_gpucr || return 0
	wait_for 10 module_idle || fail "module gpucr is in use: $(cat /sys/module/gpucr/refcnt)"
	rmmod gpucr
	modprobe gpucr
}

module_idle() {
	[[ $(cat /sys/module/gpucr/refcnt) -eq 0 ]]
}
