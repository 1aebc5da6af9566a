#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# On the host: the kernel's own YNL command line, out of Debian's linux-source, talks to the family in a guest. It needs
# a Python with yaml, which the guests do not have: the host's goes in with it.
set -uo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
TOP=$(cd "$HERE/../.." && pwd)
GUEST=${GUEST:-trixie}

bail() {
	echo "Bail out! $*"
	exit 1
}

in=$(mktemp -d /tmp/gpucr-ynl.XXXXXX)
trap 'rm -rf "$in"' EXIT

# python3 with its standard library, yaml, and what it links to but glibc, into $in/py
python_tree() {
	local py version lib
	py=$(readlink -f /usr/bin/python3) && version=$(basename "$py") || return
	mkdir -p "$in/py/bin" "$in/py/lib"
	cp "$py" "$in/py/bin/python3"
	ldd "$py" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libpthread|libdl)\.so/ { print $3 }' |
		while read -r lib; do cp -L "$lib" "$in/py/lib/"; done
	cp -a "/usr/lib/$version" "$in/py/lib/"
	rm -rf "$in/py/lib/$version"/{test,idlelib,tkinter,lib2to3,pydoc_data,distutils,config-*}
	cp -a "$(/usr/bin/python3 -c 'import os, yaml; print(os.path.dirname(yaml.__file__))')" "$in/py/lib/$version/"
}

ksrc=$("$TOP/scripts/regen.sh" --ksrc) || bail "no kernel source with YNL"
python_tree || bail "no Python to take along"
mkdir "$in/ynl"
cp -r "$ksrc"/tools/net/ynl/. "$in/ynl/"
cp "$TOP/uapi/specs/gpucr.yaml" "$ksrc"/Documentation/netlink/genetlink-legacy.yaml "$in/"
# One file, since the guest reads many small ones slowly.
tar -C "$in" -cf "$in/all.tar" py ynl gpucr.yaml genetlink-legacy.yaml && rm -rf "$in/py" "$in/ynl"

# Not exec: the directory is removed afterwards.
LAB_IN=$in LAB_MODULES='gpucr' "$HERE/../vm/boot.sh" "$GUEST" 'selftests/cli/ynl-guest.sh'
