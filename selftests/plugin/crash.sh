#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The power goes during a dump. The file system of the image directory is on a device whose writes are logged
# (dm-log-writes); the log is replayed to points of it, of what no flush covers a part is left out, the file system
# recovers, and what is found must be called whole, and be it, or be refused.
# Seen red: "verify" that does not look at CRIU's own files (called whole with a core or pages that were not there); no
# fsync of our files (gone after CRIU's end); no fsync of page files, which are written through the page cache (a manifest
# without them). With direct writes, ext4 has them on the disk with the manifest even so.
#
#   TEST_CUTS [40]   random points        TEST_SEED [the clock]
# shellcheck disable=SC2119,SC2016 # options are optional; programs of awk
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

CUTS=${TEST_CUTS:-40}
SEED=${TEST_SEED:-$(date +%s)}
POWERCUT=$O/selftests/plugin/powercut
FS=$W/fs
IMG=$FS/img
GOOD=$W/good
# What a restore does not need.
NOT_NEEDED='dump.log|stats-dump|amdgpu-report.json'

cut_cleanup() {
	mountpoint -q "$W/cut" && umount "$W/cut"
	mountpoint -q "$FS" && umount "$FS"
	"$POWERCUT" remove cuts 2>/dev/null
	[[ ! -s $W/loop ]] || losetup -d "$(cat "$W/loop")"
	cleanup
}
trap cut_cleanup EXIT

setup() {
	modprobe -a loop dm-mod dm-log-writes
	mkdir "$FS" "$W/cut"
	umount /data
	cp --sparse=always /dev/vdb "$W/base"
	truncate -s 512M "$W/log"
	losetup -f --show "$W/log" >"$W/loop"
	"$POWERCUT" create cuts /dev/vdb "$(cat "$W/loop")" >"$W/device"
	mount -t ext4 "$(cat "$W/device")" "$FS"
	app_start --heap vram --bos 2 --size 1M
	app_goes_on 3
}

mark() {
	"$POWERCUT" mark cuts "$1"
}

# CRIU syncs nothing, and its files may reach the disk in any order. The short ones first is one that the kernel often has:
# the inventory, which CRIU writes last, is among them, its copy of memory is the last.
sync_one_by_one() {
	local f
	for f in $(find "$IMG" -type f -printf '%s %p\n' | sort -n | cut -d ' ' -f 2); do
		sync "$f"
	done
}

dump() {
	local vas
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" >"$W/digest"
	mkdir "$IMG"
	sync -f "$FS"
	mark begin
	criu_dump
	mark dumped
	cp -a "$IMG" "$GOOD"
	sync_one_by_one
	mark end
	umount "$FS"
	"$POWERCUT" remove cuts
	"$POWERCUT" list "$(cat "$W/loop")" >"$W/entries"
	gpucr image verify "$GOOD"
}

# Index of a mark's entry.
marked() {
	awk -v name="$1" '$NF == name { print $1 }' "$W/entries"
}

# Two of the marks, and random points between the first and the last.
points() {
	local i from to
	from=$(marked begin) to=$(marked end)
	for i in $(marked dumped) "$to"; do
		echo "$i"
	done
	RANDOM=$((SEED % 32768))
	for ((i = 0; i < CUTS; i++)); do
		echo $((from + (RANDOM * 32768 + RANDOM) % (to - from)))
	done
}

# same PATTERN: the files of that name that the good image has are here, and the same; tells which is not.
same() {
	local f
	for f in "$GOOD"/*; do
		f=${f##*/}
		[[ $f =~ $1 && ! $f =~ ^($NOT_NEEDED)$ ]] || continue
		cmp -s "$GOOD/$f" "$W/cut/img/$f" || {
			echo "$f"
			return 1
		}
	done
}

# Of the mounted cut, one line: verdict, the first of CRIU's or our files that differs, is there a manifest, and of the
# page files the one that differs.
judge() {
	local rc=0 verdict manifest=no all pages
	[[ -d $W/cut/img ]] || {
		echo "nothing wrong:. no wrong:-"
		return
	}
	gpucr image verify "$W/cut/img" >"$W/verify" 2>&1 || rc=$?
	case $rc in
	0) verdict=whole ;;
	4) verdict=refused ;;
	*)
		verdict=status-$rc
		! grep -q 'it has no image of GPU processes' "$W/verify" || verdict=nothing
		;;
	esac
	all=$(same .) || true
	pages=$(same ^amdgpu-pages-) || true
	same ^gpucr-kfd- >/dev/null && manifest=manifest
	echo "$verdict wrong:${all:--} $manifest wrong:${pages:--}"
}

# A disk as of before its last flush is kept, from which the next, later cut starts.
cuts() {
	local at done=0 safe n=0 log
	log=$(cat "$W/loop")
	: >"$W/judged"
	while read -r at; do
		cp --sparse=always "$W/base" "$W/disk"
		# Every other cut lost nothing but what is behind it.
		safe=$("$POWERCUT" replay "$log" "$W/disk" "$done" "$at" $((n++ % 2 * (SEED + n))))
		echo "$at $safe" >>"$W/replayed"
		mount -o loop "$W/disk" "$W/cut"
		echo "cut $at $(judge)" >>"$W/judged"
		umount "$W/cut"
		safe=$(awk '{ print $2 }' <<<"$safe")
		[[ $safe -le $done ]] || "$POWERCUT" replay "$log" "$W/base" "$done" "$safe" 0 >/dev/null
		[[ $safe -le $done ]] || done=$safe
	done < <(points | sort -n)
	awk '{ seen[$3]++ } END { for (v in seen) print v, seen[v] }' "$W/judged" | tee "$W/summary"
	[[ $(wc -l <"$W/judged") -eq $((CUTS + 2)) ]]
}

# None but the lines that awk finds guilty.
no_cut() {
	awk "$1"' { print; bad = 1 } END { exit bad }' "$W/judged"
}

never_wrong() {
	no_cut '$3 == "whole" && $4 != "wrong:-"'
}

refused_by_name() {
	no_cut '$3 != "whole" && $3 != "refused" && $3 != "nothing"'
}

manifest_last() {
	no_cut '$5 == "manifest" && $6 != "wrong:-"'
}

there_when_dumped() {
	no_cut '$2 >= '"$(marked dumped)"' && ($5 != "manifest" || $6 != "wrong:-")'
}

both_kinds() {
	grep -q ' whole ' "$W/judged"
	grep -q ' refused ' "$W/judged"
	[[ $(grep -c ' manifest ' "$W/judged") -ge 3 ]]
}

# The last cut is all of the log; its disk is as it was left.
restore() {
	local vas
	sim_becomes_empty
	cp --sparse=always "$W/base" "$W/disk"
	"$POWERCUT" replay "$(cat "$W/loop")" "$W/disk" 0 "$(marked end)" 0
	mount -o loop "$W/disk" "$W/cut"
	IMG=$W/cut/img
	criu_restore
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" | diff "$W/digest" -
	app_goes_on 5
	app_kill
	umount "$W/cut"
}

plan 9
must "a file system whose writes are logged" setup
must "dump" dump
must "$CUTS random cuts and 2 chosen ones, seed $SEED" cuts
sed 's/^/# /' "$W/summary"
check "none is called whole with a byte that is not right" never_wrong
check "what is not whole is refused, not stumbled over" refused_by_name
check "where the manifest is, its page files are" manifest_last
check "what the plugin wrote is there when CRIU has ended" there_when_dumped
check "there were cuts of both kinds" both_kinds
check "the last one is restored" restore
finish
