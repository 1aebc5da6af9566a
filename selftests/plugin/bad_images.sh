#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Images that are not whole are refused by a sentence that names the file, and nothing is left of the attempt.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

dump() {
	app_start --heap vram,gtt --bos 1 --size 2M
	app_goes_on 3
	criu_dump
	cp -a "$IMG" "$W/good"
	sim_becomes_empty
}

one() {
	find "$IMG" -name "$1" -size +0 | sort | grep -m 1 . || fail "no $1"
}

refused() {
	! criu restore -d -D "$IMG" -o restore.log -v4 || fail "it was restored"
	grep -a 'gpucr: ' "$IMG/restore.log" | grep -a -F "$1: " || fail "$(grep -a -E 'Error|gpucr' "$IMG/restore.log")"
	app_gone || fail "a process is left"
	sim_becomes_empty
	no_session_left
}

fresh() {
	rm -rf "$IMG"
	cp -a "$W/good" "$IMG"
}

truncated() {
	fresh
	local f
	f=$(one "$1")
	truncate -s $(($(stat -c %s "$f") * ${2:-50} / 100)) "$f"
	refused "${f##*/}"
}

flipped() {
	fresh
	local f at byte
	f=$(one "$1")
	at=$(($(stat -c %s "$f") / 2 + 7))
	byte=$(od -An -tu1 -j "$at" -N 1 "$f")
	# shellcheck disable=SC2059
	printf "\\x$(printf %x $((byte ^ 16)))" | dd of="$f" bs=1 seek="$at" conv=notrunc status=none
	refused "${f##*/}"
}

missing() {
	fresh
	local f
	f=$(one "$1")
	rm "$f"
	refused "${f##*/}"
}

driver_error() {
	fresh
	fault "point=criu-$1 errno=5 count=1"
	! criu restore -d -D "$IMG" -o restore.log -v4 || fail "it was restored"
	faults_clear
	wait_for 10 app_gone || fail "a process is left"
	sim_becomes_empty
	no_session_left
}

whole() {
	fresh
	criu_restore
	app_goes_on 5
	queues_move "$(app_pid)"
	app_kill
	sim_becomes_empty
}

plan 11
must "dump" dump
check "page file truncated" truncated 'amdgpu-pages-gpucr-*.img'
check "page file one byte short" truncated 'amdgpu-pages-gpucr-*.img' 99
check "page file missing" missing 'amdgpu-pages-gpucr-*.img'
check "one bit of a page file flipped" flipped 'amdgpu-pages-gpucr-*.img'
check "KFD image truncated" truncated 'gpucr-kfd-*.img'
check "KFD image, one bit flipped" flipped 'gpucr-kfd-*.img'
check "render node image truncated" truncated 'gpucr-renderD-*.img'
check "driver's error at restore" driver_error restore
check "driver's error at resume" driver_error resume
check "the same images, whole, are restored" whole
finish
