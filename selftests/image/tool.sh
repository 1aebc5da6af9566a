#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# gpucr image: what it shows, and that verify says no to every kind of damage, with the file and the place.
# Each check of damage has its twin: the same images, whole, are said to be good.
W=$(mktemp -d "${TMPDIR:-/tmp}/gpucr-image.XXXXXX")
trap 'rm -rf "$W"' EXIT
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

GPUCR=${GPUCR:-gpucr}
MAKE=${O:-/src/build/trixie-san}/selftests/image/makeimage
# Three chunks, of which the second is zeros.
PAGES=amdgpu-pages-gpucr-7-2222.img

# A fresh set of images in $W/i
images() {
	rm -rf "$W/i"
	mkdir "$W/i"
	"$MAKE" "$W/i" "$@"
}

# expect STATUS ARG...
expect() {
	local status=$1 rc=0
	shift
	"$GPUCR" "$@" >"$W/out" 2>"$W/err" || rc=$?
	[[ $rc -eq $status ]] || fail "gpucr $*: status $rc, not $status: $(cat "$W/out" "$W/err")"
}

has() {
	grep -qE -- "$1" "$W/out" || fail "no \"$1\" in: $(cat "$W/out")"
}

# refused TOKEN PATTERN: verify says no, in words and as JSON, naming the place
refused() {
	expect 4 image verify "$W/i"
	[[ ! -s $W/out && $(wc -l <"$W/err") -eq 1 ]] || fail "not one line of error: $(cat "$W/out" "$W/err")"
	grep -qE "^gpucr: image: .*$2.* \($1\); ." "$W/err" || fail "not \"$2 ($1)\": $(cat "$W/err")"
	expect 4 -j image verify "$W/i"
	[[ ! -s $W/err ]] || fail "JSON and words: $(cat "$W/err")"
	has "^\{\"gpucr\":1,\"object\":\"image\",\"error\":\{\"token\":\"$1\",\"errno\":\"E[A-Z]+\",\"message\":\"[^\"]*$2"
}

# flip FILE OFFSET
flip() {
	local byte
	byte=$(od -An -tu1 -j "$2" -N 1 "$W/i/$1")
	# shellcheck disable=SC2059 # the format is the byte
	printf "\\$(printf %o $((byte ^ 16)))" | dd of="$W/i/$1" bs=1 seek="$2" conv=notrunc status=none
}

summary() {
	images gpucr
	expect 0 image "show" "$W/i"
	has '^7 +process +4711 +2 +6 +[0-9.]+ MiB +[0-9.]+ MiB +[0-9.]+ MiB +0 +1 +2009-02-13T23:31:30Z$'
	expect 0 -j image show "$W/i"
	has '"id":7,"kind":"process","pid":4711,"gpus":2,"bos":6,'
}

# part NAME LINES PATTERN
part() {
	expect 0 -q image show "$W/i" "$1"
	[[ $(wc -l <"$W/out") -eq $2 ]] || fail "$1: not $2 lines: $(cat "$W/out")"
	has "$3"
}

parts() {
	images gpucr
	part gpu 2 '^7 +4369 +4370 +aldebaran +gfx90a +64 GiB +0000:00:00.0 +'
	part bo 6 '^7 +5 +0x7f0140000000 +6.0 MiB +doorbell +8738 +0 +-$'
	part vma 5 '^7 +7fff00000000-7fff00002000 +doorbell +8738 +- +8.0 KiB$'
	part event 1 '^7 +0 +signal +'
	expect 0 -q image show "$W/i" queue
	[[ ! -s $W/out ]]
	part share 2 '^9 +render-vm +4369 +4711 +4711 fd 4 +-$'
	part phase 6 '^frozen +2 +criu$'
	part phase 6 '^gpu-copy +8000 +gpucr$'
}

whole() {
	images gpucr
	expect 0 image verify "$W/i"
	[[ $(wc -l <"$W/out") -eq 5 && ! -s $W/err ]] || fail "$(cat "$W/out" "$W/err")"
	has "^$PAGES +[0-9]+ +[0-9.]+ MiB +[0-9.]+ MiB$"
}

