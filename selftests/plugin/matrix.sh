#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The fault matrix: each point of matrix.points fails, takes long, or is where CRIU is killed; then the process, or its
# copy, must be in the state that the list says, with nothing left of the operation. A case whose point is not reached
# fails. Cases of one kind share a process or an image; only a kill may cost it its life.
#
#	TEST_MATRIX_PARTS=N  one of so many parts of the cases, another one every day [1]
#	TEST_MATRIX_TURN=N   which, instead of the day
#	TEST_MATRIX_ONLY="GLOB ..."   points        TEST_MATRIX_ACTIONS=edk     TEST_MATRIX_BACKENDS="netlink ioctl"
#	TEST_MATRIX_OUT=DIR  table.txt and table.json go there
#
# An error that the plugin hides, a pause that it does not undo, a file that it leaves, each turns it red.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/plugin/gatelib.sh
. "$(dirname "$0")/gatelib.sh"

POINTS=$(dirname "$0")/matrix.points
OUT=${TEST_MATRIX_OUT:-$W/matrix}
HIT=$W/hit
BASE=$W/base
MODFAULT=/sys/module/gpucr/parameters/fault
DELAY_MS=400
CRIU_LIMIT=$((2 * PATIENCE))
PARTS=${TEST_MATRIX_PARTS:-1}
TURN=${TEST_MATRIX_TURN:-$(($(date +%s) / 86400))}
read -ra BACKENDS <<<"${TEST_MATRIX_BACKENDS:-netlink ioctl}"

# --- the cases -------------------------------------------------------------------------------------------------

has_post_forking() {
	local v
	v=$(criu --version | sed -n 's/^Version: //p')
	[[ $(printf '%s\n' 4.2 "$v" | sort -V | head -n 1) == 4.2 ]]
}

# needs_met NEEDS BACKEND
needs_met() {
	case $1 in
	-) ;;
	netlink | ioctl) [[ $2 == "$1" ]] ;;
	checkpoint-devices) has_checkpoint_devices ;;
	post-forking) has_post_forking ;;
	*) fail "matrix.points: needs '$1'" ;;
	esac
}

point_wanted() {
	local glob globs
	[[ -n ${TEST_MATRIX_ONLY-} ]] || return 0
	read -ra globs <<<"$TEST_MATRIX_ONLY"
	for glob in "${globs[@]}"; do
		# shellcheck disable=SC2053 # a glob is wanted
		[[ $1 == $glob ]] && return 0
	done
	return 1
}

# Lines "BACKEND ACTION NAME DIR HOW EXPECT KILL STATE HOOK FILE": all dumps of a backend, then its restores.
cases() {
	local backend dir name d how actions error kill state hook file needs a
	for backend in "${BACKENDS[@]}"; do
		for dir in dump restore; do
			while read -r name d how actions error kill state hook file needs; do
				[[ $d == "$dir" ]] || continue
				needs_met "$needs" "$backend" || continue
				point_wanted "$name" || continue
				for a in e d k; do
					[[ $actions == *$a* && ${TEST_MATRIX_ACTIONS:-edk} == *$a* ]] || continue
					echo "$backend $a $name $d $how $error $kill $state $hook $file"
				done
			done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$POINTS")
		done
	done
}

# choose PARTS TURN: every so many of them, so that each kind has its part.
choose() {
	awk -v parts="$1" -v turn=$(($2 % $1)) '(NR - 1) % parts == turn' "$W/all"
}

# The parts of as many days in a row are all of it, and each case is in one.
parts_are_all() {
	local i
	for ((i = 0; i < PARTS; i++)); do
		choose "$PARTS" $((TURN + i))
	done | sort | diff - <(sort "$W/all")
}

# --- injection -------------------------------------------------------------------------------------------------

