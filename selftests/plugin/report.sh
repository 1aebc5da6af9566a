#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2119,SC2317 # options are optional; functions are called by check
# The report that a dump or restore leaves: what it did, how long each part took, and, however it failed, the first error.
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

# report FILE FILTER
report() {
	jq -e "$2" "$IMG/$1" >"$W/jq" 2>&1 || fail "$1, not $2: $(cat "$W/jq" "$IMG/$1")"
}

# As the report names it.
gpu_id() {
	awk 'NR > 1 { printf "0x%04x\n", $2; exit }' "$SIM/digest"
}

D=amdgpu-report.json
R=amdgpu-report-restore.json

dump() {
	app_start --heap vram,gtt --bos 2 --queues 2 --size 1M
	app_goes_on 2
	digest "$(app_pid)" | awk '{ s += $2 } END { print s }' >"$W/bytes"
	app_pid >"$W/dumped"
	gpu_id >"$W/gpu"
	GPUCR_FW_VER_CHECK=off criu_dump
	cp "$LOG" "$W/log.saved"
}

dump_told() {
	local bytes pid
	bytes=$(cat "$W/bytes") pid=$(cat "$W/dumped")
	report $D '.gpucr_report == 1 and .operation == "dump" and .result == "done" and (has("error") | not)'
	report $D ".kernel == \"$(uname -r)\" and (.driver | length > 0) and (.backend == \"netlink\" or .backend == \"ioctl\")"
	report $D ".raw_bytes == $bytes and .stored_bytes > 0 and .paused_us > 0 and .paused_us < .duration_us"
	report $D '.options["fw-ver-check"] == "off" and .options["space-check"] == "on" and (.options | length > 15)'
	report $D '[.phases[].phase] == ["pause", "checkpoint", "copy"]'
	report $D "[.phases[] | select(.phase == \"copy\" and .pid == $pid and .bytes == $bytes)] | length == 1"
	report $D '[.phases[] | .duration_us != null and .start_us + .duration_us <= 1000000000] | all'
	[[ $(stat -c %a "$IMG/$D") == 600 ]]
}

restore() {
	criu_restore
	report $R '.operation == "restore" and .result == "done" and .processes == 1 and (has("error") | not)'
	report $R '[.phases[].phase] == ["prepare", "kfd-restore", "fill", "resume"]'
	report $R "[.phases[] | select(.phase == \"fill\" and .bytes == $(cat "$W/bytes"))] | length == 1"
	report $R '[.phases[].duration_us != null] | all'
	app_goes_on 2
	app_kill
	sim_becomes_empty
}

# The task that fails is another process than the one that reports.
restore_failed() {
	local pages rc=0
	pages=$(echo "$IMG"/amdgpu-pages-gpucr-*)
	cp "$pages" "$W/pages"
	printf '\xa7\x5c' | dd of="$pages" bs=1 seek=4711 conv=notrunc status=none
	cp "$W/log.saved" "$LOG"
	criu_restore >"$W/out" 2>&1 || rc=$?
	[[ $rc -ne 0 ]] || fail "it was restored"
	cp "$W/pages" "$pages"
	report $R '.result == "failed" and .error.token == "chunk-checksum" and .error.errno == "EBADMSG" and (.error.hint | length > 0)'
	report $R ".error.pid == $(cat "$W/dumped") and (.error.message | test(\"chunk 0 at 0x0\"))"
	# The stream begins with the first BO that has content.
	report $R '.error.gpu == "'"$(cat "$W/gpu")"'" and (.error.bo | type) == "number" and .error.offset == 0'
	report $R '[.phases[] | select(.phase == "fill" and .duration_us == null)] | length == 1'
	report $R '[.phases[] | select(.phase == "resume")] | length == 0'
}

refused() {
	local rc=0
	GPUCR_DEVICE_MAP=1=2 criu_restore >"$W/out" 2>&1 || rc=$?
	[[ $rc -ne 0 ]] || fail "it was restored"
	report $R '.result == "failed" and .error.token == "device-map" and .error.errno == "EINVAL"'
}

failed_dump() {
	rm -rf "$IMG"
	app_start --heap vram,gtt --bos 2 --queues 2 --size 1M
	fault "point=criu-checkpoint errno=5 count=1"
	! criu_dump >"$W/out" 2>&1 || fail "the dump did not fail"
	faults_clear
	report $D '.result == "failed" and .error.token == "checkpoint-failed" and .error.errno == "EIO"'
	[[ $(find "$IMG" -name '*amdgpu*' -o -name '*gpucr*') == "$IMG/$D" ]] || fail "more is left: $(ls "$IMG")"
	app_goes_on 2
}

# The BO of the message, as numbers: of the second slot's worth.
copy_failed() {
	local bo offset
	rm -rf "$IMG"
	fault "point=cs-submit errno=5 count=1 nth=2"
	! GPUCR_MAX_BUFFER_SIZE=2M criu_dump >"$W/out" 2>&1 || fail "the dump did not fail"
	faults_clear
	report $D '.result == "failed" and .error.token == "copy-failed" and .error.gpu == "'"$(cat "$W/gpu")"'"'
	read -r bo offset < <(jq -r '"\(.error.bo) \(.error.offset)"' "$IMG/$D")
	report $D "$(printf '.error.message | contains("BO %d at 0x%x,")' "$bo" "$offset")"
	[[ $((offset % 4096)) -eq 0 ]] || fail "offset $offset"
	app_goes_on 2
}

no_room() {
	mkdir -p "$W/small"
	mount -t tmpfs -o size=2m small "$W/small"
	IMG=$W/small
	! criu_dump >"$W/out" 2>&1 || fail "the dump did not fail"
	report $D '.result == "failed" and .error.token == "no-space" and .raw_bytes == 0 and .paused_us == 0'
	umount "$W/small"
	app_goes_on 2
	app_kill
}

plan 8
must "dump" dump
check "the report of a dump" dump_told
check "the report of a restore" restore
check "a restore that fails in a task" restore_failed
check "a restore that is refused" refused
must "a dump that fails, and only its report is left" failed_dump
check "a copy that fails: which BO, and where in it" copy_failed
check "no space: refused before the pause" no_room
finish
