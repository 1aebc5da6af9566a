#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each machine of the list: nodes, partitions, hives, links and minors as they are described; then a captured one, which
# must be shown again as it was. 60 s.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

W=$TMPDIR
SIMCTL=$(dirname "$0")/simctl
TOPOLOGY=/sys/class/kfd/kfd/topology
NODES=$TOPOLOGY/nodes

# One line a GPU, in the order of the nodes: node, gpu_id, then the properties named below, VRAM, xGMI links. One process,
# since a guest without KVM needs 50 ms for each.
PROPS='drm_render_minor unique_id hive_id gfx_target_version location_id domain num_xcc io_links_count device_id'
table() {
	local files
	shopt -s nullglob
	files=("$NODES"/*/{gpu_id,properties} "$NODES"/*/{mem_banks,io_links}/*/properties)
	awk -v columns="$PROPS" '
		FNR == 1 { n = split(FILENAME, p, "/"); node = p[8]; what = p[9] }
		what == "gpu_id" { if ($1) gpu[node] = $1 }
		what == "properties" { v[node, $1] = $2 }
		what == "mem_banks" && $1 == "size_in_bytes" { vram[node] = $2 }
		what == "io_links" && $1 == "type" && $2 == 11 { xgmi[node]++ }
		END {
			m = split(columns, c, " ")
			for (node = 0; node < 200; node++) {
				if (!(node in gpu))
					continue
				line = node " " gpu[node]
				for (i = 1; i <= m; i++)
					line = line " " ((node, c[i]) in v ? v[node, c[i]] : 0)
				print line, (node in vram ? vram[node] : 0), xgmi[node] + 0
			}
		}' "${files[@]}" >"$W/table"
}

# column NUMBER: of the table, in one line
column() {
	cut -d' ' -f"$1" "$W/table" | tr '\n' ' '
}

# distinct NUMBER: values in it, but for 0
distinct() {
	cut -d' ' -f"$1" "$W/table" | grep -vx 0 | sort -u | wc -l
}

# The counts in the properties are those of the directories, and a link's other end has it too.
consistent() {
	find "$NODES" -mindepth 3 -maxdepth 3 -type d | awk '
		NR == FNR { split($0, p, "/"); dirs[p[8], p[9]]++; next }
		FNR == 1 { split(FILENAME, p, "/"); node = p[8] }
		sub(/_count$/, "", $1) && $1 ~ /^(mem_banks|caches|io_links|p2p_links)$/ && dirs[node, $1] + 0 != $2 {
			print "node " node ": " $1 ": " dirs[node, $1] + 0 " of " $2
			bad = 1
		}
		END { exit bad }' - "$NODES"/*/properties
	awk '$1 == "node_from" { from = $2 } $1 == "node_to" { seen[from "-" $2] = 1 }
		END { for (l in seen) { split(l, e, "-"); if (!(e[2] "-" e[1] in seen)) { print "one way: " l; bad = 1 } } exit bad }' \
		"$NODES"/*/*_links/*/properties
}

# Render node, PCI function and topology agree on each GPU.
devices_agree() {
	local minor unique device dev hex
	while read -r _ _ minor unique _ _ _ _ _ _ device _; do
		dev=/sys/class/drm/renderD$minor/device
		printf -v hex %016x "$unique"
		[[ $unique == 0 || $(<"$dev/unique_id") == "$hex" ]] || fail "renderD$minor: another unique id"
		printf -v hex 0x%04x "$device"
		[[ $(<"$dev/device") == "$hex" ]] || fail "renderD$minor: device id"
	done <"$W/table"
}

# What the library of plugin and tool makes of it.
library_reads() {
	"$O/selftests/kfdsim/topo_list" >"$W/got" || fail "topo_list: status $?"
	cut -d' ' -f2-10,12 "$W/table" | diff - "$W/got"
}

# shape GPUS BOARDS HIVES XGMI: how many of each; XGMI links of each GPU
shape() {
	table
	[[ $(wc -l <"$W/table") == "$1" ]] || fail "$(wc -l <"$W/table") GPUs"
	[[ $(distinct 4) == "$2" ]] || fail "$(distinct 4) boards"
	[[ $(distinct 5) == "$3" ]] || fail "$(distinct 5) hives"
	[[ $(cut -d' ' -f13 "$W/table" | sort -u) == "$4" ]] || fail "xGMI links: $(column 13)"
	[[ $(distinct 2) == "$1" && $(distinct 3) == "$1" ]] || fail "minors or ids are not distinct"
}

# Loads it, without what a failed check before this one left.
load() {
	modprobe -r kfdsim
	"$SIMCTL" load "$@" gtt_mb=64
}

# machine NAME GFX GPUS BOARDS HIVES XGMI MINORS: one result
machine() {
	load "$1"
	shape "$3" "$4" "$5" "$6"
	[[ $(column 6) == "$2 "* && $(distinct 6) == 1 ]] || fail "not gfx $2: $(column 6)"
	[[ $(column 3) == "$7"* ]] || fail "minors: $(column 3)"
	consistent
	devices_agree
	library_reads
	modprobe -r kfdsim
}

# Without what is this boot's: the lines that tell where a GPU is are true, all others as they were.
comparable() {
	cp -r "$1" "$2"
	sed -i '/^drm_render_minor /d; /^location_id /d; /^domain /d' "$2"/*/properties
	rm -rf "$2"/*/perf
}

captured() {
	load mi308x-cpx
	cp -r "$TOPOLOGY" "$W/tree"
	modprobe -r kfdsim
	echo "some_new_property 7" >>"$W/tree/nodes/1/properties"
	echo "and one without a number" >>"$W/tree/nodes/2/properties"
	load "$W/tree"
	comparable "$W/tree/nodes" "$W/captured"
	comparable "$NODES" "$W/shown"
	diff -r "$W/captured" "$W/shown"
	shape 32 8 1 31
	[[ $(column 3) == "128 129 130 131 136 137 138 139 144 "* ]] || fail "minors: $(column 3)"
	devices_agree
	modprobe -r kfdsim
}

# Two partitions at one PCI place, no gpu_id, no memory banks, an old kernel's few properties.
poor() {
	local n
	mkdir -p "$W/poor/nodes"/{0,1,2}
	echo "cpu_cores_count 4" >"$W/poor/nodes/0/properties"
	for n in 1 2; do
		printf '%s\n' 'simd_count 256' 'simd_per_cu 4' 'array_count 4' 'device_id 26720' 'location_id 6400' \
			"drm_render_minor $((133 - n * 2))" >"$W/poor/nodes/$n/properties"
	done
	load "$W/poor"
	# the second has the lower minor, as in the capture, so that it comes first; and one minor is left out
	table
	[[ $(column 3) == "130 128 " ]] || fail "minors: $(column 3)"
	[[ $(column 7) == "6401 6400 " ]] || fail "places: $(column 7)"
	[[ $(distinct 2) == 2 ]] || fail "ids"
	modprobe -r kfdsim
}

refused() {
	local log
	modprobe -r kfdsim
	mkdir -p "$W/none/nodes/0"
	! "$SIMCTL" load "$W/none" || fail "no properties, and loaded"
	printf 'kfdsim-topology 1\nnode 0\nproperties simd_count 1\nnonsense here\n' >"$W/bad"
	! "$SIMCTL" load "$W/bad" 2>"$W/err" || fail "nonsense, and loaded"
	log=$(cat "$W/err")
	[[ $log == *"line 4 of the topology makes no sense"* ]] || fail "said: $log"
	! "$SIMCTL" load "$W/bad.none" || fail "no such machine, and loaded"
	[[ ! -e /sys/class/kfd ]]
}

plan 9
check "vega10" machine vega10 90000 1 1 0 0 "128 "
check "mi210-8: two hives" machine mi210-8 90010 8 8 2 3 "128 129 130 131 132 133 134 135 "
check "mi300x-spx" machine mi300x-spx 90402 8 8 1 7 "128 129 "
check "mi300x-cpx: 64 partitions of 8" machine mi300x-cpx 90402 64 8 1 63 "128 129 "
check "mi308x-cpx: gaps in the minors" machine mi308x-cpx 90402 32 8 1 31 "128 129 130 131 136 137 138 139 144 "
check "navi31" machine navi31 110000 1 1 0 0 "128 "
check "a captured topology is shown as it was" captured
check "a poor one" poor
check "what is refused" refused
finish
