#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Processes of every shape come back as they were: descriptors in any order, taken up to the limit, none for standard input;
# many mappings; threads; children forked without exec; two opens of KFD; namespaces of their own; a cgroup with little
# memory to spare.
#
# A descriptor kept too long, a mapping elsewhere, a thread in a hook, large buffers in the task, each turns it red.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

CGROUP=/sys/fs/cgroup/shapes

note() {
	fds "$1" >"$W/fds.$1"
	maps "$1" >"$W/maps.$1"
}

same() {
	fds "$1" | diff "$W/fds.$1" - || fail "other descriptors"
	maps "$1" | diff "$W/maps.$1" - || fail "other mappings"
}

start() {
	rm -rf "$IMG" "$LOG".*
	app_start --heap vram,gtt --bos 1 --queues 1 --size 64K "$@"
	app_goes_on 2
}

# Dump, restore, again: all of the tree as it was, and the work goes on.
round_trip() {
	local n pid
	for n in 1 2; do
		rm -rf "$IMG"
		for pid in $(app_pids); do
			note "$pid"
		done
		app_pids | sort >"$W/pids"
		criu_dump
		wait_for "$PATIENCE" none_left || fail "processes are left"
		sim_becomes_empty
		criu_restore
		app_pids | sort | diff "$W/pids" - || fail "other processes"
		while read -r pid; do
			same "$pid"
		done <"$W/pids"
		app_goes_on 3
		queues_move "$(app_pid)"
	done
}

none_left() {
	[[ -z $(app_pids) ]]
}

stop_all() {
	app_pids | xargs -r kill -KILL
	wait_for "$PATIENCE" none_left
	sim_becomes_empty
}

shape() {
	start "$@"
	round_trip
	stop_all
}

full_table() {
	ulimit -n 1024
	start --small-bos 500 --fill-fds 198 --no-stdin
	[[ ! -e /proc/$(app_pid)/fd/0 && -e /proc/$(app_pid)/fd/200 ]] || fail "the shape is not as wanted"
	[[ $(grep -c renderD "/proc/$(app_pid)/maps") -ge 500 ]] || fail "too few mappings"
	round_trip
	stop_all
}

threads_and_children() {
	start --threads 20 --children 2
	[[ $(find "/proc/$(app_pid)/task" -mindepth 1 -maxdepth 1 | wc -l) -ge 21 ]]
	[[ $(app_pids | wc -l) -eq 3 ]] || fail "$(app_pids)"
	[[ $(find "/proc/$(pgrep -n -P "$(app_pid)")/fd" -lname /dev/kfd | wc -l) -eq 1 ]] || fail "a child without KFD"
	round_trip
	stop_all
}

# CRIU restores a file that several hold in the one of the lowest pid. After the last pid come the first ones again.
lower_child() {
	local max n pid
	max=$(cat /proc/sys/kernel/pid_max)
	for n in 4 5 3 6; do
		echo $((max - n)) >/proc/sys/kernel/ns_last_pid
		start --children 1
		pid=$(app_pid)
		[[ $(pgrep -P "$pid") -gt $pid ]] || break
		stop_all
	done
	[[ $(pgrep -P "$pid") -lt $pid ]] || fail "no child of a lower pid"
	! criu_dump >"$W/out" || fail "the dump succeeded"
	grep -a "gpucr: pid $pid owns a KFD file that pid $(pgrep -P "$pid") holds too.*(kfd-owner)" "$IMG/dump.log" || fail "$(cat "$W/out")"
	app_goes_on 3
	queues_move "$pid"
	stop_all
}

# A launcher, workers with threads: those of one task must not take the ids of another's.
launcher() {
	start --procs 3 --threads 40
	round_trip
	stop_all
}

# With mount and network namespaces: spaces.sh. Not --kill-child: its death signal is restored
# too, and comes when the restoring criu ends.
namespaces() {
	start_in unshare --pid --fork --ipc --uts
	pgrep -o -x vecloop >"$W/pid"
	criu_dump
	wait_for "$PATIENCE" none_left
	sim_becomes_empty
	criu_restore
	pgrep -o -x vecloop >"$W/pid"
	app_goes_on 3
	queues_move "$(app_pid)"
	stop_all
}

