#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The part of dkms-check.sh that runs in the build chroot. What DKMS writes goes to a tmpfs, so that the cached
# chroot stays as it is; "remove leaves nothing" is checked all the same.
#
# environment: STAGE (holds gpucr-VERSION/), VERSION, KVER
# shellcheck disable=SC2317 # functions are called by name
set -uo pipefail

N=0
BAD=0
MODULES=/lib/modules/$KVER
LOG=/tmp/dkms.log

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
	tail -n 40 "$LOG" /var/lib/dkms/gpucr/"$VERSION"/build/make.log 2>/dev/null | sed 's/^/# /'
	BAD=1
}

# The chroot's own directories, writable copies in memory.
make_writable() {
	local d
	for d in /usr/src /var/lib/dkms; do
		mkdir -p "$d"
	done
	mount -t tmpfs tmpfs /var/lib/dkms
	mkdir -p /tmp/upper /tmp/work
	mount -t overlay -o "lowerdir=$MODULES,upperdir=/tmp/upper,workdir=/tmp/work" overlay "$MODULES" ||
		{ echo "Bail out! no overlay on $MODULES" && exit 1; }
	mkdir -p "/usr/src/gpucr-$VERSION"
	mount --bind "$STAGE/gpucr-$VERSION" "/usr/src/gpucr-$VERSION"
}

module_file() {
	find "$MODULES" -name 'gpucr.ko*'
}

has_module() {
	[[ -n $(module_file) ]]
}

# The version that DKMS knows is the version the module carries.
version_agrees() {
	local got
	got=$(modinfo -F version "$(module_file)")
	echo "module says $got, dkms.conf says $VERSION"
	[[ $got == "$VERSION" ]]
}

autoload_alias() {
	modinfo -F alias "$(module_file)" | grep -qx 'net-pf-16-proto-16-family-gpucr'
}

nothing_left() {
	! has_module && [[ -z $(find /var/lib/dkms -path '*gpucr*' -print -quit) ]]
}

main() {
	echo "KTAP version 1"
	echo "1..8"
	make_writable
	check "dkms add" dkms add "gpucr/$VERSION"
	check "dkms build" dkms build "gpucr/$VERSION" -k "$KVER"
	check "dkms install" dkms install "gpucr/$VERSION" -k "$KVER"
	check "the module is there" has_module
	check "its version is the package's" version_agrees
	check "it loads on first use of the family" autoload_alias
	check "dkms remove" dkms remove "gpucr/$VERSION" --all
	check "nothing is left" nothing_left
	rmdir "/usr/src/gpucr-$VERSION" 2>/dev/null
	exit $BAD
}

main
