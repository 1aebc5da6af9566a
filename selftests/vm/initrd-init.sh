#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0-only
# First program of a lab guest: finds the disk and the shared tree, then hands over to the tree's own init.
# It is part of the cached image; what changes often lives in guest-init.sh, which the tree provides.

fail() {
	echo "lab-initrd: $*" >/dev/console
	busybox poweroff -f
}

busybox mkdir -p /proc /dev /mnt
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev || fail "no devtmpfs"

# Numbered in load order when the image was made.
for m in /modules/*.ko; do
	[ -e "$m" ] && { busybox insmod "$m" || fail "cannot load $m"; }
done

if busybox grep -qw lab.probe /proc/cmdline; then
	echo "lab-probe: user space reached" >/dev/console
	busybox poweroff -f
fi

busybox mount -t ext4 -o noatime /dev/vda /mnt || fail "cannot mount the root disk"
busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose src /mnt/src ||
	fail "cannot mount the shared tree"
busybox umount /proc
busybox mount --move /dev /mnt/dev || fail "cannot move /dev"
exec busybox switch_root /mnt /src/selftests/vm/guest-init.sh
