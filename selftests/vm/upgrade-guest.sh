#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The part of upgrade.sh that runs in the guest. $LAB_IN holds old.ko and new.ko.
# shellcheck disable=SC2317 # the checks are called by name
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

W=$(mktemp -d)
KO=/lib/modules/$(uname -r)/extra/gpucr.ko

version_of() {
	modinfo -F version "$LAB_IN/$1.ko"
}

# As dkms does: another file under the name.
put() {
	cp "$LAB_IN/$1.ko" "$KO.tmp" && mv "$KO.tmp" "$KO"
}

is_loaded() {
	[[ $(cat /sys/module/gpucr/version) == "$(version_of "$1")" ]]
}

versions_differ() {
	[[ $(version_of old) != "$(version_of new)" ]]
}

first_load() {
	put old && modprobe gpucr && is_loaded old
}

kfd_fd() {
	local f
	for f in "/proc/$1/fd/"*; do
		[[ $(readlink "$f") != /dev/kfd ]] || { echo "${f##*/}" && return; }
	done
	return 1
}

# A target and a session on it, its id in $W/id; both live on after this check.
open_session() {
	modprobe kfdsim
	vecloop --steps 1000000 >"$W/app.log" 2>&1 &
	echo $! >"$W/app"
	disown
	wait_for 30 kfd_fd "$(cat "$W/app")" || fail "the program does not come up: $(cat "$W/app.log")"
	"$O/selftests/cli/holdsession" "$(cat "$W/app")" "$(kfd_fd "$(cat "$W/app")")" >"$W/id" 2>"$W/hold.log" &
	echo $! >"$W/hold"
	disown
	wait_for 30 test -s "$W/id" || fail "no session: $(cat "$W/hold.log")"
}

in_use() {
	put new
	! modprobe -r gpucr 2>"$W/err" || fail "it was unloaded"
	cat "$W/err"
	grep -q 'in use' "$W/err"
}

still_works() {
	modprobe gpucr && is_loaded old
	gpucr session | grep -q "^$(cat "$W/id")"
	gpucr info
}

# Its pause is undone first, by the recovery, which is the old module's and the tool's.
end_session() {
	kill -KILL "$(cat "$W/hold")"
	wait_for 60 modprobe -r gpucr || fail "it does not unload: $(gpucr session 2>&1)"
}

next_load() {
	modprobe gpucr && is_loaded new && gpucr info
}

back() {
	modprobe -r gpucr && put old && modprobe gpucr && is_loaded old && gpucr info
}

# Somebody asks the family, and the new module comes by itself.
by_itself() {
	put new && modprobe -r gpucr && gpucr info && is_loaded new
}

clean_end() {
	kill -KILL "$(cat "$W/app")"
	wait_for 30 modprobe -r kfdsim
	modprobe -r gpucr
	[[ ! -e /sys/module/gpucr ]]
}

plan 10
check "the two versions differ" versions_differ
must "the old one loads" first_load
must "a session is open and paused" open_session
check "modprobe -r says that it is in use" in_use
check "with the new one installed the old one goes on" still_works
must "without a session it unloads" end_session
check "then the new one loads" next_load
check "and the old one again, after a downgrade" back
check "or it loads by itself" by_itself
check "nothing is left" clean_end
finish