# Compressed images are looked at and verified as others are; damage has the place of the compressed chunk.
compressed() {
	local small large
	images gpucr
	large=$(stat -c %s "$W/i/$PAGES")
	"$MAKE" -zstd "$W/i" gpucr
	small=$(stat -c %s "$W/i/$PAGES")
	[[ $((small * 4)) -lt $large ]] || fail "$small bytes, not compressed $large"
	expect 0 -j image show "$W/i"
	has '"zstd":[1-9]'
	expect 0 -v image verify "$W/i"
	has "^$PAGES +3 +[0-9.]+ KiB +[0-9.]+ MiB +[0-9.]+ MiB$"
	flip "$PAGES" 100
	refused chunk-checksum "$PAGES: chunk 0 at 0x0"
}

# Of the zeros nothing is stored: chunk 2 begins where chunk 0 ends.
flipped_byte() {
	images gpucr
	flip "$PAGES" $(((2 << 20) + 4711))
	refused chunk-checksum "$PAGES: chunk 2 at 0x200000"
	flip "$PAGES" 0
	refused chunk-checksum "$PAGES: chunk 0 at 0x0 .*, and 1 more"
}

cut_pages() {
	images gpucr
	truncate -s -1 "$W/i/$PAGES"
	refused image-damaged "$PAGES: [0-9]+ bytes long"
	rm "$W/i/$PAGES"
	refused image-damaged "$PAGES: cannot be opened"
}

swapped_pages() {
	local other=amdgpu-pages-gpucr-7-1111.img
	images gpucr
	mv "$W/i/$PAGES" "$W/x"
	mv "$W/i/$other" "$W/i/$PAGES"
	mv "$W/x" "$W/i/$other"
	refused image-damaged "[0-9]+ bytes long.*, and 1 more"
}

cut_manifest() {
	images gpucr
	flip gpucr-kfd-7.img 100
	refused image-damaged "gpucr-kfd-7.img: its checksum is wrong"
	truncate -s 39 "$W/i/gpucr-kfd-7.img"
	refused image-damaged "gpucr-kfd-7.img: shorter than its header"
}

newer_format() {
	images gpucr
	flip gpucr-kfd-7.img 8
	refused image-format "gpucr-kfd-7.img: format 17"
}

missing_manifest() {
	images gpucr
	rm "$W/i/gpucr-renderD-9.img"
	refused image-incomplete "file 9: "
}

unfinished() {
	images gpucr
	rm "$W/i/inventory.img"
	refused image-incomplete "inventory.img: "
	expect 0 image show "$W/i"
}

damaged_criu() {
	images gpucr
	truncate -s -1 "$W/i/files.img"
	refused image-damaged "files.img: it ends within an entry"
	flip files.img 0
	refused image-damaged "files.img: not an image of CRIU"
}

# After a power cut CRIU's inventory may be there and other files of it not, or not to their end.
torn_criu() {
	local name
	for name in pstree core-4711 core-4712 mm-4711 fs-4711 pagemap-4711 pages-1; do
		images gpucr
		rm "$W/i/$name.img"
		refused image-incomplete "$name.img: it is missing"
	done
	for name in pstree core-4712 mm-4711 fs-4711 pagemap-4711 fdinfo-5; do
		images gpucr
		: >"$W/i/$name.img"
		refused image-damaged "$name.img: not an image of CRIU"
	done
	images gpucr
	truncate -s -1 "$W/i/core-4711.img"
	refused image-damaged "core-4711.img: it ends within an entry"
	images gpucr
	truncate -s -1 "$W/i/pages-1.img"
	refused image-incomplete "pages-1.img: it is shorter than its pagemap says"
}

# An earlier dump into the same directory has left what it likes.
stale_criu() {
	local name
	images gpucr
	for name in core-99 mm-99 pagemap-99; do
		: >"$W/i/$name.img"
	done
	expect 0 image verify "$W/i"
}

# A file of another plugin's is not ours to miss.
other_plugin() {
	images gpucr cuda_plugin
	rm "$W/i/gpucr-renderD-9.img"
	expect 0 image verify "$W/i"
}

old_criu() {
	images
	expect 0 image verify "$W/i"
	rm "$W/i/gpucr-renderD-9.img"
	refused image-incomplete "file 9: "
}

stale() {
	images gpucr
	rm "$W/i/files.img"
	mkdir "$W/j"
	"$MAKE" "$W/j" gpucr
	# CRIU's list without our files: all but its head.
	head -c 8 "$W/j/files.img" >"$W/i/files.img"
	expect 0 image verify "$W/i"
	grep -q '(image-stale)' "$W/err" || fail "no warning: $(cat "$W/err")"
}

no_image() {
	mkdir "$W/empty"
	expect 1 image show "$W/empty"
	grep -q '(no-image)' "$W/err"
	expect 1 image verify "$W/nowhere"
	grep -q '(io-error)' "$W/err"
	expect 2 image show
	expect 2 image show "$W/empty" pages
	expect 2 image html "$W/empty"
}

