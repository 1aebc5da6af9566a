#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# rocm-smi, amd-smi and clinfo, where the guest has them, find every GPU and say what the topology says.
# 25 s. Fails where the device is no PCI function, or where a figure of its directory is wrong.
set -u

W=$TMPDIR
# shellcheck source=selftests/rocm/lib.sh
. "$(dirname "$0")/lib.sh"

need() {
	command -v "$1" >/dev/null || {
		# Debian 13 has them all, and the guest's list names them.
		! grep -q '^VERSION_CODENAME=trixie' /etc/os-release || fail "no $1 in this guest"
		skip "no $1 in this guest"
	}
}

rocm_smi_ids() {
	local n i=0
	need rocm-smi
	timeout 100 rocm-smi --showid --showbus >"$W/ids" 2>&1 || fail "status $?: $(tail -n 5 "$W/ids")"
	for n in $(gpu_nodes); do
		grep -qiE "^GPU\[$i\].*$(bdf "$n")" "$W/ids" || fail "no $(bdf "$n") for GPU $i"
		grep -qiE "^GPU\[$i\].*$(printf '0x%x' "$(prop "$n" device_id)")" "$W/ids" || fail "no device id of GPU $i"
		i=$((i + 1))
	done
}

# What 5.2.3 aborts in, without sensors.
rocm_smi_table() {
	need rocm-smi
	need amd-smi
	local n i=0
	timeout 100 rocm-smi >"$W/table" 2>&1 || fail "status $?: $(tail -n 5 "$W/table")"
	for n in $(gpu_nodes); do
		grep -E "^$i +$n +0x740f, +$(<"$TOPOLOGY/$n/gpu_id") " "$W/table" || fail "no line of GPU $i"
		i=$((i + 1))
	done
}

rocm_smi_vram() {
	need rocm-smi
	need amd-smi
	local n i=0
	timeout 100 rocm-smi --showmeminfo vram --showuniqueid >"$W/vram" 2>&1 || fail "status $?"
	for n in $(gpu_nodes); do
		has "$W/vram" "GPU[$i] : VRAM Total Memory (B): $(vram_bytes "$n")"
		has "$W/vram" "GPU[$i] : Unique ID: $(printf '0x%x' "$(prop "$n" unique_id)")"
		i=$((i + 1))
	done
}

amd_smi_list() {
	local n
	need amd-smi
	timeout 100 amd-smi list >"$W/list" 2>&1 || fail "status $?: $(tail -n 5 "$W/list")"
	[[ $(grep -c '^GPU:' "$W/list") == $(gpu_nodes | wc -l) ]] || fail "not as many GPUs"
	for n in $(gpu_nodes); do
		has "$W/list" "BDF: $(bdf "$n")"
		# device id first, the low half of the unique id last
		grep -qE "UUID: ..ff$(printf '%04x' "$(prop "$n" device_id)")-.*" "$W/list" || fail "no UUID of $n"
		grep -qE "UUID: .*-....$(unique_id "$n" | tail -c 9)$" "$W/list" || fail "the UUID of $n is another's"
	done
}

clinfo_list() {
	local n name
	need clinfo
	timeout 100 clinfo -l >"$W/clinfo" 2>&1 || fail "status $?: $(tail -n 5 "$W/clinfo")"
	[[ $(grep -c 'Device #' "$W/clinfo") == $(gpu_nodes | wc -l) ]] || fail "not as many devices"
	for n in $(gpu_nodes); do
		name=$(gfx_name "$n")
		grep -q "Device #.*: $name" "$W/clinfo" || fail "no $name"
	done
}

plan 5
check "rocm-smi: device id and PCI place" rocm_smi_ids
check "rocm-smi: its table" rocm_smi_table
check "rocm-smi: VRAM and unique id" rocm_smi_vram
check "amd-smi list" amd_smi_list
check "clinfo -l" clinfo_list
finish