# KFD would not let its owner restore it.
user_namespace() {
	start_in unshare --user --map-root-user
	pgrep -o -x vecloop >"$W/pid"
	! criu_dump >"$W/out" || fail "the dump succeeded"
	grep -a '(userns)' "$IMG/dump.log" || fail "$(cat "$W/out")"
	! grep -a 'gpucr.*: paused' "$IMG/dump.log" || fail "it was paused"
	app_goes_on 3
	queues_move "$(app_pid)"
	stop_all
}

# Its first process must be the root of the tree, so it does not go to the background by itself.
start_in() {
	rm -rf "$IMG" "$LOG"
	: >"$LOG"
	setsid "$@" vecloop --heap vram,gtt --bos 1 --queues 1 --size 64K --delay-ms 20 >>"$LOG" 2>&1 </dev/null &
	disown
	wait_for "$PATIENCE" step_reached 2 || fail "it does not start: $(cat "$LOG")"
}

# Buffers of a restore are the task's.
little_memory() {
	local now
	grep -q memory /sys/fs/cgroup/cgroup.controllers || skip "no memory controller"
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p "$CGROUP"
	rm -rf "$IMG"
	bash -c "echo \$\$ >$CGROUP/cgroup.procs; exec $APP --log $LOG.cg --pidfile $W/pid --delay-ms 20 --heap vram,gtt --bos 4 --size 4M"
	LOG=$LOG.cg
	app_goes_on 2
	now=$(cat "$CGROUP/memory.current")
	echo $((now + 32 * 1048576)) >"$CGROUP/memory.max"
	criu_dump
	sim_becomes_empty
	criu_restore
	grep -q shapes "/proc/$(app_pid)/cgroup" || fail "restored into $(cat "/proc/$(app_pid)/cgroup")"
	app_goes_on 3
	! grep -E '^oom_kill [1-9]' "$CGROUP/memory.events" || fail "killed for its memory"
	stop_all
}

# Nothing of another driver's is claimed, and it is named.
other_driver() {
	local minor f
	modprobe vgem
	for f in /sys/class/drm/renderD*; do
		[[ $(readlink -f "$f/device/driver") == */vgem || $(readlink -f "$f") == *vgem* ]] && minor=${f##*/}
	done
	[[ -n ${minor-} && -e /dev/dri/$minor ]] || skip "no render node of vgem"
	start --hold "/dev/dri/$minor"
	! criu_dump >"$W/out" || fail "the dump succeeded"
	grep -a "Can't dump file" "$IMG/dump.log" || fail "$(cat "$W/out")"
	grep -a 'gpucr: .*of driver vgem open' "$IMG/dump.log" || fail "the driver is not named"
	app_goes_on 3
	queues_move "$(app_pid)"
	stop_all
}

ends() {
	stop_all
	rmmod vgem 2>/dev/null || true
	no_session_left
}

# What a failed one left must not be taken for the next one's.
one() {
	check "$1: $2" "${@:3}"
	[[ $CHECK_RC -eq 0 ]] || app_pids | xargs -r kill -KILL
	wait_for 20 sim_empty
}

round() {
	export GPUCR_BACKEND=$1
	one "$1" "KFD's descriptor above the render node's" shape --kfd-last
	one "$1" "a render node that is open and not used" shape --hold "$(render_node)"
	one "$1" "KFD opened twice" shape --hold /dev/kfd
	one "$1" "500 BOs, 3 to 200 taken, no standard input" full_table
	one "$1" "threads, and children forked without exec" threads_and_children
	one "$1" "a child of a lower pid that holds KFD's file: refused" lower_child
	one "$1" "a launcher with workers" launcher
	one "$1" "namespaces of its own" namespaces
	one "$1" "a user namespace of its own: refused" user_namespace
	one "$1" "32 MiB to spare in its cgroup" little_memory
	one "$1" "another driver's file is left alone" other_driver
	check "$1: nothing left" ends
}

render_node() {
	local f
	for f in /sys/class/drm/renderD*; do
		[[ $(basename "$(readlink -f "$f/device/driver")") == amdgpu ]] && echo "/dev/dri/${f##*/}" && return
	done
}

read -ra backends <<<"${BACKENDS:-netlink ioctl}"
has_gpucr || backends=(ioctl)
plan $((12 * ${#backends[@]}))
for backend in "${backends[@]}"; do
	round "$backend"
done
finish
