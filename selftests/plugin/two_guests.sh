#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# host=1
# On the host: dump in one guest, restore in another that received only the image directory.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
GUEST=${GUEST:-trixie}

out=$(mktemp -d /tmp/gpucr-two-guests.XXXXXX)
trap 'rm -rf "$out"' EXIT

LAB_OUT=$out "$HERE/../vm/boot.sh" "$GUEST" 'selftests/plugin/two_guests-guest.sh dump'
set -a
# shellcheck source=/dev/null
. "$out/expect"
set +a
LAB_IN=$out/ckpt "$HERE/../vm/boot.sh" "$GUEST" 'selftests/plugin/two_guests-guest.sh restore'
