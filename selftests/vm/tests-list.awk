# SPDX-License-Identifier: GPL-2.0-only
# Read a tests.list (its form: suites.sh). Variables: suite, guest, kernel (stock or debug), bootkeys.
# One line a test: SUITE NAME WHERE TIMEOUT CANARY BOOT, tab-separated; BOOT is "key=value;..." and the same for
# tests that may share a boot.

function die(msg) { print FILENAME ":" FNR ": " msg >"/dev/stderr"; exit bad = 1 }
BEGIN { split(bootkeys, k, " "); for (i in k) known[k[i]] = 1 }
{ sub(/(^|[ \t])#.*/, "") }
!NF { next }
{
	where = "guest"; timeout = 60; canary = ($1 == "canary"); group = ""; on = ""; kernels = ""
	split("", v)
	for (i = 2; i <= NF; i++) {
		eq = index($i, "=")
		if (!eq) die("not key=value: " $i)
		key = substr($i, 1, eq - 1); value = substr($i, eq + 1)
		if (key == "where" && value ~ /^(guest|chroot|host)$/) where = value
		else if (key == "timeout" && value ~ /^[0-9]+$/) timeout = value
		else if (key == "guests") on = value
		else if (key == "kernels") kernels = value
		else if (key == "boot") group = value
		else if (key == "canary") canary = 1
		else if (key in known) { gsub(",", " ", value); v[key] = value }
		else die("unknown key or value: " $i)
	}
	if (on != "" && index("," on ",", "," guest ",") == 0) next
	if (kernels != "" && index("," kernels ",", "," kernel ",") == 0) next
	# Natively the kernel makes no difference.
	if (kernel == "debug" && where == "chroot") next
	if (kernel == "debug") timeout *= 4
	boot = "boot=" (canary ? "canary-" FNR : group)
	n = split(bootkeys, k, " ")
	for (i = 1; i <= n; i++) if (k[i] in v) boot = boot ";" k[i] "=" v[k[i]]
	printf "%s\t%s\t%s\t%d\t%d\t%s\n", suite, $1, where, timeout, canary, boot
}
END { exit bad }