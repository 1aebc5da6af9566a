#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What "make bench BENCH=guest" runs: our plugin against upstream's, in one guest, on one simulator, one application and
# one disk, in turns. The table goes to standard output, the same as JSON to build/bench/guest.json; the exit status says
# whether ours is slower anywhere, or gains less than 1.7 where copies and disk are equally fast. Simulated GPUs, and mostly
# a CPU that is simulated too: only ratios mean something. The case "equal" has a guest of its own, whose disk and whose
# simulated engines are held to one rate; in the others both are as fast as they can be.
#
#   BENCH_MIB [256]   GPU memory of each case     BENCH_BOS [40000]   of 64 KiB, in the case of many
#   BENCH_RUNS [3]    medians of so many          BENCH_CASES         "one many gpus zeros equal", some of them
#   BENCH_RATE [25]   10^6 bytes per second, of disk and engines in the case "equal"
#   LAB_MEM [9G]      the guest's memory: GPU memory, the images' of a case are on disk
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=selftests/vm/common.sh
. "$HERE/../vm/common.sh"
GUEST=${GUEST:-trixie}
OUT=$TOP/build/bench
RATE=${BENCH_RATE:-25}
read -ra CASES <<<"${BENCH_CASES:-one many gpus zeros equal}"

mkdir -p "$OUT"
rm -f "$OUT/rows"
export LAB_MEM=${LAB_MEM:-9G} LAB_TIMEOUT=${LAB_TIMEOUT:-7200} LAB_LOG=$OUT/guest.lab LAB_OUT=$OUT/guest
export TEST_BENCH_MIB=${BENCH_MIB:-256} TEST_BENCH_BOS=${BENCH_BOS:-40000} TEST_BENCH_RUNS=${BENCH_RUNS:-3}
LAB_IN=$("$HERE/../plugin/upstream-build.sh" "$GUEST")
export LAB_IN
"$VM_DIR/build.sh" "$GUEST" >"$OUT/guest.build" 2>&1 || die "$(tail -n 5 "$OUT/guest.build")"

# in_guest KFDSIM-ARGS CASE...: rows of these. The host's cache must not stand in for the disk.
in_guest() {
	local args=$1
	shift
	rm -rf "$LAB_OUT"
	mkdir -p "$LAB_OUT"
	TEST_BENCH_CASES=$* LAB_DISK=8G LAB_DISK_CACHE=none LAB_KFDSIM_ARGS=$args "$VM_DIR/boot.sh" "$GUEST" \
		/src/selftests/bench/guest-inside.sh >"$OUT/guest.log" 2>&1 ||
		die "the guest failed: $(tail -n 20 "$OUT/guest.log")"
	cat "$LAB_OUT/rows" >>"$OUT/rows"
}

free=()
for c in "${CASES[@]}"; do
	[[ $c == equal ]] || free+=("$c")
done
[[ ${#free[@]} -eq 0 ]] || in_guest gpus=4 "${free[@]}"
if [[ " ${CASES[*]} " == *' equal '* ]]; then
	LAB_DISK_RATE=${RATE}000000 in_guest "gpus=4 copy_mbps=$RATE" equal
	read -r w r <"$LAB_OUT/disk"
	echo "equal: engines held to $RATE MB/s, disk to as much: it writes $w MB/s, reads $r MB/s"
fi
exec awk -v json="$OUT/guest.json" -f "$HERE/guest.awk" "$OUT/rows"
