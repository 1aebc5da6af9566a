# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# KTAP for tests in shell. Sourced, never run.
#
#	W=$(mktemp -d ...)		where the output of a check goes
#	plan 2
#	check "what it shows" COMMAND...
#	must "what the rest needs" COMMAND...
#	finish
#
# Each check is one result, run in a subshell with `set -e`, so state goes from one to the next through files in $W.
# Output is shown only of a check that fails.

KTAP_N=0
KTAP_PLAN=0
KTAP_BAD=0
CHECK_RC=0

plan() {
	KTAP_PLAN=$1
	echo "KTAP version 1"
	echo "1..$1"
}

# Only for what a machine may lack: hardware, a kernel's feature. What should be there and is not is bail().
skip_all() {
	echo "KTAP version 1"
	echo "1..0 # SKIP $*"
	exit 4
}

bail() {
	echo "Bail out! $*"
	exit 1
}

# Within a check: what this machine lacks for it. Status 4 alone is no skip: programs end with it, the tool among them.
skip() {
	echo "$*" | tee "$W/check.skip"
	exit 4
}

# Within a check: why it fails.
fail() {
	echo "$*" >&2
	exit 1
}

# Sets CHECK_RC. Never to be called in a condition: bash ignores `set -e` in all that runs there.
run_check() {
	local name=$1
	shift
	KTAP_N=$((KTAP_N + 1))
	rm -f "$W/check.skip"
	(
		set -euo pipefail
		"$@"
	) >"$W/check.out" 2>&1 </dev/null
	CHECK_RC=$?
	[[ $CHECK_RC -ne 4 || -e $W/check.skip ]] || CHECK_RC=1
	case $CHECK_RC in
	0) echo "ok $KTAP_N $name" ;;
	4) echo "ok $KTAP_N $name # SKIP $(cat "$W/check.skip")" ;;
	*)
		echo "not ok $KTAP_N $name"
		sed 's/^/# /' "$W/check.out" | tail -n 60
		KTAP_BAD=$((KTAP_BAD + 1))
		;;
	esac
}

# result STATUS NAME: of what was done in place, e.g. result $? "it loads"
result() {
	KTAP_N=$((KTAP_N + 1))
	if [[ $1 -eq 0 ]]; then
		echo "ok $KTAP_N $2"
	else
		echo "not ok $KTAP_N $2"
		KTAP_BAD=$((KTAP_BAD + 1))
	fi
}

# check NAME COMMAND...
check() {
	run_check "$@"
	return 0
}

# The same, and what follows makes no sense without it.
must() {
	run_check "$@"
	[[ $CHECK_RC -eq 0 || $CHECK_RC -eq 4 ]] || stop
}

# What is planned and left would only repeat a failure.
stop() {
	while [[ $KTAP_N -lt $KTAP_PLAN ]]; do
		KTAP_N=$((KTAP_N + 1))
		echo "not ok $KTAP_N not run, since a check before it failed"
		KTAP_BAD=$((KTAP_BAD + 1))
	done
	exit 1
}

# The last command of a test: its status is the test's.
finish() {
	[[ $KTAP_N -eq $KTAP_PLAN ]] || {
		echo "# planned $KTAP_PLAN, ran $KTAP_N"
		exit 1
	}
	[[ $KTAP_BAD -eq 0 ]]
}

# wait_for SECONDS COMMAND...
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[[ $SECONDS -lt $end ]] || return 1
		sleep 0.1
	done
}