# arm HOW ACTION: the environment for CRIU in ENV, its options in OPTS; what is no business of CRIU's is armed.
arm() {
	local how=$1 kind=${1%%:*} at=${1#*:} what point nth times=
	case $2 in
	e) what=error:5 ;;
	d) what=delay:$DELAY_MS ;;
	k) what=hold ;;
	esac
	ENV=(GPUCR_BACKEND="$BACKEND") OPTS=()
	case $kind in
	gate)
		ENV+=(GATE_PLUGIN="$PLUGIN" GATE_FILE="$HIT" GATE_AT="$at" GATE_DO="$what")
		OPTS+=(-L "$W/lib")
		;;
	io)
		ENV+=(LD_PRELOAD="$HELPERS/iofault.so" IOFAULT_FILE="$HIT" IOFAULT_AT="$at" IOFAULT_DO="$what"
			GPUCR_IO_URING=off)
		;;
	sim)
		point=${at%:*} nth=${at##*:}
		# A fence that never signals is asked after more than once.
		if [[ $point == fence-never ]]; then
			ENV+=(GPUCR_COPY_DEADLINE=4)
		else
			times=count=1
		fi
		case $2 in
		e) fault "point=$point errno=5 $times nth=$nth" ;;
		d) fault "point=$point delay_ms=$DELAY_MS count=1 nth=$nth" ;;
		k) fault "point=$point hang=1 count=1 nth=$nth" ;;
		esac
		;;
	mod) echo "$at:EIO" >"$MODFAULT" ;;
	*) fail "matrix.points: how '$how'" ;;
	esac
}

# fired HOW: the point was met
fired() {
	local at=${1#*:}
	case $1 in
	gate:* | io:*) [[ -e $HIT ]] ;;
	sim:*) fault_fired "${at%:*}" ;;
	mod:*) [[ $(mod_fired "$at") -gt $(cat "$W/mod.before") ]] ;;
	esac
}

# How often a point of the module has failed since it was loaded.
mod_fired() {
	awk -v p="$1" '$1 == p { print $NF }' "$MODFAULT"
}

disarm() {
	faults_clear
	[[ ! -w $MODFAULT ]] || echo >"$MODFAULT"
	rm -f "$HIT"
}

# --- what must be so afterwards --------------------------------------------------------------------------------

fds_of() {
	find "/proc/$1/fd" -mindepth 1 -printf '%f %l\n' | sort
}

objects() {
	awk '$1 == "bos" || $1 == "processes" || $1 == "queues" { print $1, $NF }' "$SIM/stats"
}

constants() {
	local vas
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}"
}

# What the process is, when nothing is done to it.
base() {
	fds_of "$(app_pid)" >"$BASE.fds"
	objects >"$BASE.objects"
	constants >"$BASE.digest"
	[[ -s $BASE.digest ]] || fail "no constant BO"
}

no_criu() {
	[[ -z $(pgrep -x criu) ]]
}

# Of the operation nothing is left, but of the process PID ("": there is none).
nothing_left() {
	wait_for 20 no_criu || fail "a criu is left: $(pgrep -ax criu)"
	wait_for 20 no_guard || fail "a guard is left"
	! has_gpucr || wait_for 20 module_idle || fail "a session is left: $(gpucr session)"
	[[ -z $(gpu_file_holders "${1:-none}") ]] || fail "GPU files are held by $(gpu_file_holders "${1:-none}")"
}

same_objects() {
	objects | cmp -s - "$BASE.objects"
}

# The process runs, its queues move, and all of it is as it was.
runs_as_before() {
	local pid
	pid=$(app_pid)
	wait_for "$PATIENCE" runnable "$pid" || fail "not runnable: $(grep -E 'State|TracerPid' "/proc/$pid/status")"
	queues_move "$pid"
	app_goes_on 2
	nothing_left "$pid"
	wait_for 10 same_objects || fail "$(objects | diff "$BASE.objects" -)"
	fds_of "$pid" | diff "$BASE.fds" - || fail "its descriptors are others"
	constants | diff "$BASE.digest" - || fail "a constant BO has changed"
}

# A failed dump leaves no file of ours, half or whole.
no_files() {
	local left
	left=$(find "$1" -name '*gpucr*')
	[[ -z $left ]] || fail "left: $left"
}

# --- dump ------------------------------------------------------------------------------------------------------

dump_ready() {
	[[ -e $W/pid ]] && kill -0 "$(app_pid)" 2>/dev/null && [[ -s $BASE.digest ]] && return
	[[ -z $(app_pids) ]] || app_kill
	app_start --heap vram,gtt --bos 2 --queues 2 --size 320K --delay-ms 80
	app_goes_on 2
	base
}

criu_run() {
	timeout -s KILL "$CRIU_LIMIT" env "${ENV[@]}" criu "$@" "${OPTS[@]}" >"$W/criu.out" 2>&1
}

told() {
	tail -n 5 "$W/criu.out"
	grep -a -E 'Error|Warn|gpucr' "$W/dir/$1.log" | tail -n 15
}

# outcome EXPECT STATUS DIR
outcome() {
	case $1.$2 in
	fail.0) told "$3" && fail "it succeeded" ;;
	ok.0 | any.*) ;;
	ok.*) told "$3" && fail "it failed: status $2" ;;
	*) [[ $2 -ne 137 ]] || { told "$3" && fail "it hung"; } ;;
	esac
}

