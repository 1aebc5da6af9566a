# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What every lab script shares: where things are, the guest's description, locks. Sourced, never run.
# shellcheck disable=SC2034 # the sourcing scripts use them

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TOP=$(cd "$VM_DIR/../.." && pwd)
CACHE=${GPUCR_CACHE:-/var/cache/gpucr}

die() {
	echo "lab: $*" >&2
	exit 1
}

need_root() {
	[[ $(id -u) -eq 0 ]] || die "must be root (chroot, mounts)"
}

# Sets SUITE SOURCES KERNEL_PACKAGE HEADERS_PACKAGE CRIU_PACKAGE and the optional APT_OPTS, MKFS_SIZE. A guest with a
# BASE is that one (its images, its build: GUEST) but for its CRIU, from CRIU_SOURCES; GUEST_NAME is its own.
guest_load() {
	local conf=$VM_DIR/guests/$1.conf
	[[ -f $conf ]] || die "no guest '$1'; there are: $(guest_names)"
	GUEST_NAME=$1 BASE='' CRIU_SOURCES='' APT_OPTS='' MKFS_SIZE=3G
	# shellcheck source=/dev/null
	. "$conf"
	GUEST=${BASE:-$1}
}

guest_names() {
	local f
	for f in "$VM_DIR"/guests/*.conf; do
		f=${f##*/}
		printf '%s ' "${f%.conf}"
	done
}

# One package a line, # comments.
read_list() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1"
}

hash_files() {
	cat "$@" | sha256sum | cut -c1-12
}

# lock NAME COMMAND...: one at a time on this machine; a waiter says so once.
with_lock() {
	local file=$1
	shift
	mkdir -p "$(dirname "$file")"
	(
		exec 9>"$file"
		if ! flock -n 9; then
			echo "lab: waiting for another run ($file)" >&2
			flock 9
		fi
		"$@" 9>&-
	)
}

# enter_chroot ROOT [VARIABLE=VALUE]... PROGRAM [ARG]...: run a program in a build chroot, the tree at /src.
# In a mount namespace of its own: when the command ends, however it ends, every mount is gone.
# The namespace is private, so nothing of it is ever seen outside.
enter_chroot() {
	local root=$1
	shift
	# shellcheck disable=SC2016
	unshare --mount --propagation private bash -ec '
		root=$1 tree=$2
		shift 2
		mount --bind "$tree" "$root/src"
		mount -t proc proc "$root/proc"
		mount -t tmpfs tmpfs "$root/tmp"
		mount --rbind /dev "$root/dev"
		exec chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' bash "$root" "$TOP" "$@"
}
