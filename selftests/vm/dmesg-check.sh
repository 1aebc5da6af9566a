#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest: print every kernel message of warning level and above that dmesg.allow does not know,
# and leave with 1 if there was one.
#
# usage: dmesg-check.sh [MARK]      MARK: only what came after the last message that holds this text
set -u

ALLOW=$(dirname "$0")/dmesg.allow
# Reports of the kernel's checkers, some of which come at a level below warning.
REPORTS='BUG:|WARNING:|Oops|KASAN|UBSAN|kmemleak: [1-9]|possible circular locking|INFO: (task|rcu|possible)'

# The patterns for this kernel, for grep -f.
allowed() {
	local pattern kernel release
	release=$(uname -r)
	while IFS=$'\t' read -r pattern kernel _; do
		[[ -z $pattern || $pattern == \#* ]] && continue
		[[ $kernel == '*' || $release == $kernel* ]] && printf '%s\n' "$pattern"
	done <"$ALLOW"
}

# Level and time in front: "<4>[   8.008230] text".
messages() {
	dmesg --raw | awk -v mark="${1-}" '
		mark != "" && index($0, mark) { n = 0; next }
		{ line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }'
}

# Levels 0 to 4 are emergency to warning; the number also holds the facility (multiples of 8).
suspicious() {
	awk -v reports="$REPORTS" '{
		level = substr($0, 2) + 0
		text = $0
		sub(/^<[0-9]+>/, "", text)
		if (level % 8 <= 4 || text ~ reports)
			print text
	}'
}

bad=$(messages "${1-}" | suspicious | grep -vE -f <(allowed))
[[ -z $bad ]] && exit 0
echo "lab: the kernel log holds what dmesg.allow does not know:"
while read -r line; do
	echo "  | $line"
done <<<"$bad"
exit 1
