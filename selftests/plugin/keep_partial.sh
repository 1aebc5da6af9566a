#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A dump that fails half way, the first of two processes written: it leaves nothing but its report, or, with keep-partial,
# the files that were finished; never one that was not, and nobody takes them for a whole image.
#
# The option taken the wrong way round turns it red.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

start() {
	app_start --procs 2 --heap vram,gtt --bos 1 --queues 1 --size 1M
}

# Our files in the image directory, by kind.
ours() {
	find "$IMG" -name '*gpucr*' -printf '%f\n' | sed -e 's/[0-9].*img/N.img/' | sort
}

# fail_at N: the Nth copy; a process takes three.
fail_at() {
	rm -rf "$IMG"
	fault "point=cs-submit errno=5 count=1 nth=$1"
	! criu_dump >"$W/out" || fail "the dump succeeded"
	faults_clear
	app_goes_on 2
	[[ $(app_pids | wc -l) -eq 2 ]] || fail "a process is gone"
	jq -e '.result == "failed" and .error.errno == "EIO"' "$IMG/amdgpu-report.json" || fail "$(cat "$IMG/amdgpu-report.json")"
}

# The first process is written, with its content, and a part of the second's.
half_way() {
	fail_at 5
	[[ $(grep -a -c 'gpucr: GPU 0x[0-9a-f]*: read [0-9]* BOs' "$IMG/dump.log") -eq 1 ]] || fail "not half way: $(cat "$W/out")"
}

removed() {
	half_way
	[[ -z $(ours) ]] || fail "left: $(ours)"
}

kept() {
	local f
	GPUCR_KEEP_PARTIAL=on half_way
	grep -x 'amdgpu-pages-gpucr-N.img' <(ours) || fail "no pages: $(ours)"
	grep -x 'gpucr-kfd-N.img' <(ours) || fail "no KFD image: $(ours)"
	[[ $(ours | grep -c -v renderD) -eq 2 ]] || fail "more is left: $(ours)"
	for f in "$IMG"/*gpucr*; do
		[[ $(stat -c %a "$f") == 600 ]] || fail "$f: mode $(stat -c %a "$f")"
	done
}

# What is left of it is found out by everybody: by the tool, and at a restore.
not_whole() {
	local rc=0
	[[ ! -e $IMG/inventory.img ]] || fail "CRIU calls it whole"
	gpucr -j image verify "$IMG" >"$W/verify" || rc=$?
	[[ $rc -eq 4 ]] || fail "verify: $rc, $(cat "$W/verify")"
	grep 'image-incomplete' "$W/verify" || fail "$(cat "$W/verify")"
	! criu_restore >"$W/out" || fail "it was restored"
}

# In the middle of a page file, which then has no name yet: it goes, whatever the option says.
unfinished() {
	GPUCR_KEEP_PARTIAL=on fail_at 2
	! grep -v renderD <(ours) || fail "that is left"
}

# The next one into the same directory is not mixed with it.
next_one() {
	GPUCR_KEEP_PARTIAL=on half_way
	criu_dump
	sim_becomes_empty
	gpucr image verify "$IMG"
	criu_restore
	app_goes_on 3
}

ends() {
	app_pids | xargs -r kill -KILL
	sim_becomes_empty
	no_session_left
}

# A slot of 2 MiB, so that there are several copies.
export GPUCR_MAX_BUFFER_SIZE=2M
plan 7
must "two processes" start
check "by default only the report is left" removed
must "keep-partial: what was finished is left" kept
check "keep-partial: it is not taken for whole" not_whole
check "keep-partial: a file that was not finished is not left" unfinished
check "keep-partial: the next dump into the same directory" next_one
check "nothing left" ends
finish
