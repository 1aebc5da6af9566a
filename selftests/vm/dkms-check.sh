#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The DKMS package, from its own file list, in the build chroot of a guest: installed, upgraded, downgraded and removed,
# and beside kernels that it cannot be built for. KTAP. Leaves the two modules in build/dkms-GUEST/ko.
#
# usage: dkms-check.sh GUEST
set -uo pipefail
. "$(dirname "$0")/common.sh"

# The next version: what an upgrade would bring.
NEXT=0.1.99

# stage_package DIR [VERSION]: from the Makefile's own file list, since the build must not need more than that.
stage_package() {
	make -s -C "$TOP" dkms-install DESTDIR="$1" PREFIX= || return
	[[ $# -eq 2 ]] || return 0
	mv "$1/src/gpucr-$VERSION" "$1/src/gpucr-$2"
	sed -i "s/\"${VERSION//./\\.}\"/\"$2\"/" "$1/src/gpucr-$2/dkms.conf" "$1/src/gpucr-$2/kmod/version.h"
}

# run IMAGE: in a mount namespace of its own. What DKMS writes goes to memory, so that the cached chroot stays as it is.
run() {
	local root=$1/root d
	mount --make-rprivate /
	mount -t tmpfs tmpfs "$STAGE/mem"
	for d in var/lib/dkms usr/src lib/modules; do
		mkdir -p "$root/$d" "$STAGE/mem/$d" "$STAGE/mem/work/$d"
		mount -t overlay -o "lowerdir=$root/$d,upperdir=$STAGE/mem/$d,workdir=$STAGE/mem/work/$d" overlay \
			"$root/$d" || return
	done
	enter_chroot "$root" "STAGE=/src/build/${STAGE##*/}" "VERSION=$VERSION" "NEXT=$NEXT" "KVER=$(<"$1/kver")" \
		bash /src/selftests/vm/dkms-inside.sh
}

main() {
	local img
	[[ $# -eq 1 ]] || die "usage: dkms-check.sh GUEST"
	guest_load "$1"
	need_root
	img=$("$VM_DIR/image.sh" "$GUEST" build) || exit
	VERSION=$(sed -n 's/^PACKAGE_VERSION="\?\([^"]*\)"\?$/\1/p' "$TOP/dkms.conf")
	STAGE=$TOP/build/dkms-$GUEST
	rm -rf "$STAGE"
	mkdir -p "$STAGE/mem" "$STAGE/ko"
	{ stage_package "$STAGE" "$NEXT" && stage_package "$STAGE"; } || die "the package cannot be made"
	export -f run enter_chroot
	export STAGE VERSION NEXT TOP
	# shellcheck disable=SC2016
	unshare --mount bash -uc 'run "$1"' bash "$img"
}

main "$@"
