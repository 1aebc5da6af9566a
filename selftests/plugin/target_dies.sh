#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The target of a dump is killed, stopped or frozen in its cgroup, in each state of the dump. Its VRAM is free soon after
# its death, nothing hangs, and what lives on goes on.
#
# Each must turn this red: a session that keeps the KFD file of a dead target; a guard or helper that waits for a target
# to stop; a plugin that keeps its copies when it has failed.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

STATES=(new paused checkpointed copying unpaused ended)
# The demand is two seconds; a guest without KVM may take more of its own for CRIU to end.
FREE_MS=${FREE_MS:-2000}
CGROUP=/sys/fs/cgroup/target

# point STATE: FAULT|AT as in kills.sh
point() {
	local early=dump-file:after:1
	has_checkpoint_devices && early=checkpoint-devices:after:1
	case $1 in
	new) echo "criu-process-info hang=1 count=1|" ;;
	paused) echo "|$early" ;;
	checkpointed) echo "|dump-file:after:1" ;;
	copying) echo "cs-submit hang=1 count=1|" ;;
	unpaused) echo "criu-checkpoint errno=5 count=1|dump-file:after:1" ;;
	ended) echo "|exit:after:1" ;;
	esac
}

start() {
	[[ -n $(app_pids) ]] || app_start --heap vram,gtt --bos 2 --queues 2 --size 256K
}

# CRIU stands still in that state.
come_to() {
	local fault at
	IFS='|' read -r fault at < <(point "$1")
	start
	[[ -z $fault ]] || fault "point=$fault"
	gated_dump "$(app_pid)" "$at"
	wait_reached "$([[ -n $at ]] || echo "${fault%% *}")"
}

# CRIU goes on from there.
release() {
	faults_clear
	rm -f "$GATE"
}

app_dead() {
	app_gone || grep -q '^State:[[:space:]]*[ZX]' "/proc/$(app_pid)/status" 2>/dev/null
}

# CRIU meets a dead target, and must not wait for it. What it holds by then (dma-bufs) goes with it.
killed() {
	local t0
	come_to "$1"
	kill -KILL "$(app_pid)"
	# The death of a process that CRIU traces is seen by all when CRIU has waited for it.
	release
	wait_for "$PATIENCE" criu_ended || fail "CRIU hangs"
	t0=$(now_ms)
	until sim_empty; do
		[[ $(($(now_ms) - t0)) -le $FREE_MS ]] || {
			cat "$SIM/stats"
			fail "VRAM is in use $FREE_MS ms later"
		}
	done
	wait_for 10 no_guard || fail "a guard is left"
	wait_for 10 no_session || fail "a session is left: $(gpucr session)"
}

no_session() {
	[[ $(session_state) == none ]]
}

# Both die, the target first: nobody is left to wait for anything.
killed_both() {
	local t0
	come_to "$1"
	kill -KILL "$(app_pid)"
	criu_kill
	t0=$(now_ms)
	release
	until sim_empty; do
		[[ $(($(now_ms) - t0)) -le $FREE_MS ]] || {
			cat "$SIM/stats"
			fail "VRAM is in use $FREE_MS ms later"
		}
	done
	wait_for "$PATIENCE" app_gone || fail "the target is left"
	wait_for 10 no_guard || fail "a guard is left"
	wait_for 10 no_session || fail "a session is left: $(gpucr session)"
}

unpaused_soon() {
	local t0
	t0=$(now_ms)
	until none_evicted "$(app_pid)"; do
		[[ $(($(now_ms) - t0)) -le $LIMIT_MS ]] || {
			cat "$SIM/queues"
			fail "still paused after $LIMIT_MS ms"
		}
	done
}

# It was stopped before the dump, and is so when CRIU has been killed.
stopped() {
	start
	kill -STOP "$(app_pid)"
	come_to "$1"
	criu_kill
	release
	unpaused_soon
	grep -q '^State:.*stopped' "/proc/$(app_pid)/status" || fail "not stopped any more"
	kill -CONT "$(app_pid)"
	goes_on
}

# SIGSTOP comes while CRIU has it.
stopped_meanwhile() {
	come_to "$1"
	kill -STOP "$(app_pid)"
	criu_kill
	release
	unpaused_soon
	kill -CONT "$(app_pid)"
	goes_on
}

goes_on() {
	wait_for "$PATIENCE" runnable "$(app_pid)" || fail "$(grep -E 'State|TracerPid' "/proc/$(app_pid)/status")"
	app_goes_on 3
	queues_move "$(app_pid)"
	wait_for 10 no_guard || fail "a guard is left"
	wait_for 10 no_session || fail "a session is left: $(gpucr session)"
}

# Somebody freezes its cgroup while it is paused; the recovery does not need it to run.
frozen() {
	mkdir -p "$CGROUP"
	come_to "$1"
	app_pid >"$CGROUP/cgroup.procs"
	echo 1 >"$CGROUP/cgroup.freeze"
	criu_kill
	release
	unpaused_soon
	echo 0 >"$CGROUP/cgroup.freeze"
	app_pid >/sys/fs/cgroup/cgroup.procs
	goes_on
}

# A frozen process dies by SIGKILL.
frozen_killed() {
	local t0
	mkdir -p "$CGROUP"
	come_to "$1"
	app_pid >"$CGROUP/cgroup.procs"
	echo 1 >"$CGROUP/cgroup.freeze"
	echo 1 >"$CGROUP/cgroup.kill"
	release
	wait_for "$PATIENCE" criu_ended || fail "CRIU hangs"
	t0=$(now_ms)
	until sim_empty; do
		[[ $(($(now_ms) - t0)) -le $FREE_MS ]] || fail "VRAM is in use $FREE_MS ms later"
	done
	echo 0 >"$CGROUP/cgroup.freeze"
	wait_for 10 no_guard || fail "a guard is left"
}

each() {
	local state fn=$1
	shift
	for state in "$@"; do
		echo "$fn in $state"
		"$fn" "$state"
	done
}

undo() {
	faults_clear
	rm -f "$GATE"
	[[ ! -d $CGROUP ]] || echo 0 >"$CGROUP/cgroup.freeze"
	[[ -z $(pgrep -x criu) ]] || pgrep -x criu | xargs kill -KILL
	app_pids | xargs -r kill -KILL
	app_pids | xargs -r kill -CONT
	return 0
}

ends() {
	[[ -z $(app_pids) ]] || app_kill
	sim_becomes_empty
	no_session_left
}

round() {
	export GPUCR_BACKEND=$1
	check "$1: killed: VRAM is free, CRIU does not hang" each killed "${STATES[@]}"
	undo
	check "$1: killed with CRIU: VRAM is free" each killed_both new paused copying
	undo
	check "$1: stopped before: unpaused, and still stopped" each stopped new paused copying
	undo
	check "$1: stopped meanwhile: unpaused" each stopped_meanwhile paused checkpointed
	undo
	check "$1: frozen meanwhile: unpaused" each frozen paused copying
	undo
	check "$1: frozen and killed: VRAM is free" each frozen_killed paused copying
	undo
	check "$1: nothing left" ends
}

plan 14
round netlink
round ioctl
finish
