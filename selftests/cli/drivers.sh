#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# A DRM driver that the module does not know: refused by name, and never a reason to keep the rest back.
. "$(dirname "$0")/lib.sh"

node_of() {
	local d
	for d in /sys/class/drm/card[0-9]; do
		[[ $(basename "$(readlink "$d/device/driver")") == "$1" ]] && echo "/dev/dri/${d##*/}" && return
	done
	return 1
}

alone() {
	refused 3 driver-unknown bo pid "$(pid_of foreign)"
	refused 3 driver-unknown vma pid "$(pid_of foreign)"
	refused 3 driver-unknown bo pid "$(pid_of foreign)" fd 7
}

in_company() {
	answered bo pid "$(pid_of both)"
	is_json '.warnings | length == 1 and .[0].token == "driver-unknown"'
	answered file pid "$(pid_of both)"
	is_json '[.data[].driver] | sort == ["bochs-drm", "vgem"]'
}

# The same open file: not only the same device, which "foreign" has open too.
inherited() {
	wait_for "$PATIENCE" test -s "$W/heir.started"
	answered file pid "$(pid_of heir)" fd 9
	is_json ".data | length == 1 and .[0].also_in == [{pid: $(pid_of parent), fd: 9}]"
}

need_modules gpucr vgem bochs
NODE=$(node_of bochs-drm) || skip_all "no bochs display"
VGEM=$(ls -d /sys/devices/*/vgem/drm/card*) || bail "no vgem"
sleep 1000 7<"$NODE" &
started foreign $!
disown
sleep 1000 7<"$NODE" 8<"/dev/dri/${VGEM##*/}" &
started both $!
disown
(
	exec 9<"$NODE"
	sleep 1000 &
	started heir $!
	exec sleep 1000
) &
started parent $!
disown
plan 3
check "alone" alone
check "beside one that it knows" in_company
check "an inherited file is in both processes" inherited
finish
