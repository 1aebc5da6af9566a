#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# Every target with libFuzzer, address and undefined behaviour sanitizers, from the corpus in the tree. What a run
# finds is left in build/fuzz/found; build/fuzz/corpus keeps what it learnt, and begins where the last one ended.
#
# FUZZ_SECONDS=N   a target [10]        FUZZ_TARGETS="a b"   these only
# FUZZ_MERGE=1     afterwards, what adds coverage goes to the corpus in the tree
# clang and libclang-rt-dev must be there.
cd "$(dirname "$0")" || exit
TOP=$(cd ../.. && pwd)
# shellcheck source=selftests/ktap.sh
. ../ktap.sh

OUT=$TOP/build/fuzz
SECONDS_EACH=${FUZZ_SECONDS:-10}
CLANG=${CLANG:-clang}
PKGS=(libprotobuf-c libxxhash liburing libzstd)
# What the targets need of the library; the rest of it wants libraries for GPUs.
SOURCES="checksum image image_check imgfile stream streamlist imgformat imgmsg pbdecode upstream wire pages store fetch zchunk opt topology criuimg criuread criuwhole log"
MAX_LEN=65536

mkdir -p "$OUT"
W=$(mktemp -d "$OUT/run.XXXXXX")
trap 'rm -rf "$W"' EXIT

# Can this machine link one at all?
have_libfuzzer() {
	command -v "$CLANG" >/dev/null || return 1
	echo 'int LLVMFuzzerTestOneInput(const char *d, long n); int LLVMFuzzerTestOneInput(const char *d, long n) { return 0 * (d != 0) * n; }' >"$W/x.c"
	"$CLANG" -fsanitize=fuzzer,address -o "$W/x" "$W/x.c" >/dev/null 2>&1
}

build() {
	local flags cflags s obj=() target
	flags="-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
	cflags="-std=gnu11 -D_GNU_SOURCE -isystem $TOP/uapi -isystem $TOP/lib/sysinclude -I$TOP/lib -I$TOP/tools/gpucr
		-I$W/gen $(pkg-config --cflags "${PKGS[@]}" libdrm)"
	mkdir -p "$W/gen"
	(cd "$TOP/lib" && protoc-c --c_out="$W/gen" gpucr.proto upstream.proto)
	for s in $SOURCES; do
		# shellcheck disable=SC2086 # lists of words
		"$CLANG" $flags -fsanitize=fuzzer-no-link $cflags -c -o "$W/$s.o" "$TOP/lib/$s.c"
		obj+=("$W/$s.o")
	done
	for s in gpucr upstream; do
		# shellcheck disable=SC2086
		"$CLANG" $flags -fsanitize=fuzzer-no-link $cflags -c -o "$W/$s-pb.o" "$W/gen/$s.pb-c.c"
		obj+=("$W/$s-pb.o")
	done
	# shellcheck disable=SC2086
	"$CLANG" $flags -fsanitize=fuzzer-no-link $cflags -c -o "$W/doctor_elf.o" "$TOP/tools/gpucr/doctor_elf.c"
	for target in $TARGETS; do
		# shellcheck disable=SC2086,SC2046
		"$CLANG" $flags -fsanitize=fuzzer $cflags -o "$W/$target" "$target.c" util.c "${obj[@]}" \
			"$W/doctor_elf.o" $(pkg-config --libs "${PKGS[@]}")
	done
}

# Not less than some inputs a second, or nothing was tried; not more than 256 MiB at once, and 10 s an input.
fuzz() {
	local target=$1 runs
	mkdir -p "$OUT/corpus/$target" "$OUT/found"
	"$W/$target" -max_total_time="$SECONDS_EACH" -max_len=$MAX_LEN -timeout=10 -rss_limit_mb=1024 \
		-malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="$OUT/found/$target-" \
		"$OUT/corpus/$target" "corpus/$target" >"$W/$target.log" 2>&1 || {
		tail -n 40 "$W/$target.log"
		fail "found something: $OUT/found"
	}
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$W/$target.log")
	[[ ${runs:-0} -gt 100 ]] || fail "only ${runs:-0} inputs were tried"
	echo "$target $runs" >>"$W/runs"
	[[ -z ${FUZZ_MERGE-} ]] || merge "$target"
}

# Small inputs only: the corpus is read by people's editors too.
merge() {
	mkdir "$W/merged.$1"
	"$W/$1" -merge=1 -max_len=8192 "$W/merged.$1" "corpus/$1" "$OUT/corpus/$1" >/dev/null 2>&1
	cp -n "$W/merged.$1"/* "corpus/$1/"
}

have_libfuzzer || skip_all "no clang with libFuzzer: apt install clang libclang-rt-dev"
read -ra ALL <<<"$(make -s targets)"
TARGETS=${FUZZ_TARGETS:-${ALL[*]}}
read -ra LIST <<<"$TARGETS"
plan $((${#LIST[@]} + 1))
must "the targets build" build
for t in "${LIST[@]}"; do
	check "$t: $SECONDS_EACH s" fuzz "$t"
done
sed 's/^/# inputs: /' "$W/runs" 2>/dev/null
finish
