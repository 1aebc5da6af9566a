#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What "make bench" runs: the copy engine on this machine's storage, without a guest. The table goes to standard output,
# the same as JSON to build/bench/native.json, with a page and a plot beside it; the exit status says whether a case is
# below what is wanted. It wants the machine to itself; with 4 GiB it takes some 35 minutes.
#
#   BENCH_DIR [build/bench]  on the storage to be measured     BENCH_BYTES [4 GiB]  GPU memory of each case, a multiple
#   of 128 MiB     BENCH_DOCS=1  page and plot go to docs/ too, whatever the verdict     BENCH_CASES="one/1 4m/4"  only
#   these BOs and numbers of GPUs, no growth, no page
set -euo pipefail
TOP=$(cd "$(dirname "$0")/../.." && pwd)
OUT=$TOP/build/bench
BENCH_DIR=${BENCH_DIR:-$OUT}
HOST=$TOP/build/host/selftests/bench

mkdir -p "$OUT" "$BENCH_DIR"
make -s -C "$TOP/selftests/bench" "O=$TOP/build/host"
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
BENCH_MACHINE="$(nproc) CPUs (${cpu:-unknown}), $(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo) GiB of memory, kernel $(uname -r), $(findmnt -n -o FSTYPE -T "$BENCH_DIR") on $(findmnt -n -o SOURCE -T "$BENCH_DIR"), load at the start $(cut -d' ' -f1 /proc/loadavg)"
export BENCH_MACHINE
echo "machine: $BENCH_MACHINE"
rc=0
"$HOST/native" "$BENCH_DIR" "${BENCH_BYTES:-4294967296}" "$OUT/native.json" || rc=$?
[[ -s $OUT/native.json ]] || exit "$rc"
[[ -z ${BENCH_CASES-} ]] || exit "$rc"
"$HOST/plot" "$OUT/native.json" "$OUT"
[[ ${BENCH_DOCS-} != 1 ]] || cp "$OUT/performance.md" "$OUT/performance.svg" "$TOP/docs/"
exit "$rc"
