#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Process 1 of a lab guest. Mounts, installs what was built, loads the modules, runs the command, checks the
# kernel log, powers off. It must never exit: the kernel would panic.

CTL=/run/lab

mount_all() {
	mount -t proc proc /proc
	mountpoint -q /sys || mount -t sysfs sysfs /sys
	mkdir -p /dev/pts /dev/shm
	mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
	mount -t tmpfs -o mode=1777 tmpfs /dev/shm
	mount -t tmpfs -o mode=755 tmpfs /run
	mount -t tmpfs -o mode=1777 tmpfs /tmp
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
	ln -sfn /proc/self/fd /dev/fd
	ln -sfn /proc/self/fd/0 /dev/stdin
	ln -sfn /proc/self/fd/1 /dev/stdout
	ln -sfn /proc/self/fd/2 /dev/stderr
	mkdir -p "$CTL"
	mount_share ctl "$CTL" rw
	[[ ! -b /dev/vdb ]] || { mkdir -p /data && mount -t ext4 -o noatime /dev/vdb /data; }
}

# Uncached: the host must see what was written when the guest is gone.
mount_share() {
	mkdir -p "$2"
	mount -t 9p -o "$3,trans=virtio,version=9p2000.L,msize=262144,cache=none" "$1" "$2"
}

# The command's output has a channel of its own, so that kernel messages do not mix into it.
out_port() {
	local p
	for p in /sys/class/virtio-ports/*; do
		[[ $(cat "$p/name" 2>/dev/null) == lab.out ]] && echo "/dev/${p##*/}" && return
	done
	echo /dev/console
}

start_machine() {
	mount_all
	# shellcheck source=/dev/null
	. "$CTL/env"
	[[ -z $LAB_OUT ]] || mount_share out "$LAB_OUT" rw
	[[ -z $LAB_IN ]] || mount_share in "$LAB_IN" ro
	ip link set lo up
	hostname lab
	export HOME=/root TERM=${TERM:-linux} PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	cd /src || exit
}

# Module index made by the build on the host: depmod takes a minute here.
install_modules() {
	local kver ours=$O
	kver=$(uname -r)
	if [[ $LAB_KERNEL == debug ]]; then
		ours=$O-debug
		cp -r "$CTL/modules/lib/modules/$kver" /lib/modules/
	fi
	[[ -d $ours/modidx ]] || return 0
	mkdir -p "/lib/modules/$kver"
	cp -r "$ours"/modidx/. "/lib/modules/$kver/"
}

install_programs() {
	if [[ ${LAB_PLUGIN:-gpucr} != none && -f $O/plugin/amdgpu_plugin.so ]]; then
		install -D -m 755 "$O/plugin/amdgpu_plugin.so" /usr/lib/criu/amdgpu_plugin.so
	fi
	# Another CRIU than the image's.
	[[ ! -d $CTL/criu ]] || install -m 755 "$CTL"/criu/usr/sbin/criu /usr/sbin/criu
	[[ ! -f $O/bin/gpucr ]] || install -m 755 "$O/bin/gpucr" /usr/sbin/gpucr
	local f
	for f in "$O"/apps/*; do
		# On the guest's own disk, since CRIU looks at the file system of what a process runs.
		[[ -f $f && -x $f ]] && install -m 755 "$f" /usr/local/bin/
	done
	return 0
}

# Before anything else runs: see selftests/apps/perfhold.c.
hold_perf() {
	[[ -x /usr/local/bin/perfhold ]] || return 0
	setsid perfhold </dev/null >/dev/kmsg 2>&1 &
	# Until it has done what it is there for.
	local n
	for ((n = 0; n < 50; n++)); do
		[[ $(readlink /proc/$!/fd/* 2>/dev/null) != *perf_event* ]] || break
		sleep 0.1
	done
	disown
}

# Up to here there was one. Code that is patched while two emulated CPUs run it can be seen half-patched.
start_cpus() {
	local f
	for f in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[[ ! -w $f ]] || echo 1 >"$f"
	done
}

# What was asked for by name must load; of the default, what is not built yet is only mentioned.
load_modules() {
	local m args list=${LAB_MODULES-}
	[[ $list != none && ${LAB_MODULES-unset} != "" ]] || return 0
	for m in ${list:-gpucr kfdsim}; do
		if [[ -z $list ]] && ! modinfo "$m" >/dev/null 2>&1; then
			echo "lab: module $m is not built, not loaded"
			continue
		fi
		args=()
		if [[ $m == kfdsim ]]; then
			read -ra args <<<"${LAB_KFDSIM_ARGS-}"
			[[ -z $LAB_TOPOLOGY ]] || args+=("topology=$LAB_TOPOLOGY")
			[[ -z $LAB_PERSONALITY ]] || args+=("personality=$LAB_PERSONALITY")
		fi
		modprobe "$m" "${args[@]}" || return 1
	done
}

run_command() {
	if [[ $LAB_SHELL == 1 ]]; then
		setsid -c bash -l <>/dev/hvc0 >&0 2>&1
	else
		timeout -k 10 "$LAB_TIMEOUT" bash "$CTL/cmd" </dev/null
	fi
}

# A bad line in the kernel log turns success into failure; another failure keeps its own status.
check_log() {
	dmesg >"$CTL/dmesg"
	[[ ${LAB_DMESG:-check} != ignore ]] || return 0
	/src/selftests/vm/dmesg-check.sh
}

session() {
	local rc
	O=/src/build/$LAB_GUEST
	export O
	install_modules && install_programs
	hold_perf
	start_cpus
	if load_modules; then
		run_command
		rc=$?
	else
		echo "lab: a module does not load" >&2
		rc=1
	fi
	check_log || [[ $rc -ne 0 ]] || rc=1
	echo "$rc" >"$CTL/status"
}

start_machine
session >"$(out_port)" 2>&1
sync
echo o >/proc/sysrq-trigger
sleep 1000
