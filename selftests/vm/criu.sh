#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The CRIU of a guest that has another one than its images: fetched and unpacked once, its directory printed.
# Prints nothing for the others.
#
# usage: criu.sh GUEST
set -euo pipefail
. "$(dirname "$0")/common.sh"

# With lists and cache of its own: the host's apt is only the program.
fetch() {
	local dir=$1 apt=$1/apt opts=()
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	echo "$CRIU_SOURCES" >"$apt/sources.list"
	touch "$apt/status"
	opts=(-q=2 -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State=$apt" -o "Dir::State::Lists=$apt/lists" -o "Dir::State::Status=$apt/status"
		-o "Dir::Cache=$apt/cache" -o 'Acquire::Check-Valid-Until=false' -o APT::Sandbox::User=root)
	apt-get "${opts[@]}" update
	(cd "$apt" && apt-get "${opts[@]}" download "$CRIU_PACKAGE")
	dpkg-deb -R "$apt"/criu_*.deb "$dir/root"
	rm -rf "$apt"
}

# Built under another name and renamed, so that half of one is never used.
ensure() {
	local tmp
	[[ ! -d $1 ]] || return 0
	mkdir -p "$(dirname "$1")"
	tmp=$(mktemp -d "$1.tmp.XXXXXX")
	# shellcheck disable=SC2064
	trap "rm -rf '$tmp'" EXIT
	fetch "$tmp" >&2
	mv "$tmp" "$1"
	trap - EXIT
}

main() {
	local dir
	[[ $# -eq 1 ]] || die "usage: criu.sh GUEST"
	guest_load "$1"
	[[ -n $CRIU_SOURCES ]] || return 0
	need_root
	dir=$CACHE/criu/$GUEST_NAME-$(hash_files "$0" "$VM_DIR/guests/$GUEST_NAME.conf")
	with_lock "$CACHE/criu-$GUEST_NAME.lock" ensure "$dir"
	echo "$dir/root"
}

main "$@"
