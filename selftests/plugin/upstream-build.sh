#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Build upstream's own amdgpu_plugin.so for a guest's CRIU, outside the tree, and print where it is.
#
# usage: upstream-build.sh [GUEST]       default: trixie
#
# Debian ships no such plugin in any suite; it is made from the orig tarball of the suite's criu package, in a
# throw-away chroot of the suite, and kept under ${GPUCR_CACHE:-/var/cache/gpucr}/upstream-plugin/.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=selftests/vm/common.sh
. "$HERE/../vm/common.sh"

PACKAGES=(
	gcc make pkgconf dpkg-dev xz-utils libc6-dev libbsd-dev libcap-dev libdrm-dev libgnutls28-dev libnet1-dev
	libnftables-dev libnl-3-dev libprotobuf-c-dev libprotobuf-dev protobuf-c-compiler protobuf-compiler
	python3-minimal uuid-dev
)

WORK=''

cleanup() {
	[[ -z $WORK ]] || rm -rf "$WORK"
}

# Only the orig tarball is needed. The mirror may have lost the .dsc, in which case apt fails after the download.
build_in_chroot() {
	chroot "$1" bash -eu <<'IN'
	export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
	sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
	apt-get -q update
	mkdir -p /build && cd /build
	apt-get -q source --download-only criu || true
	tar xf criu_*.orig.tar.xz --strip-components=1
	proto=images/google/protobuf/descriptor.proto
	[ -e "$proto" ] || { mkdir -p "${proto%/*}"; ln -s /usr/include/google/protobuf/descriptor.proto "$proto"; }
	make -j"$(nproc)" criu
	make -j"$(nproc)" amdgpu_plugin
	test -s plugins/amdgpu/amdgpu_plugin.so
IN
}

main() {
	local dir start=$SECONDS key
	guest_load "${1:-trixie}"
	key=$(hash_files "$0" "$VM_DIR/guests/$GUEST.conf")
	dir=$CACHE/upstream-plugin/$GUEST-$key
	if [[ ! -s $dir/amdgpu_plugin.so ]]; then
		need_root
		mkdir -p "$CACHE/upstream-plugin"
		WORK=$(mktemp -d "$CACHE/upstream-plugin/tmp.XXXXXX")
		trap cleanup EXIT
		chmod 755 "$WORK"
		echo "upstream: building the plugin of $GUEST's CRIU" >&2
		local opts=() o
		while read -r o; do
			[[ -z $o ]] || opts+=("--aptopt=$o")
		done <<<"$APT_OPTS"
		if ! {
			mmdebstrap --quiet --mode=root --variant=apt --format=directory \
				--aptopt='APT::Install-Recommends "false"' "${opts[@]}" --dpkgopt=force-unsafe-io \
				--include="${PACKAGES[*]}" "$SUITE" "$WORK/root" - <<<"$SOURCES" &&
				build_in_chroot "$WORK/root"
		} >"$WORK/log" 2>&1 </dev/null; then
			tail -n 30 "$WORK/log" >&2
			die "upstream's plugin does not build"
		fi
		mkdir -p "$dir"
		cp "$WORK/root/build/plugins/amdgpu/amdgpu_plugin.so" "$dir/amdgpu_plugin.so.tmp"
		mv "$dir/amdgpu_plugin.so.tmp" "$dir/amdgpu_plugin.so"
		echo "upstream: built in $((SECONDS - start)) s" >&2
	fi
	echo "$dir"
}

main "$@"
