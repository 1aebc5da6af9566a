#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Build for a guest, inside the build chroot of its suite, into build/GUEST/. Incremental.
#
# usage: build.sh GUEST [COMPONENT...]
#   components: kmod kfdsim lib plugin tools apps selftests   (default: all that exist, in this order)
#
# KERNEL=debug builds kmod and kfdsim for the debug kernel instead, with the host's compiler (which built that
# kernel), into build/GUEST-debug/. SAN=1 builds the programs with ASan and UBSan, into build/GUEST-san/.
# SPARSE=1 has sparse look at the modules as well. MAKEARGS is given to every make.
set -euo pipefail
. "$(dirname "$0")/common.sh"

COMPONENTS=(kmod kfdsim lib plugin tools apps selftests)

component_dir() {
	case $1 in
	kmod) echo kmod ;;
	kfdsim) echo selftests/kfdsim ;;
	lib) echo lib ;;
	plugin) echo plugin/amdgpu ;;
	tools) echo tools/gpucr ;;
	apps) echo selftests/apps ;;
	selftests) echo selftests ;;
	*) die "no component '$1'; there are: ${COMPONENTS[*]}" ;;
	esac
}

# What has no Makefile yet is said to be left out, never silently.
component_exists() {
	local file
	file=$(component_dir "$1")/Makefile
	[[ $1 == kmod ]] && file=Kbuild
	[[ $1 == kfdsim ]] && file=selftests/kfdsim/Kbuild
	[[ -e $TOP/$file ]] && return
	echo "lab: $1 left out: no $file" >&2
	return 1
}

build_in_chroot() {
	local img=$1 kver
	shift
	kver=$(<"$img/kver")
	enter_chroot "$img/root" "O=/src/${OUT#"$TOP/"}" "KDIR=/lib/modules/$kver/build" "KVER=$kver" \
		"JOBS=$(nproc)" "SPARSE=${SPARSE-}" "MAKEARGS=${MAKEARGS-}${SAN:+ SAN=1}" /bin/bash /src/selftests/vm/build-inside.sh "$@"
}

# Index the modules on the host, together with the guest kernel's own: natively it takes a second.
index_modules() {
	local base=$1 kver=$2 out=$3 stage ko n=0
	stage=$(mktemp -d "$TOP/build/modtree.XXXXXX")
	mkdir -p "$stage/lib/modules"
	cp -as "$base/lib/modules/$kver" "$stage/lib/modules/$kver"
	mkdir -p "$stage/lib/modules/$kver/extra"
	for ko in "$out"/kmod/*.ko "$out"/kfdsim/*.ko; do
		[[ -e $ko ]] || continue
		cp "$ko" "$stage/lib/modules/$kver/extra/"
		n=$((n + 1))
	done
	# Only links so far: depmod must replace them, not write through them into the cache.
	find "$stage/lib/modules/$kver" -maxdepth 1 -type l \( -name '*.bin' -o -name 'modules.alias' -o \
		-name 'modules.dep' -o -name 'modules.devname' -o -name 'modules.softdep' -o \
		-name 'modules.symbols' -o -name 'modules.weakdep' \) -delete
	depmod -b "$stage" "$kver"
	mkdir -p "$stage/modidx"
	find "$stage/lib/modules/$kver" -maxdepth 1 -type f -exec cp {} "$stage/modidx/" \;
	cp -r "$stage/lib/modules/$kver/extra" "$stage/modidx/"
	# Swapped in whole: a guest may be reading it.
	rm -rf "$out/modidx"
	mv "$stage/modidx" "$out/modidx"
	rm -rf "$stage"
	echo "lab: $n modules of ours indexed for $kver"
}

# When no module is newer than the index there is nothing to do.
index_if_needed() {
	local out=$3
	[[ -e $out/modidx/modules.dep.bin ]] &&
		[[ -z $(find "$out/kmod" "$out/kfdsim" -name '*.ko' -newer "$out/modidx/modules.dep.bin" 2>/dev/null) ]] &&
		[[ $(<"$out/modidx.kver") == "$2" ]] && return
	index_modules "$@"
	echo "$2" >"$out/modidx.kver"
}

build_stock() {
	local img guest
	img=$("$VM_DIR/image.sh" "$GUEST" build)
	guest=$("$VM_DIR/image.sh" "$GUEST" guest)
	build_in_chroot "$img" "$@"
	[[ -n ${SAN-} ]] || index_if_needed "$guest/modules" "$(<"$guest/kver")" "$OUT"
}

build_debug() {
	local kernel
	kernel=$("$VM_DIR/debug-kernel.sh" path)
	O=$OUT KDIR=$kernel/build KVER=$(<"$kernel/kver") JOBS=$(nproc) MAKEARGS=${MAKEARGS-} \
		"$VM_DIR/build-inside.sh" "$@"
	index_if_needed "$kernel/modules" "$(<"$kernel/kver")" "$OUT"
}

# The debug kernel has modules of its own and takes the programs of the stock one; the sanitizers are for programs.
belongs_here() {
	case $1 in
	kmod | kfdsim) [[ -z ${SAN-} ]] ;;
	*) [[ ${KERNEL:-stock} != debug ]] ;;
	esac
}

build() {
	local wanted=() c kind=stock
	OUT=$TOP/build/$GUEST${SAN:+-san}
	[[ ${KERNEL:-stock} != debug ]] || kind=debug OUT=$TOP/build/$GUEST-debug
	for c in "$@"; do
		belongs_here "$c" && component_exists "$c" && wanted+=("$c")
	done
	[[ ${#wanted[@]} -gt 0 ]] || return 0
	mkdir -p "$OUT"
	"build_$kind" "${wanted[@]}"
}

main() {
	[[ $# -ge 1 ]] || die "usage: build.sh GUEST [COMPONENT...]"
	guest_load "$1"
	shift
	need_root
	local c
	for c in "$@"; do
		component_dir "$c" >/dev/null
	done
	[[ $# -gt 0 ]] || set -- "${COMPONENTS[@]}"
	"$VM_DIR/image.sh" "$GUEST"
	with_lock "$TOP/build/.$GUEST.lock" build "$@"
}

main "$@"
