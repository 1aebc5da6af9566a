#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Debian's igt-gpu-tools, the amdgpu binaries: igt.list says what passes, and why the rest cannot. A subtest that passes
# against the list is a failure too: the list only shrinks in what does not.
#
# usage: igt.sh [BINARY...]       default: all of the list
set -u

W=$TMPDIR
# shellcheck source=selftests/rocm/lib.sh
. "$(dirname "$0")/lib.sh"

LIST=$(dirname "$0")/igt.list
DIR=/usr/libexec/igt-gpu-tools/amdgpu

listed() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$LIST"
}

# "SUBTEST pass|skip|fail" of one binary's run; a test without subtests is called "-"
results() {
	sed -nE 's/^Subtest ([^:]+): (SUCCESS|SKIP|FAIL|CRASH).*/\1 \2/p' "$1" |
		sed -e 's/ SUCCESS$/ pass/' -e 's/ SKIP$/ skip/' -e 's/ FAIL$/ fail/' -e 's/ CRASH$/ fail/'
	grep -q '^Subtest ' "$1" || sed -nE 's/^(SUCCESS|SKIP|FAIL) \(.*/- \1/p' "$1" |
		sed -e 's/SUCCESS$/pass/' -e 's/SKIP$/skip/' -e 's/FAIL$/fail/'
}

# One binary: every subtest of it ends as the list says.
binary() {
	local name=$1 rc=0 bad=0 sub want got only
	only=$(listed | awk -v name="$name" '$1 == name && $2 == "only" { print $3 }')
	timeout 240 "$DIR/$name" ${only:+--run-subtest "$only"} >"$W/$name" 2>&1 || rc=$?
	[[ $rc -ne 124 ]] || fail "ran longer than 240 s"
	[[ $rc -lt 128 ]] || fail "status $rc: $(tail -n 5 "$W/$name")"
	results "$W/$name" >"$W/got"
	[[ -s $W/got ]] || fail "no results: $(tail -n 5 "$W/$name")"
	listed | awk -v name="$name" '$1 == name && $2 != "only" { print $2, $3 }' >"$W/want"
	while read -r sub want; do
		got=$(awk -v sub_="$sub" '$1 == sub_ { print $2 }' "$W/got")
		[[ ${got:-missing} == "$want" ]] || {
			echo "$sub: ${got:-missing}, listed: $want"
			bad=1
		}
	done <"$W/want"
	while read -r sub got; do
		grep -q "^$sub " "$W/want" || {
			echo "$sub: $got, not in the list"
			bad=1
		}
	done <"$W/got"
	[[ $bad == 0 ]] || grep -E 'CRITICAL|Test requirement|failed' "$W/$name" | head -n 20
	return $bad
}

stress() {
	timeout 100 amdgpu_stress -b v 1m -b g 1m -c 1 2 1m 10 >"$W/stress" 2>&1 || fail "status $?: $(tail -n 5 "$W/stress")"
	grep -q "Allocated BO number 2" "$W/stress" || fail "$(head -n 5 "$W/stress")"
}

mapfile -t NAMES < <(if [[ $# -gt 0 ]]; then printf '%s\n' "$@"; else listed | cut -d' ' -f1 | uniq; fi)
plan $((${#NAMES[@]} + 1))
for n in "${NAMES[@]}"; do
	check "$n" binary "$n"
done
check "amdgpu_stress" stress
finish
