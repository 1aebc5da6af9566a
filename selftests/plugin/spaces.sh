#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A job as a container runtime starts it: new pid, mount, network, IPC and UTS namespaces, a root of its own, a launcher
# and three workers with their KFD and a hundred threads each. One image of it is restored many times in a row, and
# each time all is as it was: thread ids, descriptors, mappings, BOs; the work goes on.
#
#	BACKENDS="netlink ioctl"   RESTORES=N restores in a row, by each backend [2]
#
# A thread of CRIU's process that keeps sharing its root and current directory turns it red on CRIU 4.2.1 ("Can't switch").
# Four threads that the plugin keeps for eight seconds in the worker with the larger BOs turn it red: they take ids of the
# other workers' threads.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

RESTORES=${RESTORES:-2}
WORKERS=3
THREADS=100
ROOT=$W/root
NET=gpucr-job
HERE=$(realpath "$(dirname "$0")")

leave() {
	app_pids | xargs -r kill -KILL
	wait_for "$PATIENCE" job_gone
	while mountpoint -q "$ROOT"; do
		umount "$ROOT"
	done
	ip netns del "$NET" 2>/dev/null
	cleanup
}
trap leave EXIT

# --- the job ---------------------------------------------------------------------------------------------------

make_root() {
	local d
	mkdir -p "$ROOT"/{dev/dri,proc,sys,tmp,log,usr,old}
	for d in bin sbin lib lib64; do
		ln -s "usr/$d" "$ROOT/$d"
	done
	cp -a /dev/null /dev/kfd "$ROOT/dev/"
	cp -a /dev/dri/renderD* "$ROOT/dev/dri/"
	cat >"$ROOT/launch" <<-END
		#!/bin/bash
		for ((i = 1; i <= $WORKERS; i++)); do
			size=64K
			[[ \$i -ne 1 ]] || size=2M
			vecloop --threads $THREADS --bos 1 --queues 2 --size \$size --delay-ms 20 >/log/\$i 2>&1 &
		done
		wait
	END
	chmod 755 "$ROOT/launch"
	ip netns add "$NET"
}

start() {
	rm -rf "$IMG" "${ROOT:?}"/log/*
	setsid nsenter --net="/run/netns/$NET" unshare --pid --fork --mount --ipc --uts "$HERE/container.sh" "$ROOT" \
		</dev/null >"$W/start" 2>&1 &
	disown
	wait_for "$PATIENCE" all_reached 2 || fail "it does not start: $(cat "$W/start" "$ROOT"/log/*)"
	pgrep -x launch >"$W/pid"
	tree >"$W/tree"
	[[ $(wc -l <"$W/tree") -eq $((WORKERS + 1)) ]] || fail "$(cat "$W/tree")"
}

# A line for each process: its pid in the job, and here.
tree() {
	local pid
	for pid in $(app_pid) $(app_pids); do
		echo "$(awk '/^NSpid:/ { print $NF }' "/proc/$pid/status") $pid"
	done | sort -n
}

job_gone() {
	[[ -z $(app_pids) && -z $(pgrep -x launch) ]]
}

all_reached() {
	local n
	for ((n = 1; n <= WORKERS; n++)); do
		LOG=$ROOT/log/$n
		[[ -e $LOG ]] && step_reached "$1" || return
	done
}

# Steps of all workers, and queues of all.
goes_on() {
	local n pid
	for ((n = 1; n <= WORKERS; n++)); do
		LOG=$ROOT/log/$n
		app_goes_on 3
	done
	for pid in $(app_pids); do
		queues_move "$pid"
	done
}

# --- what must be as it was ------------------------------------------------------------------------------------

# Ids of all threads, in the job.
threads() {
	awk '/^NSpid:/ { print $NF }' "/proc/$1"/task/*/status | sort -n
}

