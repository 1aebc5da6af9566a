#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Eight and 64 GPUs: each a PCI function, a render node and an id of its own.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

# distinct COUNT FILE...: as many different contents as that
distinct() {
	local n=$1
	shift
	[[ $(cat "$@" | sort -u | wc -l) == "$n" ]]
}

gpu_ids() {
	local f
	for f in /sys/class/kfd/kfd/topology/nodes/*/gpu_id; do
		[[ $(cat "$f") == 0 ]] || echo "$f"
	done
}

# many GPUS
many() {
	local n=$1 files
	modprobe kfdsim "gpus=$n" vram_mb=64 gtt_mb=64
	result $? "$n GPUs load"
	files=(/sys/bus/pci/drivers/amdgpu/0001:*/unique_id)
	[[ ${#files[@]} == "$n" ]] && distinct "$n" "${files[@]}"
	result $? "$n PCI functions bound, unique ids differ"
	files=(/sys/class/drm/renderD*/dev)
	[[ ${#files[@]} == "$n" ]] && distinct "$n" "${files[@]}"
	result $? "$n render nodes"
	mapfile -t files < <(gpu_ids)
	[[ ${#files[@]} == "$n" ]] && distinct "$n" "${files[@]}"
	result $? "$n GPUs in the topology, gpu ids differ"
	modprobe -r kfdsim && [[ ! -e /sys/bus/pci/drivers/amdgpu ]]
	result $? "$n GPUs unload"
}

# other ids with another machine=
machines() {
	local a b
	modprobe kfdsim gpus=1 vram_mb=64
	a=$(cat /sys/bus/pci/drivers/amdgpu/0001:*/unique_id)
	modprobe -r kfdsim
	modprobe kfdsim gpus=1 vram_mb=64 machine=1
	b=$(cat /sys/bus/pci/drivers/amdgpu/0001:*/unique_id)
	modprobe -r kfdsim
	[[ -n $a && -n $b && $a != "$b" ]]
	result $? "another machine has other ids"
}

# Beside another driver's node 64 do not fit below minor 192, which 6.1 does not go beyond.
beyond() {
	local rc
	modprobe vgem || return
	modprobe kfdsim gpus=64 vram_mb=64 gtt_mb=64 2>/dev/null
	rc=$?
	if [[ $rc == 0 ]]; then
		[[ -c /dev/dri/renderD192 ]]
		result $? "a 64th GPU beside another driver has minor 192"
		modprobe -r kfdsim
	elif [[ -e /sys/class/kfd || -e /dev/dri/renderD129 ]]; then
		result 1 "what does not fit leaves nothing"
	else
		echo "ok $((++KTAP_N)) a 64th GPU beside another driver # SKIP this kernel has no render minors beyond 191"
	fi
	modprobe kfdsim gpus=63 vram_mb=64 gtt_mb=64 && [[ -c /dev/dri/renderD191 ]] && modprobe -r kfdsim
	result $? "63 GPUs beside another driver"
	modprobe -r vgem
}

plan 13
many 8
many 64
machines
beyond
finish
