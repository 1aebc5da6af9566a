#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest: print every kernel message of warning level and above that dmesg.allow does not know,
# and leave with 1 if there was one.
#
# usage: dmesg-check.sh [SINCE]      SINCE: only messages after this many seconds of uptime
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

messages() {
	{
		dmesg --level emerg,alert,crit,err,warn
		dmesg --level notice,info,debug | grep -E "$REPORTS"
	} | awk -v since="${1:-0}" '{ t = $0; sub(/^\[ */, "", t); if (t + 0 >= since + 0) print }'
}

bad=$(messages "${1-}" | grep -vE -f <(allowed))
[[ -z $bad ]] && exit 0
echo "lab: the kernel log holds what dmesg.allow does not know:"
while read -r line; do
	echo "  | $line"
done <<<"$bad"
exit 1
