#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2119,SC2317 # options are optional; functions are called by check
# In a guest with our plugin, and upstream's in $LAB_IN: images that upstream's plugin made are read, judged and restored by
# ours; those that ours makes for it are restored by it; native ones it refuses before it looks for a GPU.
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

UP=/tmp/upstream-plugin

here() {
	install -D -m 755 "$LAB_IN/amdgpu_plugin.so" "$UP/amdgpu_plugin.so"
	! grep -q gpucr "$UP/amdgpu_plugin.so" || fail "this is our plugin"
	grep -q gpucr /usr/lib/criu/amdgpu_plugin.so || fail "our plugin is not there"
}

# dumped HEAPS [OPTION]...: with the truth at the pause
dumped() {
	local heaps=$1 pid
	shift
	# What a check that failed has left.
	for pid in $(app_pids); do
		kill -KILL "$pid"
	done
	rm -rf "$IMG"
	far_pid
	app_start --heap "$heaps" --queues 2 --bos 2 --size 1M
	app_goes_on 3
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" >"$W/digest.before"
	[[ -s $W/digest.before ]]
	kill -STOP "$(app_pid)"
	digest "$(app_pid)" | awk '{ print $1, $2 }' | sort >"$W/truth"
	kill -CONT "$(app_pid)"
	app_pid >"$W/dumped"
	fds >"$W/fds"
	criu_dump "$@"
	# Its id must be free when it comes back.
	echo 1000 >/proc/sys/kernel/ns_last_pid
	app_gone || fail "the process is still there"
	step >"$W/step"
	cp "$LOG" "$W/log.saved"
	sim_becomes_empty
}

ours() {
	GPUCR_IMAGE_FORMAT=upstream-4.2 dumped "$1"
	ls "$IMG"
	[[ -e $(echo "$IMG"/amdgpu-kfd-*.img) && -e $(echo "$IMG"/amdgpu-renderD-*.img) ]]
	! compgen -G "$IMG/*gpucr*" || fail "files of the native format are there"
}

restored() {
	cp "$W/log.saved" "$LOG"
	criu_restore "$@"
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" | diff "$W/digest.before" -
	app_goes_on 5
	[[ $(step) -gt $(cat "$W/step") ]]
	queues_move "$(app_pid)"
	# Upstream's plugin leaves its own descriptor open.
	[[ ${1-} == -L ]] || fds | diff "$W/fds" - || fail "< descriptors at the dump, > now"
	app_kill
	sim_becomes_empty
}

# Descriptors of GPU files.
fds() {
	find "/proc/$(app_pid)/fd" \( -lname /dev/kfd -o -lname '/dev/dri/*' \) -printf '%f %l\n' | sort -n
}

read_offline() {
	gpucr image show "$IMG"
	gpucr image verify "$IMG"
	gpucr -j image show "$IMG" bo |
		jq -r '.data[] | select(.heap == "vram" or .heap == "gtt") | "\(.addr[2:]) \(.size)"' | sort >"$W/shown"
	diff -u "$W/truth" "$W/shown" || fail "< simulator, > image"
	gpucr -j image show "$IMG" vma | jq -e '[.data[] | select(.kind == "bo")] | length > 0' >/dev/null
	gpucr -j image show "$IMG" share | jq -e --arg pid "$(cat "$W/dumped")" \
		'.data[] | select(.kind == "render-vm" and .owner_pid == ($pid | tonumber))' >/dev/null
	gpucr image html "$IMG" out "$W/r.html"
	gpucr check image "$IMG"
}

# What is cut or missing is refused before anything is made, by the tool and by the restore.
damaged() {
	local pages
	pages=$(echo "$IMG"/amdgpu-pages-*.img)
	cp "$pages" "$W/pages"
	truncate -s -4096 "$pages"
	says_no image-damaged
	cp "$W/pages" "$pages"
	mv "$IMG/mm-$(cat "$W/dumped").img" "$W/mm"
	says_no image-incomplete
	mv "$W/mm" "$IMG/mm-$(cat "$W/dumped").img"
	gpucr check image "$IMG"
}

says_no() {
	local rc=0
	gpucr check image "$IMG" >"$W/out" 2>&1 || rc=$?
	[[ $rc -eq 4 ]] || fail "check: status $rc: $(cat "$W/out")"
	grep -q "($1)" "$W/out" || fail "check: not ($1): $(cat "$W/out")"
	rc=0
	criu_restore >"$W/out" 2>&1 || rc=$?
	[[ $rc -ne 0 ]] || fail "it was restored"
	grep -qa "gpucr.*($1)" "$IMG/restore.log" || fail "$(grep -a gpucr "$IMG/restore.log")"
	sim_empty
}

# Upstream's plugin never comes to KFD: CRIU misses the plugin that the inventory asks for.
native_refused() {
	local rc=0
	dumped vram,gtt
	strace -f -qq -e trace=openat,open -o "$W/strace" \
		criu restore -d -D "$IMG" -o restore.log -v4 -L "$UP" >"$W/out" 2>&1 || rc=$?
	[[ $rc -ne 0 ]] || fail "it was restored"
	grep -q "$UP/amdgpu_plugin.so" "$W/strace" || fail "upstream's plugin was not loaded"
	! grep '/dev/kfd' "$W/strace" || fail "KFD was opened"
	grep -a 'gpucr' "$IMG/restore.log" || fail "$(tail -n 5 "$IMG/restore.log")"
	sim_empty
}

round() {
	must "$1: dump by upstream's plugin" dumped "$1" -L "$UP"
	check "$1: read, verified and judged" read_offline
	check "$1: restored by ours" restored
	must "$1: dump by ours, for upstream's" ours "$1"
	check "$1: read, verified and judged" read_offline
	check "$1: restored by upstream's" restored -L "$UP"
	check "$1: and by ours" restored
}

plan 20
must "both plugins are here" here
round vram,gtt,userptr
check "what is not whole is refused" damaged
round vram
check "native images: refused before KFD is opened" native_refused
check "and restored by ours" restored
APP=thunkloop
must "thunkloop: dump by upstream's plugin" dumped vram,gtt -L "$UP"
check "thunkloop: restored by ours" restored
finish
