#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Debian's igt-gpu-tools, the amdgpu binaries: igt.list says on which machine what passes, and why the rest cannot. A
# binary or subtest that the list does not know is a failure, as is one that passes against it: the list only shrinks in
# what does not.
#
# usage: igt.sh [BINARY...]       default: all of the list; TEST_IGT=slow: what is slow too
set -u

W=$TMPDIR
# shellcheck source=selftests/rocm/lib.sh
. "$(dirname "$0")/lib.sh"

LIST=$(dirname "$0")/igt.list
DIR=/usr/libexec/igt-gpu-tools/amdgpu
# Of one binary, in seconds.
LIMIT=240
[[ ${LAB_KERNEL-} != debug ]] || LIMIT=900
[[ ${TEST_IGT-} != slow ]] || LIMIT=1200

# "MACHINE<tab>BINARY<tab>SUBTEST<tab>RESULT<tab>slow or nothing", MACHINE being parameters of kfdsim
listed() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$LIST" |
		awk -v OFS='\t' '$1 == "machine" { $1 = ""; machine = substr($0, 2); gsub("\t", " ", machine); next }
			{ print machine, $1, $2, $3, $4 }'
}

# pick MACHINE BINARY: "SUBTEST RESULT" of what is to run now
pick() {
	listed | awk -F'\t' -v machine="$1" -v name="$2" -v slow="${TEST_IGT-}" \
		'$1 == machine && $2 == name && $4 != "none" && ($5 != "slow" || slow == "slow") { print $3, $4 }'
}

# "SUBTEST pass|skip|fail" of one binary's run
results() {
	sed -nE 's/^Subtest ([^:]+): (SUCCESS|SKIP|FAIL|CRASH).*/\1 \2/p' "$1" |
		sed -e 's/ SUCCESS$/ pass/' -e 's/ SKIP$/ skip/' -e 's/ FAIL$/ fail/' -e 's/ CRASH$/ fail/'
}

# One binary on the machine that is loaded: every subtest of it ends as the list says.
binary() {
	local machine=$1 name=$2 rc=0 bad=0 sub want got
	pick "$machine" "$name" >"$W/want"
	timeout "$LIMIT" "$DIR/$name" --run-subtest "$(cut -d' ' -f1 "$W/want" | paste -sd,)" >"$W/$name" 2>&1 || rc=$?
	[[ $rc -ne 124 ]] || fail "ran longer than $LIMIT s"
	[[ $rc -lt 128 ]] || fail "status $rc: $(tail -n 5 "$W/$name")"
	results "$W/$name" >"$W/got"
	while read -r sub want; do
		# IGT calls it passed, for it does not look at what went wrong.
		[[ $want != vacuous ]] || want=pass
		got=$(awk -v sub_="$sub" '$1 == sub_ { print $2 }' "$W/got")
		[[ ${got:-missing} == "$want" ]] || {
			echo "$sub: ${got:-missing}, listed: $want"
			bad=1
		}
	done <"$W/want"
	[[ $bad == 0 ]] || grep -E 'CRITICAL|Test requirement|failed' "$W/$name" | head -n 20
	return $bad
}

# Every binary is in the list, and every subtest of those that are not left out whole.
complete() {
	local name bad=0
	find "$DIR" -maxdepth 1 -type f -name 'amd_*' -printf '%f\n' | sort >"$W/there"
	listed | cut -f2 | sort -u >"$W/named"
	comm -3 "$W/there" "$W/named" | grep . && bad=1
	for name in $(listed | awk -F'\t' '$3 != "*" { print $2 }' | sort -u); do
		timeout 60 "$DIR/$name" --list-subtests 2>"$W/err" | sort >"$W/there"
		[[ -s $W/there ]] || fail "$name tells no subtests: $(tail -n 3 "$W/err")"
		listed | awk -F'\t' -v name="$name" '$2 == name { print $3 }' | sort -u >"$W/named"
		comm -3 "$W/there" "$W/named" | sed "s/^/$name: /" | grep . && bad=1
	done
	[[ $bad == 0 ]] || echo "left: not in the list; right: only there"
	return $bad
}

stress() {
	timeout 100 amdgpu_stress -b v 1m -b g 1m -c 1 2 1m 10 >"$W/stress" 2>&1 || fail "status $?: $(tail -n 5 "$W/stress")"
	grep -q "Allocated BO number 2" "$W/stress" || fail "$(head -n 5 "$W/stress")"
}

# The pairs to run: those machines and binaries that something is picked of, of the binaries asked for.
pairs() {
	local machine name
	listed | cut -f1,2 | uniq | awk '!seen[$0]++' | while IFS=$'\t' read -r machine name; do
		[[ $# -eq 0 || " $* " == *" $name "* ]] || continue
		[[ -z $(pick "$machine" "$name") ]] || printf '%s\t%s\n' "$machine" "$name"
	done
}

load() {
	local args
	[[ ! -d /sys/module/kfdsim ]] || modprobe -r kfdsim || return
	read -ra args <<<"$1"
	modprobe kfdsim "${args[@]}"
}

mapfile -t PAIRS < <(pairs "$@")
whole=0
[[ $# -gt 0 ]] || whole=2
plan $((${#PAIRS[@]} + whole))
loaded=''
for p in "${PAIRS[@]}"; do
	[[ ${p%%$'\t'*} == "$loaded" ]] || load "${p%%$'\t'*}"
	loaded=${p%%$'\t'*}
	check "${p#*$'\t'}, $loaded" binary "$loaded" "${p#*$'\t'}"
done
if [[ $whole != 0 ]]; then
	check "amdgpu_stress" stress
	check "the list is complete" complete
fi
modprobe -r kfdsim
finish
