#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# rocminfo and rocm_agent_enumerator find the CPU and every GPU, and say of them what the topology says.
# 15 s. Fails where the module is not called amdgpu, where a size is wrong.
set -u

W=$TMPDIR
# shellcheck source=selftests/rocm/lib.sh
. "$(dirname "$0")/lib.sh"

cpu_agent() {
	local name
	read -ra name <<<"$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
	has "$W/agent1" "Device Type: CPU"
	has "$W/agent1" "Name: ${name[*]}"
	has "$W/agent1" "Vendor Name: CPU"
}

enumerator() {
	local n
	{
		# of the CPU; newer ones leave it out
		timeout 100 rocm_agent_enumerator | grep -vx gfx000
	} >"$W/enum" || fail "status $?"
	for n in $(gpu_nodes); do
		gfx_name "$n"
	done >"$W/want"
	diff "$W/want" "$W/enum"
}

plan 4
must "rocminfo runs" run_rocminfo
check "the CPU's agent" cpu_agent
check "the GPUs' agents: name, unique id, PCI place, units, VRAM, ISA" gpu_agents
check "rocm_agent_enumerator names the GPUs" enumerator
finish
