#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# The size of KFD's private record of a BO, from the BTF of the real amdgpu.ko: no GPU, no KFD process, no dump.
#
# Mutations that must turn this red: another structure's size; a split string table read as a whole one; the base's
# types counted among the module's.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

W=$(mktemp -d "${TMPDIR:-/tmp}/record.XXXXXX")
trap 'rm -rf "$W"' EXIT

# 16 GPU instances in the KFD of 6.1, 64 from 6.12 on (docs/kernels.md).
truth() {
	case $(uname -r) in
	6.1.*) echo 80 ;;
	*) echo 272 ;;
	esac
}

# Asked once: without KVM BTF takes its time.
asked() {
	jq -r ".data[0].kfd.$1" "$W/info"
}

is_real() {
	gpucr -j info >"$W/info"
	[[ $(asked module) == amdgpu ]] || fail "KFD is provided by $(asked module)"
	[[ -d /sys/module/amdgpu && ! -d /sys/module/kfdsim ]]
}

by_btf() {
	[[ $(asked bo_record) == "$(truth)" && $(asked bo_record_known) == btf ]] ||
		fail "$(asked bo_record) bytes by $(asked bo_record_known), and not $(truth) by BTF"
}

told() {
	gpucr info >"$W/out"
	grep -q "of a BO: $(truth) bytes (known from BTF)" "$W/out" || fail "$(cat "$W/out")"
}

[[ -e /sys/kernel/btf/amdgpu ]] || skip_all "a kernel with BTF of amdgpu.ko"
plan 3
must "the KFD here is the real one" is_real
check "the record's size is known before any dump" by_btf
check "and people are told" told
finish
