# SPDX-License-Identifier: GPL-2.0-only
# Judge one test's output. Variables: name (suite/test), rc (its exit status), timeout (seconds, for the message).
# Prints one line a result: "pass|fail|skip TAB name TAB description". Only top-level points count: what is
# indented is the detail of one. Every way of saying nothing is a failure.

BEGIN { plan = -1; points = 0; failed = 0; skipped = 0 }

function result(status, text) {
	printf "%s\t%s\t%s\n", status, name, text
	if (status == "fail")
		failed++
	if (status == "skip")
		skipped++
}

/^1\.\.[0-9]+/ {
	if (plan >= 0)
		result("fail", "two plans")
	plan = substr($1, 4) + 0
	if (plan == 0 && match($0, /# *SKIP/))
		result("skip", substr($0, RSTART + RLENGTH + 1))
	next
}

/^(not )?ok( |$)/ {
	points++
	text = $0
	sub(/^(not )?ok *[0-9]* *(- )?/, "", text)
	if (toupper(text) ~ /# *SKIP/)
		result("skip", text)
	else
		result(/^not / ? "fail" : "pass", text)
	next
}

/^Bail out!/ { result("fail", $0) }

END {
	if (rc == 124 || rc == 137)
		result("fail", "timed out after " timeout " s")
	else if (plan < 0)
		result("fail", "no KTAP plan (exit status " rc ")")
	else if (points != plan)
		result("fail", points " results, " plan " planned (exit status " rc ")")
	else if (plan == 0 && !skipped)
		result("fail", "planned nothing")
	if (failed)
		exit
	if (rc == 4) {
		if (!skipped)
			result("fail", "exit status 4, but nothing skipped")
	} else if (rc != 0) {
		result("fail", "exit status " rc ", but no result failed")
	}
}
