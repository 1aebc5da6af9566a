#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guests' parts of demo.sh: "first" dumps and restores with both backends and leaves images in $LAB_OUT,
# "second" restores from $LAB_IN.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/../plugin/lib.sh"

# One path in both guests; the application's log is among the images, since CRIU wants it back where it was.
IMG=/tmp/ckpt
LOG=$IMG/vecloop.log
HEADING=0

heading() {
	HEADING=$((HEADING + 1))
	echo
	echo "$HEADING. $*"
}

say() {
	echo "   $*"
}

indent() {
	sed 's/^/     /'
}

show() {
	echo "   \$ $*"
	"$@" 2>&1 </dev/null | indent
	return "${PIPESTATUS[0]}"
}

die() {
	say "FAILED: $*"
	exit 1
}

# Runs in a subshell, since the tests' helpers exit when they are not content.
demand() {
	local what=$1 out
	shift
	out=$( ("$@") 2>&1) || {
		indent <<<"$out"
		die "$what"
	}
}

seconds_since() {
	local ns=$(($(date +%s%N) - $1))
	printf '%d.%02d s' $((ns / 1000000000)) $((ns / 10000000 % 100))
}

machine() {
	local sim
	heading "The machine"
	say "kernel $(uname -r), $(criu --version | sed -n 's/^Version: /CRIU /p') (Debian's own), no GPU hardware"
	sim=$(lsmod | awk '$1 ~ /^(gpucr|kfdsim)$/ { print $1 }' | sort | paste -sd ' ')
	[[ $sim == "gpucr kfdsim" ]] || die "modules loaded: $sim"
	say "loaded: gpucr.ko, and kfdsim.ko, which plays one GPU"
	show gpucr info || die "gpucr info"
}

start() {
	heading "A process that keeps the GPU busy"
	rm -rf "$IMG"
	mkdir -p "$IMG"
	far_pid
	say "\$ vecloop --heap vram,gtt,userptr --bos 1 --size 4M --queues 2"
	demand "vecloop does not start" app_start --heap vram,gtt,userptr --bos 1 --size 4M --queues 2
	demand "vecloop does not go on" app_goes_on 3
	say "process $(app_pid); each step rotates every buffer by GPU copies and checks every byte:"
	grep '^step' "$LOG" | tail -n 2 | indent
}

look() {
	heading "What gpucr sees of it"
	show gpucr ps || die "gpucr ps"
	show gpucr bo pid "$(app_pid)" || die "gpucr bo"
	show gpucr vma pid "$(app_pid)" || die "gpucr vma"
	show gpucr queue pid "$(app_pid)" || die "gpucr queue"
}

dump() {
	local t pid
	pid=$(app_pid)
	heading "Dump, backend $GPUCR_BACKEND"
	say "\$ criu dump -t $pid -D $IMG"
	t=$(date +%s%N)
	demand "the dump fails" criu_dump
	say "done in $(seconds_since "$t"), at step $(step)"
	app_gone || die "the process is still there"
	demand "something is left in the GPU" sim_becomes_empty
	say "the process is gone, the GPU is empty; the images:"
	(cd "$IMG" && stat -c '%s %n' ./*gpucr*.img pages-*.img | sed 's,\./,,' | sort -rn |
		numfmt --to=iec-i --suffix=B --field=1 --padding=8) | indent
	say "and $(find "$IMG" -name '*.img' | grep -c -v gpucr) smaller ones of CRIU's own, $(du -sh "$IMG" | cut -f1) in all"
	step >"$W/step"
}

restore() {
	local t from
	heading "Restore, backend $GPUCR_BACKEND${1:+, $1}"
	from=$(step)
	say "\$ criu restore -d -D $IMG"
	t=$(date +%s%N)
	demand "the restore fails" criu_restore
	say "done in $(seconds_since "$t"); process $(app_pid) is back"
	progress "$(app_pid)" >"$W/progress.0"
	demand "the process does not go on" app_goes_on 5
	say "its counter goes on from $from, and every byte is right:"
	grep '^step' "$LOG" | awk -v from="$from" '$2 > from' | head -n 3 | indent
	demand "a queue stands still" queues_move "$(app_pid)"
	say "packets that its queues have retired since:"
	join "$W/progress.0" <(progress "$(app_pid)") |
		awk '{ split($1, q, ":"); print "gpu " q[1] " queue " q[2] ": +" $3 - $2 }' | indent
}

second_form() {
	heading "The same without the module"
	demand "gpucr.ko does not unload" rmmod gpucr
	say "\$ rmmod gpucr"
	rm -f "$IMG"/*.img
	export GPUCR_BACKEND=ioctl
}

case $1 in
first)
	machine
	start
	look
	export GPUCR_BACKEND=netlink
	dump
	restore
	second_form
	dump
	cp -a "$IMG" "$LAB_OUT/ckpt"
	restore
	;;
second)
	HEADING=8
	heading "Another guest, which has only the image directory"
	cp -a "$LAB_IN" "$IMG"
	say "$(find "$IMG" -type f | wc -l) files, $(du -sh "$IMG" | cut -f1); no process of that name: $(pgrep -c vecloop)"
	# The dumped process had this id.
	basename "$(find "$IMG" -name 'core-*.img' | sort | head -n 1)" .img | cut -d- -f2 >"$W/pid"
	export GPUCR_BACKEND=netlink
	restore "in the second guest"
	;;
esac
