#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Does the judge judge? Feeds ktap.awk with good and bad outputs, among them every way of saying nothing, and ktap.sh with
# checks. KTAP.
set -uo pipefail
. "$(dirname "$0")/common.sh"

N=0
BAD=0

# expect WHAT RC RESULTS OUTPUT: RESULTS is the sequence of verdicts.
expect() {
	local got
	N=$((N + 1))
	got=$(printf '%b' "$4" | awk -v name=t -v rc="$2" -v timeout=9 -f "$VM_DIR/ktap.awk" | cut -f1 | tr '\n' ' ')
	if [[ ${got% } == "$3" ]]; then
		echo "ok $N $1"
	else
		echo "not ok $N $1: expected '$3', got '${got% }'"
		BAD=1
	fi
}

# said WHAT OUTPUT CHECK...: what ktap.sh says of one check
said() {
	local what=$1 want=$2 got w
	shift 2
	N=$((N + 1))
	w=$(mktemp -d)
	# shellcheck disable=SC2016 # for that bash
	got=$(W=$w bash -c '. "$0"; plan 1; check a "$@"; finish' "$TOP/selftests/ktap.sh" "$@" | grep '^[a-z]')
	rm -rf "$w"
	if [[ $got == "$want" ]]; then
		echo "ok $N $what"
	else
		echo "not ok $N $what: expected '$want', got '$got'"
		BAD=1
	fi
}

main() {
	echo "KTAP version 1"
	echo "1..20"
	expect "all good" 0 "pass pass" '1..2\nok 1 a\nok 2 - b\n'
	expect "plan at the end" 0 "pass" 'ok 1 a\n1..1\n'
	expect "a failed result" 1 "pass fail" '1..2\nok 1 a\nnot ok 2 b\n'
	expect "a failed result, status 0" 0 "fail" '1..1\nnot ok 1 b\n'
	expect "one skipped" 0 "pass skip" '1..2\nok 1 a\nok 2 b # SKIP no vgem\n'
	expect "all skipped" 4 "skip" '1..0 # SKIP no GPU\n'
	expect "indented detail does not count" 0 "pass" '1..1\n  not ok 1 detail\nok 1 a\n'
	expect "no output" 0 "fail" ''
	expect "no plan" 0 "pass fail" 'ok 1 a\n'
	expect "no results" 0 "fail" '1..2\n'
	expect "planned nothing, skipped nothing" 0 "fail" '1..0\n'
	expect "too few results" 0 "pass fail" '1..2\nok 1 a\n'
	expect "too many results" 0 "pass pass fail" '1..1\nok 1 a\nok 2 b\n'
	expect "status 1 without a failed result" 1 "pass fail" '1..1\nok 1 a\n'
	expect "status 4 without a skip" 4 "pass fail" '1..1\nok 1 a\n'
	said "a check" 'ok 1 a' true
	said "a check that fails" 'not ok 1 a' false
	said "a check that skips" 'ok 1 a # SKIP no GPU' skip no GPU
	said "a program's status 4 is no skip" 'not ok 1 a' bash -c 'exit 4'
	expect "timed out" 124 "pass fail" '1..2\nok 1 a\n'
	exit $BAD
}

main
