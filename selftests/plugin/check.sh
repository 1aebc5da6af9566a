#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2119,SC2317 # options are optional; functions are called by check
# gpucr check: its verdict on images is that of the restore, on 32 machines of which each differs from the one of the dump
# in one field, without render node, without KFD, by device-map; and on processes, of which each has one thing that
# cannot be dumped. The other machines are the simulator's topology in sysfs, with one figure changed, mounted over it.
# Each refusal has its twin that is not refused. 150 s alone.
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

ODDFD=${O:-/src/build/trixie}/selftests/plugin/oddfd
TOPOLOGY=$(realpath /sys/class/kfd/kfd/topology)
NODE=$(grep -l '^drm_render_minor [1-9]' "$TOPOLOGY"/nodes/*/properties | head -n 1)
NODE=nodes/$(basename "$(dirname "$NODE")")
GPU=$(cat "$TOPOLOGY/$NODE/gpu_id")

# --- images ----------------------------------------------------------------------------------------------------

dumped() {
	app_start --heap vram,gtt --bos 2 --queues 2 --size 256K
	app_goes_on 2
	criu_dump
	cp "$LOG" "$W/log.saved"
	cp -r "$TOPOLOGY" "$W/topology"
	grep -q "^simd_count [1-9]" "$W/topology/$NODE/properties"
}

# verdict STATUS [ARG]...
verdict() {
	local want=$1 rc=0
	shift
	gpucr -j check image "$IMG" "$@" >"$W/verdict" 2>"$W/err" || rc=$?
	[[ $rc -eq $want ]] || fail "check $*: status $rc, not $want: $(cat "$W/verdict" "$W/err")"
}

# A row with these, in jq's words.
row() {
	jq -e "[.data[] | select($1)] | length > 0" "$W/verdict" >/dev/null || fail "no line with $1: $(cat "$W/verdict")"
}

no_row() {
	jq -e "[.data[] | select($1)] | length == 0" "$W/verdict" >/dev/null || fail "a line with $1: $(cat "$W/verdict")"
}

# refused TOKEN PATTERN: by the restore, for the same reason, before anything is made
refused() {
	local rc=0
	criu_restore >"$W/out" 2>&1 || rc=$?
	[[ $rc -ne 0 ]] || fail "the restore went on"
	grep -aE -m 1 'gpucr: .*\([a-z]+(-[a-z]+)+\)' "$IMG/restore.log" >"$W/first" || fail "the log says nothing"
	grep -qE "$2.*\($1\)" "$W/first" || fail "not \"$2 ($1)\" but: $(cat "$W/first")"
	sim_empty || fail "something was made"
}

restored() {
	cp "$W/log.saved" "$LOG"
	criu_restore
	app_goes_on 3
	app_kill
	sim_becomes_empty
}

# On a machine where the file has another figure; FILE NAME BY
elsewhere() {
	cp -r "$W/topology/." "$W/other"
	awk -v name="$2" -v by="$3" '$1 == name { $2 += by; n++ } { printf "%s %.0f\n", $1, $2 } END { exit !n }' \
		"$W/topology/$NODE/$1" >"$W/other/$NODE/$1" || fail "no $2 in $1"
	mount --bind "$W/other" "$TOPOLOGY"
}

home() {
	umount "$TOPOLOGY"
	rm -rf "$W/other"
}

same_verdict() {
	local name=$1
	verdict 4
	row ".answer == \"no\" and .field == \"$name\" and .gpu == $GPU and (.there - .here | fabs) > 0"
	no_row '.answer == "no" and .field != null and .field != "'"$name"'"'
	refused "$(jq -r ".data[] | select(.field == \"$name\") | .token" "$W/verdict")" "here: $name is "
}

one_field() {
	local name rc=0
	for name in vendor_id device_id gfx_target_version num_xcc simd_count array_count simd_arrays_per_engine \
		cu_per_simd_array simd_per_cu max_waves_per_simd wave_front_size lds_size_in_kb max_slots_scratch_cu \
		num_sdma_engines num_sdma_xgmi_engines num_sdma_queues_per_engine num_cp_queues io_links_count \
		capability num_gws caches_count fw_version sdma_fw_version; do
		elsewhere properties $name -1
		(same_verdict $name) || rc=1
		home
	done
	return $rc
}

more_of_it() {
	local name rc=0
	for name in simd_count gfx_target_version capability mem_banks_count; do
		elsewhere properties $name 1
		(same_verdict $name) || rc=1
		home
	done
	return $rc
}

memory() {
	local rc=0
	elsewhere mem_banks/0/properties size_in_bytes -4096
	(same_verdict vram_size) || rc=1
	home
	elsewhere mem_banks/0/properties heap_type 1
	(same_verdict vram_public) || rc=1
	home
	return $rc
}

better() {
	local name rc=0
	for name in fw_version num_gws sdma_fw_version; do
		elsewhere properties $name 1
		(verdict 0 && row ".answer == \"yes\" and .to == $GPU") || rc=1
		[[ $name != fw_version ]] || (restored) || rc=1
		home
	done
	return $rc
}

# Options mean the same to both, by every name.
option() {
	local rc=0
	elsewhere properties fw_version -1
	(
		export KFD_FW_VER_CHECK=0
		verdict 0
		row '.answer == "warn" and .field == "fw_version" and .option == "fw-ver-check"'
		restored
		export KFD_FW_VER_CHECK=1
		verdict 4
		export GPUCR_FW_VER_CHECK=off
		verdict 0
	) || rc=1
	home
	return $rc
}

render_node() {
	mv /dev/dri/renderD128 "$W/node"
	verdict 4 || {
		mv "$W/node" /dev/dri/renderD128
		return 1
	}
	row '.answer == "no" and .token == "no-render-node"'
	(refused no-render-node "renderD128 cannot be opened") || {
		mv "$W/node" /dev/dri/renderD128
		return 1
	}
	mv "$W/node" /dev/dri/renderD128
	verdict 0
}

device_map() {
	local pci uuid
	pci=$(awk '$1 == "domain" { d = $2 } $1 == "location_id" { l = $2 }
		END { printf "%04x:%02x:%02x.%x", d, int(l / 256), int(l / 8) % 32, l % 8 }' "$W/topology/$NODE/properties")
	uuid=$(awk '$1 == "unique_id" { print $2 }' "$W/topology/$NODE/properties")
	verdict 0 device-map "$GPU=$GPU"
	verdict 0 device-map "$pci=$GPU"
	[[ $uuid -eq 0 ]] || verdict 0 device-map "$(printf 'GPU-%x=%s' "$uuid" "$pci")"
	verdict 4 device-map "$GPU=1"
	row '.answer == "no" and .token == "device-map"'
	verdict 4 device-map "$GPU"
	row '.answer == "no" and .token == "bad-option"'
	echo "device-map = $GPU=1" >"$IMG/gpucr.conf"
	verdict 4
	row '.answer == "no" and .token == "device-map"'
	refused device-map "no such GPU here"
	rm "$IMG/gpucr.conf"
	verdict 0
}

# Only read access to the images is needed.
nobody() {
	local copy
	copy=$(mktemp -d /tmp/public.XXXXXX)
	cp "$IMG"/* "$copy/"
	chmod 755 "$copy"
	chmod 644 "$copy"/*
	setpriv --reuid=65534 --regid=65534 --clear-groups gpucr -j check image "$copy" >"$W/verdict" ||
		fail "$(cat "$W/verdict")"
	rm -rf "$copy"
	row ".answer == \"yes\" and .to == $GPU"
}

incomplete() {
	local pages
	pages=$(echo "$IMG"/amdgpu-pages-gpucr-*)
	mv "$pages" "$W/pages"
	verdict 4
	row '.answer == "no" and .token == "image-damaged"'
	refused image-damaged "cannot be opened"
	mv "$W/pages" "$pages"
	mv "$IMG/inventory.img" "$W/inventory"
	verdict 4
	row '.answer == "no" and .token == "image-incomplete"'
	mv "$W/inventory" "$IMG/inventory.img"
	verdict 0
}

comes_back() {
	verdict 0
	gpucr check image "$IMG"
	restored
}

# --- processes -------------------------------------------------------------------------------------------------

# pid_verdict STATUS PID [ARG]...
pid_verdict() {
	local want=$1 rc=0
	shift
	gpucr -j check pid "$@" >"$W/verdict" 2>"$W/err" || rc=$?
	[[ $rc -eq $want ]] || fail "check pid $*: status $rc, not $want: $(cat "$W/verdict" "$W/err")"
}

good_process() {
	app_start --heap vram,gtt --bos 2 --queues 2 --size 1M
	mkdir -p "$W/space"
	pid_verdict 0 "$(app_pid)" dir "$W/space"
	row '.subject == "GPU memory" and .bytes >= 4194304 and .free_bytes > 0 and .paused_us > 0'
	[[ -z $(ls -A "$W/space") ]] || fail "something is left in the directory"
	no_row '.answer == "no"'
	gpucr check pid "$(app_pid)" dir "$W/space"
	app_goes_on 2
}

too_small() {
	mkdir -p "$W/small"
	mount -t tmpfs -o size=1m small "$W/small"
	pid_verdict 4 "$(app_pid)" dir "$W/small"
	umount "$W/small"
	row '.answer == "no" and .token == "no-space"'
}

traced() {
	local tracer
	strace -qq -e trace=none -p "$(app_pid)" 2>/dev/null &
	tracer=$!
	wait_for 20 grep -q '^TracerPid:[[:space:]]*[1-9]' "/proc/$(app_pid)/status"
	pid_verdict 4 "$(app_pid)"
	kill "$tracer"
	row '.answer == "no" and .token == "target-traced"'
	wait "$tracer" || true
	pid_verdict 0 "$(app_pid)"
	app_kill
}

# odd THING STATUS [TOKEN]
odd() {
	local pid rc=0
	rm -f "$W/odd"
	"$ODDFD" "$1" >"$W/odd" &
	wait_for 20 test -s "$W/odd"
	pid=$(cat "$W/odd")
	(
		pid_verdict "$2" "$pid"
		[[ -z ${3-} ]] || row ".answer == \"no\" and .token == \"$3\""
	) || rc=1
	kill -KILL "$pid"
	return $rc
}

# What a child has counts for its parent.
child() {
	local pid rc=0
	bash -c "'$ODDFD' uring >'$W/odd2' & wait" &
	pid=$!
	wait_for 20 test -s "$W/odd2"
	(
		pid_verdict 4 "$pid"
		row ".answer == \"no\" and .token == \"io-uring\" and (.subject | startswith(\"pid $(cat "$W/odd2") \"))"
	) || rc=1
	kill -KILL "$(cat "$W/odd2")" "$pid"
	return $rc
}

user_namespace() {
	local pid rc=0
	unshare --user --map-root-user sleep 1000 &
	pid=$!
	wait_for 20 bash -c "[[ \$(readlink /proc/$pid/ns/user) != \$(readlink /proc/self/ns/user) ]]"
	(
		pid_verdict 4 "$pid"
		row '.answer == "no" and .token == "userns"'
	) || rc=1
	kill "$pid"
	return $rc
}

# fails STATUS TOKEN ARG...
fails() {
	local want=$1 token=$2 rc=0
	shift 2
	gpucr check "$@" >"$W/out" 2>&1 || rc=$?
	[[ $rc -eq $want ]] || fail "check $*: status $rc, not $want: $(cat "$W/out")"
	grep -q "($token)" "$W/out" || fail "check $*: not ($token): $(cat "$W/out")"
}

wrong() {
	fails 2 usage
	fails 2 usage image "$W" dir "$W"
	fails 1 io-error image "$W/nowhere"
	fails 1 no-image image "$W"
	fails 1 no-process pid 4194303
}

plan 22
must "dump" dumped
check "23 machines with one figure that is lower" one_field
check "4 machines with one that is higher" more_of_it
check "less VRAM, and VRAM that the CPU cannot reach" memory
check "3 machines with more of what may be more" better
check "a rule switched off" option
check "no render node" render_node
check "device-map by id, PCI address, UUID; what makes no sense" device_map
check "without rights but to read" nobody
check "images that are not whole" incomplete
check "the machine of the dump" comes_back
check "pid: a GPU process, its size and time" good_process
check "pid: a directory without room" too_small
check "pid: traced" traced
check "pid: nothing of the kind" odd none 0
check "pid: io_uring" odd uring 4 io-uring
check "pid: perf event" odd perf 4 fd-unsupported
check "pid: BO made through the render node" odd bo 4 render-bo
check "pid: KFD file of nobody in the tree" odd orphan 4 kfd-owner
check "pid: a child counts" child
check "pid: user namespace" user_namespace
check "what cannot be checked" wrong
finish
