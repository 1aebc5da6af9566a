#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# rocminfo on each machine of the simulator: the agents are what its topology says. 60 s.
# Fails where ROCr does not know the GPU, or a figure of a model is wrong.
set -u

W=$TMPDIR
# shellcheck source=selftests/rocm/lib.sh
. "$(dirname "$0")/lib.sh"

# machine NAME [PARAMETER...]: one result
machine() {
	rm -f "$W"/agent*
	modprobe kfdsim gtt_mb=64 "topology=$1" "${@:2}" || return
	run_rocminfo
	gpu_agents
	modprobe -r kfdsim
}

# What a captured topology shows is what its GPUs are.
captured() {
	modprobe kfdsim topology=mi300x-cpx gpus=4 gtt_mb=64
	cp -r "${TOPOLOGY%/nodes}" "$W/tree"
	modprobe -r kfdsim
	/src/selftests/kfdsim/simctl load "$W/tree" gtt_mb=64 || return
	rm -f "$W"/agent*
	run_rocminfo
	gpu_agents
	modprobe -r kfdsim
}

plan 6
check "vega10" machine vega10
check "mi210-8" machine mi210-8
check "mi300x-spx" machine mi300x-spx gpus=2
check "mi300x-cpx" machine mi300x-cpx gpus=10
check "navi31" machine navi31
check "a captured one" captured
finish