# The BOs that no step changes, of all workers: a worker's log says where they are.
constant() {
	local n vas
	for ((n = 1; n <= WORKERS; n++)); do
		mapfile -t vas < <(LOG=$ROOT/log/$n constant_bos)
		[[ ${#vas[@]} -eq 2 ]] || fail "worker $n has constant BOs: ${vas[*]}"
		digest "$1" "${vas[@]}"
	done | sort -u
}

# note DIR: all of it, by pids of the job
note() {
	local dir=$1 ns pid
	rm -rf "$dir"
	mkdir "$dir"
	while read -r ns pid; do
		threads "$pid" >"$dir/threads.$ns"
		fds "$pid" >"$dir/fds.$ns"
		maps "$pid" >"$dir/maps.$ns"
		[[ $ns -eq 1 ]] || constant "$pid" >"$dir/bos.$ns"
	done
}

# The tests would compare nothing with nothing.
noted_all() {
	[[ $(cat "$1"/threads.* | wc -l) -eq $((WORKERS * (THREADS + 1) + 1)) ]] || fail "$(wc -l "$1"/threads.*)"
	[[ $(grep -l /dev/kfd "$1"/fds.* | wc -l) -eq $WORKERS ]] || fail "KFD: $(cat "$1"/fds.*)"
	[[ $(grep -l /dev/dri/renderD "$1"/maps.* | wc -l) -eq $WORKERS ]] || fail "no BO is mapped"
	[[ $(cat "$1"/bos.* | wc -l) -eq $((2 * WORKERS)) ]] || fail "$(cat "$1"/bos.*)"
}

own_namespaces() {
	local kind
	for kind in pid mnt ipc uts net; do
		[[ $(readlink "/proc/$1/ns/$kind") != "$(readlink "/proc/self/ns/$kind")" ]] || fail "no $kind namespace"
	done
	[[ $(stat -L -c %i "/proc/$1/ns/net") -eq $(stat -c %i "/run/netns/$NET") ]] || fail "another network namespace"
}

# --- dump and restore ------------------------------------------------------------------------------------------

# A runtime makes the network namespace itself and tells CRIU so.
dump() {
	local pid
	pid=$(app_pid)
	own_namespaces "$pid"
	note "$W/before" <"$W/tree"
	noted_all "$W/before"
	criu_dump --external 'mnt[/usr]:usr' --external "net[$(stat -L -c %i "/proc/$pid/ns/net")]:job" \
		--network-lock skip
	wait_for "$PATIENCE" job_gone || fail "left: $(app_pids)"
	sim_becomes_empty
	# A file that a process has open must be as long as it was, at each restore.
	rm -rf "$W/log"
	cp -a "$ROOT/log" "$W/log"
	mountpoint -q "$ROOT" || {
		mount --bind "$ROOT" "$ROOT"
		mount --make-private "$ROOT"
	}
}

# CRIU's own process fills GPU memory (4.2 and newer): so slowly then that it still does when CRIU changes namespaces.
overlaps() {
	[[ $(printf '%s\n' 4.2 "$(criu --version | sed -n 's/^Version: //p')" | sort -V | head -n 1) == 4.2 ]]
}

restore_once() {
	cp -a "$W/log/." "$ROOT/log/"
	rm -f "$W/pid"
	local -x GPUCR_BANDWIDTH_LIMIT=1G
	! overlaps || GPUCR_BANDWIDTH_LIMIT=1M
	criu_restore --root "$ROOT" --external 'mnt[usr]:/usr' --inherit-fd 'fd[33]:job' --pidfile "$W/pid" \
		--network-lock skip 33<"/run/netns/$NET"
	! overlaps || grep -a "overlapped for $WORKERS of them" "$IMG/restore.log" || fail "it did not overlap"
	own_namespaces "$(app_pid)"
	tree >"$W/tree"
	note "$W/after" <"$W/tree"
	diff -r "$W/before" "$W/after" || fail "not as it was"
	goes_on
	kill -KILL "$(app_pid)"
	wait_for "$PATIENCE" job_gone || fail "left: $(app_pids)"
	sim_becomes_empty
}

restores() {
	local n
	for ((n = 1; n <= RESTORES; n++)); do
		echo "restore $n"
		restore_once
		echo "$n" >"$W/done"
	done
}

ends() {
	[[ -z $(pgrep -x criu) ]] || fail "a criu is left"
	[[ -z $(pgrep -f 'gpucr session') ]] || fail "a guard is left"
	no_session_left
}

round() {
	export GPUCR_BACKEND=$1
	echo 0 >"$W/done"
	must "$1: a job in namespaces of its own" start
	must "$1: dump" dump
	check "$1: $RESTORES restores in a row" restores
	echo "# $1: $(cat "$W/done") of $RESTORES restores"
	check "$1: nothing left" ends
}

read -ra backends <<<"${BACKENDS:-netlink ioctl}"
has_gpucr || backends=(ioctl)
plan $((1 + 4 * ${#backends[@]}))
must "a root and a network namespace" make_root
for backend in "${backends[@]}"; do
	round "$backend"
done
finish
