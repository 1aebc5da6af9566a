#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# ps, queue, file, bo and vma of a GPU process, against sysfs, /proc and what the process says of itself.
. "$(dirname "$0")/lib.sh"

KFD=/sys/class/kfd/kfd

# lines_equal WHAT: $W/truth and $W/answer
lines_equal() {
	sort "$W/truth" -o "$W/truth"
	sort "$W/answer" -o "$W/answer"
	[[ -s $W/truth ]] || fail "the truth is empty"
	diff -u "$W/truth" "$W/answer" || fail "$1: < truth, > gpucr"
}

# The only GPU of the topology.
gpu_id() {
	cat "$KFD"/topology/nodes/*/gpu_id | grep -vx 0 | head -n 1
}

gpu_minor() {
	awk '$1 == "drm_render_minor" && $2 > 0 { print $2; exit }' "$KFD"/topology/nodes/*/properties
}

ps_row() {
	answered ps pid "$PID"
	is_json ".data | length == 1 and .[0].pid == $PID and .[0].comm == \"vecloop\" and .[0].state == \"running\" and
		.[0].session == null and .[0].gpus_used == 1 and .[0].queues == 2"
	is_json ".data[0].vram == $(cat "$KFD/proc/$PID"/vram_* | awk '{ s += $1 } END { print s }')"
	is_json ".data[0].gpus == $(cat "$KFD"/topology/nodes/*/gpu_id | grep -cvx 0)"
}

# Several processes, and only those that use KFD.
ps_all() {
	answered ps
	jq -r '.data[].pid' "$W/out" >"$W/answer"
	ls "$KFD/proc" >"$W/truth"
	lines_equal ps
	grep -qx "$PID" "$W/answer"
}

