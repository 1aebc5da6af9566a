#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What "make bench BENCH=guest" runs: our plugin against upstream's, in one guest, on one simulator, one application and
# one disk, in turns. The table goes to standard output, the same as JSON to build/bench/guest.json; the exit status says
# whether ours is slower anywhere. Simulated GPUs, and mostly a CPU that is simulated too: only ratios mean something.
# The simulator copies as fast as it can, since its rate cannot be set; and no case has zeros, which the application
# does not make.
#
#   BENCH_MIB [256]   GPU memory of each case     BENCH_BOS [40000]   of 64 KiB, in the case of many
#   BENCH_RUNS [3]    medians of so many          BENCH_CASES         "one many gpus", some of them
#   LAB_MEM [9G]      the guest's memory: GPU memory, the images' of a case are on disk
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=selftests/vm/common.sh
. "$HERE/../vm/common.sh"
GUEST=${GUEST:-trixie}
OUT=$TOP/build/bench

mkdir -p "$OUT"
export LAB_MEM=${LAB_MEM:-9G} LAB_TIMEOUT=${LAB_TIMEOUT:-7200} LAB_LOG=$OUT/guest.lab
export TEST_BENCH_MIB=${BENCH_MIB:-256} TEST_BENCH_BOS=${BENCH_BOS:-40000} TEST_BENCH_RUNS=${BENCH_RUNS:-3}
export TEST_BENCH_CASES=${BENCH_CASES:-one many gpus}
LAB_IN=$("$HERE/../plugin/upstream-build.sh" "$GUEST")
LAB_OUT=$OUT/guest
rm -rf "$LAB_OUT"
mkdir -p "$LAB_OUT"
export LAB_IN LAB_OUT
"$VM_DIR/build.sh" "$GUEST" >"$OUT/guest.build" 2>&1 || die "$(tail -n 5 "$OUT/guest.build")"
# The host's cache must not stand in for the disk.
LAB_DISK=8G LAB_DISK_CACHE=none LAB_KFDSIM_ARGS=gpus=4 "$VM_DIR/boot.sh" "$GUEST" \
	/src/selftests/bench/guest-inside.sh >"$OUT/guest.log" 2>&1 || die "the guest failed: $(tail -n 20 "$OUT/guest.log")"

# CASE PLUGIN RUN DUMP-MS RESTORE-MS DUMP-PEAK RESTORE-PEAK IMAGE-BYTES, a line each.
awk -v json="$OUT/guest.json" '
	function median(list,    v, n, i, j, t) {
		n = split(list, v, " ")
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
		return v[int((n + 1) / 2)]
	}
	{
		if (!($1 in seen)) { seen[$1] = 1; names[++num] = $1 }
		for (i = 4; i <= 8; i++) all[$1, $2, i] = all[$1, $2, i] " " $i
	}
	END {
		printf "%-8s %-9s %9s %9s %10s %10s %10s\n", "CASE", "PLUGIN", "DUMP ms", "REST ms", "PEAK MiB", "PEAK MiB", "IMAGE MiB"
		printf "[" >json
		for (n = 1; n <= num; n++) {
			c = names[n]
			for (k = 1; k <= 2; k++) {
				p = k == 1 ? "ours" : "upstream"
				for (i = 4; i <= 8; i++) m[p, i] = median(all[c, p, i])
				printf "%-8s %-9s %9d %9d %10.1f %10.1f %10.1f\n", c, p, m[p, 4], m[p, 5], \
					m[p, 6] / 1048576, m[p, 7] / 1048576, m[p, 8] / 1048576
			}
			d = m["upstream", 4] / m["ours", 4]
			r = m["upstream", 5] / m["ours", 5]
			printf "%-8s %-9s %8.2fx %8.2fx %9.2fx %9.2fx\n", c, "ratio", d, r, m["upstream", 6] / m["ours", 6], \
				m["upstream", 7] / m["ours", 7]
			printf "%s{\"case\":\"%s\",\"dump_ratio\":%.3f,\"restore_ratio\":%.3f,\"dump_ms\":[%d,%d],\"restore_ms\":[%d,%d],\"peak_bytes\":[%d,%d],\"restore_peak_bytes\":[%d,%d]}", \
				n > 1 ? ",\n" : "", c, d, r, m["ours", 4], m["upstream", 4], m["ours", 5], m["upstream", 5], \
				m["ours", 6], m["upstream", 6], m["ours", 7], m["upstream", 7] >json
			slower += d < 1 || r < 1
		}
		print "]" >json
		printf "%d of %d cases where ours is slower\n", slower, num
		exit slower > 0 || !num
	}' "$LAB_OUT/rows"
