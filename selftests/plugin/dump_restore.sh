#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Stock CRIU with our plugin dumps a GPU process and restores it, through the module and without it.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

TRACING=/sys/kernel/tracing
KFD_CRIU_OP=0xc0384b22

# Where the lab put another one over the image's, it is that package's.
criu_is_stock() {
	local other=/run/lab/criu/DEBIAN/md5sums
	[[ ! -e $other ]] || {
		grep ' usr/sbin/criu$' "$other" | env -C / md5sum -c
		return
	}
	# The guest is made without documentation.
	! dpkg -V criu | grep -v -E ' /usr/share/(doc|man)/' || fail "changed files"
	[[ $(command -v criu) == /usr/sbin/criu || $(readlink -f "$(command -v criu)") == /usr/sbin/criu ]]
}

# Every CRIU ioctl and every generic netlink socket of the whole machine, as the kernel sees them: strace cannot
# follow a restore, whose tasks CRIU itself traces.
trace_on() {
	mountpoint -q "$TRACING" || mount -t tracefs tracefs "$TRACING"
	echo >"$TRACING/trace"
	# It would make the kernel patch its scheduler at each use; see selftests/apps/perfhold.c.
	echo 0 >"$TRACING/options/record-cmd"
	echo "cmd == $KFD_CRIU_OP" >"$TRACING/events/syscalls/sys_enter_ioctl/filter"
	echo "family == 16 && protocol == 16" >"$TRACING/events/syscalls/sys_enter_socket/filter"
	echo 1 >"$TRACING/events/syscalls/sys_enter_ioctl/enable"
	echo 1 >"$TRACING/events/syscalls/sys_enter_socket/enable"
}

trace_off() {
	echo 0 >"$TRACING/events/syscalls/sys_enter_ioctl/enable"
	echo 0 >"$TRACING/events/syscalls/sys_enter_socket/enable"
	cat "$TRACING/trace" >"$1"
}

used_only() {
	local f ioctls sockets
	for f in "$W/trace.dump" "$W/trace.restore"; do
		ioctls=$(grep -c sys_ioctl "$f") || true
		sockets=$(grep -c sys_socket "$f") || true
		echo "${f##*.}: $ioctls CRIU ioctls, $sockets generic netlink sockets"
		case $1 in
		netlink) [[ $ioctls -eq 0 && $sockets -gt 0 ]] || fail "$(cat "$f")" ;;
		ioctl) [[ $ioctls -gt 0 && $sockets -eq 0 ]] || fail "$(cat "$f")" ;;
		esac
	done
	[[ $1 == ioctl ]] || grep -a 'the module keeps [1-9][0-9]* offsets of image pid' "$IMG/restore.log"
}

# Step and bytes that SDMA has written, of an application that is stopped for it, its queues run dry.
sample() {
	kill -STOP "$(app_pid)"
	sleep 0.5
	echo "$(step) $(stat_value sdma_bytes)"
	kill -CONT "$(app_pid)"
}

# The GPU writes what the steps ask for: out and back, for each rotating BO.
gpu_does_the_work() {
	local s0 s1 b0 b1 per_step=$((2 * 6 * 1048576))
	app_start --heap vram,gtt,userptr --bos 2 --queues 3 --size 1M
	read -r s0 b0 < <(sample)
	app_goes_on 10
	read -r s1 b1 < <(sample)
	echo "steps $s0 to $s1, SDMA bytes $b0 to $b1"
	# At each end a step may be done, but not yet checked and said; fences are small.
	[[ $((b1 - b0)) -ge $(((s1 - s0 - 1) * per_step)) ]] || fail "too few"
	[[ $((b1 - b0)) -le $(((s1 - s0 + 1) * per_step + 65536)) ]] || fail "too many"
	grep "/dev/dri" "/proc/$(app_pid)/maps" >"$W/maps" || fail "no BO is mapped"
	awk '$2 == "r--s" { ro++ } END { exit ro < 4 }' "$W/maps" || fail "VRAM is not mapped read-only"
}

