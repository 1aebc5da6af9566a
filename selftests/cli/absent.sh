#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# Neither module nor KFD: status 3 and how to load it, where it is needed; the rest works.
. "$(dirname "$0")/lib.sh"

[[ ! -d /sys/module/gpucr && ! -d /sys/class/kfd ]] || bail "gpucr or KFD is loaded"
# The family's name would load the module.
OLD=$(cat /proc/sys/kernel/modprobe)
echo /bin/false >/proc/sys/kernel/modprobe || bail "not root"
trap 'echo "$OLD" >/proc/sys/kernel/modprobe; cleanup' EXIT

info_is_content() {
	answered info
	is_json '.data[0].module.version == null and .data[0].kfd.present == false and
		.warnings[0].token == "no-module"'
	expect 0 info
	grep -q 'gpucr is not loaded' "$W/out"
}

autoload() {
	echo "$OLD" >/proc/sys/kernel/modprobe
	answered info
	is_json '.data[0].module.version != null'
	is_json '.data[0].module.installed == .data[0].module.version'
	is_json '.data[0].module.drivers | index("amdgpu") and index("vgem") and index("virtio_gpu")'
	[[ -d /sys/module/gpucr ]]
}

plan 10
check "info shows that it is absent" info_is_content
check "bo needs the module" refused 3 no-module bo pid $$
check "vma needs the module" refused 3 no-module vma pid $$
check "session needs the module" refused 3 no-module session
check "an explicit backend does not fall back" refused 3 no-module -b netlink info
check "ps needs KFD" refused 3 no-kfd ps
check "queue needs KFD" refused 3 no-kfd queue pid $$
check "file needs neither" answered file pid $$
check "a GPU is none without KFD" refused 2 usage file pid $$ gpu 5
check "the module is loaded by the first question" autoload
finish
