#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# 2,000 BOs of 64 KiB.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

BOS=2000

small_digests() {
	digest "$(app_pid)" | awk '$2 == 65536 && $3 == "vram"'
}

dump() {
	app_start --heap vram --bos 1 --size 1M --small-bos "$BOS"
	app_goes_on 17
	small_digests >"$W/digest.before"
	[[ $(wc -l <"$W/digest.before") -eq $BOS ]] || fail "$(wc -l <"$W/digest.before") BOs"
	criu_dump
	app_gone
	du -sh "$IMG"
	sim_becomes_empty
}

restore() {
	criu_restore
	small_digests | diff "$W/digest.before" -
}

# The application checks a sixteenth of them in each step.
holds() {
	app_goes_on 20
	queues_move "$(app_pid)"
	app_kill
	sim_becomes_empty
}

plan 3
must "dump of $BOS BOs" dump
must "restore, every one as before" restore
check "the application finds all of them right" holds
finish
