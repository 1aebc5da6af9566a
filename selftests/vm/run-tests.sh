#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest: the tests of $LAB_OUT/plan, one after the other, results to $LAB_OUT/results.
#
# plan: SUITE TAB TEST TAB TIMEOUT a line; a test is $O/selftests/SUITE/TEST or selftests/SUITE/TEST[.sh].
# $LAB_OUT/begun and $LAB_OUT/done hold the tests that were started and judged: what is missing there when the
# guest is gone tells where it died. $LAB_OUT/logs/ gets each test's output.
set -u

VM=/src/selftests/vm
LOGS=$LAB_OUT/logs
SYMBOLS=/tmp/lab.symbols

# record STATUS NAME TEXT
record() {
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$LAB_OUT/results"
}

find_test() {
	local f
	for f in "$O/selftests/$1/$2" "/src/selftests/$1/$2" "/src/selftests/$1/$2.sh"; do
		[[ -f $f && -x $f ]] && echo "$f" && return
	done
	return 1
}

# From here on the kernel log belongs to NAME.
mark_log() {
	echo "<6>lab: $1" >/dev/kmsg
	LOG_MARK="lab: $1"
}

check_log() {
	local bad
	bad=$("$VM/dmesg-check.sh" ${LOG_MARK:+"$LOG_MARK"}) && return
	echo "$bad"
	record fail "$1" "kernel log: $(tail -n 1 <<<"$bad")"
	return 1
}

user_processes() {
	local p
	for p in /proc/[0-9]*; do
		[[ -e $p/exe ]] && echo "${p#/proc/}"
	done | sort
}

# The next test must not find the last one's processes.
kill_leftovers() {
	local p left=()
	for p in $(comm -13 <(echo "$1") <(user_processes)); do
		# Our own subshells are gone by now, or are no business of ours.
		grep -qs run-tests.sh "/proc/$p/cmdline" && continue
		kill -0 "$p" 2>/dev/null || continue
		left+=("$(cat "/proc/$p/comm" 2>/dev/null)")
		kill -9 "$p" 2>/dev/null
	done
	[[ ${#left[@]} -eq 0 ]] || echo "# left behind and killed: ${left[*]}"
}

# run_test SUITE TEST TIMEOUT
run_test() {
	local name=$1/$2 log=$LOGS/$1.$2.log path rc before start judged bad=0
	echo "$name" >>"$LAB_OUT/begun"
	if ! path=$(find_test "$1" "$2"); then
		record fail "$name" "no such program"
		printf 'FAIL  %s: no such program\n' "$name"
		return
	fi
	mark_log "test $name"
	before=$(user_processes)
	start=$EPOCHREALTIME
	TMPDIR=$(mktemp -d /tmp/test.XXXXXX)
	export TMPDIR
	(cd "/src/selftests/$1" && exec timeout -k 10 "$3" "$path") >"$log" 2>&1 </dev/null
	rc=$?
	judged=$(awk -v name="$name" -v rc="$rc" -v timeout="$3" -f "$VM/ktap.awk" "$log")
	printf '%s\n' "$judged" >>"$LAB_OUT/results"
	grep -q '^fail' <<<"$judged" && bad=1
	{ kill_leftovers "$before" && check_log "$name"; } >>"$log" 2>&1 || bad=1
	rm -rf "$TMPDIR"
	report "$name" "$judged" "$start" "$bad" "$log"
}

report() {
	local pass skip us
	pass=$(grep -c '^pass' <<<"$2")
	skip=$(grep -c '^skip' <<<"$2")
	us=$((${EPOCHREALTIME/./} - ${3/./}))
	printf '%-5s %-40s %3d passed %2d skipped  %d.%01d s\n' "$([[ $4 == 0 ]] && echo ok || echo FAIL)" "$1" \
		"$pass" "$skip" $((us / 1000000)) $((us / 100000 % 10))
	[[ $4 == 0 ]] || sed 's/^/    | /' "$5"
}

# What was loaded must unload: the objects and caches of a module are counted there.
unload_modules() {
	local m loaded=() bad=0
	for m in kfdsim amdgpu_kfdsim gpucr; do
		[[ -d /sys/module/$m ]] && loaded+=("$m")
	done
	[[ ${#loaded[@]} -gt 0 ]] || return 0
	# Of a module that is gone kmemleak knows addresses only.
	[[ $LAB_KERNEL != debug ]] || grep '\]$' /proc/kallsyms | sort >"$SYMBOLS"
	mark_log unload
	for m in "${loaded[@]}"; do
		[[ ! -d /sys/module/$m ]] || modprobe -r "$m" || bad=1
	done
	if [[ $bad == 1 ]]; then
		record fail "$1/unload" "a module does not unload"
	elif check_log "$1/unload"; then
		record pass "$1/unload" "${loaded[*]}"
		return
	fi
	echo "FAIL  $1/unload"
}

# What kmemleak has found, with the names that were in SYMBOLS. The addresses there are as long as the ones looked up,
# and sorted: a comparison as strings will do.
show_leaks() {
	touch "$SYMBOLS"
	awk -v symbols="$SYMBOLS" '
		BEGIN {
			while ((getline line <symbols) > 0) {
				split(line, word, " ")
				at[++n] = word[1] ""
				name[n] = word[3] " " word[4]
			}
		}
		$1 ~ /^0x[0-9a-f]+$/ && NF == 1 {
			address = substr($1, 3) ""
			for (i = n; i > 0 && at[i] > address; i--)
				;
			if (i && i < n)
				$0 = $0 " in " name[i]
		}
		{ print }' /sys/kernel/debug/kmemleak
}

# Neither obeys panic_on_warn: they must be asked.
check_debug_kernel() {
	local tests report
	if grep -q 'debug_locks: *1' /proc/lockdep_stats 2>/dev/null; then
		record pass "$1/lockdep" "debug_locks: 1"
	else
		record fail "$1/lockdep" "lockdep has switched itself off: it saw something"
		echo "FAIL  $1/lockdep"
	fi
	# Twice, seconds apart: an object is reported once it was unreferenced for a while.
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	tests=$(cut -f2 "$LAB_OUT/plan" | tr '\n' ' ')
	report=$LOGS/$1.${tests%% *}.kmemleak.log
	show_leaks >"$report"
	if [[ -s $report ]]; then
		record fail "$1/kmemleak" "$(grep -c '^unreferenced' "$report") objects leaked in the boot of ${tests% }"
		echo "FAIL  $1/kmemleak"
		sed 's/^/    | /' "$report"
	else
		rm "$report"
		record pass "$1/kmemleak" "nothing leaked"
	fi
}

main() {
	local suite test timeout
	mkdir -p "$LOGS"
	LOG_MARK=''
	IFS=$'\t' read -r suite _ <"$LAB_OUT/plan"
	check_log "$suite/boot" || echo "FAIL  $suite/boot"
	# A plan is of one suite, and the read that finds its end empties what it reads into.
	while IFS=$'\t' read -r _ test timeout <&3; do
		run_test "$suite" "$test" "$timeout" 3<&-
		echo "$suite/$test" >>"$LAB_OUT/done"
	done 3<"$LAB_OUT/plan"
	unload_modules "$suite"
	[[ $LAB_KERNEL != debug ]] || check_debug_kernel "$suite"
	echo end >>"$LAB_OUT/done"
}

main