# 10 MiB of content go through a buffer of 2: what show needs, which reads none of it, is the measure.
bounded_memory() {
	local without with
	images gpucr
	without=$("$MAKE" -rss 1000000 "$GPUCR" -q image show "$W/i" phase | sed -n 's/ KiB$//p')
	with=$("$MAKE" -rss 1000000 "$GPUCR" image verify "$W/i" | sed -n 's/ KiB$//p')
	[[ $((with - without)) -lt 6000 ]] || fail "$without KiB without page data, $with KiB with it"
}

html() {
	images gpucr
	mv "$W/i" "$W/<b>&"
	expect 0 image html "$W/<b>&" out "$W/r.html"
	mv "$W/<b>&" "$W/i"
	grep -q '&lt;b&gt;&amp;' "$W/r.html" || fail "the path is not escaped"
	! grep -q '<b>' "$W/r.html" || fail "the path is markup"
	! grep -niE '<script|<link|<img|<iframe|https?:|url\(|@import| on[a-z]+=' "$W/r.html" || fail "it loads or runs something"
	grep -q '<html lang="en">' "$W/r.html" && grep -q '^</main></body></html>$' "$W/r.html"
	[[ $(grep -c '<svg' "$W/r.html") -eq $(grep -c 'role="img" aria-label="' "$W/r.html") ]] || fail "a drawing has no words"
	[[ $(grep -o '<tr>' "$W/r.html" | wc -l) -eq $(grep -o '</tr>' "$W/r.html" | wc -l) ]]
	[[ $(stat -c %a "$W/r.html") == 600 ]]
	grep -q 'tasks stopped, in all: 2.0 ms' "$W/r.html"
	rm "$W/i/stats-dump"
	expect 0 image html "$W/i" out "$W/r.html"
	grep -q 'times are not recorded' "$W/r.html"
}

html_failed() {
	images gpucr
	expect 1 image html "$W/i" out "$W/nowhere/r.html"
	grep -q '(io-error)' "$W/err"
	echo old >"$W/r.html"
	flip gpucr-kfd-7.img 100
	expect 4 image html "$W/i" out "$W/r.html"
	grep -qx old "$W/r.html"
}

# What the tool prints of it all, in a file that is its owner's alone; no serial numbers.
report() {
	images gpucr
	expect 0 report out "$W/r" pid $$ image "$W/i"
	[[ $(stat -c %a "$W/r") == 600 ]]
	grep -q '^gpucr [0-9.]* report, ' "$W/r"
	grep -q '^== gpucr -j doctor$' "$W/r" && grep -q '"object":"doctor","data":\[{' "$W/r"
	grep -q '^== gpucr -j image show .* queue$' "$W/r" && grep -q '^== kernel log' "$W/r"
	grep -q '"id":7,"kind":"process","pid":4711' "$W/r"
	! grep -qE '(unique|hive)_id["0-9: x]+[0-9]' "$W/r" || fail "a serial number is in it"
	! grep -q 'did not end well' "$W/r" || fail "a command died: $(cat "$W/r")"
	expect 1 report out "$W/nowhere/r"
	grep -q '(io-error)' "$W/err"
	expect 2 report
}

plan 23
check "show: a line for each KFD file" summary
check "show: each part" parts
check "verify: whole images are good" whole
check "verify: a flipped byte, its chunk and offset" flipped_byte
check "compressed images" compressed
check "verify: page file too short, or missing" cut_pages
check "verify: page files swapped" swapped_pages
check "verify: damaged manifest" cut_manifest
check "verify: newer format" newer_format
check "verify: manifest missing" missing_manifest
check "verify: CRIU's inventory missing" unfinished
check "verify: CRIU's list of files damaged" damaged_criu
check "verify: a file of CRIU's missing, empty or cut" torn_criu
check "verify: files of CRIU's of an earlier dump" stale_criu
check "verify: files of another plugin" other_plugin
check "verify: images of a CRIU without a list of plugins" old_criu
check "verify: files of an earlier dump are a warning" stale
check "no image, no directory, wrong usage" no_image
check "verify: page data is not kept in memory" bounded_memory
check "html: escaped, self-contained, with words" html
check "html: a failure leaves the old file" html_failed
check "report: everything, for its owner, without serial numbers" report
check "no part without its name" expect 2 image show "$W" ''
finish
