#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Make the guest image and the build chroot of a guest, unless the cache has them.
#
# usage: image.sh GUEST              make what is missing
#        image.sh GUEST guest|build  the same for one of the two, and print its directory
#
# Both live under ${GPUCR_CACHE:-/var/cache/gpucr}/GUEST/, keyed by the hash of what they are made from:
#   guest-HASH/  rootfs.ext4 vmlinuz initrd initrd-bare modules/ kver packages
#   build-HASH/  root/ kver packages
set -euo pipefail
. "$(dirname "$0")/common.sh"

# virtio_console carries the command's output; the file systems are those of the root disk and the shares.
INITRD_MODULES=(virtio_pci virtio_blk virtio_console ext4 9pnet_virtio 9p)

recipe_files() {
	local list=$VM_DIR/guests/$GUEST.list
	[[ $1 == build ]] && list=$VM_DIR/guests/$GUEST.build.list
	printf '%s\n' "$VM_DIR/guests/$GUEST.conf" "$list" "$VM_DIR/image.sh"
	[[ $1 == build ]] || printf '%s\n' "$VM_DIR/initrd-init.sh"
}

image_dir() {
	local files
	mapfile -t files < <(recipe_files "$1")
	echo "$CACHE/$GUEST/$1-$(hash_files "${files[@]}")"
}

# bootstrap DIR PACKAGE...
bootstrap() {
	local dir=$1 log=$1.log opts=() o
	shift
	while read -r o; do
		[[ -n $o ]] && opts+=("--aptopt=$o")
	done <<<"$APT_OPTS"
	# INITRD=No: we make our own, in a second instead of ten.
	if ! INITRD=No SOURCE_DATE_EPOCH=0 mmdebstrap --quiet --mode=root --variant=apt --format=directory \
		--aptopt='APT::Install-Recommends "false"' "${opts[@]}" \
		--dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
		--include="$(printf '%s ' "$@")" \
		"$SUITE" "$dir" - <<<"$SOURCES" >"$log" 2>&1; then
		tail -n 30 "$log" >&2
		rm -rf "$dir" "$log"
		die "mmdebstrap of $GUEST failed"
	fi
	rm -f "$log"
	mkdir -p "$dir/src"
	dpkg-query --admindir="$dir/var/lib/dpkg" -W -f '${Package} ${Version}\n' >"$(dirname "$dir")/packages"
}

# The newest kernel of a directory that holds one subdirectory per release.
newest_release() {
	find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -V | tail -n 1
}

# make_initrd ROOT OUT [MODULE...]: busybox, our init, the modules that find disk and tree, in load order.
make_initrd() {
	local root=$1 out=$2 work n=10 mod name
	shift 2
	work=$(mktemp -d)
	mkdir -p "$work/bin" "$work/modules"
	cp "$root/bin/busybox" "$work/bin/busybox"
	install -m 755 "$VM_DIR/initrd-init.sh" "$work/init"
	for mod in "$@"; do
		name=${mod##*/}
		unpack_module "$mod" "$work/modules/$n-${name%%.ko*}.ko"
		n=$((n + 1))
	done
	(cd "$work" && find . | cpio --quiet -o -H newc) >"$out"
	rm -rf "$work"
}

# In load order, each once; what is built into the kernel has no file.
initrd_module_paths() {
	local m
	for m in "${INITRD_MODULES[@]}"; do
		modprobe -d "$1" -S "$2" --show-depends "$m"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# A copy to run depmod on: unpacked under the packed names, depmod takes 1 s instead of 11 and writes the same
# index (it looks at the content, not at the name).
copy_modules_plain() {
	mkdir -p "$3/lib/modules"
	cp -a "$1/lib/modules/$2" "$3/lib/modules/"
	export -f unpack_module
	# shellcheck disable=SC2016
	find "$3" -name '*.ko.*' -print0 |
		xargs -0 -P "$(nproc)" -n 100 bash -c 'for f; do unpack_module "$f" "$f.tmp" && mv "$f.tmp" "$f"; done' bash
}

unpack_module() {
	case $1 in
	*.xz) xz -dc "$1" >"$2" ;;
	*.zst) zstd -qdc "$1" >"$2" ;;
	*.gz) gzip -dc "$1" >"$2" ;;
	*) cp "$1" "$2" ;;
	esac
}

make_guest() {
	local dir=$1 root=$1/root kver packages modules
	mapfile -t packages < <(read_list "$VM_DIR/guests/$GUEST.list")
	bootstrap "$root" "$KERNEL_PACKAGE" "$CRIU_PACKAGE" "${packages[@]}"
	kver=$(newest_release "$root/lib/modules")
	cp "$root/boot/vmlinuz-$kver" "$dir/vmlinuz"
	mapfile -t modules < <(initrd_module_paths "$root" "$kver")
	make_initrd "$root" "$dir/initrd" "${modules[@]}"
	# For kernels that have all of it built in, as the debug kernel.
	make_initrd "$root" "$dir/initrd-bare"
	copy_modules_plain "$root" "$kver" "$dir/modules"
	mke2fs -q -t ext4 -O ^has_journal -L gpucr-guest -d "$root" "$dir/rootfs.ext4" "$MKFS_SIZE" >/dev/null
	rm -rf "$root"
	echo "$kver" >"$dir/kver"
}

make_build() {
	local dir=$1 packages
	mapfile -t packages < <(read_list "$VM_DIR/guests/$GUEST.build.list")
	bootstrap "$dir/root" "$HEADERS_PACKAGE" "${packages[@]}"
	newest_release "$dir/root/lib/modules" >"$dir/kver"
}

# Built under another name and renamed, so that a half-made image is never used.
ensure() {
	local kind=$1 dir tmp start=$SECONDS
	dir=$(image_dir "$kind")
	if [[ -d $dir ]]; then
		touch "$dir"
		return
	fi
	echo "lab: making the $GUEST $kind image" >&2
	tmp=$(mktemp -d "$dir.tmp.XXXXXX")
	# A trap and not a subshell's status: an interrupt must clean up as well.
	# shellcheck disable=SC2064
	trap "rm -rf '$tmp'" EXIT
	chmod 755 "$tmp"
	"make_$kind" "$tmp"
	mv "$tmp" "$dir"
	trap - EXIT
	echo "lab: $GUEST $kind image made in $((SECONDS - start)) s" >&2
}

# Headers and kernel must be of one release: the mirror may have moved between the two builds.
ensure_pair() {
	local g b
	mkdir -p "$CACHE/$GUEST"
	ensure guest
	ensure build
	g=$(image_dir guest) b=$(image_dir build)
	if [[ $(<"$g/kver") != "$(<"$b/kver")" ]]; then
		echo "lab: kernel $(<"$g/kver") but headers $(<"$b/kver"): making both again" >&2
		rm -rf "$g" "$b"
		ensure guest
		ensure build
		[[ $(<"$g/kver") == "$(<"$b/kver")" ]] || die "the mirror's kernel and headers differ"
	fi
	# Other recipes' images are left for other checkouts, but not for ever.
	find "$CACHE/$GUEST" -mindepth 1 -maxdepth 1 -type d -mtime +21 -exec rm -rf {} +
}

main() {
	[[ $# -ge 1 ]] || die "usage: image.sh GUEST [guest|build]"
	guest_load "$1"
	need_root
	if [[ ! -d $(image_dir guest) || ! -d $(image_dir build) ]]; then
		with_lock "$CACHE/$GUEST.lock" ensure_pair
	fi
	[[ $# -eq 1 ]] || image_dir "$2"
}

main "$@"
