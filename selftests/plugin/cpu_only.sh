#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Who has nothing to do with GPUs does not notice our plugin: with a GPU and module in the machine or with none, and with
# every symbol bound at once, a plain process is dumped and restored as without the plugin, and CRIU's logs are the same.
#
# A line at any level, one undefined symbol, or one image more turns it red.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

PLUGIN=/usr/lib/criu/amdgpu_plugin.so
APP=cpuloop

# What differs from run to run is taken out of a log: numbers, lines of nothing else, the run's id, whether a task slept, how
# its mappings fell into CRIU's page cache; and what CRIU itself says of plugins.
normal() {
	sed -e 's/^([0-9.]*) *//' -e 's/0x[0-9a-f]*/N/g' -e 's/[0-9a-f]\{6,\}/N/g' -e 's/[0-9]\+/N/g' "$1" |
		grep -a -E '[a-zA-Z]{4}' | grep -v -i -E 'plugin|CRIU run id|interrupted system call|^pagemap-cache:' | sort -u
}

dump_restore() {
	app_start
	app_goes_on 3
	criu_dump
	app_gone
	criu_restore
	app_goes_on 3
	app_kill
	cp "$IMG/dump.log" "$W/dump.$1"
	cp "$IMG/restore.log" "$W/restore.$1"
	normal "$IMG/dump.log" >"$W/dump-normal.$1"
	normal "$IMG/restore.log" >"$W/restore-normal.$1"
	find "$IMG" -type f -printf "%f\n" | sed "s/-$(app_pid)\./-PID./" | sort >"$W/list.$1"
	rm -rf "$IMG"
}

# Several, since a log is not quite the same each time.
without() {
	local n
	mv "$PLUGIN" "$W/plugin.so"
	for n in 1 2 3; do
		dump_restore "without-$n"
	done
	mv "$W/plugin.so" "$PLUGIN"
	sort -u "$W"/dump-normal.without-* >"$W/dump-normal.without"
	sort -u "$W"/restore-normal.without-* >"$W/restore-normal.without"
}

no_device() {
	[[ -s $PLUGIN ]] || fail "our plugin is not installed"
	rmmod kfdsim 2>/dev/null || true
	rmmod gpucr 2>/dev/null || true
	[[ ! -e /dev/kfd && ! -d /sys/module/gpucr ]] || fail "a module does not unload"
}

# silent NAME: of the run of that name
silent() {
	local log extra
	grep -q amdgpu_plugin "$W/dump.$1" || fail "CRIU did not load the plugin: this test proves nothing"
	! grep -a -i gpucr "$W/dump.$1" "$W/restore.$1" || fail "it talks"
	diff "$W/list.without-1" "$W/list.$1" || fail "other images"
	for log in dump restore; do
		[[ $(wc -l <"$W/$log-normal.without") -gt 20 ]] || fail "no log to compare with"
		extra=$(comm -13 "$W/$log-normal.without" "$W/$log-normal.$1")
		[[ -z $extra ]] || fail "lines of the $log that are not there without the plugin: $extra"
	done
	[[ $1 == device || ! -d /sys/module/gpucr ]] || fail "it loaded the module"
}

like_without() {
	dump_restore "$1"
	silent "$1"
}

bound_at_once() {
	export LD_BIND_NOW=1
	like_without bound
}

reload() {
	modprobe gpucr
	modprobe kfdsim
}

plan 5
must "dump and restore without the plugin" without
check "with it, and with a GPU in the machine: the same" like_without device
must "no device and no module" no_device
check "with it, and without device and module: the same" like_without none
check "with LD_BIND_NOW: the same" bound_at_once
reload
finish