was_fired() {
	fired "$1" || { told "$2" && fail "the point was not reached"; }
}

dump_case() {
	local action=$1 how=$2 expect=$3 rc=0
	rm -rf "$W/dir"
	mkdir "$W/dir"
	[[ $action != d ]] || expect=ok
	criu_run dump -t "$(app_pid)" -D "$W/dir" -o dump.log -v4 --leave-running || rc=$?
	was_fired "$how" dump
	disarm
	outcome "$expect" "$rc" dump
	[[ $rc -eq 0 ]] || no_files "$W/dir"
	[[ $rc -ne 0 ]] || gpucr image verify "$W/dir" >/dev/null || fail "the image is not whole"
	runs_as_before
}

# in_state STATE: of a target that is held at a point
in_state() {
	case $1 in
	running) none_evicted "$(app_pid)" || fail "paused at a point where it should not be" ;;
	paused) is_evicted "$(app_pid)" || fail "not paused at a point where it should be" ;;
	early) ! has_checkpoint_devices || in_state paused ;;
	esac
}

start_held() {
	setsid env "${ENV[@]}" criu "$@" "${OPTS[@]}" >"$W/criu.out" 2>&1 </dev/null &
	echo $! >"$W/criu.pid"
	disown
}

held_at() {
	criu_ended || fired "$1"
}

hold() {
	wait_for "$PATIENCE" held_at "$1" || true
	! criu_ended && fired "$1" && return
	told "$2"
	fail "the point was not reached"
}

dump_kill() {
	local how=$1 kill=$2 state=$3 pid
	pid=$(app_pid)
	rm -rf "$W/dir"
	mkdir "$W/dir"
	start_held dump -t "$pid" -D "$W/dir" -o dump.log -v4 --leave-running
	hold "$how" dump
	in_state "$state"
	criu_kill
	disarm
	if [[ $kill == any ]] && ! wait_for 5 runnable "$pid"; then
		kill -KILL "$pid" 2>/dev/null
		wait_for "$PATIENCE" app_gone
		sim_becomes_empty
		nothing_left
		return
	fi
	runs_as_before
	[[ $state != running ]] || return 0
	! gpucr image verify "$W/dir" >/dev/null 2>&1 || [[ $kill == any ]] || fail "the image is said to be whole"
}

# --- restore ---------------------------------------------------------------------------------------------------

# The image that all restores of a backend are of, and what the process was.
restore_ready() {
	[[ ! -e $W/image.$BACKEND/inventory.img ]] || return 0
	[[ -z $(app_pids) ]] || app_kill
	app_start --heap vram,gtt --bos 2 --queues 2 --size 320K --delay-ms 80
	app_goes_on 3
	base
	mkdir "$W/image.$BACKEND"
	GPUCR_BACKEND=$BACKEND criu dump -t "$(app_pid)" -D "$W/image.$BACKEND" -o dump.log -v4 >"$W/criu.out" 2>&1 || {
		grep -a -E 'Error|gpucr' "$W/image.$BACKEND/dump.log" | tail
		fail "the dump failed"
	}
	wait_for "$PATIENCE" app_gone
	sim_becomes_empty
	cp -p "$LOG" "$W/log.dumped"
}

# CRIU wants the log as long as it was.
restore_args() {
	cp -p "$W/log.dumped" "$LOG"
	rm -rf "$W/dir"
	mkdir "$W/dir"
	ARGS=(restore -d -D "$W/image.$BACKEND" -W "$W/dir" -o restore.log -v4)
}

copy_ends() {
	app_kill
	sim_becomes_empty
	nothing_left
}

no_copy() {
	[[ -z $(app_pids) ]] || {
		told restore
		fail "a process is left"
	}
	sim_becomes_empty
	nothing_left
}

restore_case() {
	local action=$1 how=$2 expect=$3 rc=0
	restore_args
	[[ $action != d ]] || expect=ok
	criu_run "${ARGS[@]}" || rc=$?
	was_fired "$how" restore
	disarm
	outcome "$expect" "$rc" restore
	if [[ $rc -ne 0 ]]; then
		no_copy
	else
		runs_as_before
		copy_ends
	fi
}

