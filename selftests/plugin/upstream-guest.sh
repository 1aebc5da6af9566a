#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In a guest: upstream's plugin, given in $LAB_IN, dumps and restores an application. Our plugin is not there.
# It proves the simulator by what was not written for it.
# shellcheck disable=SC2119 # options are optional
# shellcheck source=selftests/plugin/lib.sh
. "$(dirname "$0")/lib.sh"

PLUGINS=/tmp/upstream-plugin

upstream_alone() {
	install -D -m 755 "$LAB_IN/amdgpu_plugin.so" "$PLUGINS/amdgpu_plugin.so"
	[[ $(find "$PLUGINS" -name '*.so' | wc -l) -eq 1 ]]
	! grep -q gpucr "$PLUGINS/amdgpu_plugin.so" || fail "this is our plugin"
}

# Without a plugin CRIU cannot: what follows is the plugin's doing.
needs_a_plugin() {
	app_start --heap vram
	! criu_dump >"$W/refusal" || fail "CRIU dumps a GPU process by itself"
	grep "Can't handle non-regular mapping" "$W/refusal" || fail "$(cat "$W/refusal")"
	app_goes_on 3
	app_kill
	rm -rf "$IMG"
}

dump() {
	app_start --heap "$1" --queues 2 --bos 2 --size 1M
	app_goes_on 5
	queues_move "$(app_pid)"
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" >"$W/digest.before"
	[[ $(wc -l <"$W/digest.before") -eq ${#vas[@]} ]] || fail "the simulator lists not all of: ${vas[*]}"
	criu_dump -L "$PLUGINS"
	app_gone || fail "the process is still there"
	step >"$W/step"
	sim_becomes_empty
}

images() {
	ls -l "$IMG"
	[[ $(find "$IMG" -name 'amdgpu-pages-*.img' -size +2M | wc -l) -eq 1 ]]
	[[ $(find "$IMG" -name 'amdgpu-kfd-*.img' | wc -l) -eq 1 ]]
}

restore() {
	criu_restore -L "$PLUGINS"
	mapfile -t vas < <(constant_bos)
	digest "$(app_pid)" "${vas[@]}" | diff "$W/digest.before" -
}

goes_on() {
	app_goes_on 10
	[[ $(step) -gt $(cat "$W/step") ]]
	queues_move "$(app_pid)"
}

leaves_nothing() {
	app_kill
	sim_becomes_empty
	rm -rf "$IMG"
}

round() {
	must "$APP $1: dump" dump "$1"
	check "$APP $1: one image for KFD, one with the content of BOs" images
	must "$APP $1: restore, and constant BOs are as before" restore
	check "$APP $1: the counter and every queue go on, the pattern holds" goes_on
	check "$APP $1: nothing left" leaves_nothing
}

plan 17
must "only upstream's plugin is here" upstream_alone
must "without a plugin CRIU refuses" needs_a_plugin
round vram,gtt,userptr
round vram
APP=thunkloop
round vram,gtt
finish