queue_rows() {
	local q
	for q in "$KFD/proc/$PID/queues"/*; do
		echo "$(basename "$q") $(cat "$q/gpuid") $(cat "$q/size")"
	done >"$W/truth"
	answered queue pid "$PID"
	jq -r '.data[] | "\(.qid) \(.gpu) \(.ring_size)"' "$W/out" >"$W/answer"
	lines_equal queue
	is_json 'length > 0 and all(.data[]; .type == "sdma" and (.evicted_us | type) == "number")'
	answered queue pid "$PID" gpu "$(gpu_id)"
	is_json '.data | length == 2'
}

file_rows() {
	answered file pid "$PID"
	jq -r '.data[] | "\(.fd) \(.dev)"' "$W/out" >"$W/answer"
	find "/proc/$PID/fd" -type l | while read -r f; do
		case $(readlink "$f") in
		/dev/kfd | /dev/dri/*) echo "${f##*/} $((16#$(stat -Lc %t "$f"))):$((16#$(stat -Lc %T "$f")))" ;;
		esac
	done >"$W/truth"
	lines_equal file
	is_json "[.data[] | select(.kind == \"kfd\")] | length == 1"
	is_json "[.data[] | select(.dev == \"226:$(gpu_minor)\")] | length > 0 and
		all(.[]; .gpu == $(gpu_id) and .driver == \"amdgpu\" and .kind == \"render\")"
}

# Every device mapping of /proc/PID/maps, with its protection and offset, and no other.
vma_ranges() {
	answered vma pid "$PID"
	is_json '.warnings == []'
	jq -r '.data[] | "\(.start[2:])-\(.end[2:]) \(.prot) \(.pgoff[2:])"' "$W/out" >"$W/answer"
	awk '$6 ~ "^/dev/(kfd|dri/)" { print $1, $2, $3 }' "/proc/$PID/maps" | while read -r range prot offset; do
		printf '%s %s %x\n' "$(sed -E 's/(^|-)0+/\1/g' <<<"$range")" "$prot" $((16#$offset >> 12 & 0xfffffffffffff))
	done >"$W/truth"
	lines_equal vma
}

# The buffers that the program has named: at that address, of that size, on that GPU.
vma_buffers() {
	answered vma pid "$PID"
	sed -n 's/^bo gpu 0 .*heap \(vram\|gtt\) va \([0-9a-f]*\) size \([0-9]*\) .*/0x\2 \3/p' "$W/app.log" >"$W/named"
	[[ -s $W/named ]] || fail "the program names no buffers: $(head -n 5 "$W/app.log")"
	while read -r va size; do
		is_json ".data[] | select(.start == \"$va\") | .kind == \"bo\" and .gpu == $(gpu_id) and .bo_delta == 0 and
			.bo_size >= $size and .share_id != null"
	done <"$W/named"
	is_json '[.data[] | select(.kind == "doorbell")] | length == 1'
	is_json '[.data[] | select(.kind == "unknown")] | length == 0'
	is_json "all(.data[] | select(.kind == \"doorbell\"); .gpu == $(gpu_id) and .share_id == null)"
}

# KFD's BOs have no handle in the program's DRM file, yet it may map them: each mapped one is listed.
bo_rows() {
	answered bo pid "$PID"
	jq -r '.data[].share_id' "$W/out" | sort -u >"$W/ids"
	is_json '[.data[] | select(.flags | index("mapped-only"))] | length > 0 and all(.[]; .handle == null)'
	is_json "all(.data[]; .gpu == $(gpu_id))"
	answered vma pid "$PID"
	jq -r '.data[] | select(.kind == "bo") | .share_id' "$W/out" | sort -u >"$W/mapped"
	[[ -s $W/mapped ]] || fail "nothing is mapped"
	[[ -z $(comm -13 "$W/ids" "$W/mapped") ]] || fail "mapped, but not listed: $(comm -13 "$W/ids" "$W/mapped")"
}

# table ARG...: the table's cells, with units joined to their numbers, tab-separated
table() {
	expect 0 "$@"
	sed -E '1d; s/([0-9]) ([KMGTPE]?i?B)( |$)/\1\2\3/g; s/ +/\t/g' "$W/out"
}

tables_agree() {
	table ps pid "$PID" | cut -f 1-3,5-6 >"$W/table"
	answered ps pid "$PID"
	jq -r '.data[] | [.pid, .comm, "\(.gpus_used)/\(.gpus)", .queues, .state] | map(tostring) | join("\t")' \
		"$W/out" >"$W/json"
	diff -u "$W/json" "$W/table"
	table queue pid "$PID" >"$W/table"
	answered queue pid "$PID"
	jq -r '.data[] | [.qid, .gpu, .type, "\(.ring_size / 1024)KiB", .evicted_us / 1000] | map(tostring) | join("\t")' \
		"$W/out" >"$W/json"
	diff -u "$W/json" "$W/table"
	table file pid "$PID" | cut -f 1-5 >"$W/table"
	answered file pid "$PID"
	jq -r '.data[] | [.fd, .kind, .driver, .dev, .gpu // "-"] | map(tostring) | join("\t")' "$W/out" >"$W/json"
	diff -u "$W/json" "$W/table"
}

info_kfd() {
	answered info
	is_json '.data[0].kfd | .present and .driver == "amdgpu" and (.version | test("^1\\.[0-9]+$")) and .gpus == 1'
}

refusals() {
	refused 3 no-gpu bo pid "$PID" gpu 1
	refused 3 no-gpu vma pid "$PID" gpu 1
	refused 3 no-gpu queue pid "$PID" gpu 1
	refused 1 no-kfd-process ps pid $$
	refused 1 no-kfd-process queue pid $$
	refused 1 no-process ps pid 2147483647
	refused 1 no-process queue pid 2147483647
}

without_module() {
	answered -b ioctl ps pid "$PID"
	is_json '.data[0].state == null and .data[0].queues == 2'
	answered -b ioctl queue pid "$PID"
	answered -b ioctl file pid "$PID"
	refused 2 usage -b ioctl bo pid "$PID"
}

need_modules gpucr kfdsim
app_start --queues 2 --bos 3 --heap vram,gtt,userptr >"$W/app.out" 2>&1 ||
	bail "vecloop does not run: $(tail -n 1 "$W/app.out")"
PID=$(cat "$W/app.pid")
plan 13
check "ps: the process, its VRAM and queues" ps_row
check "ps: all KFD processes" ps_all
check "queue: as sysfs has them" queue_rows
check "file: as /proc has them" file_rows
check "vma: every device mapping of /proc/PID/maps" vma_ranges
check "vma: the buffers that the program names" vma_buffers
check "bo: KFD's buffers, without a handle" bo_rows
check "table and JSON agree" tables_agree
check "info: KFD as it is" info_kfd
check "wrong GPU, wrong process" refusals
check "without the module: ps, queue and file" without_module
check "the process has gone on" app_goes_on
check "nothing is left over" answered session
finish
