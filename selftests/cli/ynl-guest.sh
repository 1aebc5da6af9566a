#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# In the guest, run by ynl.sh: the kernel's YNL command line against the module.
. "$(dirname "$0")/lib.sh"

tar -C "$W" -xf "$LAB_IN/all.tar" || bail "no tools"

# ynl ARG...: exit status in RC, output in $W/out and $W/err
ynl() {
	RC=0
	PYTHONHOME=$W/py LD_LIBRARY_PATH=$W/py/lib PYTHONDONTWRITEBYTECODE=1 "$W/py/bin/python3" "$W/ynl/cli.py" \
		--spec "$W/gpucr.yaml" --no-schema --output-json "$@" >"$W/out" 2>"$W/err" || RC=$?
}

# answers FILTER ARG...
answers() {
	local filter=$1
	shift
	ynl "$@"
	[[ $RC -eq 0 ]] || {
		show_run
		fail "ynl $*: exit status $RC"
	}
	is_json "$filter"
}

# refuses ERRNO SENTENCE ARG...: the tool prints errno's number and the kernel's sentence
refuses() {
	local errno=$1 sentence=$2
	shift 2
	ynl "$@"
	if [[ $RC -eq 0 ]] || ! grep -qF -- "$sentence" "$W/out" || ! grep -q "error: -$errno\$" "$W/out"; then
		show_run
		fail "ynl $*: not refused with $errno, \"$sentence\""
	fi
}

info() {
	answers '."module-version" | test("^[0-9]+[.]")' --do info-get
	is_json '."protocol-version" == 1 and (.driver | index("amdgpu")) and ."max-sessions" > 0'
	[[ $(jq -r '."module-version"' "$W/out") == "$(cat /sys/module/gpucr/version)" ]] || fail "another version"
}

# The module answers exactly the operations that the specification lists, but the event.
same_ops() {
	ynl --list-ops
	sed -n 's/^\([a-z-]*\) *\[.*/\1/p' "$W/out" | grep -v -- -ntf | sort >"$W/spec"
	answers '.op | length > 10' --do info-get
	[[ $(jq '.op | length' "$W/out") -eq $(wc -l <"$W/spec") ]] || {
		cat "$W/spec" "$W/out"
		fail "another number of operations"
	}
}

dump() {
	answers '. == []' --dump session-get
}

enums() {
	answers '.state == "new" and .id > 0 and ."session-fd" > 2' --do session-new --json '{"direction": "restore"}'
}

dump_refused() {
	refuses 2 'there is no session of that id' --dump session-get --json '{"id": 1}'
}

do_refused() {
	refuses 22 'id is missing' --do session-del
	refuses 22 'a restore takes neither pid nor fd' --do session-new \
		--json '{"direction": "restore", "pid": 1}'
	grep -q 'bad-attr.*pid' "$W/out" "$W/err" || {
		show_run
		fail "the attribute is not named"
	}
	refuses 2 'there is no session of that id' --do remap-resolve \
		--json '{"id": 1, "image-pid": 1, "gpu-id": 1, "old-pgoff": 0}'
}

drain() {
	answers '. == null' --do session-drain --json '{"drain": 1}'
	answers '.draining' --do info-get
	refuses 11 'being upgraded' --do session-new --json '{"direction": "restore"}'
	answers '. == null' --do session-drain --json '{"drain": 0}'
	answers '.draining | not' --do info-get
	refuses 34 '' --do session-drain --json '{"drain": 2}'
}

# Newer command lines can print the kernel's own policy.
policy() {
	ynl --help
	if ! grep -q -- '--policy' "$W/out"; then
		skip "this kernel source's command line cannot print policies"
	fi
	answers '.' --policy --do session-new
	grep -q direction "$W/out" || fail "direction is not in the policy"
}

plan 8
check "info-get" info
check "the specification has the module's operations" same_ops
check "session-get, a dump" dump
check "session-new, with its enums" enums
check "a dump that is refused has the kernel's sentence" dump_refused
check "so has a do, and the attribute" do_refused
check "session-drain, there and back" drain
check "the kernel's policy" policy
finish
