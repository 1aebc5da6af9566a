#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# bo and vma against what a program knows of its own buffers, on a real DRM driver: as sets, both ways.
# The program has a BO without a handle, one without a mapping, one shared by dma-buf, one mapped whole and in part.
. "$(dirname "$0")/lib.sh"

DRIVER=${1:-vgem}

# same_set WHAT TRUTH-FILTER ANSWER-FILTER: lines of both, compared
same_set() {
	jq -cS "$2" "$W/gem.json" | sort >"$W/truth"
	jq -cS "$3" "$W/out" | sort >"$W/answer"
	[[ -s $W/truth ]] || fail "the truth is empty"
	[[ -z $(uniq -d "$W/answer") ]] || fail "$1: told twice: $(uniq -d "$W/answer")"
	diff -u "$W/truth" "$W/answer" || fail "$1: < only the program knows, > only gpucr says"
}

bo_sets() {
	answered bo pid "$(pid_of gem)"
	same_set bo '.bos[] | del(.bo)' '.data[] | {fd, handle, size, offset, handles, flags}'
	is_json 'all(.data[]; .gpu == null)'
}

vma_sets() {
	answered vma pid "$(pid_of gem)"
	same_set vma '.vmas[] | del(.bo)' '.data[] | {start, "end": .["end"], prot, kind, bo_delta, fd}'
	is_json '[.data[].start] == ([.data[].start] | sort_by(length, .))'
	is_json 'all(.data[]; .gpu == null)'
}

# Equal names in the truth, equal ids in the answers, and no others.
share_ids() {
	answered bo pid "$(pid_of gem)"
	jq -r '.data[] | "\(.fd)/\(.handle)/\(.offset)\t\(.share_id)"' "$W/out" | sort >"$W/ids"
	jq -r '.bos[] | "\(.fd)/\(.handle)/\(.offset)\t\(.bo)"' "$W/gem.json" | sort >"$W/names"
	join -t $'\t' "$W/ids" "$W/names" | cut -f2,3 >"$W/pairs"
	answered vma pid "$(pid_of gem)"
	jq -r '.data[] | "\(.start)\t\(.share_id)"' "$W/out" | sort >"$W/ids"
	jq -r '.vmas[] | "\(.start)\t\(.bo)"' "$W/gem.json" | sort >"$W/names"
	join -t $'\t' "$W/ids" "$W/names" | cut -f2,3 >>"$W/pairs"
	[[ $(wc -l <"$W/pairs") -eq $(jq '(.bos | length) + (.vmas | length)' "$W/gem.json") ]] || fail "pairs are missing"
	sort -u "$W/pairs" -o "$W/pairs"
	[[ -z $(cut -f1 "$W/pairs" | uniq -d) ]] || fail "one id, two objects: $(cat "$W/pairs")"
	[[ $(cut -f2 "$W/pairs" | sort | uniq -d | wc -l) -eq 0 ]] || fail "one object, two ids: $(cat "$W/pairs")"
	[[ $(wc -l <"$W/pairs") -eq 5 ]]
}

# The BO whose handle was closed is seen through its mapping alone, the one without a mapping through its handle.
one_sided() {
	answered bo pid "$(pid_of gem)"
	jq -r '.data[].share_id' "$W/out" | sort -u >"$W/bo.ids"
	answered vma pid "$(pid_of gem)"
	jq -r '.data[].share_id' "$W/out" | sort -u >"$W/vma.ids"
	[[ $(comm -23 "$W/bo.ids" "$W/vma.ids" | wc -l) -eq 1 ]] || fail "not one BO without a mapping"
	[[ $(comm -13 "$W/bo.ids" "$W/vma.ids" | wc -l) -eq 1 ]] || fail "not one BO without a handle"
}