# CRIU is gone. What it was making must not live on as a half.
restore_kill() {
	local how=$1 kill=$2
	restore_args
	start_held "${ARGS[@]}"
	hold "$how" restore
	criu_kill
	disarm
	# CRIU's tasks wait for it for ever, or run on without their GPU: nobody tells them to resume.
	[[ $kill != any ]] || pgrep -x 'criu|vecloop' | xargs -r kill -KILL 2>/dev/null || true
	if [[ $kill == runs ]]; then
		runs_as_before
		copy_ends
	else
		wait_for 20 no_criu || fail "a task of criu is left"
		no_copy
	fi
}

# --- the run ---------------------------------------------------------------------------------------------------

# one BACKEND ACTION NAME DIR HOW EXPECT KILL STATE HOOK FILE
one() {
	local action=$2 dir=$4 how=$5 expect=$6 kill=$7 state=$8
	BACKEND=$1
	disarm
	"${dir}_ready"
	[[ $how != mod:* ]] || mod_fired "${how#*:}" >"$W/mod.before"
	arm "$how" "$action"
	if [[ $action == k ]]; then
		"${dir}_kill" "$how" "$kill" "$state"
	else
		"${dir}_case" "$action" "$how" "$expect"
	fi
}

# After a case that went wrong the next starts from nothing.
start_over() {
	disarm
	! pgrep -x criu >/dev/null || pgrep -x criu | xargs -r kill -KILL
	app_pids | xargs -r kill -KILL
	app_pids | xargs -r kill -CONT
	# What the next is compared with, and the image of restores, which goes with it.
	rm -rf "$BASE".* "$W"/image.*
	wait_for 20 sim_empty
}

json_line() {
	local backend=$1 action=$2 name=$3 dir=$4 how=$5 expect=$6 kill=$7 state=$8 hook=$9
	jq -cn --arg point "$name" --arg direction "$dir" --arg action "$action" --arg backend "$backend" --arg how "$how" \
		--arg error "$expect" --arg kill "$kill" --arg state "$state" --arg hook "$hook" --arg file "${10}" \
		--arg result "${11}" --argjson ms "${12}" '$ARGS.named'
}

record() {
	local words
	read -ra words <<<"$1"
	json_line "${words[@]}" "$2" "$3" >>"$OUT/cases"
	printf '%-8s %-8s %-7s %-22s %-18s %-9s %-36s %-6s %6d ms\n' "${words[3]}" "${words[0]}" \
		"$(action_name "${words[1]}")" "${words[2]}" "${words[8]}" "${words[7]}" "${words[9]}" "$2" "$3" >>"$OUT/table.txt"
}

action_name() {
	case $1 in e) echo error ;; d) echo delay ;; k) echo kill ;; esac
}

run_case() {
	local words t0
	read -ra words <<<"$1"
	t0=$(now_ms)
	# shellcheck disable=SC2086 # words are wanted
	check "${words[0]}: ${words[3]}, ${words[2]}: $(action_name "${words[1]}")" one $1
	if [[ $CHECK_RC -eq 0 ]]; then
		record "$1" pass $(($(now_ms) - t0))
	else
		record "$1" FAIL $(($(now_ms) - t0))
		start_over
	fi
}

tables() {
	jq -s --arg kernel "$(uname -r)" --arg criu "$(criu --version | sed -n 's/^Version: //p')" \
		'{ gpucr: 1, object: "fault-matrix", kernel: $kernel, criu: $criu, data: . }' "$OUT/cases" >"$OUT/table.json"
	[[ $(jq '.data | length' "$OUT/table.json") -eq $(wc -l <"$W/cases") ]]
	! grep -q FAIL "$OUT/table.txt"
}

ends() {
	[[ -z $(app_pids) ]] || app_kill
	sim_becomes_empty
	no_session_left
}

mkdir -p "$W/lib" "$OUT"
cp "$HELPERS/gate.so" "$W/lib/"
: >"$OUT/cases"
: >"$OUT/table.txt"
export GPUCR_MAX_BUFFER_SIZE=1M
has_gpucr || BACKENDS=(ioctl)
cases >"$W/all" || bail "matrix.points is wrong"
[[ -s $W/all ]] || bail "no case"
choose "$PARTS" "$TURN" >"$W/cases"
plan $(($(wc -l <"$W/cases") + 3))
echo "# $(wc -l <"$W/cases") of $(wc -l <"$W/all") cases, CRIU $(criu --version | sed -n 's/^Version: //p')"
while IFS= read -r line <&3; do
	run_case "$line" 3<&-
done 3<"$W/cases"
check "what is not run today is run on another day" parts_are_all
check "nothing left" ends
check "a table of as many cases, and all passed" tables
sed 's/^/# /' "$OUT/table.txt"
finish
