#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# CRIU and the process in cgroups of 300 MiB without swap, and far more in VRAM: nobody is killed, no cgroup reaches its
# limit, and what CRIU's takes at most, page cache included, is buffers and CRIU's own images. Of the VRAM one BO was
# never written: it makes VRAM larger than the guest's memory, where the simulator keeps no page for it.
# Seen red: writes through the page cache (no O_DIRECT), 153 MiB instead of 74; a restoring task with eight times the
# buffers.
#
#   TEST_PRESSURE_MB [512]         written VRAM, in the guest's memory
#   TEST_PRESSURE_IDLE_MB [1024]   VRAM that was never written
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

MIB=1048576
LIMIT=300
# What max-buffer-size allows in a dump, and in the restoring task.
BUFFERS=64
TASK_BUFFERS=8
# For what a process needs beside: CRIU's heap, page tables, what the kernel keeps of files.
SPARE=24
BO=16
CG=/sys/fs/cgroup
# On a disk: what is written to tmpfs is memory of the one who wrote it.
IMG=/data/img

groups() {
	local name
	echo +memory >"$CG/cgroup.subtree_control"
	for name in criu job; do
		[[ ! -d $CG/$name ]] || rmdir "$CG/$name"
		mkdir "$CG/$name"
		echo "${LIMIT}M" >"$CG/$name/memory.max"
		echo 0 >"$CG/$name/memory.swap.max"
	done
}

# within CGROUP COMMAND...
within() {
	bash -c 'echo $$ >'"$CG/$1"'/cgroup.procs; shift; exec "$@"' - "$@"
}

event() {
	awk -v name="$2" '$1 == name { print $2 }' "$CG/$1/memory.events"
}

# peak CGROUP MIB: it had at most that, and was never short of memory.
peak() {
	local most
	most=$(($(cat "$CG/$1/memory.peak") / MIB))
	echo "cgroup $1: $most MiB at most, $2 allowed" | tee -a "$W/peaks"
	[[ $(event "$1" max) -eq 0 && $(event "$1" oom_kill) -eq 0 ]] || fail "$(cat "$CG/$1/memory.events")"
	[[ $most -le $2 ]] || fail "$(grep -E '^(anon|file|kernel|shmem) ' "$CG/$1/memory.stat")"
}

vram() {
	digest "$(app_pid)" | awk -v unit=$MIB '$3 == "vram" { sum += $2 } END { printf "%d\n", sum / unit }'
}

# The VRAM of the simulator is pages that no cgroup pays for, as that of a GPU is none of the machine's.
start() {
	local written=${TEST_PRESSURE_MB:-512} idle=${TEST_PRESSURE_IDLE_MB:-1024}
	groups
	within job "$APP" --log "$LOG" --pidfile "$W/pid" --delay-ms 20 --heap vram --bos $((written / BO - 1)) \
		--size "${BO}M" --idle-vram "${idle}M"
	echo "VRAM: $(vram) MiB, memory: $(awk '$1 == "MemTotal:" { print int($2 / 1024) }' /proc/meminfo) MiB"
	[[ $(vram) -ge $((written + idle)) && $written -gt $LIMIT ]]
	[[ $(($(vram) * 1024)) -gt $(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo) ]] ||
		fail "this guest has more memory than VRAM"
	# A BO's worth of pattern, and the program.
	peak job $((BO + SPARE))
}

# Addresses of the BO that is only read, and of the one that nobody wrote.
still_bos() {
	constant_bos
	sed -n 's/^bo .* idle heap vram va \([0-9a-f]*\) .*/\1/p' "$LOG"
}

dump() {
	local vas
	mapfile -t vas < <(still_bos)
	[[ ${#vas[@]} -eq 2 ]]
	digest "$(app_pid)" "${vas[@]}" >"$W/digest.before"
	mkdir -p "$IMG"
	within criu criu dump -t "$(app_pid)" -D "$IMG" -o dump.log -v4 ||
		fail "$(grep -a -E 'Error|Warn|gpucr' "$IMG/dump.log" | tail -n 25)"
	app_gone
}

# CRIU's own images go through the page cache.
dump_peak() {
	local own
	own=$(find "$IMG" -type f ! -name 'amdgpu-pages-*' -printf '%s\n' | awk -v unit=$MIB '{ sum += $1 }
		END { print int(sum / unit) + 1 }')
	peak criu $((BUFFERS + own + SPARE))
}

restore() {
	local vas
	sim_becomes_empty
	groups
	sync
	echo 3 >/proc/sys/vm/drop_caches
	within criu criu restore -d -D "$IMG" -o restore.log -v4 ||
		fail "$(grep -a -E 'Error|Warn|gpucr' "$IMG/restore.log" | tail -n 25)"
	grep -q /job "/proc/$(app_pid)/cgroup"
	mapfile -t vas < <(still_bos)
	digest "$(app_pid)" "${vas[@]}" | diff "$W/digest.before" -
}

restore_peak() {
	peak job $((BO + TASK_BUFFERS + SPARE))
	peak criu $SPARE
}

plan 7
must "start: more VRAM than memory, and no cgroup pays for it" start
must "dump within $LIMIT MiB" dump
check "CRIU's cgroup held buffers and CRIU's own images" dump_peak
check "the image is whole" gpucr image verify "$IMG"
must "restore within $LIMIT MiB" restore
check "the restored process needed its own memory and buffers" restore_peak
check "every byte of VRAM is as before" app_goes_on 1
sed 's/^/# /' "$W/peaks"
finish
