#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What "make fault-matrix" runs: the whole fault matrix (matrix.sh) on each guest with a CRIU of its own. Tables, as text and
# JSON, are in build/fault-matrix/. The last line is the verdict; the exit status says the same.
#
# usage: matrix-run.sh [GUEST]...      default: bookworm trixie sid experimental
#   MATRIX_ONLY="GLOB ..."  MATRIX_ACTIONS=edk  MATRIX_BACKENDS="netlink ioctl"  MATRIX_PARTS=N  narrow it; N: one of so many parts
set -euo pipefail
. "$(dirname "$0")/../vm/common.sh"

OUT=$TOP/build/fault-matrix
PASSED=0
FAILED=0

count() {
	grep -ac "$1" "$2" || true
}

# The guest sees only variables whose names begin so.
run_guest() {
	local guest=$1 out=$OUT/$1 rc=0
	rm -rf "$out"
	mkdir -p "$out"
	"$VM_DIR/image.sh" "$guest"
	"$VM_DIR/build.sh" "$guest" >"$out/build.log" 2>&1 || {
		tail -n 20 "$out/build.log"
		die "the build for $guest failed"
	}
	TEST_MATRIX_ONLY=${MATRIX_ONLY-} TEST_MATRIX_ACTIONS=${MATRIX_ACTIONS-} TEST_MATRIX_BACKENDS=${MATRIX_BACKENDS-} \
		TEST_MATRIX_PARTS=${MATRIX_PARTS-} TEST_MATRIX_OUT=/out LAB_OUT=$out LAB_CPUS=1 LAB_TIMEOUT=21600 LAB_LOG=$out \
		"$VM_DIR/boot.sh" "$guest" /src/selftests/plugin/matrix.sh >"$out/log" 2>&1 || rc=$?
	grep -aE '^(# [0-9]|not ok)' "$out/log" || true
	cat "$out/table.txt" 2>/dev/null || true
	PASSED=$((PASSED + $(count '^ok ' "$out/log")))
	FAILED=$((FAILED + $(count '^not ok ' "$out/log")))
	# Whatever else went wrong, such as a line of the kernel log.
	[[ $rc -eq 0 ]] || grep -aq '^not ok ' "$out/log" || {
		tail -n 20 "$out/log"
		FAILED=$((FAILED + 1))
	}
}

main() {
	local guest
	need_root
	[[ $# -gt 0 ]] || set -- bookworm trixie sid experimental
	for guest in "$@"; do
		echo "== $guest"
		run_guest "$guest"
	done
	echo "$PASSED passed, $FAILED failed; tables in $OUT"
	[[ $FAILED -eq 0 && $PASSED -gt 0 ]]
}

main "$@"
