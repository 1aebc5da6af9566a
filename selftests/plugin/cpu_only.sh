#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# On a machine without GPU and module our plugin is not noticed: a plain process is dumped and restored as without
# it, and the log holds no line of ours.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

PLUGIN=/usr/lib/criu/amdgpu_plugin.so
APP=cpuloop

no_device() {
	[[ -s $PLUGIN ]] || fail "our plugin is not installed"
	rmmod kfdsim 2>/dev/null || true
	rmmod gpucr 2>/dev/null || true
	[[ ! -e /dev/kfd && ! -d /sys/module/gpucr ]] || fail "a module does not unload"
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
	find "$IMG" -type f -printf "%f\n" | sed "s/-$(app_pid)\./-PID./" | sort >"$W/list.$1"
	rm -rf "$IMG"
}

silent() {
	grep -q amdgpu_plugin "$W/dump.with" || fail "CRIU did not load the plugin: this test proves nothing"
	! grep -a -i gpucr "$W/dump.with" "$W/restore.with" || fail "it talks"
	diff "$W/list.without" "$W/list.with"
	[[ ! -d /sys/module/gpucr ]] || fail "it loaded the module"
}

without() {
	mv "$PLUGIN" "$W/plugin.so"
	dump_restore without
	mv "$W/plugin.so" "$PLUGIN"
}

reload() {
	modprobe gpucr
	modprobe kfdsim
}

plan 4
must "no device and no module" no_device
check "dump and restore with the plugin" dump_restore with
check "dump and restore without it" without
check "the plugin said nothing and did nothing" silent
reload
finish
