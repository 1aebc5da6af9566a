#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The suites in a guest with the debug kernel: KASAN, lockdep, kmemleak, UBSAN. Long; not part of "make check".
# The last line is "N passed, N failed, N skipped".
#
# usage: lab-debug.sh GUEST      SUITE= TEST= narrow it; CMD='...' runs that instead
set -euo pipefail
. "$(dirname "$0")/common.sh"

main() {
	[[ $# -eq 1 ]] || die "usage: lab-debug.sh GUEST"
	need_root
	"$VM_DIR/debug-kernel.sh" build
	if [[ -n ${CMD-} ]]; then
		"$VM_DIR/build.sh" "$1"
		KERNEL=debug "$VM_DIR/build.sh" "$1"
		KERNEL=debug exec "$VM_DIR/boot.sh" "$1" "$CMD"
	fi
	KERNEL=debug GUEST=$1 exec "$VM_DIR/check.sh"
}

main "$@"
