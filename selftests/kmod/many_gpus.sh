#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Lists of a process with as many GPUs as a kernel has minors for, and with gaps between them: each buffer and each
# mapping is told of the right device.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

GPUS=$O/selftests/kmod/gpus

minors() {
	local f
	for f in /sys/class/drm/renderD*; do
		echo "${f##*renderD}"
	done | sort -n
}

# with COUNT PARAMETER...
with() {
	local n=$1
	shift
	modprobe kfdsim "gpus=$n" vram_mb=64 gtt_mb=64 "$@" || return 1
	"$GPUS" "$n"
}

plan 2

with 63 >"$TMPDIR/out"
rc=$?
cat "$TMPDIR/out"
result $rc "63 GPUs: buffers and mappings of each, in 4, 8 and 32 KiB reads"
modprobe -r kfdsim

if modinfo -p kfdsim | grep -q '^minor_gaps:'; then
	with 32 minor_gaps=1 >"$TMPDIR/out"
	rc=$?
	cat "$TMPDIR/out"
	# 32 minors in a row would be no gaps.
	mapfile -t m < <(minors)
	[[ $((m[-1] - m[0])) -gt 31 ]] || rc=1
	result $rc "32 GPUs with gaps in the minors: the same"
	modprobe -r kfdsim
else
	KTAP_N=$((KTAP_N + 1))
	echo "ok $KTAP_N 32 GPUs with gaps # SKIP the simulator has no gaps in the minors"
fi
finish
