#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# CRIU is killed in each state of a dump, which is seen to be that state, with a process without GPU killed at the
# same hook as a twin: where the twin lives on, so does the GPU process, and its queues move again.
#
#	BACKENDS="netlink ioctl"   KILLS=N kills in each state [2]
#
# Each must turn this red: no watch in the module; a guard that is not started, or whose list stays empty; one more
# PROCESS_INFO than UNPAUSEs with personality 6.1.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

KILLS=${KILLS:-2}
BACKENDS=${BACKENDS:-netlink ioctl}
STATES=(new paused checkpointed copying unpaused ended)

# points STATE: lines "FAULT|AT|TWIN", by turns. FAULT: the operation that hangs; AT: the gate; TWIN: the twin's gate.
points() {
	local early=dump-file:before:1
	has_checkpoint_devices && early=checkpoint-devices:before:1
	case $1 in
	new)
		echo "criu-unpause hang=1 count=1||$early"
		echo "criu-process-info hang=1 count=1||$early"
		;;
	paused)
		echo "criu-checkpoint hang=1 count=1||dump-file:before:1"
		! has_checkpoint_devices || echo "|checkpoint-devices:after:1|checkpoint-devices:after:1"
		;;
	checkpointed)
		echo "|dump-file:after:1|dump-file:after:1"
		echo "|exit:before:1|exit:before:1"
		;;
	copying)
		echo "cs-submit hang=1 count=1||dump-file:before:1"
		echo "cs-submit hang=1 count=1 nth=3||dump-file:before:1"
		;;
	# A dump that has failed undoes the pause at once, and CRIU goes on for a while.
	unpaused) echo "criu-checkpoint errno=5 count=1|dump-file:after:1|dump-file:after:1" ;;
	ended) echo "|exit:after:1|exit:after:1" ;;
	esac
}

# What the module, or without it the queues, say of the state that we want to kill in.
in_state() {
	local says
	if [[ $GPUCR_BACKEND == netlink ]]; then
		says=$(session_state)
	elif is_evicted "$(app_pid)"; then
		says=evicted
	else
		says=running
	fi
	case $1.$says in
	copying.checkpointed | ended.none) return ;;
	paused.evicted | checkpointed.evicted | copying.evicted) return ;;
	new.running | unpaused.running | ended.running) return ;;
	esac
	[[ $1 == "$says" ]] || fail "wanted: $1, but it is $says"
}

# kill_twin AT: does a process without GPU survive it?
kill_twin() {
	local pid from
	twin_start
	pid=$(cat "$W/twin.pid")
	gated_dump "$pid" "$1"
	wait_reached ""
	from=$(twin_step)
	criu_kill
	rm -f "$GATE"
	twin_lives "$pid" "$from"
}

twin_lives() {
	local alive=no
	! wait_for 10 twin_moved "$1" "$2" || alive=yes
	kill -KILL "$1" 2>/dev/null
	echo $alive >"$W/twin.alive"
}

twin_moved() {
	runnable "$1" && [[ $(twin_step) -ge $(($2 + 2)) ]]
}

# How long after it could run again did its queues move?
queues_move_soon() {
	local pid=$1 t0
	wait_for "$PATIENCE" runnable "$pid" || fail "stopped or traced: $(grep -E 'State|TracerPid' "/proc/$pid/status")"
	t0=$(now_ms)
	progress "$pid" >"$W/progress.1"
	until queues_moved "$pid" "$W/progress.1"; do
		[[ $(($(now_ms) - t0)) -le $LIMIT_MS ]] || {
			cat "$SIM/queues"
			fail "a queue stands still $LIMIT_MS ms after it could move"
		}
	done
	echo $(($(now_ms) - t0)) >>"$W/ms"
}

# The module said what happened, of this process; each kill has a log of its own.
events_told() {
	local want="abandoned recovered" seen
	[[ $1 == paused || $1 == checkpointed || $1 == copying ]] || want=
	seen=$(awk '$2 == "abandoned" || $2 == "recovered" { printf "%s ", $2 }' "$W/events")
	[[ ${seen% } == "$want" ]] || {
		cat "$W/events"
		return 1
	}
}

listen() {
	[[ $GPUCR_BACKEND == netlink ]] || return 0
	"$HELPERS/events" >"$W/events" 2>&1 &
	echo $! >"$W/events.pid"
	disown
	wait_for "$PATIENCE" grep -q listening "$W/events" || fail "no events: $(cat "$W/events")"
}

