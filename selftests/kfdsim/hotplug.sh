#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A GPU is taken away and comes back: nodes, links and devices follow, its open files get ENODEV, and nobody takes one
# that KFD processes have. 10 s.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

W=$TMPDIR
SIMCTL=$(dirname "$0")/simctl
TOPOLOGY=/sys/class/kfd/kfd/topology

gpus() {
	grep -lvx 0 "$TOPOLOGY"/nodes/*/gpu_id | wc -l
}

# agree N: topology and devices have so many, and every link ends at a node that is there
agree() {
	local to
	[[ $(gpus) == "$1" ]] || fail "$(gpus) GPUs in the topology"
	[[ $(find /sys/bus/pci/drivers/amdgpu/ -name '0001:*' | wc -l) == "$1" ]] || fail "not $1 PCI functions"
	[[ $(find /dev/dri -name 'renderD*' | wc -l) == "$1" ]] || fail "not $1 render nodes"
	while read -r to; do
		[[ -d $TOPOLOGY/nodes/$to ]] || fail "a link to node $to"
	done < <(sed -n 's/^node_to //p' "$TOPOLOGY"/nodes/*/*_links/*/properties | sort -u)
}

unique_ids() {
	sed -n 's/^unique_id //p' "$TOPOLOGY"/nodes/*/properties | sort
}

removed() {
	unique_ids >"$W/before"
	cat "$TOPOLOGY/generation_id" >"$W/generation"
	agree 3
	"$SIMCTL" gpu remove 1
	agree 2
	[[ $(<"$TOPOLOGY/generation_id") != "$(<"$W/generation")" ]] || fail "the same generation_id"
	grep -qx '1 removed' <("$SIMCTL" gpu) || fail "not told"
}

added() {
	"$SIMCTL" gpu add 1
	agree 3
	unique_ids | diff "$W/before" -
}

refused() {
	! "$SIMCTL" gpu remove 7 || fail "a GPU that the machine has not"
	! "$SIMCTL" gpu add 0 || fail "one that is there"
	! "$SIMCTL" gpu remove "0 1" || fail "nonsense"
	exec 5</dev/kfd
	! "$SIMCTL" gpu remove 0 || fail "one in use"
	agree 3
	exec 5<&-
}

# An open file neither keeps it nor loses what keeps the module from crashing.
open_file() {
	exec 5<>/dev/dri/renderD128
	"$SIMCTL" gpu remove 0
	agree 2
	! modprobe -r kfdsim 2>/dev/null || fail "unloaded under an open file"
	exec 5>&-
	"$SIMCTL" gpu add 0
	agree 3
}

modprobe kfdsim topology=mi210-8 gpus=3 vram_mb=64 || bail "the simulator does not load"
plan 5
must "taken away" removed
check "and back" added
check "what is refused" refused
check "with a file open" open_file
check "unloads" modprobe -r kfdsim
finish
