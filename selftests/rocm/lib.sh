# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What the tests of ROCm's programs share: what the topology says, to be compared with what a program says. Sourced.

# shellcheck source=selftests/ktap.sh
. /src/selftests/ktap.sh

TOPOLOGY=/sys/class/kfd/kfd/topology/nodes

# The nodes of the GPUs, in order.
gpu_nodes() {
	local n
	for n in $(seq 0 $(($(find "$TOPOLOGY" -mindepth 1 -maxdepth 1 | wc -l) - 1))); do
		[[ $(<"$TOPOLOGY/$n/gpu_id") == 0 ]] || echo "$n"
	done
}

# prop NODE NAME
prop() {
	sed -n "s/^$2 //p" "$TOPOLOGY/$1/properties"
}

# 90010 is gfx90a: major, minor and step, the last two in hexadecimal.
gfx_name() {
	local v
	v=$(prop "$1" gfx_target_version)
	printf 'gfx%d%x%x\n' $((v / 10000)) $((v / 100 % 100)) $((v % 100))
}

# The PCI address of a node's device.
bdf() {
	local at
	at=$(prop "$1" location_id)
	printf '%04x:%02x:%02x.%x\n' "$(prop "$1" domain)" $((at >> 8)) $((at >> 3 & 31)) $((at & 7))
}

vram_bytes() {
	awk '$1 == "size_in_bytes" { n += $2 } END { printf "%d\n", n }' "$TOPOLOGY/$1"/mem_banks/*/properties
}

unique_id() {
	printf '%016x\n' "$(prop "$1" unique_id)"
}

# has FILE TEXT: a line that is this, blanks squeezed and none at its ends
has() {
	sed -e 's/[[:space:]]\{1,\}/ /g' -e 's/^ //' -e 's/ $//' "$1" | grep -qxF -- "$2" || fail "no line '$2'"
}

# shellcheck disable=SC2154 # W is the test's
# Leaves a file $W/agentN for each agent, and fails where they are not as many as the nodes.
run_rocminfo() {
	timeout 100 rocminfo >"$W/rocminfo" 2>&1 || fail "status $?: $(tail -n 5 "$W/rocminfo")"
	# one file an agent
	awk -v dir="$W" '/^Agent [0-9]+/ { n++ } n { print >(dir "/agent" n) }' "$W/rocminfo"
	[[ $(find "$W" -name 'agent*' | wc -l) == $(find "$TOPOLOGY" -mindepth 1 -maxdepth 1 | wc -l) ]] || fail "not one agent a node"
}

# gpu_agent FILE NODE
gpu_agent() {
	local f=$1 n=$2 kb
	kb=$(($(vram_bytes "$n") / 1024))
	has "$f" "Device Type: GPU"
	has "$f" "Name: $(gfx_name "$n")"
	has "$f" "Uuid: GPU-$(unique_id "$n")"
	has "$f" "Vendor Name: AMD"
	has "$f" "$(printf 'Chip ID: %d(0x%x)' "$(prop "$n" device_id)" "$(prop "$n" device_id)")"
	has "$f" "BDFID: $(prop "$n" location_id)"
	has "$f" "Compute Unit: $(($(prop "$n" simd_count) / $(prop "$n" simd_per_cu)))"
	has "$f" "$(printf 'Size: %d(0x%x) KB' "$kb" "$kb")"
	grep -q "amdgcn-amd-amdhsa--$(gfx_name "$n")" "$f" || fail "no ISA"
	grep -q 'Marketing Name: *[A-Za-z]' "$f" || fail "no marketing name"
}

# Those of the agents that run_rocminfo left.
gpu_agents() {
	local i=1 n
	for n in $(gpu_nodes); do
		i=$((i + 1))
		gpu_agent "$W/agent$i" "$n"
	done
}
