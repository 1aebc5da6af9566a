#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Run the suites of selftests/*/tests.list on one guest. Results are appended to the file RESULTS, one line each.
#
# usage: suites.sh GUEST RESULTS
#   SUITE="a b"  TEST="glob glob"  narrow it        CANARY=1  run the canaries instead: each must fail
#   LAB_JOBS=N  boots and native tests at once [number of CPUs; 1 on the debug kernel]
#
# tests.list: "NAME [key=value]..." a line. In values a comma stands for a space. Keys:
#   where=guest|chroot|host   [guest]  chroot: natively in the build chroot, built with ASan and UBSan;
#                             host: on this machine as a script, which may boot guests itself (GUEST is set)
#   timeout=N                 [60] seconds
#   guests=A,B                [all]    on these only
#   kernels=stock,debug       [both]   on these only; everything has four times the time on the debug kernel
#   modules= devices= disk= mem= cpus= blacklist= topology= personality= plugin= append= kfdsim=
#                             what boot.sh calls LAB_MODULES ... LAB_KFDSIM_ARGS
#   boot=GROUP                tests of one suite with the same needs share a boot; a GROUP separates them
#   canary=WHAT               a canary (as is the name "canary"): run with GPUCR_CANARY=1, and must fail
set -euo pipefail
. "$(dirname "$0")/common.sh"

SELFTESTS=$TOP/selftests
# Taken before a guest's description is read, which sets SUITE to Debian's.
ONLY_SUITES=${SUITE-}
BOOT_KEYS='modules devices disk mem cpus blacklist topology personality plugin append kfdsim'

