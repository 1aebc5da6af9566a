#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Everything that can be said about the tree without running it. Prints KTAP; a failed check shows what it found.
#
# usage: check-static.sh [CHECK...]          default: all, see CHECKS
#        check-static.sh --without CHECK     all but one
# shellcheck disable=SC2317 # the checks are called by name
set -uo pipefail
# shellcheck source=selftests/vm/common.sh
. "$(dirname "$0")/../selftests/vm/common.sh"
cd "$TOP" || exit

GUEST=${GUEST:-trixie}
CHECKS=(checkpatch sparse shellcheck cppcheck generated sizes versions symbols words spdx includes)
KERNEL_DIRS=(kmod selftests/kfdsim)
PRODUCT_DIRS=(kmod lib plugin tools uapi)

# What belongs to the tree, committed or not; without git (a tarball) everything but the products.
tree_files() {
	if git -C "$TOP" rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -co --exclude-standard -- "$@" | while IFS= read -r f; do
			[[ -f $f ]] && echo "$f"
		done
	else
		find "$@" -type f -not -path './build/*' 2>/dev/null | sed 's|^\./||'
	fi
}

c_files() {
	tree_files "$@" | grep -E '\.[ch]$'
}

# found TEXT: a check is good when it finds nothing.
found() {
	[[ -z $1 ]] && return
	echo "$1"
	return 1
}

# checkpatch and its word lists, out of Debian's kernel source, once.
checkpatch_dir() {
	local tar=/usr/src/linux-source-6.12.tar.xz dir tmp
	[[ -f $tar ]] || die "no $tar: scripts/setup-host.sh installs linux-source-6.12"
	dir=$CACHE/checkpatch-$(stat -Lc '%s-%Y' "$tar")
	if [[ ! -d $dir ]]; then
		mkdir -p "$CACHE"
		tmp=$(mktemp -d "$dir.XXXXXX")
		tar -C "$tmp" -xJf "$tar" --strip-components=2 --wildcards '*/scripts/checkpatch.pl' \
			'*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' || return 1
		# It looks for the kernel's mixed-case names there.
		mkdir "$tmp/include"
		mv -T "$tmp" "$dir" 2>/dev/null || rm -rf "$tmp"
	fi
	echo "$dir"
}

# Made by the kernel's generator, whose style is not ours to change.
GENERATED='^(kmod/netlink_gen\.[ch]|uapi/linux/gpucr\.h)$'

# run_checkpatch DIR IGNORE: files from stdin. It stands in DIR, since it leaves a cache where it stands.
run_checkpatch() {
	local dir=$1 ignore=$2
	sed "s|^|$TOP/|" | (cd "$dir" && xargs -r -n 8 -P "$(nproc)" perl ./checkpatch.pl --no-tree --root="$dir" \
		--strict --terse --no-summary --show-types --max-line-length=100 --ignore "$ignore" --file) |
		sed "s|^$TOP/||"
}

# A shim is where version tests and odd macros belong.
check_checkpatch() {
	local dir
	dir=$(checkpatch_dir) || return 1
	found "$(
		c_files "${KERNEL_DIRS[@]}" uapi | grep -vE "$GENERATED|/compat-include/|/kfdsim/test/" |
			run_checkpatch "$dir" FILE_PATH_CHANGES
		c_files "${KERNEL_DIRS[@]}" | grep /compat-include/ | run_checkpatch "$dir" \
			FILE_PATH_CHANGES,LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED
	)"
}

check_sparse() {
	local log
	log=$(SPARSE=1 "$VM_DIR/build.sh" "$GUEST" kmod kfdsim 2>&1) || found "$log" || return 1
	# What it says of the kernel's own headers is not ours. 7.x names our files without a directory before them.
	found "$(grep -E '^[^ ]+: (warning|error):' <<<"$log" | grep -vE '^(/usr/src|/lib/modules)/')"
}

