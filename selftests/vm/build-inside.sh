#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The part of build.sh that runs inside the build chroot (or on the host, for the debug kernel).
#
# environment: O (output), KDIR, KVER (kernel), JOBS, SPARSE, MAKEARGS      arguments: components, in order
set -euo pipefail

TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
read -ra EXTRA <<<"${MAKEARGS-}"

# External modules cannot be built out of tree on older kernels, so the sources are copied; only what changed,
# with its time, and what vanished is removed, so that make's own rules decide.
sync_sources() {
	local dst=$O/ksrc f
	mkdir -p "$dst"
	while IFS= read -r f; do
		[[ $dst/$f -nt $TREE/$f || $dst/$f -ot $TREE/$f || ! -e $dst/$f ]] || continue
		mkdir -p "$dst/$(dirname "$f")"
		cp -p "$TREE/$f" "$dst/$f"
	done < <(source_files "$TREE")
	comm -13 <(source_files "$TREE" | sort) <(source_files "$dst" | sort) | while IFS= read -r f; do
		rm -f "$dst/$f"
	done
}

# *.mod.c are kbuild's own.
source_files() {
	(cd "$1" && find Kbuild kmod uapi selftests/kfdsim -type f \
		\( -name '*.[chS]' -o -name Kbuild -o -name Makefile -o -name '*.yaml' \) ! -name '*.mod.c' 2>/dev/null) || true
}

# kbuild DIR-IN-KSRC OUT: W=1, and a warning is an error: in an incremental build it would be seen only once.
kbuild() {
	local ko sparse=()
	# 2: also what is compiled already. Twice, since 7.x asks a script that the headers' packages leave out.
	# Debian 13's sparse does not know typeof_unqual, and cannot count a literal, which MODULE_INFO of 7.3 has it do.
	[[ -z ${SPARSE-} ]] || sparse=(C=2 KBUILD_CHECKSRC=2 "CF=-D__CHECK_ENDIAN__ \
		-D__typeof_unqual__=__typeof__ -D'__builtin_strlen(s)=(sizeof(s) - 1)'")
	make -s -C "$KDIR" M="$O/ksrc/$1" W=1 KCFLAGS=-Werror -j"$JOBS" "${sparse[@]}" "${EXTRA[@]}" modules
	mkdir -p "$O/$2"
	find "$O/ksrc/$1" -name '*.ko' | if [[ $2 == kmod ]]; then grep -v "/selftests/"; else cat; fi |
		while IFS= read -r ko; do
			cmp -s "$ko" "$O/$2/${ko##*/}" || cp "$ko" "$O/$2/"
		done
}

user() {
	make -s -C "$TREE/$1" O="$O" -j"$JOBS" "${EXTRA[@]}"
}

for component in "$@"; do
	start=$SECONDS
	case $component in
	kmod) sync_sources && kbuild . kmod ;;
	kfdsim) sync_sources && kbuild selftests/kfdsim kfdsim ;;
	lib) user lib ;;
	plugin) user plugin/amdgpu ;;
	tools) user tools/gpucr ;;
	apps) user selftests/apps ;;
	selftests) user selftests ;;
	esac
	echo "built $component in $((SECONDS - start)) s"
done
