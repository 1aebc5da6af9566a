#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The two modules that dkms-check.sh built, exchanged in a guest while a session is open. KTAP.
#
# usage: upgrade.sh GUEST
set -euo pipefail
. "$(dirname "$0")/common.sh"

main() {
	[[ $# -eq 1 ]] || die "usage: upgrade.sh GUEST"
	[[ -s $TOP/build/dkms-$1/ko/new.ko ]] || "$VM_DIR/dkms-check.sh" "$1" >/dev/null
	LAB_MODULES=none LAB_IN=$TOP/build/dkms-$1/ko LAB_TIMEOUT=180 \
		exec "$VM_DIR/boot.sh" "$1" /src/selftests/vm/upgrade-guest.sh
}

main "$@"
