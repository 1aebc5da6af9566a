#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The part of dkms-check.sh that runs in the build chroot, where what DKMS writes goes to memory.
#
# environment: STAGE (holds src/gpucr-VERSION and src/gpucr-NEXT), VERSION, NEXT, KVER
# shellcheck disable=SC2317 # functions are called by name
set -uo pipefail

PLAN=21
N=0
BAD=0
MODULES=/lib/modules
LOG=/tmp/dkms.log
HOOK=/etc/kernel/postinst.d/dkms

# Kernels that the module cannot be built for: no headers; no DRM; too old.
BARE=6.9.1-bare
NODRM=6.9.2-nodrm
OLD=5.10.3-old

# check NAME COMMAND...
check() {
	local name=$1
	shift
	N=$((N + 1))
	if "$@" >"$LOG" 2>&1; then
		echo "ok $N $name"
		return
	fi
	echo "not ok $N $name"
	tail -n 40 "$LOG" /var/lib/dkms/gpucr/*/build/make.log 2>/dev/null | sed 's/^/# /'
	BAD=1
}

make_kernels() {
	mkdir -p "$MODULES/$BARE" "$MODULES"/{$NODRM,$OLD}/build/include
	cp "$MODULES/$KVER/build/.config" "$MODULES/$OLD/build/"
	grep -v '^CONFIG_DRM=' "$MODULES/$KVER/build/.config" >"$MODULES/$NODRM/build/.config"
	touch "$MODULES"/{$NODRM,$OLD}/build/Makefile
}

add_sources() {
	cp -r "$STAGE/src/gpucr-$1" /usr/src/ && dkms add "gpucr/$1"
}

module_files() {
	find "$MODULES" -name 'gpucr.ko*'
}

# The one module there is belongs to our kernel and is of this version.
installed() {
	module_files
	[[ $(module_files | wc -l) == 1 && $(module_files) == "$MODULES/$KVER/"* ]] || return
	modinfo -F version "$(module_files)"
	[[ $(modinfo -F version "$(module_files)") == "$1" ]]
}

none_installed() {
	[[ -z $(module_files) ]]
}

autoload_alias() {
	modinfo -F alias "$(module_files)" | grep -qx 'net-pf-16-proto-16-family-gpucr'
}

# What apt runs when it installs a kernel or its headers.
apt_hook() {
	"$HOOK" "$1"
}

# Status 77: "not for this kernel", with the reason.
left_out() {
	local rc=0
	dkms build "gpucr/$VERSION" -k "$1" >/tmp/left 2>&1 || rc=$?
	cat /tmp/left
	[[ $rc == 77 ]] && grep -q BUILD_EXCLUSIVE /tmp/left
}

autoinstall_all() {
	local k
	for k in "$BARE" "$NODRM" "$OLD" "$KVER"; do
		"$HOOK" "$k" || return
	done
	installed "$VERSION"
}

# keep NAME: the module, unpacked, for the guest.
keep() {
	local f
	f=$(module_files)
	case $f in
	*.xz) xz -dc "$f" ;;
	*.zst) zstd -qdc "$f" ;;
	*) cat "$f" ;;
	esac >"$STAGE/ko/$1.ko"
}

sources_untouched() {
	diff -r "$STAGE/src/gpucr-$VERSION" "/usr/src/gpucr-$VERSION" && diff -r "$STAGE/src/gpucr-$NEXT" "/usr/src/gpucr-$NEXT"
}

nothing_left() {
	find "$MODULES" /var/lib/dkms -name '*gpucr*' | tee /tmp/left
	find "$MODULES" -path '*/updates/*' -type f | tee -a /tmp/left
	[[ ! -s /tmp/left ]]
}

main() {
	echo "KTAP version 1"
	echo "1..$PLAN"
	make_kernels
	check "dkms add" add_sources "$VERSION"
	check "dkms build" dkms build "gpucr/$VERSION" -k "$KVER"
	check "dkms install" dkms install "gpucr/$VERSION" -k "$KVER"
	check "the module is there, of the package's version" installed "$VERSION"
	check "it loads on first use of the family" autoload_alias
	keep old
	check "dkms remove" dkms remove "gpucr/$VERSION" --all
	check "nothing is left" nothing_left

	check "dkms add, again" dkms add "gpucr/$VERSION"
	check "apt's hook passes over a kernel without headers" apt_hook "$BARE"
	check "apt's hook passes over a kernel without DRM" apt_hook "$NODRM"
	check "apt's hook passes over a kernel too old" apt_hook "$OLD"
	check "a build for a kernel without DRM says why not" left_out "$NODRM"
	check "a build for a kernel too old says why not" left_out "$OLD"
	check "none was installed so far" none_installed
	check "four kernels in a row: the good one has it" autoinstall_all

	check "a newer version is added" add_sources "$NEXT"
	check "upgrade" dkms install "gpucr/$NEXT" -k "$KVER"
	check "the newer one is there, and alone" installed "$NEXT"
	keep new
	dkms install --force "gpucr/$VERSION" -k "$KVER" >/dev/null 2>&1
	check "downgrade, forced: the older one is there, and alone" installed "$VERSION"
	check "the sources are as they came" sources_untouched
	dkms remove "gpucr/$NEXT" --all >/dev/null 2>&1
	dkms remove "gpucr/$VERSION" --all >/dev/null 2>&1
	check "after the removal of both nothing is left" nothing_left
	exit $BAD
}

main
