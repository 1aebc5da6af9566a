#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What the tool says of a machine that can dump, and of the images of a real dump: the doctor finds nothing wrong, and
# finds what is made wrong; images show what the simulator knew of the process; verify agrees with what was done to them.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

# doctor STATUS ARG...
doctor() {
	local status=$1 rc=0
	shift
	gpucr -j doctor "$@" >"$W/doctor" || rc=$?
	[[ $rc -eq $status ]] || {
		gpucr doctor "$@"
		fail "doctor $*: status $rc, not $status"
	}
}

# line CHECK STATUS TOKEN
line() {
	jq -e --arg c "$1" --arg s "$2" --arg t "$3" \
		'[.data[] | select(.check == $c and .status == $s and (.token // "-") == $t)] | length > 0' "$W/doctor" >/dev/null ||
		fail "no $1 $2 $3 in: $(cat "$W/doctor")"
}

healthy() {
	doctor 0
	local check
	for check in criu plugin plugins criu-kernel kernel kfd render capabilities io_uring; do
		line "$check" ok -
	done
	jq -r '.data[] | select(.check == "criu") | .message' "$W/doctor" | grep -qF " /usr/sbin/criu, dynamic"
	if has_gpucr; then
		line module ok -
		line helper ok -
	fi
	jq -r '.data[] | [.status, .check, .message] | join(" ")' "$W/doctor"
}

made_wrong() {
	mkdir "$W/libs"
	doctor 4 libdir "$W/libs"
	line plugin FAIL plugin-missing
	cp /usr/lib/criu/amdgpu_plugin.so "$W/libs/a.so"
	cp /usr/lib/criu/amdgpu_plugin.so "$W/libs/b.so"
	doctor 4 libdir "$W/libs"
	line plugins FAIL plugin-twice
	doctor 4 criu /bin/nothing
	line criu FAIL criu-missing
}

no_device() {
	mv /dev/kfd /dev/kfd.away
	doctor 4 || {
		mv /dev/kfd.away /dev/kfd
		return 1
	}
	mv /dev/kfd.away /dev/kfd
	line kfd FAIL no-device
}

# The truth is the simulator's, taken while the process stands still.
dumped() {
	app_start --heap vram,gtt,userptr --bos 2 --queues 3 --size 1M
	app_goes_on 2
	doctor 0 pid "$(app_pid)"
	line pid ok -
	kill -STOP "$(app_pid)"
	digest "$(app_pid)" | awk '{ print $1, $2 }' | sort >"$W/truth"
	progress "$(app_pid)" | wc -l >"$W/queues"
	app_pid >"$W/dumped"
	criu_dump
}

shows_the_truth() {
	gpucr -j image show "$IMG" bo |
		jq -r '.data[] | select(.heap == "vram" or .heap == "gtt") | "\(.addr[2:]) \(.size)"' | sort >"$W/shown"
	[[ -s $W/truth ]] || fail "the simulator knew of no BO"
	diff -u "$W/truth" "$W/shown" || fail "< simulator, > image"
	[[ $(gpucr -j image show "$IMG" queue | jq '.data | length') -eq $(cat "$W/queues") ]]
	gpucr -j image show "$IMG" share | jq -e --arg pid "$(cat "$W/dumped")" \
		'.data[] | select(.kind == "kfd" and (.open_in[] | startswith($pid + " fd ")))' >/dev/null
	gpucr -j image show "$IMG" phase | jq -e '.data[] | select(.phase == "frozen" and .duration_us > 0)' >/dev/null
	gpucr image html "$IMG" out "$W/r.html"
	gpucr image show "$IMG"
}

# Neither the module nor KFD nor rights are needed, but to read the files.
offline() {
	local copy
	copy=$(mktemp -d /tmp/public.XXXXXX)
	cp "$IMG"/* "$copy/"
	chmod 755 "$copy"
	chmod 644 "$copy"/*
	setpriv --reuid=65534 --regid=65534 --clear-groups gpucr image verify "$copy"
	rm -rf "$copy"
}

damage() {
	local pages rc=0
	pages=$(echo "$IMG"/amdgpu-pages-gpucr-*)
	printf '\xa7\x5c' | dd of="$pages" bs=1 seek=4711 conv=notrunc status=none
	gpucr -j image verify "$IMG" >"$W/out" || rc=$?
	[[ $rc -eq 4 ]] || fail "status $rc: $(cat "$W/out")"
	jq -e '.error.token == "chunk-checksum" and (.error.message | test("chunk 0 at 0x0"))' "$W/out" >/dev/null
	rc=0
	criu_restore >"$W/restore.out" 2>&1 || rc=$?
	[[ $rc -ne 0 ]] || fail "what verify refuses was restored"
	grep -qa '(chunk-checksum)' "$IMG/restore.log"
}

# A dump that fails after ours is done leaves no image that is said to be whole.
unfinished() {
	local rc=0
	rm -rf "$IMG"
	app_start
	fault "point=criu-checkpoint errno=5 count=1"
	criu_dump >"$W/out" 2>&1 || rc=$?
	faults_clear
	[[ $rc -ne 0 ]] || fail "the dump did not fail"
	rc=0
	gpucr image verify "$IMG" >"$W/out" 2>&1 || rc=$?
	[[ $rc -eq 1 || $rc -eq 4 ]] || fail "status $rc: $(cat "$W/out")"
	app_kill
}

plan 8
check "doctor: nothing is wrong here" healthy
check "doctor: finds what is made wrong" made_wrong
check "doctor: KFD without its node" no_device
must "dump of a process" dumped
check "image show: what the simulator knew" shows_the_truth
check "image verify: as nobody" offline
check "image verify: says no where restore does" damage
check "image verify: after a dump that failed" unfinished
finish
