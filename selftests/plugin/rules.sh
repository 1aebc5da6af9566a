#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What no version of KFD tells: the size of its record of a BO, by BTF or by the data, whatever the kernel; and what the
# GPU id in an mmap offset means, by a restore onto another GPU. "gpucr info" says how each is known.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

HELPERS=${O:-/src/build/trixie}/selftests/plugin
BTF=/sys/kernel/btf

load_sim() {
	[[ -z $(app_pids) ]] || app_kill
	modprobe -r gpucr
	modprobe -r kfdsim
	modprobe kfdsim "$@"
	modprobe gpucr
}

# info FILTER: of its kfd object
info() {
	gpucr -j info >"$W/info"
	jq -e ".data[0].kfd | $1" "$W/info" >/dev/null || {
		cat "$W/info"
		fail "not: $1"
	}
}

start() {
	rm -rf "$IMG"
	app_start --heap vram,gtt --bos 2 --queues 2 --size 256K "$@"
}

record_of_image() {
	local size
	size=$(sed -n 's/.*a layout of \([0-9]*\) bytes a BO.*/\1/p' "$IMG/dump.log" | tail -n 1)
	[[ $size -eq $1 ]] || fail "the image's record: ${size:-none}"
}

# by_data PERSONALITY SIZE: the guest's kernel has nothing to do with it.
by_data() {
	load_sim "personality=$1"
	info '.module != null and .bo_record == null and .bo_record_known == null and .offsets == null and .pause == "counts-assumed"'
	gpucr info | grep -E '^record +of a BO: not yet known'
	start
	criu_dump
	record_of_image "$2"
	info ".bo_record == $2 and .bo_record_known == \"seen\""
	gpucr info | grep -E "^record +of a BO: $2 bytes \(seen\)"
	criu_restore
	app_goes_on 5
	load_sim "personality=$1"
	info '.bo_record == null'
}

provider() {
	gpucr -j info | jq -r '.data[0].kfd.module'
}

# btf SIZE: the kernel's own, and one for the module that provides KFD.
btf() {
	local names
	names=$(od -An -tu4 -j20 -N4 "$BTF/vmlinux" | tr -d ' ')
	mkdir -p "$W/btf"
	[[ -e $W/btf/vmlinux ]] || cp "$BTF/vmlinux" "$W/btf/vmlinux"
	"$HELPERS/rules_test" blob "$1" "$names" >"$W/btf/$(provider)"
	mountpoint -q "$BTF" || mount --bind "$W/btf" "$BTF"
}

no_btf() {
	! mountpoint -q "$BTF" || umount "$BTF"
	rm -rf "$W/btf"
}

by_btf() {
	load_sim
	btf 272
	info '.bo_record == 272 and .bo_record_known == "btf"'
	gpucr info | grep -E '^record +of a BO: 272 bytes \(known from BTF\)'
	start
	criu_dump
	record_of_image 272
	criu_restore
	app_goes_on 5
}

# Nothing can be said of such a kernel, so nothing is done.
disagree() {
	btf 80
	rm -rf "$IMG"
	! criu_dump || fail "the dump succeeded"
	grep -a 'layout-mismatch' "$IMG/dump.log" | grep -a 272 | grep -a 80
	app_goes_on 5
	queues_move "$(app_pid)"
	[[ -z $(find "$IMG" -name '*gpucr*') ]] || fail "$(ls "$IMG")"
}

refused_at_restore() {
	btf 272
	rm -rf "$IMG"
	criu_dump
	btf 80
	! criu_restore || fail "the restore succeeded"
	grep -a 'layout-mismatch' "$IMG/restore.log"
	[[ -z $(app_pids) ]] || fail "a process is left"
	sim_becomes_empty
	btf 272
	criu_restore
	app_goes_on 5
	app_kill
	no_btf
}

# offsets PERSONALITY RULE: a restore onto a GPU of another id tells.
offsets() {
	load_sim "personality=$1" machine=1
	start
	app_goes_on 3
	criu_dump
	load_sim "personality=$1" machine=2
	info '.offsets == null'
	gpucr info | grep -E '^offsets +not yet known'
	criu_restore
	app_goes_on 5
	queues_move "$(app_pid)"
	wait_for 10 seen_offsets "$2" || info ".offsets == \"$2\""
	gpucr info | grep -E '^offsets +hold .*\(seen\)'
	app_kill
}

seen_offsets() {
	gpucr -j info | jq -e ".data[0].kfd.offsets == \"$1\"" >/dev/null
}

gpu_ids() {
	grep -hvx 0 /sys/class/kfd/kfd/topology/nodes/*/gpu_id
}

# Two GPUs that change places: either offset can be mapped, one of them to the wrong GPU. A process of the plugin's own
# finds out; where that fails (RESTORE is refused to it) the restore is refused.
change_places() {
	local a b
	load_sim "personality=$1" gpus=2
	{ read -r a && read -r b; } < <(gpu_ids)
	start --gpus 2
	app_goes_on 3
	criu_dump
	export GPUCR_DEVICE_MAP="$a=$b,$b=$a"
	fault "point=criu-restore errno=5 count=1"
	! criu_restore >"$W/refused" || fail "it guessed"
	grep -a '(offset-rule)' "$IMG/restore.log" || cat "$W/refused"
	grep -aq '(offset-rule)' "$IMG/restore.log"
	[[ -z $(app_pids) ]] || fail "a process is left"
	faults_clear
	info '.offsets == null'
	criu_restore
	app_goes_on 5
	queues_move "$(app_pid)"
	wait_for 10 seen_offsets "$2" || info ".offsets == \"$2\""
	app_kill
	rm -rf "$IMG"
}

back() {
	no_btf
	load_sim
}

plan 12
check "6.12: 272 bytes, by the data" by_data 6.12 272
check "6.1: 80 bytes, by the data, on any kernel" by_data 6.1 80
must "BTF tells before anything is dumped" by_btf
check "BTF and data disagree: refused, naming both" disagree
check "an image of another layout is refused before anything is made" refused_at_restore
check "no BTF any more" no_btf
check "6.12: offsets hold the GPU's own id" offsets 6.12 local
check "7.3: offsets hold the id that the process knows" offsets 7.3 user
check "6.12: GPUs change places: the rule is found beforehand, or it is refused" change_places 6.12 local
check "7.3: GPUs change places: the rule is found beforehand, or it is refused" change_places 7.3 user
check "the usual simulator is back" back
check "nothing left" no_session_left
finish
