# SPDX-License-Identifier: GPL-2.0-only
# Rows of guest-inside.sh, "CASE PLUGIN RUN DUMP-MS RESTORE-MS DUMP-PEAK RESTORE-PEAK IMAGE-BYTES", to a table of medians and
# ratios, to the file json, and to a page's table in the file md. Fails when ours is slower, or gains too little where time is to
# be gained.

function median(list,    v, n, i, j, t) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
	return v[int((n + 1) / 2)]
}

function mib(bytes) {
	return bytes / 1048576
}

# wanted(CASE): what dump and restore must gain; nothing but not to be slower, where other things than overlap decide.
function wanted(c) {
	return c == "equal" ? 1.7 : 1
}

{
	if (!($1 in seen)) { seen[$1] = 1; names[++num] = $1 }
	for (i = 4; i <= 8; i++) all[$1, $2, i] = all[$1, $2, i] " " $i
}

function rows(c,    k, p, i) {
	for (k = 1; k <= 2; k++) {
		p = k == 1 ? "ours" : "upstream"
		for (i = 4; i <= 8; i++) m[p, i] = median(all[c, p, i])
		printf "%-8s %-9s %9d %9d %10.1f %10.1f %10.1f\n", c, p, m[p, 4], m[p, 5], mib(m[p, 6]), mib(m[p, 7]), mib(m[p, 8])
	}
}

function ratios(c,    i) {
	for (i = 4; i <= 7; i++) q[i] = m["upstream", i] / m["ours", i]
	bad = q[4] < wanted(c) || q[5] < wanted(c)
	printf "| %s | %.1f, %.1f | %.2f | %.1f, %.1f | %.2f | %.0f, %.0f | %.0f, %.0f | %.1f |\n", c, m["ours", 4] / 1000,
		m["upstream", 4] / 1000, q[4], m["ours", 5] / 1000, m["upstream", 5] / 1000, q[5], mib(m["ours", 6]),
		mib(m["upstream", 6]), mib(m["ours", 7]), mib(m["upstream", 7]), wanted(c) >md
	printf "%-8s %-9s %8.2fx %8.2fx %9.2fx %9.2fx  %s\n", c, "ratio", q[4], q[5], q[6], q[7], bad ? "BELOW" : "ok"
	printf "%s{\"case\":\"%s\",\"dump_ratio\":%.3f,\"wanted\":%.1f,\"restore_ratio\":%.3f,\"dump_ms\":[%d,%d],\"restore_ms\":[%d,%d],\"peak_bytes\":[%d,%d],\"restore_peak_bytes\":[%d,%d]}",
		sep, c, q[4], wanted(c), q[5], m["ours", 4], m["upstream", 4], m["ours", 5], m["upstream", 5],
		m["ours", 6], m["upstream", 6], m["ours", 7], m["upstream", 7] >json
	sep = ",\n"
	return bad
}

END {
	printf "%-8s %-9s %9s %9s %10s %10s %10s\n", "CASE", "PLUGIN", "DUMP ms", "REST ms", "PEAK MiB", "PEAK MiB", "IMAGE MiB"
	printf "[" >json
	print "| case | dump, s: ours, upstream\047s | ratio | restore, s | ratio | peak of the dump, MiB | of the restore | wanted |" >md
	print "|---|---|---|---|---|---|---|---|" >md
	for (n = 1; n <= num; n++) {
		rows(names[n])
		below += ratios(names[n])
	}
	print "]" >json
	printf "%d of %d cases below what is wanted\n", below, num
	exit below > 0 || !num
}