check_shellcheck() {
	local files
	mapfile -t files < <(tree_files . | while IFS= read -r f; do
		[[ $f == *.sh ]] || head -c 64 "$f" | head -n 1 | grep -qaE '^#!.*\b(sh|bash)\b' && echo "$f"
	done)
	# -x with the script's own directory: what it sources is checked as one with it.
	shellcheck -x -P SCRIPTDIR -f gcc "${files[@]}"
}

check_cppcheck() {
	local files
	mapfile -t files < <(c_files lib plugin tools selftests/apps selftests/cli selftests/kmod selftests/plugin \
		selftests/image | grep '\.c$')
	cppcheck -q -j "$(nproc)" --std=c11 --enable=warning,portability,performance --inline-suppr \
		--error-exitcode=1 --suppress=missingIncludeSystem -D__x86_64__ -D__linux__ \
		-Iuapi -Ilib -Ilib/sysinclude --template='{file}:{line}: {severity}: {message} [{id}]' "${files[@]}" 2>&1
}

check_generated() {
	scripts/regen.sh --check
}

# Files to 800 lines, functions to 80: what starts with { and ends with } in the first column.
check_sizes() {
	local files
	mapfile -t files < <(c_files . | grep -vE "$GENERATED")
	found "$(awk '
		FNR == 1 { start = 0 }
		FNR == 801 { print FILENAME ": more than 800 lines" }
		/^[a-zA-Z_].*\(/ { name = $0 }
		/^\{/ { start = FNR }
		/^\}/ {
			if (start && FNR - start + 1 > 80)
				printf "%s:%d: function of %d lines: %s\n", FILENAME, start, FNR - start + 1, name
			start = 0
		}' "${files[@]}")"
}

# Kernels differ in features; only the shims may know.
check_versions() {
	found "$(c_files . | grep '\.c$' | xargs -r grep -nE 'LINUX_VERSION_CODE|KERNEL_VERSION')"
}

check_symbols() {
	found "$(c_files "${KERNEL_DIRS[@]}" | xargs -r grep -nE 'kallsyms|register_k(ret)?probe|\bset_memory_r[wo]\b')"
}

# No product knows the simulator, and nothing is left for later.
check_words() {
	found "$(
		tree_files "${PRODUCT_DIRS[@]}" Kbuild dkms.conf | xargs -r grep -niH kfdsim
		tree_files . | grep -v '^scripts/check-static.sh$' | xargs -r grep -nHIE '\b(TODO|FIXME|XXX)\b'
	)"
}

check_spdx() {
	found "$(tree_files . | grep -E '\.([chS]|sh|awk|yaml)$|(^|/)(Makefile|Kbuild)$|\.conf$' | grep -v '/guests/' |
		while IFS= read -r f; do
			head -n 3 "$f" | grep -q SPDX-License-Identifier || echo "$f: no SPDX line"
		done)"
}

# Includes go one way: uapi <- kmod; uapi <- lib <- plugin, tools.
check_includes() {
	found "$(
		grep -nE '#include .*(tools|gpucr_cli)/' -r plugin --include='*.[ch]' 2>/dev/null
		grep -nE '#include .*plugin/' -r tools lib --include='*.[ch]' 2>/dev/null
		grep -nE '#include "(\.\./)+(lib|plugin|tools|selftests)/' -r kmod uapi --include='*.[ch]' 2>/dev/null
	)"
}

main() {
	local n=0 bad=0 check out start
	if [[ ${1-} == --without ]]; then
		# shellcheck disable=SC2046 # names of checks
		set -- $(printf '%s\n' "${CHECKS[@]}" | grep -vx "$2")
	fi
	[[ $# -gt 0 ]] || set -- "${CHECKS[@]}"
	echo "KTAP version 1"
	echo "1..$#"
	for check in "$@"; do
		n=$((n + 1))
		start=$SECONDS
		if out=$("check_$check" 2>&1); then
			echo "ok $n $check ($((SECONDS - start)) s)"
		else
			bad=1
			echo "not ok $n $check ($((SECONDS - start)) s)"
			head -n 100 <<<"${out:-failed without a word}" | while IFS= read -r line; do
				echo "# $line"
			done
		fi
	done
	exit $bad
}

main "$@"
