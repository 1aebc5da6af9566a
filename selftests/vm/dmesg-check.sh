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

# One line a message, the level (0 to 4: emergency to warning) in front; what a message says on further lines is
# joined to it.
messages() {
	dmesg --raw | awk -v mark="${1-}" -v reports="$REPORTS" '
		function flush() {
			if (text != "" && (level % 8 <= 4 || text ~ reports))
				line[n++] = text
			text = ""
		}
		!/^<[0-9]+>/ { text = text " / " $0; next }
		{
			flush()
			level = substr($0, 2) + 0
			text = $0
			sub(/^<[0-9]+>/, "", text)
			if (mark != "" && index(text, mark)) {
				n = 0
				text = ""
			}
		}
		END {
			flush()
			for (i = 0; i < n; i++)
				print line[i]
		}'
}

bad=$(messages "${1-}" | grep -vE -f <(allowed))
[[ -z $bad ]] && exit 0
echo "lab: the kernel log holds what dmesg.allow does not know:"
while read -r line; do
	echo "  | $line"
done <<<"$bad"
exit 1
