#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What "make bench BENCH=sim" runs: the SDMA interpreter of the simulator against memcpy() by the same CPU, in a guest.
# The table goes to standard output, the same as JSON to build/bench/sim.json; 1 where a 2 MiB copy gets less than half
# of memcpy's bytes. Simulated: it says what the simulator costs, nothing of a GPU.
#
# usage: bench.sh [GUEST]        BENCH_FROM=FILE  judge this measurement instead
set -euo pipefail
TOP=$(cd "$(dirname "$0")/../.." && pwd)
OUT=$TOP/build/bench
GUEST=${1:-trixie}
WANTED=0.5

mkdir -p "$OUT"

measure() {
	if [[ -n ${BENCH_FROM-} ]]; then
		cat "$BENCH_FROM"
		return
	fi
	"$TOP/selftests/vm/build.sh" "$GUEST" kfdsim >&2
	LAB_MODULES=kfdsim LAB_CPUS=1 "$TOP/selftests/vm/boot.sh" "$GUEST" 'cat /sys/kernel/debug/kfdsim/bench'
}

measure >"$OUT/sim.raw"
echo "simulated: $GUEST, $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
awk -v json="$OUT/sim.json" -v wanted="$WANTED" '
	$3 != "packets" || $5 != "ns" { next }
	{
		rate = $4 / $6 * 1e9
		key = $1 " " $2
		mbs[key] = rate * $2 / 1e6
		printf "%-8s %8d bytes  %11.0f packets/s  %9.1f MB/s\n", $1, $2, rate, mbs[key]
		rows = rows sprintf("%s{\"what\":\"%s\",\"bytes\":%d,\"packets_per_s\":%.0f,\"mb_per_s\":%.1f}", rows ? "," : "",
			$1, $2, rate, mbs[key])
	}
	END {
		if (!(mbs["memcpy 2097152"] > 0)) { print "sim: nothing was measured"; exit 1 }
		ratio = mbs["copy 2097152"] / mbs["memcpy 2097152"]
		verdict = ratio >= wanted ? "passed" : "failed"
		printf "{\"table\":\"sim\",\"simulated\":true,\"ratio\":%.2f,\"wanted\":%s,\"verdict\":\"%s\",\"rows\":[%s]}\n",
			ratio, wanted, verdict, rows >json
		printf "sim: %s: 2 MiB copies get %.2f of memcpy, wanted %s\n", verdict, ratio, wanted
		exit ratio < wanted
	}' "$OUT/sim.raw"
