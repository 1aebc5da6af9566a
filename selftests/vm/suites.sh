#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Run the suites of selftests/*/tests.list on one guest. Results are appended to the file RESULTS, one line each.
#
# usage: suites.sh GUEST RESULTS
#   SUITE="a b"  TEST="glob glob"  narrow it        CANARY=1  run the canaries instead: each must fail
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

record() {
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$RESULTS"
	[[ $1 != fail ]] || echo "FAIL  $2: $3"
}

# One line a test: SUITE NAME WHERE TIMEOUT CANARY BOOTKEY, tab-separated; BOOTKEY is "key=value;...".
parse_list() {
	awk -v suite="$1" -v guest="$GUEST" -v bootkeys="$BOOT_KEYS" -v kernel="${KERNEL:-stock}" '
	function die(msg) { print FILENAME ":" FNR ": " msg >"/dev/stderr"; exit bad = 1 }
	BEGIN { split(bootkeys, k, " "); for (i in k) known[k[i]] = 1 }
	{ sub(/(^|[ \t])#.*/, "") }
	!NF { next }
	{
		where = "guest"; timeout = 60; canary = ($1 == "canary"); group = ""; on = ""; kernels = ""
		split("", v)
		for (i = 2; i <= NF; i++) {
			eq = index($i, "=")
			if (!eq) die("not key=value: " $i)
			key = substr($i, 1, eq - 1); value = substr($i, eq + 1)
			if (key == "where" && value ~ /^(guest|chroot|host)$/) where = value
			else if (key == "timeout" && value ~ /^[0-9]+$/) timeout = value
			else if (key == "guests") on = value
			else if (key == "kernels") kernels = value
			else if (key == "boot") group = value
			else if (key == "canary") canary = 1
			else if (key in known) { gsub(",", " ", value); v[key] = value }
			else die("unknown key or value: " $i)
		}
		if (on != "" && index("," on ",", "," guest ",") == 0) next
		if (kernels != "" && index("," kernels ",", "," kernel ",") == 0) next
		# Natively the kernel makes no difference.
		if (kernel == "debug" && where == "chroot") next
		if (kernel == "debug") timeout *= 4
		boot = "boot=" (canary ? "canary-" FNR : group)
		n = split(bootkeys, k, " ")
		for (i = 1; i <= n; i++) if (k[i] in v) boot = boot ";" k[i] "=" v[k[i]]
		printf "%s\t%s\t%s\t%d\t%d\t%s\n", suite, $1, where, timeout, canary, boot
	}
	END { exit bad }' "$SELFTESTS/$1/tests.list"
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

# run_boot BOOTKEY: the tests of $WORK/plan in one guest; when it dies, the rest in the next.
run_boot() {
	local rc name out
	while [[ -s $WORK/plan ]]; do
		out=$(mktemp -d "$WORK/boot.XXXXXX")
		cp "$WORK/plan" "$out/plan"
		rc=0
		(
			export_boot_key "$1"
			LAB_OUT=$out LAB_DMESG=ignore LAB_TIMEOUT=$(awk '{ t += $3 + 15 } END { print t + 60 }' "$out/plan") \
				exec "$VM_DIR/boot.sh" "$GUEST" /src/selftests/vm/run-tests.sh
		) 2>&1 || rc=$?
		touch "$out/results" "$out/begun" "$out/done"
		cat "$out/results" >>"$RESULTS"
		cp "$out"/logs/* "$LOGS/" 2>/dev/null || true
		grep -qx end "$out/done" && [[ $rc -eq 0 ]] && return
		# Without a first test the guest cannot even start: no use in trying again.
		name=$(grep -vxF -f "$out/done" "$out/begun" | head -n 1) || true
		record fail "${name:-$(cut -f1 "$out/plan" | head -n 1)/boot}" "guest ended with status $rc"
		[[ -n $name ]] || return 0
		awk -F '\t' -v name="$name" 'seen; $1 "/" $2 == name { seen = 1 }' "$out/plan" >"$WORK/plan"
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
			timeout -k 10 "$4" env -C "/src/selftests/$1" "/src/$path"
	else
		GUEST=$GUEST timeout -k 10 "$4" env -C "$SELFTESTS/$1" "$TOP/$path"
	fi
}

# run_native SUITE NAME WHERE TIMEOUT: KTAP is judged as the guest's is.
run_native() {
	local name=$1/$2 log=$LOGS/$1.$2.log rc=0 start=$SECONDS judged verdict=ok
	# A subshell, for die.
	(native "$@") >"$log" 2>&1 </dev/null || rc=$?
	judged=$(awk -v name="$name" -v rc="$rc" -v timeout="$4" -f "$VM_DIR/ktap.awk" "$log")
	printf '%s\n' "$judged" >>"$RESULTS"
	grep -q '^fail' <<<"$judged" && verdict=FAIL
	printf '%-5s %-40s %3d passed %2d skipped  %d s\n' $verdict "$name" "$(grep -c '^pass' <<<"$judged")" \
		"$(grep -c '^skip' <<<"$judged")" $((SECONDS - start))
	[[ $verdict == ok ]] || sed 's/^/    | /' "$log"
}

# run_list: the tests of the file $WORK/tests, native ones first, then boot by boot in the order of the list.
run_list() {
	local suite name where timeout boot
	while IFS=$'\t' read -r suite name where timeout _ _ <&4; do
		[[ $where == guest ]] || run_native "$suite" "$name" "$where" "$timeout"
	done 4<"$WORK/tests"
	while IFS= read -r boot <&4; do
		awk -F '\t' -v OFS='\t' -v boot="$boot" '$3 == "guest" && $6 == boot { print $1, $2, $4 }' "$WORK/tests" >"$WORK/plan"
		run_boot "$boot"
	done 4< <(awk -F '\t' '$3 == "guest" && !seen[$6]++ { print $6 }' "$WORK/tests")
}

# A suite that says nothing has failed.
run_suite() {
	local suite=$1 before name
	: >"$WORK/tests"
	if [[ ! -e $SELFTESTS/$suite/tests.list ]]; then
		record fail "$suite" "has no tests.list"
		return
	fi
	if ! parse_list "$suite" >"$WORK/all"; then
		record fail "$suite" "tests.list is wrong"
		return
	fi
	while IFS= read -r line; do
		IFS=$'\t' read -r _ name _ _ canary _ <<<"$line"
		[[ $canary == "${CANARY:-0}" ]] && wanted "$name" && echo "$line"
	done <"$WORK/all" >"$WORK/tests"
	if [[ ! -s $WORK/tests ]]; then
		# A suite may be all native, which the debug kernel leaves out; else an empty list is a mistake.
		[[ -n ${TEST-} || ${KERNEL:-stock} == debug ]] ||
			record fail "$suite" "has nothing to run${CANARY:+ as a canary}"
		return
	fi
	cat "$WORK/tests" >>"$WORK/canaries"
	echo "-- $suite on $GUEST${CANARY:+, canary}"
	before=$(wc -l <"$RESULTS")
	run_list
	[[ $(wc -l <"$RESULTS") -gt $before ]] || record fail "$suite" "yielded no results"
}

# A canary's failure is its success: of the test itself, or of what is asked after it (unload, lockdep, kmemleak).
# One that did not run at all, or whose guest did not start, proves nothing.
judge_canaries() {
	awk -F '\t' -v OFS='\t' '
		FNR == NR {
			if ($1 == "fail" && $3 !~ /^(no such program|no KTAP plan)/ && $2 !~ /\/boot$/) {
				split($2, part, "/")
				red[$2] = 1
				if (part[2] ~ /^(unload|lockdep|kmemleak)$/)
					after[part[1]] = 1
			}
			next
		}
		{
			name = $1 "/" $2
			if ((name in red) || ($1 in after))
				print "pass", name, "canary went red"
			else
				print "fail", name, "canary stayed green, or did not run"
		}' "$RESULTS" "$WORK/canaries"
}

main() {
	[[ $# -eq 2 ]] || die "usage: suites.sh GUEST RESULTS"
	guest_load "$1"
	need_root
	local final=$2 suite
	WORK=$(mktemp -d /tmp/gpucr-suites.XXXXXX)
	trap 'rm -rf "$WORK"' EXIT
	trap 'exit 130' INT TERM HUP
	RESULTS=$WORK/results LOGS=$TOP/build/check/$GUEST
	: >"$RESULTS"
	: >"$WORK/canaries"
	mkdir -p "$LOGS"
	[[ ${CANARY:-0} != 1 ]] || export GPUCR_CANARY=1
	for suite in $(suite_names); do
		run_suite "$suite"
	done
	if [[ ${CANARY:-0} == 1 ]]; then
		# A suite without a canary is a failure too.
		grep -F 'has nothing to run as a canary' "$RESULTS" >>"$final" || true
		judge_canaries | tee -a "$final" | sed 's/\t/  /g'
	else
		cat "$RESULTS" >>"$final"
	fi
}

main "$@"
