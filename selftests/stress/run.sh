#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The long runs. On the debug kernel (KASAN, lockdep, kmemleak): the fuzzer with a million messages, and ten minutes
# of the stress test; then no checker may have a report. On the stock kernel: CRIU killed 200 times for each backend; a
# job in namespaces of its own, three workers of a hundred threads, restored 50 times in a row by each; 4 GiB of VRAM
# dumped and restored in 300 MiB, with 3 GiB more that were never written.
#
# usage: run.sh GUEST [fuzz|stress|kills|restores|pressure]...        default: all
#   STRESS_MESSAGES [1000000]  STRESS_SECONDS [600]  STRESS_FLOOR [50]  STRESS_KILLS [200] for each backend
#   STRESS_RESTORES [50] for each backend
#   STRESS_SEED     of fuzz and stress [the clock]
#   STRESS_KERNEL   debug or stock, for fuzz and stress [debug]
# The output of each part is in build/stress/. Last line: N passed, N failed, N skipped.
set -euo pipefail
. "$(dirname "$0")/../vm/common.sh"

LOGS=$TOP/build/stress
PASSED=0
FAILED=0
SKIPPED=0

# in_guest PROGRAM MODULES TIMEOUT
in_guest() {
	KERNEL=$STRESS_KERNEL LAB_MODULES=$2 LAB_TIMEOUT=$3 LAB_LOG=$LOGS/$1.lab \
		"$VM_DIR/boot.sh" "$GUEST" "/src/selftests/stress/guest.sh $1"
}

run_fuzz() {
	TEST_FUZZ_MESSAGES=${STRESS_MESSAGES:-1000000} TEST_FUZZ_SEED=${STRESS_SEED-} \
		in_guest nlfuzz 'gpucr kfdsim vgem' 18000
}

run_stress() {
	TEST_STRESS_SECONDS=${STRESS_SECONDS:-600} TEST_STRESS_FLOOR=${STRESS_FLOOR:-50} \
		TEST_STRESS_SEED=${STRESS_SEED-} \
		in_guest stress 'gpucr kfdsim' $((${STRESS_SECONDS:-600} + 1200))
}

# CRIU is killed in each of six states, by both backends: that many times in all, for each.
run_kills() {
	local each=$(((${STRESS_KILLS:-200} + 5) / 6))
	KERNEL=stock LAB_CPUS=1 LAB_TIMEOUT=14400 LAB_LOG=$LOGS/kills.lab \
		"$VM_DIR/boot.sh" "$GUEST" "cd /src/selftests/plugin && KILLS=$each ./kills.sh"
}

run_restores() {
	KERNEL=stock LAB_CPUS=1 LAB_TIMEOUT=14400 LAB_LOG=$LOGS/restores.lab \
		"$VM_DIR/boot.sh" "$GUEST" "cd /src/selftests/plugin && RESTORES=${STRESS_RESTORES:-50} ./spaces.sh"
}

# What plugin/pressure.sh does in "make check", at the size that the limit is meant for.
run_pressure() {
	KERNEL=stock LAB_CPUS=1 LAB_MEM=6G LAB_DISK=8G LAB_KFDSIM_ARGS=vram_mb=16384 LAB_TIMEOUT=3600 \
		LAB_LOG=$LOGS/pressure.lab TEST_PRESSURE_MB=4096 TEST_PRESSURE_IDLE_MB=3072 \
		"$VM_DIR/boot.sh" "$GUEST" "cd /src/selftests/plugin && PATIENCE=600 ./pressure.sh"
}

# Shows the results and counts of a part, and keeps the rest in its log.
part() {
	local name=$1 start=$SECONDS rc=0 ok
	echo "== $name"
	"run_$name" >"$LOGS/$name.log" 2>&1 || rc=$?
	grep -aE '^(ok|not ok|#|Bail|lab:|unreferenced)' "$LOGS/$name.log" || true
	ok=$(grep -ac '^ok ' "$LOGS/$name.log" || true)
	echo "== $name: $ok results passed, status $rc, $((SECONDS - start)) s, $LOGS/$name.log"
	case $rc in
	0) PASSED=$((PASSED + ok)) ;;
	4) SKIPPED=$((SKIPPED + 1)) ;;
	*)
		PASSED=$((PASSED + ok))
		FAILED=$((FAILED + 1))
		;;
	esac
}

main() {
	local name
	[[ $# -ge 1 ]] || die "usage: run.sh GUEST [fuzz|stress|kills|restores|pressure]..."
	need_root
	export GUEST=$1
	shift
	export STRESS_KERNEL=${STRESS_KERNEL:-debug}
	[[ $# -gt 0 ]] || set -- fuzz stress kills restores pressure
	mkdir -p "$LOGS"
	"$VM_DIR/build.sh" "$GUEST"
	# The other parts are for the stock kernel only.
	if [[ $STRESS_KERNEL == debug && " $* " =~ " fuzz "|" stress " ]]; then
		"$VM_DIR/debug-kernel.sh" build
		KERNEL=debug "$VM_DIR/build.sh" "$GUEST"
	fi
	for name in "$@"; do
		case $name in
		fuzz | stress | kills | restores | pressure) part "$name" ;;
		*) die "no part '$name': fuzz, stress, kills, restores, pressure" ;;
		esac
	done
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[[ $FAILED -eq 0 ]]
}

main "$@"
