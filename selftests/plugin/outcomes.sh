#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# However CRIU ends a dump, what was paused is undone, once: a pre-dump, a time-out, a file that CRIU itself cannot dump,
# half a unix socket that it finds behind all of ours, a task of the tree killed meanwhile (CRIU leaves without its hooks),
# a post-dump script that fails, or that takes the images away.
#
# Each must turn it red: no unpause in the destructor; a pause in a pre-dump; manifests that are written at the end; our
# files removed only where the error was ours.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

start() {
	rm -rf "$IMG" "$LOG".*
	app_start --heap vram,gtt --bos 2 --queues 2 --size 256K "$@"
	app_goes_on 2
}

no_session() {
	! has_gpucr || module_idle
}

still_runs() {
	local pid
	pid=$(app_pid)
	wait_for "$PATIENCE" runnable "$pid" || fail "stopped or traced"
	app_goes_on 3
	queues_move "$pid"
	wait_for 10 no_guard || fail "a guard is left"
	wait_for 10 no_session || fail "a session is left"
}

# What our plugin says happens once for each process.
paused_once() {
	[[ $(grep -a -c 'gpucr: pid [0-9]*: paused' "$IMG/dump.log") -eq 1 ]] || fail "$(grep -a gpucr "$IMG/dump.log")"
}

undone_once() {
	[[ $(grep -a -c 'gpucr: pid [0-9]*: unpaused' "$IMG/dump.log") -eq 1 ]] || fail "$(grep -a gpucr "$IMG/dump.log")"
}

pre_dump() {
	local before
	before=$(stat_value processes)
	mkdir -p "$IMG"
	criu pre-dump -t "$(app_pid)" -D "$IMG" -o pre.log -v4 || fail "$(grep -a -E 'Error|gpucr' "$IMG/pre.log")"
	! grep -a 'gpucr.*paused' "$IMG/pre.log" || fail "a pre-dump paused it"
	[[ $(stat_value processes) -eq $before ]]
	no_files
	still_runs
}

no_files() {
	[[ -z $(find "$IMG" -name '*gpucr*') ]] || fail "left: $(find "$IMG" -name '*gpucr*')"
}

# Whose failure it was: none of ours is told where there was none.
report_says_whose() {
	jq -e '.result == "failed" and .paused_us > 0 and (has("error") | not)' "$IMG/amdgpu-report.json" ||
		fail "$(cat "$IMG/amdgpu-report.json")"
}

# CRIU's time-out is for the freezing; what comes after may take as long as it needs.
timeout_passes() {
	rm -rf "$IMG"
	fault "point=criu-checkpoint delay_ms=2500 count=1"
	criu_dump --leave-running --timeout 1
	faults_clear
	paused_once
	still_runs
}

# CRIU's own, but for what it says of kernels without tun at each start.
first_error() {
	grep -a 'Error (' "$IMG/dump.log" | grep -v criu/tun.c | head -n 1
}

# failed_by_criu PATTERN OPTION...: CRIU itself says no, after us.
failed_by_criu() {
	! criu_dump --leave-running >"$W/out" || fail "the dump succeeded"
	first_error | grep -E "$1" || fail "another error: $(cat "$W/out")"
	paused_once
	undone_once
	no_files
	grep -a 'dump failed outside of this plugin' "$IMG/dump.log" || fail "the plugin takes the blame"
	report_says_whose
	still_runs
}

unsupported_file() {
	app_kill
	start --hold "$TWIN_DEVICE"
	failed_by_criu "Can't dump file .* of that type"
	app_kill
	start
}

# Its number is above those of KFD and the render node: what they hold has been written when CRIU comes to it.
half_socket() {
	app_kill
	start --half-socket
	failed_by_criu "External socket is used|half of stream unix connection"
	grep -a 'gpucr: GPU 0x[0-9a-f]*: read [0-9]* BOs' "$IMG/dump.log" || fail "it failed before our part"
	app_kill
	start
}

# The .so's destructor is all that runs. Killed between hooks, while CRIU has its parasite in a task. Behind it are the guard
# and the module: without both, it must do.
sibling_killed() {
	one_killed
	[[ $GPUCR_BACKEND == netlink ]] || GPUCR_GUARD=off one_killed
}