# A suite is a directory with a Makefile or a list, beside those that are no suites.
suite_names() {
	local d
	for d in "$SELFTESTS"/*/; do
		d=$(basename "$d")
		case $d in vm | apps | kfdsim) [[ -e $SELFTESTS/$d/tests.list ]] || continue ;; esac
		[[ -e $SELFTESTS/$d/tests.list || -e $SELFTESTS/$d/Makefile ]] || continue
		[[ -z $ONLY_SUITES || " $ONLY_SUITES " == *" $d "* ]] && echo "$d"
	done
	return 0
}

# Into the results of the job in whose directory we are.
record() {
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>results
	[[ $1 != fail ]] || echo "FAIL  $2: $3"
}

parse_list() {
	awk -v suite="$1" -v guest="$GUEST_NAME" -v kernel="${KERNEL:-stock}" -v bootkeys="$BOOT_KEYS" \
		-f "$VM_DIR/tests-list.awk" "$SELFTESTS/$1/tests.list"
}

wanted() {
	local pattern patterns
	[[ -n ${TEST-} ]] || return 0
	read -ra patterns <<<"$TEST"
	for pattern in "${patterns[@]}"; do
		# shellcheck disable=SC2053 # a glob is wanted
		[[ $1 == $pattern ]] && return 0
	done
	return 1
}

# Exports the LAB_ variables that a boot key stands for.
export_boot_key() {
	local part key value parts
	IFS=';' read -ra parts <<<"$1"
	for part in "${parts[@]}"; do
		key=${part%%=*} value=${part#*=}
		case $key in
		boot) ;;
		kfdsim) export LAB_KFDSIM_ARGS=$value ;;
		*) export "LAB_${key^^}=$value" ;;
		esac
	done
}

# run_boot BOOTKEY, in a job's directory: the tests of ./plan in one guest; when it dies, the rest in the next.
run_boot() {
	local rc name out
	while [[ -s plan ]]; do
		out=$(mktemp -d boot.XXXXXX)
		cp plan "$out/plan"
		rc=0
		(
			export_boot_key "$1"
			LAB_OUT=$PWD/$out LAB_LOG=$LOGS LAB_DMESG=ignore \
				LAB_TIMEOUT=$(awk '{ t += $3 + 15 } END { print t + 60 }' plan) \
				exec "$VM_DIR/boot.sh" "$GUEST_NAME" /src/selftests/vm/run-tests.sh
		) || rc=$?
		touch "$out/results" "$out/begun" "$out/done"
		cat "$out/results" >>results
		cp "$out"/logs/* "$LOGS/" 2>/dev/null || true
		grep -qx end "$out/done" && [[ $rc -eq 0 ]] && return
		name=$(grep -vxF -f "$out/done" "$out/begun" | head -n 1) || true
		# Without a test that had begun the guest cannot even start: no use in trying again.
		record fail "${name:-$(cut -f1 plan | head -n 1)/boot}" "guest ended with status $rc"
		[[ -n $name ]] || return 0
		awk -F '\t' -v name="$name" 'seen; $1 "/" $2 == name { seen = 1 }' "$out/plan" >plan
	done
}

# The same search as in the guest, for products of the sanitizer build; prints a path below the tree.
find_native() {
	local f
	for f in "build/$GUEST-san/selftests/$1/$2" "selftests/$1/$2" "selftests/$1/$2.sh"; do
		[[ -f $TOP/$f && -x $TOP/$f ]] && echo "$f" && return
	done
	return 1
}

# native SUITE NAME WHERE TIMEOUT: run it, natively.
native() {
	local path o=/src/build/$GUEST-san
	path=$(find_native "$1" "$2") || die "no such program: $1/$2"
	if [[ $3 == chroot ]]; then
		enter_chroot "$("$VM_DIR/image.sh" "$GUEST" build)/root" "O=$o" "GPUCR=$o/bin/gpucr" \
			${GPUCR_CANARY:+"GPUCR_CANARY=1"} timeout -k 10 "$4" env -C "/src/selftests/$1" "/src/$path"
	else
		GUEST=$GUEST_NAME timeout -k 10 "$4" env -C "$SELFTESTS/$1" "$TOP/$path"
	fi
}

# run_native SUITE NAME WHERE TIMEOUT: KTAP is judged as the guest's is.
run_native() {
	local name=$1/$2 log=$LOGS/$1.$2.log rc=0 start=$SECONDS judged verdict=ok
	# A subshell, for die.
	(native "$@") >"$log" 2>&1 </dev/null || rc=$?
	judged=$(awk -v name="$name" -v rc="$rc" -v timeout="$4" -f "$VM_DIR/ktap.awk" "$log")
	printf '%s\n' "$judged" >>results
	grep -q '^fail' <<<"$judged" && verdict=FAIL
	printf '%-5s %-40s %3d passed %2d skipped  %d s\n' $verdict "$name" "$(grep -c '^pass' <<<"$judged")" \
		"$(grep -c '^skip' <<<"$judged")" $((SECONDS - start))
	[[ $verdict == ok ]] || sed 's/^/    | /' "$log"
}

# job FUNCTION ARG...: run it in a directory of its own, which new_job made; its output is shown when it is done,
# so that two at once do not mix. At most LAB_JOBS at once.
job() {
	while [[ $(jobs -rp | wc -l) -ge $LAB_JOBS ]]; do
		wait -n || true
		show_done
	done
	# A process group of its own, so that cleanup reaches what runs in it.
	set -m
	(
		set +m
		cd "$JOB"
		"$@" >out 2>&1
		touch finished
	) &
	set +m
}

new_job() {
	JOB=$(mktemp -d "$WORK/job.XXXXXX")
	touch "$JOB/results" "$JOB/out"
}

# What ended without "finished" is a fault of ours, and must not pass.
show_done() {
	local dir
	for dir in "$WORK"/job.*/; do
		[[ -e $dir/finished && ! -e $dir/shown ]] || continue
		cat "$dir/out"
		cat "$dir/results" >>"$WORK/results"
		touch "$dir/shown"
	done
}

finish_jobs() {
	local dir
	wait || true
	show_done
	for dir in "$WORK"/job.*/; do
		[[ -d $dir ]] || continue
		[[ ! -e $dir/shown ]] || continue
		cat "$dir/out"
		printf 'fail\t%s\t%s\n' lab "a job ended before its end" >>"$WORK/results"
	done
}

# start_tests: those of the file $WORK/tests, a job for each native one and for each boot.
start_tests() {
	local suite name where timeout boot
	while IFS=$'\t' read -r suite name where timeout _ _ <&4; do
		[[ $where != guest ]] || continue
		new_job
		job run_native "$suite" "$name" "$where" "$timeout" 4<&-
	done 4<"$WORK/tests"
	while IFS= read -r boot <&4; do
		new_job
		awk -F '\t' -v OFS='\t' -v boot="$boot" '$3 == "guest" && $6 == boot { print $1, $2, $4 }' \
			"$WORK/tests" >"$JOB/plan"
		job run_boot "$boot" 4<&-
	done 4< <(awk -F '\t' '$3 == "guest" && !seen[$6]++ { print $6 }' "$WORK/tests")
}

