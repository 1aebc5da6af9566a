#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The part of guest.sh that runs in the guest: rows to $LAB_OUT/rows.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/../plugin/lib.sh"

IMG=/data/img
CG=/sys/fs/cgroup/bench
OURS=/usr/lib/criu
UPSTREAM=/tmp/upstream-plugin

ms() {
	echo $(($(date +%s%N) / 1000000))
}

# measured COMMAND...: in a cgroup of its own, page cache counted; sets MS and PEAK.
measured() {
	local start
	mkdir "$CG"
	sync
	echo 3 >/proc/sys/vm/drop_caches
	start=$(ms)
	bash -c 'echo $$ >'"$CG"'/cgroup.procs; exec "$@"' - "$@" || fail "$*: $(tail -n 20 "$IMG"/*.log)"
	# Ours has synced; so must the other one, before it is called done.
	sync -f /data
	MS=$(($(ms) - start))
	PEAK=$(cat "$CG/memory.peak")
}

# The restored application is in it, and its memory goes with it.
leave() {
	local pid
	while read -r pid; do
		echo "$pid" >/sys/fs/cgroup/cgroup.procs
	done <"$CG/cgroup.procs"
	rmdir "$CG"
}

# once CASE PLUGIN DIR RUN APP-OPTION...
once() {
	local case=$1 plugin=$2 dir=$3 run=$4 dump_ms dump_peak bytes
	shift 4
	rm -rf "$IMG"
	mkdir "$IMG"
	app_start --delay-ms 500 "$@"
	app_goes_on 1
	measured criu dump -t "$(app_pid)" -D "$IMG" -o dump.log -L "$dir"
	dump_ms=$MS dump_peak=$PEAK
	leave
	cp "$IMG/dump.log" "$LAB_OUT/$case.$plugin.$run.dump.log"
	bytes=$(du -sb "$IMG" | cut -f1)
	sim_becomes_empty
	measured criu restore -d -D "$IMG" -o restore.log -L "$dir"
	cp "$IMG/restore.log" "$LAB_OUT/$case.$plugin.$run.restore.log"
	leave
	app_goes_on 1
	app_kill
	sim_becomes_empty
	printf '%s %s %d %d %d %d %d %d\n' "$case" "$plugin" "$run" "$dump_ms" "$MS" "$dump_peak" "$PEAK" "$bytes" |
		tee -a "$LAB_OUT/rows"
}

# Each run has both, and the first of them changes.
turns() {
	local case=$1 run
	shift
	for run in $(seq "$TEST_BENCH_RUNS"); do
		if ((run % 2)); then
			once "$case" ours "$OURS" "$run" "$@"
			once "$case" upstream "$UPSTREAM" "$run" "$@"
		else
			once "$case" upstream "$UPSTREAM" "$run" "$@"
			once "$case" ours "$OURS" "$run" "$@"
		fi
	done
}

# The application has two BOs of the size it is told on each GPU, one of them constant.
case_one() {
	turns one --heap vram --bos 1 --size "$((TEST_BENCH_MIB / 2))M"
}

case_many() {
	turns many --heap vram --bos 1 --size 1M --small-bos "$TEST_BENCH_BOS"
}

case_gpus() {
	turns gpus --heap vram --gpus 4 --bos 1 --size "$((TEST_BENCH_MIB / 8))M"
}

# Half of the memory holds zeros.
case_zeros() {
	turns zeros --heap vram --bos 1 --size "$((TEST_BENCH_MIB / 4))M" --zero-vram "$((TEST_BENCH_MIB / 2))M"
}

# One BO where both the disk and the engines do TEST_BENCH_RATE, so that at most half of the time can be saved. Nobody has
# its content in memory too, which CRIU would write at the same rate.
case_equal() {
	disk_rate
	turns equal --heap vram --bos 1 --size 1M --idle-vram "${TEST_BENCH_MIB}M"
}

# What the disk really does, both ways, beside the rows.
disk_rate() {
	local start mid end
	start=$(ms)
	dd if=/dev/zero of=/data/rate bs=4M count="$((TEST_BENCH_MIB / 4))" oflag=direct conv=fsync status=none
	mid=$(ms)
	dd if=/data/rate of=/dev/null bs=4M iflag=direct status=none
	end=$(ms)
	rm /data/rate
	awk -v b="$((TEST_BENCH_MIB / 4 * 4 * 1048576))" -v w=$((mid - start)) -v r=$((end - mid)) \
		'BEGIN { printf "%.1f %.1f\n", b / w / 1e3, b / r / 1e3 }' >"$LAB_OUT/disk"
}

set -e
PATIENCE=600
install -D -m 755 "$LAB_IN/amdgpu_plugin.so" "$UPSTREAM/amdgpu_plugin.so"
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo >"$LAB_OUT/cpu"
for c in $TEST_BENCH_CASES; do
	"case_$c"
done
