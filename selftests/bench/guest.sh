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
#   BENCH_DOCS=1      the page goes to docs/ too, whatever the verdict
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

page() {
	cat <<-EOF
		# Our plugin against upstream's

		Made by \`make bench BENCH=guest BENCH_DOCS=1\` on $(date +%F), out of its own rows; no figure is written by hand. Both plugins
		dump and restore one application on one simulated GPU of the lab's guest ($GUEST, two CPUs "$(<"$LAB_OUT/cpu")"), in
		turns, with the same options, knobs and disk (raw, cache=none). There is no GPU in it, and where neither disk nor engines are held to a
		rate it is the CPU, emulated, that decides: ours checks every byte by XXH3, upstream's none, and emulated vectors are slow.

		Medians of $TEST_BENCH_RUNS runs, $TEST_BENCH_MIB MiB of GPU memory: one BO; 40,000 BOs of 64 KiB (\`many\`); on four GPUs; half of it zeros;
		and \`equal\`, where disk and engines do $RATE MB/s each, so that the most that can be gained is 2.0. Peaks are of CRIU's cgroup,
		page cache included. A ratio above 1 says that ours takes less time.

	EOF
	cat "$OUT/guest.table"
	printf '\n%s\n' "$1"
}

rc=0
awk -v json="$OUT/guest.json" -v md="$OUT/guest.table" -f "$HERE/guest.awk" "$OUT/rows" | tee "$OUT/guest.verdict" || rc=$?
page "$(tail -n 1 "$OUT/guest.verdict")." >"$OUT/performance-guest.md"
[[ ${BENCH_DOCS-} != 1 ]] || cp "$OUT/performance-guest.md" "$TOP/docs/"
exit "$rc"
