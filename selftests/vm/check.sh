#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What "make check" and CI run. The last line is "N passed, N failed, N skipped"; the exit status says the same.
#
#   GUEST="trixie ..."  these guests [those of the file "matrix"]
#   SUITE="kmod ..."  TEST="glob ..."  only these: suites alone, without the static checks and the DKMS check
#   CANARY=1  the canaries instead: each must go red
#   KERNEL=debug  the suites alone, on the debug kernel (lab-debug.sh builds it)
#   LAB_SLOW=N  [1] the budgets of the file "budgets" times N
# Which suites a guest runs is in "matrix" too; SUITE with GUEST has any suite run anywhere.
set -uo pipefail
. "$(dirname "$0")/common.sh"

OUT=$TOP/build/check
RESULTS=$OUT/results
MATRIX=$VM_DIR/matrix
BUDGETS=$VM_DIR/budgets

record() {
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$RESULTS"
}

# Seconds that "budgets" has for a stage: its words are the stage's name, the last one the number.
budget_of() {
	read_list "$BUDGETS" | awk -v stage="$1" '{
		n = $NF
		sub(/[ \t]+[0-9]+$/, "")
		if ($0 == stage)
			print n
	}'
}

# over_budget STAGE SECONDS: a stage without a budget is a mistake.
over_budget() {
	local limit
	limit=$(budget_of "$1")
	if [[ -z $limit ]]; then
		record fail "$1" "has no line in selftests/vm/budgets"
		echo "FAIL  $1: no budget"
	elif [[ $2 -gt $((2 * limit * ${LAB_SLOW:-1})) ]]; then
		record fail "$1" "took $2 s; its budget is $limit s"
		echo "FAIL  $1: took $2 s; its budget is $limit s"
	fi
}

# stage NAME BUDGET COMMAND...: runs it, tells its seconds. Its own failure is a result too, unless it recorded one.
stage() {
	local name=$1 budget=$2 start=$SECONDS before rc=0
	shift 2
	echo "== $name"
	before=$(grep -c '^fail' "$RESULTS")
	"$@" || rc=$?
	if [[ $rc -ne 0 && $(grep -c '^fail' "$RESULTS") -eq $before ]]; then
		record fail "$name" "ended with status $rc"
		echo "FAIL  $name"
	fi
	printf '== %s: %d s\n' "$name" $((SECONDS - start))
	# Whoever narrows it knows what it takes, and the debug kernel takes what it takes.
	[[ -n $NARROW ]] || over_budget "$budget" $((SECONDS - start))
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

# The column of a guest in "matrix".
matrix() {
	read_list "$MATRIX" | awk -v guest="$1" -v n="$2" '$1 == guest { print $n }'
}

# suites_of GUEST: those to run, or nothing; "all" for all.
suites_of() {
	local has
	has=$(matrix "$1" 2)
	if [[ -n ${GUEST-} && -n ${SUITE-} ]]; then
		echo "$SUITE"
	elif [[ -z ${SUITE-} || ${has:-all} == all ]]; then
		echo "${SUITE:-${has:-all}}" | tr , ' '
	else
		tr ' ' '\n' <<<"$SUITE" | grep -xF -f <(tr , '\n' <<<"$has") | tr '\n' ' '
	fi
}

# images GUEST: a guest that cannot be made today is a skip where "matrix" says so.
images() {
	local log=$OUT/images-$1.log
	if { "$VM_DIR/image.sh" "$1" && "$VM_DIR/criu.sh" "$1"; } 2>&1 | tee "$log"; then
		sed 's/^/  /' "$("$VM_DIR/image.sh" "$1" guest)/kver"
		return
	fi
	[[ $(matrix "$1" 3) == optional ]] || return 1
	record skip "$1" "its kernel cannot be had today: $(tail -n 1 "$log")"
	MISSING=yes
}

# The guest whose images and build it has; nothing where they are its own.
base_of() (
	guest_load "$1"
	echo "$BASE"
)

check_guest() {
	local guest=$1 suites MISSING=no
	suites=$(suites_of "$guest")
	[[ -n ${suites// /} ]] || return 0
	[[ $suites != all ]] || suites=''
	stage "$guest: images" images images "$guest" || return
	[[ $MISSING == no ]] || return 0
	stage "$guest: build" build env KERNEL=stock "$VM_DIR/build.sh" "$guest" || return
	if [[ ${KERNEL:-stock} == debug ]]; then
		stage "$guest: build for the debug kernel" build "$VM_DIR/build.sh" "$guest" || return
	elif [[ -z $(base_of "$guest") ]]; then
		stage "$guest: build with sanitizers" "build with sanitizers" env SAN=1 "$VM_DIR/build.sh" "$guest" || return
		if [[ -z $NARROW ]]; then
			stage "$guest: sparse" sparse ktap "sparse-$guest" env GUEST="$guest" "$TOP/scripts/check-static.sh" sparse
			stage "$guest: dkms" dkms ktap "dkms-$guest" "$VM_DIR/dkms-check.sh" "$guest"
			[[ $(matrix "$guest" 3) != required ]] ||
				stage "$guest: upgrade" upgrade ktap "upgrade-$guest" "$VM_DIR/upgrade.sh" "$guest"
		fi
	fi
	stage "$guest: suites" "suites on $guest" env SUITE="$suites" "$VM_DIR/suites.sh" "$guest" "$RESULTS"
}

# prepare GUEST...: images, two guests at a time, while other stages run; check_guest waits for them and tells.
prepare() {
	local guest
	for guest in "$@"; do
		while [[ $(jobs -rp | wc -l) -ge 2 ]]; do
			wait -n
		done
		"$VM_DIR/image.sh" "$guest" >"$OUT/prepare-$guest.log" 2>&1 </dev/null &
	done
	wait
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

cleanup() {
	[[ -z $PREPARING ]] || kill -- "-$PREPARING" 2>/dev/null
}

main() {
	local guest guests
	need_root
	NARROW=${SUITE-}${TEST-}${CANARY-}
	[[ ${KERNEL:-stock} != debug ]] || NARROW+=debug
	read -ra guests <<<"${GUEST:-$(read_list "$MATRIX" | cut -f1 | tr '\n' ' ')}"
	mkdir -p "$OUT"
	: >"$RESULTS"
	PREPARING=''
	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
	# A process group of its own, so that cleanup reaches what runs in it.
	set -m
	(
		set +m
		prepare "${guests[@]}"
	) &
	PREPARING=$!
	set +m
	if [[ -z $NARROW ]]; then
		stage static static ktap static "$TOP/scripts/check-static.sh" --without sparse
		stage "lab itself" "lab itself" ktap lab "$VM_DIR/selftest.sh"
	fi
	for guest in "${guests[@]}"; do
		check_guest "$guest"
	done
	wait "$PREPARING"
	PREPARING=''
	summary
}

main