one_killed() {
	local parent=$W/pid pid other
	app_kill
	start --procs 2
	pid=$(app_pid)
	other=$(pgrep -P "$pid" -x vecloop)
	gated_dump "$pid" dump-file:after:1
	wait_reached ""
	kill -KILL "$other"
	rm -f "$GATE"
	wait_for "$PATIENCE" criu_ended || fail "CRIU hangs"
	# vecloop's first process ends when another does: it must be able to.
	wait_for "$PATIENCE" runnable_or_gone "$pid" || fail "stopped: $(grep State "/proc/$pid/status")"
	wait_for "$PATIENCE" none_evicted_or_gone "$pid" || {
		cat "$SIM/queues"
		fail "queues stand still"
	}
	wait_for 10 no_guard || fail "a guard is left"
	wait_for 10 no_session || fail "a session is left"
	app_pids | xargs -r kill -KILL
	sim_becomes_empty
	rm -f "$parent"
	start
}

runnable_or_gone() {
	runnable "$1" || app_gone
}

none_evicted_or_gone() {
	none_evicted "$1" || app_gone
}

script() {
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/bash\n[[ $CRTOOLS_SCRIPT_ACTION == post-dump ]] || exit 0\n%s\n' "$1" >"$W/script"
	chmod 755 "$W/script"
}

script_fails() {
	rm -rf "$IMG"
	script 'exit 7'
	! criu_dump --action-script "$W/script" >"$W/out" || fail "the dump succeeded"
	paused_once
	still_runs
}

# Who takes the images in the script has all of them.
script_copies() {
	rm -rf "$IMG"
	script "cp -r $IMG $W/copy"
	criu_dump --action-script "$W/script"
	app_gone
	rm -rf "$IMG"
	mv "$W/copy" "$IMG"
	gpucr image verify "$IMG"
	criu_restore
	app_goes_on 3
	queues_move "$(app_pid)"
}

# Both would pause; neither may.
two_of_a_name() {
	rm -rf "$IMG" "$W/libs"
	mkdir -p "$W/libs"
	cp "$PLUGIN" "$W/libs/a.so"
	cp "$PLUGIN" "$W/libs/b.so"
	! criu_dump -L "$W/libs" >"$W/out" || fail "the dump succeeded"
	grep -a 'libs/a.so.*libs/b.so.*(plugin-twice)\|libs/b.so.*libs/a.so.*(plugin-twice)' "$IMG/dump.log" || fail "$(cat "$W/out")"
	! grep -a 'gpucr.*: paused' "$IMG/dump.log" || fail "it was paused"
	no_files
	still_runs
}

# What reads CRIU's output must see its end.
to_a_pipe() {
	rm -rf "$IMG"
	mkdir -p "$IMG"
	timeout "$PATIENCE" bash -c "criu dump -t $(app_pid) -D $IMG -o dump.log -v4 2>&1 | cat" || fail "no end"
	wait_for "$PATIENCE" app_gone
	[[ -z $(pgrep -x criu) ]]
	wait_for 10 no_guard || fail "a guard is left"
	criu_restore
	app_goes_on 3
}

ends() {
	app_kill
	sim_becomes_empty
	no_session_left
}

round() {
	export GPUCR_BACKEND=$1
	must "$1: start" start
	check "$1: pre-dump: nothing is paused" pre_dump
	check "$1: --timeout is not for us" timeout_passes
	check "$1: a file that CRIU cannot dump" unsupported_file
	check "$1: one end of a unix socket that leads out of the tree" half_socket
	check "$1: a task of the tree killed in the dump" sibling_killed
	check "$1: two plugins of our name: neither does anything" two_of_a_name
	check "$1: a post-dump script that fails" script_fails
	check "$1: images taken by a post-dump script restore" script_copies
	check "$1: criu in a pipe ends in time" to_a_pipe
	check "$1: nothing left" ends
}

read -ra backends <<<"${BACKENDS:-netlink ioctl}"
has_gpucr || backends=(ioctl)
plan $((11 * ${#backends[@]}))
for backend in "${backends[@]}"; do
	round "$backend"
done
finish