filters() {
	local pid fd addr
	pid=$(pid_of gem)
	fd=$(jq '[.bos[].fd] | max' "$W/gem.json")
	answered bo pid "$pid" fd "$fd"
	is_json ".data | length == 1 and .[0].fd == $fd"
	answered bo pid "$pid" shared
	is_json '.data | length == 2 and all(.[]; .flags == ["exported"])'
	addr=$(jq -r '.vmas[0].start' "$W/gem.json")
	answered vma pid "$pid" addr "$(printf '%x' $((addr + 5000)))"
	is_json ".data | length == 1 and .[0].start == \"$addr\""
	answered vma pid "$pid" addr 1000
	is_json '.data == []'
	# The second number of the same open file.
	answered vma pid "$pid" fd $((fd + 1))
	is_json '.data | length == 4'
}

files() {
	local pid
	pid=$(pid_of gem)
	answered file pid "$pid"
	is_json "[.data[] | .kind] == [\"primary\", \"render\", \"primary\"] and all(.data[]; .driver == \"$DRIVER\")"
	is_json ".data[0].also_in == [{pid: $pid, fd: .data[2].fd}] and .data[1].also_in == []"
}

# table ARG...: the table's cells, with units joined to their numbers, tab-separated
table() {
	expect 0 "$@"
	sed -E '1d; s/([0-9]) ([KMGTPE]?i?B)( |$)/\1\2\3/g; s/ +/\t/g' "$W/out"
}

# size in bytes as the tool writes it
JQ_SIZE='def size: if . == null then "-" elif . < 1024 then "\(.)B" elif . < 1048576 and . % 1024 == 0 and . >= 10240
	then "\(. / 1024)KiB" else "\(. / 1024 | floor).\((. % 1024) * 10 / 1024 | floor)KiB" end;'
JQ_CELL='def cell: if . == null then "-" else tostring end;
	def list: if . == [] then "-" else join(",") end;'

tables_agree() {
	local pid
	pid=$(pid_of gem)
	table bo pid "$pid" >"$W/table"
	answered bo pid "$pid"
	jq -r "$JQ_SIZE $JQ_CELL"' .data[] | [(.fd | cell), (.handle | cell), (.size | size), (.offset | cell),
		.share_id, (.gpu | cell), (.flags | list)] | join("\t")' "$W/out" >"$W/json"
	diff -u "$W/json" "$W/table" || fail "bo: table and JSON differ"
	table vma pid "$pid" >"$W/table"
	answered vma pid "$pid"
	jq -r "$JQ_CELL"' .data[] | ["\(.start[2:])-\(.end[2:])", .prot, .kind, (.gpu | cell), (.share_id | cell),
		(.bo_delta | cell)] | join("\t")' "$W/out" >"$W/json"
	diff -u "$W/json" "$W/table" || fail "vma: table and JSON differ"
}

wrong_fd() {
	local pid
	pid=$(pid_of gem)
	refused 1 no-gpu-file bo pid "$pid" fd 0
	refused 1 no-gpu-file vma pid "$pid" fd 1000
	refused 1 no-gpu-file file pid "$pid" fd 1
}

no_gpu_there() {
	answered bo pid $$
	is_json '.data == [] and .warnings[0].token == "no-gpu-file"'
	answered vma pid $$
	is_json '.data == [] and .warnings[0].token == "no-gpu-file"'
}

need_modules gpucr "$DRIVER"
gem_start gem "$DRIVER"
case $? in
0) ;;
4)
	# vgem makes its device itself; a virtio-gpu is for QEMU to have.
	[[ $DRIVER != vgem ]] || bail "vgem is loaded and has no device"
	skip_all "no device of $DRIVER"
	;;
*)
	plan 1
	echo "not ok 1 gemtruth on $DRIVER"
	exit 1
	;;
esac
[[ ${GPUCR_CANARY-} != 1 ]] || sed -i 's/"handle":3,/"handle":333,/' "$W/gem.json"
plan 9
check "$DRIVER: bo is what the program has" bo_sets
check "$DRIVER: vma is what the program has" vma_sets
check "$DRIVER: share ids are equal for one object only" share_ids
check "$DRIVER: one BO without a handle, one without a mapping" one_sided
check "$DRIVER: fd, shared and addr filter" filters
check "$DRIVER: file lists the open files" files
check "$DRIVER: table and JSON agree" tables_agree
check "$DRIVER: a wrong descriptor is refused" wrong_fd
check "$DRIVER: a process without GPU files is no error" no_gpu_there
finish
