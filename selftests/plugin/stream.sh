#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# `criu dump --stream` and `criu restore --stream` of a process on two GPUs, with a stand-in for the image streamer that
# speaks its socket protocol: everything of ours goes through it, nothing lies beside, and what is wrong is refused.
#
# Seen red: manifests written into the directory (no dump), chunks of a stream whose checksums are not compared (a
# flipped byte is restored), a report written beside it.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

STREAMER=${O:-/src/build/trixie}/selftests/plugin/streamer
STORE=$W/store

# streamer_start MODE STORE [PREFIX BYTES]: ready for CRIU. streamer_ends STATUS is for the same check.
streamer_start() {
	local mode=$1
	shift
	rm -rf "$IMG"
	mkdir -p "$IMG" "$1"
	"$STREAMER" "$mode" "$IMG" "$@" >"$W/streamer.log" 2>&1 &
	STREAMER_PID=$!
	wait_for 10 has_socket || fail "no socket: $(cat "$W/streamer.log")"
}

has_socket() {
	[[ -n $(find "$IMG" -type s) ]]
}

streamer_ends() {
	local rc=0
	wait "$STREAMER_PID" || rc=$?
	[[ $rc -eq $1 ]] || fail "the streamer's status is $rc: $(tail -n 5 "$W/streamer.log")"
}

# CRIU's log and its times are all that may lie in the image directory.
nothing_beside() {
	local f
	f=$(find "$IMG" -mindepth 1 ! -name '*.log' ! -name 'stats-*' -printf '%f\n')
	[[ -z $f ]] || fail "beside the stream: $f"
}

# dump_to STORE
dump_to() {
	rm -rf "$1"
	streamer_start capture "$1"
	criu_dump --stream
	streamer_ends 0
	[[ -z $(app_pids) ]] || fail "a process is left"
	nothing_beside
	sim_becomes_empty
}

dump() {
	local vas
	app_start --gpus 2 --heap vram,gtt --bos 1 --queues 1 --size 2M
	app_goes_on 3
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" >"$W/digest.before"
	[[ $(wc -l <"$W/digest.before") -ge 4 ]] || fail "too few BOs: $(cat "$W/digest.before")"
	dump_to "$STORE"
}

# line_of PATTERN: of its last line in the streamer's log.
line_of() {
	grep -n -E "$1" "$W/streamer.log" | tail -n 1 | grep -o '^[0-9]*' || fail "no $1: $(cat "$W/streamer.log")"
}

# Of each GPU a page file of at least its BOs, the manifest when they have ended, behind it the record that names it.
in_order() {
	local pages manifest record
	[[ $(grep -c '^end amdgpu-pages-gpucr-[0-9]*-[0-9a-f]*.img [0-9]\{7,\}$' "$W/streamer.log") -eq 2 ]] ||
		fail "$(cat "$W/streamer.log")"
	pages=$(line_of '^end amdgpu-pages-gpucr-')
	manifest=$(line_of '^end gpucr-kfd-')
	record=$(line_of '^put gpucr-stream-')
	[[ $pages -lt $(line_of '^put gpucr-kfd-') && $manifest -lt $record ]] || fail "$(cat "$W/streamer.log")"
}

# refused TOKEN TEXT: a restore of $W/bad.
refused() {
	streamer_start serve "$W/bad"
	! criu restore -d -D "$IMG" -o restore.log -v4 --stream || fail "it was restored"
	wait "$STREAMER_PID" || true
	grep -a "gpucr: .*$2.*($1)" "$IMG/restore.log" || fail "$(grep -a -E 'Error|gpucr' "$IMG/restore.log")"
	[[ -z $(app_pids) ]] || fail "a process is left"
	nothing_beside
	sim_becomes_empty
	no_session_left
}

# bad PATTERN: a copy of the stream; path of the first such file in it.
bad() {
	rm -rf "$W/bad"
	cp -r "$STORE" "$W/bad"
	find "$W/bad" -name "$1" | sort | grep -m 1 .
}

flipped() {
	local f byte
	f=$(bad 'amdgpu-pages-gpucr-*.img')
	byte=$(od -An -tu1 -j 1234567 -N 1 "$f")
	# shellcheck disable=SC2059
	printf "\\x$(printf %02x $((byte ^ 16)))" | dd of="$f" bs=1 seek=1234567 conv=notrunc status=none
	refused chunk-checksum 'wrong checksum'
}

truncated() {
	local f
	f=$(bad 'amdgpu-pages-gpucr-*.img')
	truncate -s -4096 "$f"
	refused image-damaged 'it ends early'
}

records_lost() {
	rm "$(bad 'gpucr-stream-1.img')"
	refused image-incomplete 'no manifest of them'
}

# restore_from STORE
restore_from() {
	streamer_start serve "$1"
	criu_restore --stream
	streamer_ends 0
	nothing_beside
}

restore() {
	local vas
	mapfile -t vas < <(constant_bos)
	restore_from "$STORE"
	digest "$(app_pid)" "${vas[@]}" | diff "$W/digest.before" -
	[[ $(grep -c '^give amdgpu-pages-gpucr-' "$W/streamer.log") -eq 2 ]]
	app_goes_on 5
	queues_move "$(app_pid)"
}

# What a streamer extracts is an image directory as any other.
extracted() {
	gpucr image verify "$STORE"
}

# It goes on, and CRIU says why it was not dumped.
not_dumped() {
	grep -a "gpucr: .*($1)" "$IMG/dump.log" || fail "$(grep -a -E 'Error|gpucr' "$IMG/dump.log")"
	nothing_beside
	app_goes_on 3
	queues_move "$(app_pid)"
	no_session_left
}

streamer_leaves() {
	rm -rf "$W/bad"
	streamer_start capture "$W/bad" amdgpu-pages-gpucr 1000000
	! criu_dump --stream || fail "it was dumped"
	streamer_ends 3
	not_dumped stream-lost
}

other_format() {
	rm -rf "$W/bad"
	streamer_start capture "$W/bad"
	! GPUCR_IMAGE_FORMAT=upstream-4.2 criu_dump --stream || fail "it was dumped"
	wait "$STREAMER_PID" || true
	rm -f "$IMG/amdgpu-report.json"
	not_dumped image-stream
}

# Two processes, each on one GPU, their chunks compressed.
compressed() {
	local log=$LOG
	app_kill
	sim_becomes_empty
	app_start --procs 2 --heap vram,gtt --bos 1 --queues 1 --size 2M
	GPUCR_COMPRESS=zstd:1 dump_to "$STORE"
	restore_from "$STORE"
	app_goes_on 3
	LOG=$log.1
	app_goes_on 3
}

ends() {
	app_pids | xargs -r kill -KILL
	sim_becomes_empty
	no_session_left
}

plan 11
must "dump into a stream: nothing lies beside it" dump
check "page files, then their manifest, then its record" in_order
check "what was extracted is a whole image" extracted
check "a flipped byte is refused" flipped
check "a page file that ends early is refused" truncated
check "no record at all is refused" records_lost
must "restore from the stream: BOs of both GPUs are as before, the process goes on" restore
check "the streamer leaves in the middle: no dump, the process goes on" streamer_leaves
check "upstream's format is refused, the process goes on" other_format
check "two processes, compressed" compressed
check "nothing left" ends
finish