# The wanted tests of a suite, into $WORK/tests.
select_tests() {
	local line name canary
	parse_list "$1" >"$WORK/all" || return
	while IFS= read -r line; do
		IFS=$'\t' read -r _ name _ _ canary _ <<<"$line"
		[[ $canary == "${CANARY:-0}" ]] && wanted "$name" && echo "$line"
	done <"$WORK/all" >"$WORK/tests"
	return 0
}

run_suite() {
	local suite=$1
	cd "$WORK"
	: >"$WORK/tests"
	if [[ ! -e $SELFTESTS/$suite/tests.list ]]; then
		record fail "$suite" "has no tests.list"
	elif ! select_tests "$suite"; then
		record fail "$suite" "tests.list is wrong"
	elif [[ -s $WORK/tests ]]; then
		cat "$WORK/tests" >>"$WORK/selected"
		echo "-- $suite on $GUEST_NAME${CANARY:+, canary}"
		start_tests
	elif [[ -z ${TEST-} && ${KERNEL:-stock} != debug ]]; then
		# A suite may be all native, which the debug kernel leaves out; else an empty list is a mistake.
		record fail "$suite" "has nothing to run${CANARY:+ as a canary}"
	fi
}

# A selected test that yielded no result has failed, whatever happened to it.
check_complete() {
	awk -F '\t' -v OFS='\t' '
		FNR == NR { seen[$2] = 1; next }
		!(($1 "/" $2) in seen) { print "fail", $1 "/" $2, "yielded no result" }' \
		"$WORK/results" "$WORK/selected" | tee -a "$WORK/missing"
	cat "$WORK/missing" >>"$WORK/results"
}

# A canary's failure is its success: of the test itself, or of what is asked after it (unload, lockdep, kmemleak).
# One that did not run at all, or whose guest did not start, proves nothing.
judge_canaries() {
	awk -F '\t' -v OFS='\t' '
		FNR == NR {
			if ($1 == "fail" && $3 !~ /^(no such program|no KTAP plan)/ && $2 !~ /\/boot$/) {
				split($2, part, "/")
				if (!($2 in red))
					red[$2] = $3
				if (part[2] ~ /^(unload|lockdep|kmemleak)$/)
					after[part[1]] = $3
			}
			next
		}
		{
			name = $1 "/" $2
			if (name in red)
				print "pass", name, "canary went red: " red[name]
			else if ($1 in after)
				print "pass", name, "canary went red: " after[$1]
			else
				print "fail", name, "canary stayed green, or did not run"
		}' "$WORK/results" "$WORK/selected"
}

cleanup() {
	local pid
	for pid in $(jobs -rp); do
		kill -- "-$pid" 2>/dev/null || true
	done
	wait || true
	rm -rf "$WORK"
}

main() {
	local final suite
	[[ $# -eq 2 ]] || die "usage: suites.sh GUEST RESULTS"
	guest_load "$1"
	need_root
	final=$(realpath "$2")
	if [[ ${KERNEL:-stock} == debug ]]; then
		# Two emulated debug kernels only slow each other down; one alone takes a minute to come up.
		: "${LAB_JOBS:=1}"
		export LAB_GRACE=${LAB_GRACE:-600}
	else
		: "${LAB_JOBS:=$(nproc)}"
	fi
	LOGS=$TOP/build/check/$GUEST_NAME
	mkdir -p "$LOGS"
	WORK=$(mktemp -d /tmp/gpucr-suites.XXXXXX)
	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
	touch "$WORK/results" "$WORK/selected" "$WORK/missing"
	[[ ${CANARY:-0} != 1 ]] || export GPUCR_CANARY=1
	for suite in $(suite_names); do
		run_suite "$suite"
	done
	finish_jobs
	if [[ ${CANARY:-0} == 1 ]]; then
		# A suite without a canary is a failure too.
		grep -F 'has nothing to run as a canary' "$WORK/results" >>"$final" || true
		judge_canaries | tee -a "$final" | sed 's/\t/  /g'
	else
		check_complete
		cat "$WORK/results" >>"$final"
	fi
}

main "$@"
