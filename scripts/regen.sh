#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Make the generated files from uapi/specs/gpucr.yaml: code with the kernel's YNL generator, docs/protocol.md with our own.
#
# usage: regen.sh [--check|--ksrc]      --check: change nothing, leave with 1 where a file differs from what would be made
#                                      --ksrc: only print the directory of the kernel's YNL tools
#
# KSRC   an unpacked kernel source (tools/net/ynl, Documentation/netlink); default: those two, unpacked once from
#        /usr/src/linux-source-6.12.tar.xz (Debian's linux-source-6.12) into the cache
# Needs python3-yaml and python3-jsonschema.
set -euo pipefail

TOP=$(cd "$(dirname "$0")/.." && pwd)
CACHE=${GPUCR_CACHE:-/var/cache/gpucr}
TARBALL=/usr/src/linux-source-6.12.tar.xz
SPEC=Documentation/netlink/specs/gpucr.yaml
STAGE=''

die() {
	echo "regen: $*" >&2
	exit 1
}

cleanup() {
	[[ -z $STAGE ]] || rm -rf "$STAGE"
}

# Prints the directory; unpacks it first where it is not there.
kernel_source() {
	local dir part
	if [[ -n ${KSRC-} ]]; then
		echo "$KSRC"
		return
	fi
	[[ -f $TARBALL ]] || die "no $TARBALL: install linux-source-6.12, or set KSRC"
	dir=$CACHE/ksrc-$(stat -Lc '%s-%Y' "$TARBALL")
	if [[ ! -d $dir ]]; then
		mkdir -p "$CACHE"
		part=$(mktemp -d "$dir.XXXXXX")
		tar -C "$part" -xf "$TARBALL" --strip-components=1 --wildcards \
			'*/tools/net/ynl/*' '*/Documentation/netlink/*' || die "cannot unpack $TARBALL"
		# Of two at once the first wins.
		mv -T "$part" "$dir" 2>/dev/null || rm -rf "$part"
	fi
	echo "$dir"
}

# The generator walks up until it finds a file called MAINTAINERS, for ever where there is none.
stage() {
	STAGE=$(mktemp -d)
	trap cleanup EXIT
	mkdir -p "$STAGE/Documentation/netlink/specs"
	: >"$STAGE/MAINTAINERS"
	cp "$1"/Documentation/netlink/*.yaml "$STAGE/Documentation/netlink/"
}

# generate GENERATOR MODE KIND NAME
generate() {
	(cd "$STAGE" && timeout 60 python3 "$1" --spec "$SPEC" --mode "$2" "--$3" -o "$4") ||
		die "the generator failed on $4"
}

make_files() {
	local gen
	gen=$(find "$1/tools/net/ynl" -name 'ynl-gen-c.py' -o -name 'ynl_gen_c.py' | head -n 1)
	[[ -n $gen ]] || die "no generator in $1/tools/net/ynl"
	gen=$(realpath "$gen")
	cp "$TOP/uapi/specs/gpucr.yaml" "$STAGE/$SPEC"
	generate "$gen" uapi header gpucr.h
	"$TOP/scripts/protocol_doc.py" "$TOP/uapi/specs/gpucr.yaml" >"$STAGE/protocol.md" || die "no docs/protocol.md"
	# The generator's table of groups has no flags, and ours must carry one: kmod/netlink.c has the table.
	sed -i '/^mcast-groups:/,$d' "$STAGE/$SPEC"
	generate "$gen" kernel header netlink_gen.h
	generate "$gen" kernel source netlink_gen.c
}

# place CHECK MADE COMMITTED
place() {
	if [[ $1 == 0 ]]; then
		cmp -s "$STAGE/$2" "$TOP/$3" || cp "$STAGE/$2" "$TOP/$3"
	elif ! diff -u --label "$3" --label "$3 (made from the spec)" "$TOP/$3" "$STAGE/$2"; then
		return 1
	fi
}

main() {
	local check=0 bad=0 ksrc
	case ${1-} in
	'') ;;
	--check) check=1 ;;
	--ksrc)
		kernel_source
		return
		;;
	*) die "usage: regen.sh [--check|--ksrc]" ;;
	esac
	python3 -c 'import yaml, jsonschema' 2>/dev/null || die "needs python3-yaml and python3-jsonschema"
	ksrc=$(kernel_source)
	stage "$ksrc"
	make_files "$ksrc"
	place $check gpucr.h uapi/linux/gpucr.h || bad=1
	place $check netlink_gen.h kmod/netlink_gen.h || bad=1
	place $check netlink_gen.c kmod/netlink_gen.c || bad=1
	place $check protocol.md docs/protocol.md || bad=1
	[[ $bad == 0 ]] || die "generated files differ from the spec: run scripts/regen.sh and commit"
}

main "$@"
