#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Process 1 of new pid and mount namespaces: gives itself a root of its own, as a container runtime does, and becomes
# /launch in it. What is not of the directory is a bind mount of /usr, and proc, sysfs and tmpfs.
#
# usage: unshare --pid --fork --mount ... container.sh ROOT
set -euo pipefail

root=$1
mount --bind "$root" "$root"
mount --bind /usr "$root/usr"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/tmp"
cd "$root"
# Debian unstable has it elsewhere than Debian 13.
busybox pivot_root . old
umount --lazy /old
# What is made in it has the first ids, as if nothing had been set up.
echo 1 >/proc/sys/kernel/ns_last_pid
# Of a session of its own: CRIU cannot dump one whose leader is outside.
exec setsid chroot / /launch </dev/null >/log/launcher 2>&1
