#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The debug guest's kernel, cached by the hash of source, configuration and this script.
#
# usage: debug-kernel.sh build    build it unless the cache has it (10 minutes on two CPUs)
#        debug-kernel.sh path     print its directory: bzImage, kver, modules/, build/ (for external modules)
set -euo pipefail
. "$(dirname "$0")/common.sh"

TARBALL=/usr/src/linux-source-6.12.tar.xz
CONFIG=$VM_DIR/debug.config
# Source parts that building an external module does not read.
NOT_NEEDED=(Documentation block certs crypto drivers fs init io_uring ipc kernel lib mm net rust samples security
	sound usr virt LICENSES)

kernel_dir() {
	echo "$CACHE/debug-$( (cat "$CONFIG" "$VM_DIR/debug-kernel.sh" && stat -Lc '%s-%Y' "$TARBALL") |
		sha256sum | cut -c1-12)"
}

# Built where it stays, since both trees hold absolute paths; the file "done" says that it is whole.
is_whole() {
	[[ -e $1/done ]]
}

configure() {
	local src=$1 out=$2 lost
	# Helper libraries that only drivers select, and none of those is built; kfdsim may use them.
	sed -i -E '/^config DRM_(EXEC|GPUVM|SCHED|GEM_SHMEM_HELPER)$/{n;s/^\ttristate$/\ttristate "lab: helper library"/}' \
		"$src/drivers/gpu/drm/Kconfig"
	make -s -C "$src" O="$out" tinyconfig
	(cd "$src" && scripts/kconfig/merge_config.sh -m -O "$out" "$out/.config" "$CONFIG" >/dev/null)
	make -s -C "$src" O="$out" olddefconfig
	lost=$(grep '^CONFIG_' "$CONFIG" | grep -vxF -f "$out/.config") || true
	[[ -z $lost ]] || die "debug.config asks for what this kernel does not give: ${lost//$'\n'/ }"
}

# Two thirds of the space are objects and sources that no external module needs.
trim() {
	local src=$1 out=$2
	find "$out" \( -name '*.o' -o -name '*.a' -o -name '.*.cmd' -o -name 'vmlinux*' \) \
		-not -path '*/scripts/*' -not -path '*/tools/objtool/*' -delete
	(cd "$src" && rm -rf "${NOT_NEEDED[@]}")
}

build_kernel() {
	local dir src out log start=$SECONDS
	dir=$(kernel_dir)
	is_whole "$dir" && return
	"$TOP/scripts/setup-host.sh" debug
	echo "lab: building the debug kernel; this takes ten minutes and more" >&2
	rm -rf "$dir"
	src=$dir/source out=$dir/build log=$dir/build.log
	mkdir -p "$src" "$out"
	tar -C "$src" -xJf "$TARBALL" --strip-components=1
	configure "$src" "$out"
	if ! nice -n 19 make -C "$src" O="$out" -j"$(nproc)" bzImage modules >"$log" 2>&1; then
		grep -B 5 -m 5 -E 'error:|Error [0-9]' "$log" >&2 || tail -n 20 "$log" >&2
		die "the debug kernel does not build; all of it: $log"
	fi
	make -s -C "$out" INSTALL_MOD_PATH="$dir/modules" modules_install
	cp "$out/arch/x86/boot/bzImage" "$dir/bzImage"
	make -s -C "$out" kernelrelease >"$dir/kver"
	rm -f "$dir/modules/lib/modules/$(<"$dir/kver")/build"
	trim "$src" "$out"
	touch "$dir/done"
	echo "lab: debug kernel built in $((SECONDS - start)) s" >&2
}

main() {
	[[ -f $TARBALL ]] || die "no $TARBALL: scripts/setup-host.sh installs linux-source-6.12"
	case ${1-} in
	build) with_lock "$CACHE/debug.lock" build_kernel ;;
	path)
		is_whole "$(kernel_dir)" || die "the debug kernel is not built: make lab-debug builds it"
		kernel_dir
		;;
	*) die "usage: debug-kernel.sh build|path" ;;
	esac
}

main "$@"