dump() {
	local vas
	queues_move "$(app_pid)"
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" >"$W/digest.before"
	[[ $(wc -l <"$W/digest.before") -eq ${#vas[@]} && ${#vas[@]} -ge 2 ]] || fail "no digests"
	trace_on
	criu_dump || { trace_off "$W/trace.dump" && return 1; }
	trace_off "$W/trace.dump"
	app_gone || fail "the process is still there"
	step >"$W/step"
	app_log_good
	sim_becomes_empty
}

images() {
	ls -l "$IMG"
	compgen -G "$IMG/gpucr-kfd-*.img"
	compgen -G "$IMG/gpucr-renderD-*.img"
	compgen -G "$IMG/amdgpu-pages-gpucr-*.img"
	# All VRAM and GTT; no page is zero.
	[[ $(stat -c %s "$IMG"/amdgpu-pages-gpucr-*.img | awk '{ s += $1 } END { print s }') -ge $((7 * 1048576)) ]]
	[[ -z $(find "$IMG" -name '*gpucr*' ! -perm 600) ]] || fail "others may read the images"
	# CRIU's own files too, as this CRIU writes them.
	gpucr image verify "$IMG" || fail "the image is not called whole"
	# What CRIU wrote last before the inventory may be cut off by a power cut.
	cp -r "$IMG" "$W/cut" && truncate -s -4096 "$(find "$W/cut" -name 'pages-*.img' -size +1 | head -n 1)"
	if gpucr image verify "$W/cut"; then fail "called whole, and CRIU's memory is short"; fi
	rm -rf "$W/cut"
}

restore() {
	local vas
	mapfile -t vas < <(constant_bos)
	trace_on
	criu_restore || { trace_off "$W/trace.restore" && return 1; }
	trace_off "$W/trace.restore"
	digest "$(app_pid)" "${vas[@]}" | diff "$W/digest.before" -
}

# With GPUCR_CANARY a wrong byte, which must be found: one byte of the constant userptr BO, written behind the
# application's back.
canary() {
	local va
	[[ ${GPUCR_CANARY-} == 1 ]] || return 0
	va=$(sed -n 's/^bo .* heap userptr va \([0-9a-f]*\) .* constant$/\1/p' "$LOG")
	printf 'X' | dd of="/proc/$(app_pid)/mem" bs=1 seek=$((16#$va + 12345)) conv=notrunc status=none
}

goes_on() {
	canary
	app_goes_on 10
	[[ $(step) -gt $(cat "$W/step") ]]
}

leaves_nothing() {
	app_kill
	sim_becomes_empty
	no_session_left
	[[ -z $(pgrep -x criu) ]] || fail "a criu is left"
	[[ -z $(pgrep -f 'gpucr session') ]] || fail "a guard is left"
}

# The whole of what the BOs hold, rotating ones too: of a process that was stopped when it was dumped.
dump_stopped() {
	local pid
	pid=$(app_pid)
	kill -STOP "$pid"
	# Its queues run dry.
	sleep 1
	digest "$pid" >"$W/digest.all"
	[[ $(wc -l <"$W/digest.all") -ge 6 ]]
	criu_dump
	sim_becomes_empty
	criu_restore
	grep -q '^State:.*stopped' "/proc/$pid/status"
	digest "$pid" | diff "$W/digest.all" -
	kill -CONT "$pid"
}

# CRIU calls exit only when the job has died, if it waits for that: nothing may be held until then.
foreground() {
	local criu
	rm -rf "$IMG"
	criu_dump
	sim_becomes_empty
	criu restore -D "$IMG" -o restore.log -v4 >"$W/criu.out" 2>&1 </dev/null &
	criu=$!
	wait_for "$PATIENCE" kill -0 "$(app_pid)" || fail "it does not come back: $(tail -n 5 "$IMG/restore.log")"
	app_goes_on 5
	kill -0 "$criu" || fail "criu does not wait: this proves nothing"
	if find "/proc/$criu/fd" -lname /dev/kfd -o -lname '/dev/dri/renderD*' | grep .; then fail "GPU files are held"; fi
	! has_gpucr || module_idle || fail "a session is held"
	jq -e '.phase == "done"' "/run/gpucr/$criu.json" || fail "it is not said to be done"
	app_kill
	wait "$criu" || echo "criu's status is $?"
}

round() {
	export GPUCR_BACKEND=$1
	rm -rf "$IMG"
	must "$1: the GPU writes what the steps ask for, the CPU cannot" gpu_does_the_work
	must "$1: dump, and the process is gone" dump
	check "$1: images are whole and private" images
	must "$1: restore, and constant BOs are as at the pause" restore
	check "$1: no other way to KFD was used" used_only "$1"
	must "$1: the counter goes on from where it was, the pattern holds" goes_on
	check "$1: every queue retires packets" queues_move "$(app_pid)"
	rm -rf "$IMG"
	check "$1: a second generation, stopped: every BO is as at the pause" dump_stopped
	check "$1: and it goes on" app_goes_on 5
	check "$1: a restore in the foreground holds nothing while its job runs" foreground
	check "$1: nothing left" leaves_nothing
}

plan 23
check "CRIU is Debian's own" criu_is_stock
round ioctl
if has_gpucr; then
	round netlink
else
	for i in 1 2 3 4 5 6 7 8 9 10 11; do
		check "netlink $i" skip "module gpucr is not loaded"
	done
fi
finish
