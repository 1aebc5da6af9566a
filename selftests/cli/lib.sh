# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# For the tests of the command line tool. Sourced, never run.

GPUCR=${GPUCR:-gpucr}
HELPERS=${O:-/src/build/trixie}/selftests/cli
# Seconds that anything may take: generous, since a guest without KVM is slow.
PATIENCE=${PATIENCE:-60}

W=$(mktemp -d "${TMPDIR:-/tmp}/gpucr-cli.XXXXXX")
# shellcheck source=selftests/ktap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../ktap.sh"

need_modules() {
	local m
	for m in "$@"; do
		modprobe "$m" || bail "$m does not load"
	done
}

# Only what this test has started.
cleanup() {
	local pid
	while read -r pid; do
		kill -KILL "$pid" 2>/dev/null
	done < <(cat "$W"/*.started 2>/dev/null)
	rm -rf "$W"
}
trap cleanup EXIT

# started NAME PID: killed at the end
started() {
	echo "$2" >"$W/$1.started"
}

# --- the tool --------------------------------------------------------------------------------------------------

# run ARG...: exit status in RC, output in $W/out and $W/err
run() {
	RC=0
	"$GPUCR" "$@" >"$W/out" 2>"$W/err" || RC=$?
}

show_run() {
	echo "exit status ${RC-}"
	cat "$W/out" "$W/err"
}

# expect STATUS ARG...
expect() {
	local status=$1
	shift
	run "$@"
	[[ $RC -eq $status ]] || {
		show_run
		fail "gpucr $*: exit status $RC, not $status"
	}
}

# is_json FILTER: $W/out is JSON for which the filter is true
is_json() {
	jq -e "$1" "$W/out" >/dev/null || {
		show_run
		fail "not JSON with: $1"
	}
}

# refused STATUS TOKEN ARG...: the same refusal in words and as JSON; nothing on standard output but the latter.
refused() {
	local status=$1 token=$2
	shift 2
	expect "$status" "$@"
	[[ ! -s $W/out ]] || fail "gpucr $*: a refusal wrote to standard output"
	[[ $(wc -l <"$W/err") -eq 1 ]] || {
		show_run
		fail "gpucr $*: not one line of error"
	}
	grep -qE "^gpucr: .+ \($token\); .+" "$W/err" || {
		show_run
		fail "gpucr $*: not: what ($token); what to do"
	}
	expect "$status" -j "$@"
	[[ ! -s $W/err ]] || fail "gpucr -j $*: wrote to standard error"
	is_json ".gpucr == 1 and .error.token == \"$token\" and (.error.message | length > 0) and
		(.error.hint | length > 0) and (.error | has(\"errno\")) and has(\"object\") and (has(\"data\") | not)"
}

# answered ARG...: status 0 and the envelope, under --json
answered() {
	expect 0 -j "$@"
	is_json '.gpucr == 1 and (.object | type == "string") and (.data | type == "array") and
		(.warnings | type == "array") and (has("error") | not)'
}

# --- programs that the tool looks at ---------------------------------------------------------------------------

# gem_start NAME DRIVER: gemtruth, its truth in $W/NAME.json; status 4: no such device
gem_start() {
	local pid rc=0
	"$HELPERS/gemtruth" "$2" "$W/$1.json" &
	pid=$!
	started "$1" "$pid"
	wait_for "$PATIENCE" gem_ready "$1" "$pid" || fail "gemtruth is not ready"
	if [[ -s $W/$1.json ]]; then
		# Its death is no news to bash.
		disown "$pid"
		return
	fi
	wait "$pid" || rc=$?
	return "$rc"
}

gem_ready() {
	[[ -s $W/$1.json ]] || ! kill -0 "$2" 2>/dev/null
}

pid_of() {
	cat "$W/$1.started"
}

# vecloop, at work
app_start() {
	vecloop --log "$W/app.log" --pidfile "$W/app.pid" --delay-ms 20 "$@" || return
	started app "$(cat "$W/app.pid")"
}

step() {
	sed -n 's/^step \([0-9]*\) ok.*/\1/p' "$W/app.log" | tail -n 1
}

step_reached() {
	[[ $(step) -ge $1 ]]
}

app_goes_on() {
	wait_for "$PATIENCE" step_reached $(($(step) + 3)) || fail "no progress; log ends: $(tail -n 3 "$W/app.log")"
}
