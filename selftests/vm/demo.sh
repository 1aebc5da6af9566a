#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The demonstration: a GPU process goes to disk and comes back, in a guest with a stock kernel and stock CRIU.
# Installs, builds and boots what it needs. The last line is the verdict, the exit status says the same.
#
# usage: demo.sh          GUEST [trixie]
set -uo pipefail
# shellcheck source=selftests/vm/common.sh
. "$(dirname "$0")/common.sh"

GUEST=${GUEST:-trixie}
OUT=$(mktemp -d /tmp/gpucr-demo.XXXXXX)
LOG=$OUT/log
trap 'rm -rf "$OUT"' EXIT

# quietly WHAT COMMAND...: a line when it took long, its output only when it fails.
quietly() {
	local what=$1 start=$SECONDS
	shift
	if ! "$@" >"$LOG" 2>&1; then
		cat "$LOG"
		verdict 1 "$what failed"
	fi
	[[ $((SECONDS - start)) -lt 3 ]] || echo "$what: $((SECONDS - start)) s"
}

verdict() {
	echo
	if [[ $1 -eq 0 ]]; then
		echo "demo: passed in $SECONDS s: $2"
	else
		echo "demo: FAILED after $SECONDS s: $2"
	fi
	exit "$1"
}

guest() {
	LAB_TIMEOUT=120 "$VM_DIR/boot.sh" "$GUEST" "$1"
}

main() {
	echo "gpucr demo: a GPU process goes to disk and comes back"
	echo
	quietly "installing packages" "$TOP/scripts/setup-host.sh"
	quietly "making the guest, once" "$VM_DIR/image.sh" "$GUEST"
	quietly "building module, simulator, plugin and tool" "$VM_DIR/build.sh" "$GUEST"

	LAB_OUT=$OUT guest 'selftests/vm/demo-guest.sh first' || verdict 1 "see above"
	LAB_IN=$OUT/ckpt guest 'selftests/vm/demo-guest.sh second' || verdict 1 "see above"

	cat <<-EOF

		In short
		  stock CRIU with amdgpu_plugin.so stopped a process that keeps a GPU busy, wrote it to files
		  and brought it back: through the kernel module, without it, and in another guest. After each
		  restore its step counter went on, every byte of its buffers held the pattern, and every
		  queue worked on. The GPU is simulated; kernel and CRIU are Debian's own.
	EOF
	verdict 0 "dump and restore through the module, without it, and in a second guest"
}

main "$@"