told() {
	[[ $GPUCR_BACKEND == netlink ]] || return 0
	wait_for 5 events_told "$1" || fail "killed in $1: wrong events"
	wait_for 5 no_session || fail "a session is left: $(gpucr session)"
}

no_session() {
	[[ $(session_state) == none ]]
}

listen_no_more() {
	[[ ! -s $W/events.pid ]] || kill "$(cat "$W/events.pid")" 2>/dev/null || true
	rm -f "$W/events.pid"
}

nothing_held() {
	wait_for 10 no_guard || fail "a guard is left: $(pgrep -af 'gpucr session')"
	[[ -z $(gpu_file_holders "$(app_pid)") ]] || fail "GPU files are held by $(gpu_file_holders "$(app_pid)")"
	[[ -z $(pgrep -x criu) ]] || fail "a criu is left"
}

next_dump_works() {
	criu_dump --leave-running >"$W/next.out" || {
		cat "$W/next.out"
		fail "the next dump fails"
	}
	rm -rf "$IMG"
	app_goes_on 2
}

# kill_at STATE FAULT AT TWIN
kill_at() {
	local state=$1 fault=$2 at=$3 pid
	kill_twin "$4"
	app_gone && app_start --heap vram,gtt --bos 2 --queues 2 --size 512K
	pid=$(app_pid)
	listen
	[[ -z $fault ]] || fault "point=$fault"
	gated_dump "$pid" "$at"
	wait_reached "$([[ -n $at ]] || echo "${fault%% *}")"
	in_state "$state"
	criu_kill
	faults_clear
	rm -f "$GATE"
	echo "$state $(cat "$W/twin.alive")" >>"$W/histogram"
	if [[ $(cat "$W/twin.alive") == no ]] && app_gone; then
		listen_no_more
		return 0
	fi
	queues_move_soon "$pid"
	app_goes_on 2
	told "$state"
	listen_no_more
	nothing_held
	next_dump_works
}

# kills STATE: as many as are asked for, at each of its points by turns
kills() {
	local i list
	mapfile -t list < <(points "$1")
	for ((i = 0; i < KILLS; i++)); do
		IFS='|' read -r fault at twin <<<"${list[i % ${#list[@]}]}"
		echo "kill $((i + 1)) in $1: ${fault:-$at}"
		kill_at "$1" "$fault" "$at" "$twin"
	done
}

# Twins that did not survive excuse a target: there must be few, and none early.
histogram() {
	local state
	for state in "${STATES[@]}"; do
		awk -v s="$state" '$1 == s { n++; dead += $2 == "no" }
			END { printf "killed in %-12s %3d, twins that died of it: %d\n", s, n, dead }' "$W/histogram"
	done | tee "$W/table"
	sort -n "$W/ms" | awk '{ v[NR] = $1 } END { print "queues moved again after ms: median", v[int((NR + 1) / 2)], "worst", v[NR] }' |
		tee -a "$W/table"
	! awk '$1 != "ended" && $2 == "no" { bad = 1 } END { exit !bad }' "$W/histogram" || fail "a twin died early"
	awk -v want="$KILLS" '{ n[$1]++ } END { for (s in n) if (n[s] < want) exit 1 }' "$W/histogram"
	[[ $(cut -d' ' -f1 "$W/histogram" | sort -u | wc -l) -eq ${#STATES[@]} ]]
}

ends() {
	app_kill
	sim_becomes_empty
	no_session_left
}

round() {
	local state
	export GPUCR_BACKEND=$1
	: >"$W/histogram"
	: >"$W/ms"
	for state in "${STATES[@]}"; do
		check "$1: killed in $state: the process and its queues go on" kills "$state"
		faults_clear
		listen_no_more
	done
	check "$1: each state was met" histogram
	sed "s/^/# $1: /" "$W/table"
	check "$1: nothing left" ends
}

# Small ones, so that there are several copies to be killed in.
export GPUCR_MAX_BUFFER_SIZE=1M
read -ra backends <<<"$BACKENDS"
plan $((1 + ${#backends[@]} * (${#STATES[@]} + 2)))
must "start" app_start --heap vram,gtt --bos 2 --queues 2 --size 512K
for backend in "${backends[@]}"; do
	round "$backend"
done
finish
