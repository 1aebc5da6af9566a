#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# Grammar: what is wrong on the command line is status 2, in words and as JSON; help and version are status 0.
. "$(dirname "$0")/lib.sh"

all_help() {
	local o
	expect 0 help
	expect 0 --help
	[[ ! -s $W/err ]] || fail "help on standard error"
	for o in info ps file bo vma remap queue session monitor check image doctor; do
		expect 0 "$o" help
		grep -q "^gpucr $o \[show\]" "$W/out" || fail "no default command in the help of $o"
		cp "$W/out" "$W/help"
		expect 0 "$o" --help
		cmp -s "$W/out" "$W/help" || fail "$o --help is not $o help"
		expect 0 "$o" show -h
		cmp -s "$W/out" "$W/help" || fail "$o show -h is not $o help"
	done
}

version() {
	expect 0 -V
	grep -qE '^gpucr [0-9]+\.[0-9]+\.[0-9]+$' "$W/out"
}

no_object() {
	refused 2 usage
	refused 2 usage nothing
	refused 2 usage boo pid 1
}

wrong_command() {
	refused 2 usage bo list
	refused 2 usage session drop
	refused 2 usage info show pid 1
}

wrong_key() {
	refused 2 usage bo pid 1 foo 2
	refused 2 usage ps gpu 1
	refused 2 usage session id 1 pid 2
	refused 2 usage bo pid 1 pid 2
	refused 2 usage vma shared
}

missing() {
	refused 2 usage bo
	refused 2 usage vma show
	refused 2 usage file fd 3
	refused 2 usage queue pid
	refused 2 usage session recover
	refused 2 usage session recover id 1 pid 1
	refused 2 usage session watch
}

wrong_number() {
	local n
	for n in '' -1 +1 0 1x x 1.5 ' 1' 2147483648 99999999999999999999999; do
		refused 2 usage bo pid "$n"
	done
	refused 2 usage bo pid 1 fd -1
	refused 2 usage bo pid 1 gpu 0
	refused 2 usage bo pid 1 gpu 4294967296
	refused 2 usage vma pid 1 addr 0xg
	refused 2 usage session id 0
	refused 2 usage session id 0x10000000000000000
}

wrong_option() {
	refused 2 usage -x info
	refused 2 usage --jsonx info
	refused 2 usage --color sometimes info
	refused 2 usage -b kfd info
	refused 2 usage -b
	refused 2 usage bo pid 1 --quiet
}

pretty() {
	expect 0 -b ioctl -p info
	[[ $(wc -l <"$W/out") -gt 5 ]] || fail "--pretty on few lines"
	is_json '.object == "info"'
}

color() {
	expect 0 --color always -b ioctl file pid $$
	grep -q $'\033' "$W/out" || fail "no colour where it is asked for"
	expect 0 -b ioctl file pid $$
	! grep -q $'\033' "$W/out" || fail "colour where there is no terminal"
	GPUCR_COLOR=always expect 0 -b ioctl file pid $$
	grep -q $'\033' "$W/out" || fail "GPUCR_COLOR is not obeyed"
}

quiet() {
	expect 0 -q file pid $$
	[[ ! -s $W/out ]] || fail "a header in spite of --quiet"
}

full_disk() {
	local rc=0
	[[ -w /dev/full ]] || return 0
	"$GPUCR" help >/dev/full 2>"$W/err" || rc=$?
	[[ $rc -eq 1 ]] || fail "help: status $rc on a full disk"
	grep -q '(no-output)' "$W/err"
	rc=0
	"$GPUCR" -j file pid $$ >/dev/full 2>"$W/err" || rc=$?
	[[ $rc -eq 1 ]] || fail "file: status $rc on a full disk"
	grep -q '(no-output)' "$W/err"
}

# As the kernel starts it: nothing is open, and what is opened first must not become standard output.
closed_files() {
	local rc=0
	"$GPUCR" file pid $$ <&- >&- 2>&- || rc=$?
	[[ $rc -eq 0 ]]
}

plan 14
check "help of the tool and of each object" all_help
check "version" version
check "no object, unknown object" no_object
check "unknown command" wrong_command
check "unknown key, key given twice" wrong_key
check "missing key, missing value" missing
check "numbers that are none, or too large" wrong_number
check "unknown options and values" wrong_option
check "--pretty is JSON on several lines" pretty
check "colour on demand only" color
check "--quiet leaves the header out" quiet
check "a full disk under the output is a failure" full_disk
check "runs with standard files closed" closed_files
check "wrong process" refused 1 no-process file pid 2147483647
finish
