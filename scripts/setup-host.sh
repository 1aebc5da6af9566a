#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Install what building and testing gpucr needs on a Debian 12 host. Does nothing, fast, when all is there.
#
# usage: setup-host.sh [debug]      "debug" adds what building the debug kernel needs
set -euo pipefail

BACKPORTS=/etc/apt/sources.list.d/gpucr-backports.sources

PACKAGES=(
	# the lab
	mmdebstrap e2fsprogs kmod cpio zstd xz-utils util-linux debian-archive-keyring ca-certificates
	# programs and the host's tests
	gcc make pkg-config libc6-dev libdrm-dev libnl-3-dev libnl-genl-3-dev libprotobuf-c-dev
	protobuf-c-compiler libxxhash-dev libzstd-dev liburing-dev libjson-c-dev libcmocka-dev
	# static checks; linux-source carries checkpatch.pl and the netlink code generator
	sparse shellcheck cppcheck perl python3-yaml python3-jsonschema linux-source-6.12
	# libFuzzer
	clang libclang-rt-dev
)
PACKAGES_DEBUG=(flex bison bc libelf-dev libssl-dev)

die() {
	echo "setup-host: $*" >&2
	exit 1
}

# QEMU before 8 loses a code-patching race in two-CPU guests under TCG as soon as CRIU flips a static key.
qemu_is_new_enough() {
	local v
	v=$(dpkg-query -W -f '${Status} ${Version}' qemu-system-x86 2>/dev/null) || return 1
	[[ $v == "install ok installed "* ]] || return 1
	dpkg --compare-versions "${v##* }" ge 1:10
}

missing_packages() {
	local p
	for p in "$@"; do
		[[ $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) == "install ok installed" ]] || echo "$p"
	done
}

apt_quiet() {
	local log
	log=$(mktemp)
	if ! DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >"$log" 2>&1 </dev/null; then
		tail -n 30 "$log" >&2
		rm -f "$log"
		die "apt-get $1 failed"
	fi
	rm -f "$log"
}

# A file of our own, so that removing it undoes us.
add_backports() {
	[[ -e $BACKPORTS ]] && return
	grep -rqsE '^[^#]*bookworm-backports' /etc/apt/sources.list /etc/apt/sources.list.d && return
	cat >"$BACKPORTS" <<-EOF
		Types: deb
		URIs: http://deb.debian.org/debian
		Suites: bookworm-backports
		Components: main
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	EOF
}

main() {
	local want=("${PACKAGES[@]}") missing qemu=yes
	[[ ${1-} == debug ]] && want+=("${PACKAGES_DEBUG[@]}")
	mapfile -t missing < <(missing_packages "${want[@]}")
	qemu_is_new_enough && qemu=no
	[[ ${#missing[@]} -eq 0 && $qemu == no ]] && return

	# shellcheck source=/dev/null
	. /etc/os-release
	[[ ${VERSION_CODENAME-} == bookworm ]] ||
		die "this host is not Debian 12; install by hand: ${missing[*]} and qemu-system-x86 >= 10"
	[[ $(id -u) -eq 0 ]] || die "must be root to install: ${missing[*]}"
	exec 9>/run/lock/gpucr-setup-host
	flock 9
	add_backports
	apt_quiet update
	if [[ ${#missing[@]} -gt 0 ]]; then
		echo "setup-host: installing ${missing[*]}"
		apt_quiet install --no-install-recommends "${missing[@]}"
	fi
	if [[ $qemu == yes ]]; then
		echo "setup-host: installing qemu-system-x86 from backports"
		apt_quiet install --no-install-recommends -t bookworm-backports qemu-system-x86
	fi
}

main "$@"
