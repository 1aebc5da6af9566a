#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# On the host: dump in one guest, restore in others that received only the image directory.
set -uo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
GUEST=${GUEST:-trixie}

out=$(mktemp -d /tmp/gpucr-two-guests.XXXXXX)
trap 'rm -rf "$out"' EXIT

# result N NAME COMMAND...: the guest's own results are the detail of one of ours.
result() {
	local n=$1 name=$2
	shift 2
	if "$@" 2>&1 | sed 's/^/    /'; then
		echo "ok $n $name"
	else
		echo "not ok $n $name"
		return 1
	fi
}

# shellcheck disable=SC2317 # called by name
first() {
	LAB_OUT=$out "$HERE/../vm/boot.sh" "$GUEST" 'selftests/plugin/two_guests-guest.sh dump'
}

# shellcheck disable=SC2317 # called by name
second() {
	set -a
	# shellcheck source=/dev/null
	. "$out/expect" || return 1
	set +a
	LAB_KFDSIM_ARGS=${1-} TEST_OTHER_GPU=${1:+1} LAB_IN=$out/ckpt "$HERE/../vm/boot.sh" "$GUEST" 'selftests/plugin/two_guests-guest.sh restore'
}

echo "KTAP version 1"
echo "1..3"
bad=0
result 1 "dump in the first guest" first || bad=1
result 2 "restore in the second guest" second || bad=1
result 3 "restore where the GPU has another id" second machine=7 || bad=1
exit $bad
