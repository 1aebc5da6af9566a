#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each personality shows its kernel's differences, whatever kernel runs; and the default is that kernel's.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

PROGRAM=$O/selftests/kfdsim/kfd_personality
RESULTS=10	# of that

# The results of a run become ours; those that are missing have failed.
differences() {
	local n=0 line
	modprobe kfdsim personality="$1" vram_mb=64
	result $? "$1: loads"
	while IFS= read -r line; do
		case $line in
		"ok "*) result 0 "$1: ${line#*- }" ;;
		"not ok "*) result 1 "$1: ${line#*- }" ;;
		"#"*)
			echo "$line"
			continue
			;;
		*) continue ;;
		esac
		n=$((n + 1))
	done < <("$PROGRAM" "$1" 2>&1)
	for (( ; n < RESULTS; n++)); do
		result 1 "$1: a result is missing"
	done
	"$PROGRAM" "$1" dump "$TMPDIR/img" && modprobe -r kfdsim
	result $? "$1: dumps and unloads"
	modprobe kfdsim personality="$1" vram_mb=64 machine=1 && "$PROGRAM" "$1" restore "$TMPDIR/img"
	result $? "$1: whose id a doorbell's offset carries"
	modprobe -r kfdsim
}

# Without a GPU: the device is there, and opens up to 6.12 only.
no_gpu() {
	local rc=0
	modprobe kfdsim personality="$1" gpus=0 || return
	[[ -c /dev/kfd ]] && : 2>/dev/null </dev/kfd || rc=1
	modprobe -r kfdsim || return
	case $1 in
	6.*) [[ $rc == 0 ]] ;;
	*) [[ $rc == 1 ]] ;;
	esac
}

default_is_native() {
	local got want=6.1 p
	modprobe kfdsim vram_mb=64
	got=$(cat /sys/module/kfdsim/parameters/personality)
	modprobe -r kfdsim
	for p in 6.12 7.2 7.3; do
		[[ $(printf '%s\n' "$p" "$(uname -r)" | sort -V | head -n 1) != "$p" ]] || want=$p
	done
	echo "# on $(uname -r) the default is $got"
	[[ $got == "$want" ]]
}

PERSONALITIES=(6.1 6.12 7.2 7.3)
plan $((${#PERSONALITIES[@]} * (RESULTS + 4) + 1))
for p in "${PERSONALITIES[@]}"; do
	differences "$p"
	no_gpu "$p"
	result $? "$p: opening without a GPU"
done
default_is_native
result $? "the default is this kernel's"
finish
