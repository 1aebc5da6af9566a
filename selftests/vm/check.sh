#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What "make check" and CI run. The last line is "N passed, N failed, N skipped"; the exit status says the same.
#
#   GUEST="trixie ..."  these guests [trixie]      SUITE="kmod ..."  TEST="glob ..."  only these: suites alone,
#   without the static checks and the DKMS check   CANARY=1  the canaries instead: each must go red
#   KERNEL=debug  the suites alone, on the debug kernel (lab-debug.sh builds it)
set -uo pipefail
. "$(dirname "$0")/common.sh"

GUESTS=${GUEST:-trixie}
OUT=$TOP/build/check
RESULTS=$OUT/results

record() {
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$RESULTS"
}

# stage NAME COMMAND...: runs it, tells its seconds. Its own failure is a result too, unless it recorded one.
stage() {
	local name=$1 start=$SECONDS before rc=0
	shift
	echo "== $name"
	before=$(grep -c '^fail' "$RESULTS")
	"$@" || rc=$?
	if [[ $rc -ne 0 && $(grep -c '^fail' "$RESULTS") -eq $before ]]; then
		record fail "$name" "ended with status $rc"
		echo "FAIL  $name"
	fi
	printf '== %s: %d s\n' "$name" $((SECONDS - start))
	return $rc
}

# ktap NAME COMMAND...: a command that prints KTAP, judged as a test is.
ktap() {
	local name=$1 log=$OUT/$1.log rc=0 judged
	shift
	"$@" 2>&1 </dev/null | tee "$log"
	rc=${PIPESTATUS[0]}
	judged=$(awk -v name="$name" -v rc="$rc" -v timeout=0 -f "$VM_DIR/ktap.awk" "$log")
	printf '%s\n' "$judged" >>"$RESULTS"
	! grep -q '^fail' <<<"$judged"
}

check_guest() {
	local guest=$1
	stage "$guest: images" "$VM_DIR/image.sh" "$guest" || return
	stage "$guest: build" env KERNEL=stock "$VM_DIR/build.sh" "$guest" || return
	if [[ ${KERNEL:-stock} == debug ]]; then
		stage "$guest: build for the debug kernel" "$VM_DIR/build.sh" "$guest" || return
	else
		stage "$guest: build with sanitizers" env SAN=1 "$VM_DIR/build.sh" "$guest" || return
		[[ -n $NARROW ]] || stage "$guest: dkms" ktap "dkms-$guest" "$VM_DIR/dkms-check.sh" "$guest"
	fi
	stage "$guest: suites" "$VM_DIR/suites.sh" "$guest" "$RESULTS"
}

summary() {
	local pass fail skip
	pass=$(grep -c '^pass' "$RESULTS")
	fail=$(grep -c '^fail' "$RESULTS")
	skip=$(grep -c '^skip' "$RESULTS")
	# Nothing found is never a pass.
	[[ $((pass + fail)) -gt 0 ]] || {
		record fail check "nothing was run"
		fail=1
	}
	awk -F '\t' '$1 == "skip" { print "skipped: " $2 ": " $3 }' "$RESULTS"
	awk -F '\t' '$1 == "fail" { print "failed: " $2 ": " $3 }' "$RESULTS"
	echo "total: $SECONDS s"
	echo "$pass passed, $fail failed, $skip skipped"
	[[ $fail -eq 0 ]]
}

main() {
	local guest
	need_root
	NARROW=${SUITE-}${TEST-}${CANARY-}
	[[ ${KERNEL:-stock} != debug ]] || NARROW+=debug
	mkdir -p "$OUT"
	: >"$RESULTS"
	if [[ -z $NARROW ]]; then
		stage static ktap static "$TOP/scripts/check-static.sh"
		stage "lab itself" ktap lab "$VM_DIR/selftest.sh"
	fi
	for guest in $GUESTS; do
		check_guest "$guest"
	done
	summary
}

main
