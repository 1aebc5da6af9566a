#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The DKMS package, from its own file list, through add, build, install and remove, in the build chroot. KTAP.
#
# usage: dkms-check.sh GUEST
set -uo pipefail
. "$(dirname "$0")/common.sh"

main() {
	local img version rc
	[[ $# -eq 1 ]] || die "usage: dkms-check.sh GUEST"
	guest_load "$1"
	need_root
	img=$("$VM_DIR/image.sh" "$GUEST" build)
	if [[ ! -f $TOP/dkms.conf ]]; then
		printf 'KTAP version 1\n1..1\nnot ok 1 there is no dkms.conf\n'
		exit 1
	fi
	version=$(sed -n 's/^PACKAGE_VERSION="\?\([^"]*\)"\?$/\1/p' "$TOP/dkms.conf")
	mkdir -p "$TOP/build"
	STAGE=$(mktemp -d "$TOP/build/dkms.XXXXXX")
	trap 'rm -rf "$STAGE"' EXIT
	# From the Makefile's own file list: the build must not need more than that.
	make -s -C "$TOP" dkms-install DESTDIR="$STAGE" PREFIX=
	rc=0
	enter_chroot "$img/root" "STAGE=/src/build/${STAGE##*/}/src" "VERSION=$version" "KVER=$(<"$img/kver")" \
		bash /src/selftests/vm/dkms-inside.sh || rc=$?
	return $rc
}

main "$@"
