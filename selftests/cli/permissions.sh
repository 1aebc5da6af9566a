#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# Each refusal names what is missing, and has a twin that differs in one property and succeeds.
. "$(dirname "$0")/lib.sh"

as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# with_caps CAPS COMMAND...: nobody, with these capabilities only
with_caps() {
	local caps=$1
	shift
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "-all,$caps" --ambient-caps "-all,$caps" "$@"
}

# denied TOKEN COMMAND...
denied() {
	local token=$1 rc=0
	shift
	"$@" >"$W/out" 2>"$W/err" || rc=$?
	[[ $rc -eq 1 ]] || fail "status $rc, not 1: $(cat "$W/out" "$W/err")"
	is_json ".error.token == \"$token\" and (.error.hint | test(\"CAP_\"))"
}

granted() {
	local rc=0
	"$@" >"$W/out" 2>"$W/err" || rc=$?
	[[ $rc -eq 0 ]] || fail "status $rc: $(cat "$W/out" "$W/err")"
	is_json '.data | type == "array"'
}

info_for_all() {
	granted as_nobody "$GPUCR" -j info
	is_json '.data[0].module.version != null'
}

without_ptrace() {
	denied no-ptrace-access with_caps +checkpoint_restore "$GPUCR" -j bo pid "$PID"
	denied no-ptrace-access as_nobody "$GPUCR" -j file pid "$PID"
}

without_checkpoint() {
	denied no-capability with_caps +sys_ptrace,+dac_read_search "$GPUCR" -j bo pid "$PID"
	denied no-capability as_nobody "$GPUCR" -j session
}

with_both() {
	granted with_caps +sys_ptrace,+dac_read_search,+checkpoint_restore "$GPUCR" -j bo pid "$PID"
	is_json '.data | length == 5'
	granted with_caps +checkpoint_restore "$GPUCR" -j session
}

# Capabilities of another user namespace are worth nothing here.
in_userns() {
	denied no-capability unshare --user --map-root-user "$GPUCR" -j session
	granted "$GPUCR" -j session
}

need_modules gpucr vgem
gem_start gem vgem || bail "gemtruth does not run on vgem"
PID=$(pid_of gem)
plan 5
check "info is for everybody" info_for_all
check "no right to look into the process" without_ptrace
check "no right to ask the module" without_checkpoint
check "both rights, without being root" with_both
check "root of a user namespace is refused" in_userns
finish
