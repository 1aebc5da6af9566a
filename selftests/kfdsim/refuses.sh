#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What the simulator does not accept, it says, and leaves nothing.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

# refused SENTENCE PARAMETER...
refused() {
	local words=$1 log
	shift
	echo "<6>refuses $*" >/dev/kmsg
	if modprobe kfdsim "$@" 2>/dev/null; then
		modprobe -r kfdsim
		return 1
	fi
	log=$(dmesg | tac | sed "/refuses $*/q")
	grep -qF "$words" <<<"$log" || return 1
	[[ ! -e /sys/class/kfd && ! -e /sys/module/amdgpu && ! -e /dev/dri/renderD128 ]]
}

plan 5
refused "is not within" gpus=65
result $? "too many GPUs"
refused "is not known" topology=voodoo
result $? "unknown topology"
refused "is not one of" personality=5.10
result $? "unknown personality"

modprobe kfdsim vram_mb=64 && [[ $(cat /sys/module/amdgpu/initstate) == live ]] && lsmod | grep -q '^amdgpu_kfdsim '
result $? "loads with marker and /sys/module/amdgpu"
modprobe -r kfdsim && [[ ! -e /sys/class/kfd && ! -e /sys/module/amdgpu ]]
result $? "unloads"
finish
