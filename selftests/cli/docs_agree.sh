#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# Help, man page and command table agree, and each token has its entry in docs/troubleshooting.md.
. "$(dirname "$0")/lib.sh"

TOP=$(cd "$(dirname "$0")/../.." && pwd)
MAN=$TOP/docs/man/gpucr.8
TROUBLE=$TOP/docs/troubleshooting.md

same() {
	sort -u "$W/a" -o "$W/a"
	sort -u "$W/b" -o "$W/b"
	[[ -s $W/a ]] || fail "nothing to compare"
	diff -u "$W/a" "$W/b" || fail "$1"
}

grammar() {
	expect 0 help
	grep '^gpucr ' "$W/out" >"$W/a"
	sed -n '/^\.SH SYNOPSIS/,/^\.fi/p' "$MAN" | grep '^gpucr ' >"$W/b"
	same "< gpucr help, > man page"
}

# Each object's own help has the same lines as the whole.
object_help() {
	local o
	expect 0 help
	grep '^gpucr [a-z]' "$W/out" >"$W/a"
	for o in $(objects); do
		expect 0 "$o" help
		grep "^gpucr $o " "$W/out" | grep -v ' help$'
	done >"$W/b"
	same "< gpucr help, > gpucr OBJECT help"
}

objects() {
	"$GPUCR" help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p'
}

sections() {
	objects >"$W/a"
	sed -n 's/^\.SS //p' "$MAN" >"$W/b"
	same "< objects, > sections of the man page"
}

options() {
	expect 0 help
	grep -oE -- '--[a-z]+' "$W/out" >"$W/a"
	sed -n '/^\.SH OPTIONS/,/^\.SH OBJECTS/s/\\-/-/gp' "$MAN" | grep -oE -- '--[a-z]+' >"$W/b"
	same "< gpucr help, > man page"
}

# What help promises is there, and what is in the sources' tables is promised.
dispatched() {
	local o
	for o in $(objects); do
		# This one goes on until it is told to end.
		if [[ $o == monitor ]]; then run "$o" timeout 1; else run "$o"; fi
		! grep -q 'no such object' "$W/err" || fail "$o: $(cat "$W/err")"
		sed -nE 's/^\t\{ "([a-z]+)", (0|KEY\().*/'"$o"' \1/p' "$TOP/tools/gpucr/$o.c"
	done >"$W/a"
	expect 0 help
	sed -nE 's/^gpucr ([a-z]+) \[?([a-z]+)\]?( .*)?$/\1 \2/p' "$W/out" >"$W/b"
	same "< tables in the sources, > gpucr help"
}

# Exit statuses of the man page are those of the code.
statuses() {
	sed -n 's/^\tEXIT_[A-Z]* = \([0-9]\),/\1/p' "$TOP/tools/gpucr/fail.h" >"$W/a"
	sed -n '/^\.SH EXIT STATUS/,/^\.SH ENV/s/^\.B \([0-9]\)$/\1/p' "$MAN" >"$W/b"
	same "< fail.h, > man page"
}

# In the tool: the table of fail.c, warnings, findings, and what out.c prints by itself. In library and plugin: "(token)" in
# messages.
tokens() {
	sed -n 's/.*\] = { "\([a-z-]*\)", EXIT_.*/\1/p' "$TOP/tools/gpucr/fail.c"
	sed -n 's/.*out_warn("\([a-z-]*\)",.*/\1/p' "$TOP"/tools/gpucr/*.c
	sed -nE 's/.*DOCTOR_(WARN|FAIL), "[a-z_-]+", "([a-z-]+)",.*/\2/p; s/.*\*token = "([a-z-]+)";.*/\1/p' \
		"$TOP"/tools/gpucr/doctor*.c
	cat "$TOP"/tools/gpucr/check*.c | tr -s '\n\t ' ' ' |
		grep -oE 'CHECK_(WARN|NO), (([a-z]+|"[A-Za-z -]+"), )?"[a-z-]+"' | grep -oE '"[a-z-]+"$' | tr -d '"'
	sed -n 's/.*\.token = "\([a-z-]*\)".*/\1/p' "$TOP"/lib/*.c
	grep -hE '"' "$TOP"/tools/gpucr/*.c "$TOP"/lib/*.c "$TOP"/plugin/amdgpu/*.c |
		grep -oE '\([a-z]+(-[a-z0-9]+)+\)' | tr -d '()'
}

explained() {
	tokens >"$W/a"
	sed -n 's/^### //p' "$TROUBLE" >"$W/b"
	[[ -z $(sort "$W/b" | uniq -d) ]] || fail "explained twice: $(sort "$W/b" | uniq -d)"
	[[ $(sort -u "$W/a" | wc -l) -gt 40 ]] || fail "the tokens are written in another way"
	same "< tokens in the sources, > docs/troubleshooting.md"
}

next_command() {
	awk '/^### / { if (name && !next_) print name; name = $2; next_ = 0 }
		/Next:|cannot be restored|says what it is/ { next_ = 1 }
		END { if (name && !next_) print name }' "$TROUBLE" >"$W/a"
	[[ ! -s $W/a ]] || fail "no next step: $(cat "$W/a")"
}

plan 8
check "man page and help have one grammar" grammar
check "help of an object is its part of the whole" object_help
check "the man page has a section for each object" sections
check "man page and help have the same options" options
check "each object is dispatched" dispatched
check "the man page has the exit statuses" statuses
check "each token is explained, and nothing else" explained
check "each explanation has a next step" next_command
finish
