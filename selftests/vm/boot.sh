#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Boot a guest, run one command in it, and leave with the command's exit status.
#
# usage: boot.sh GUEST COMMAND       COMMAND is given to bash, as root, in /src
#        boot.sh GUEST --shell       a console instead
#
# 124: the command ran longer than LAB_TIMEOUT.  125: the guest died (panic, hang) or never came up.
# 1 also where the kernel log holds a line that dmesg.allow does not know.
#
# Environment (defaults in brackets):
#   LAB_MEM [3G]  LAB_CPUS [2]  LAB_TIMEOUT [300] seconds  KERNEL [stock] or debug
#   LAB_OUT        host directory, writable in the guest as $LAB_OUT
#   LAB_IN         host directory, read-only in the guest as $LAB_IN
#   LAB_DISK       size of an ext4 disk mounted on /data (e.g. 2G), with ":journal" behind it with a journal
#   LAB_DISK_CACHE [unsafe]  QEMU's cache mode for it     LAB_DISK_RATE  bytes per second that it does at most
#   LAB_MODULES    [gpucr kfdsim]; "none" loads nothing        LAB_KFDSIM_ARGS  parameters for kfdsim
#   LAB_TOPOLOGY, LAB_PERSONALITY   given to kfdsim as topology= and personality=; a host directory is a captured topology
#   LAB_PLUGIN     [gpucr]; "none" leaves /usr/lib/criu as Debian made it
#   LAB_DEVICES    more hardware: virtio-gpu, bochs
#   LAB_BLACKLIST  [amdgpu] modules that must not load; "none" for the boot that loads the real driver
#   LAB_DMESG      [check]; "ignore" does not look at the kernel log
#   LAB_SMAP       [0]; 1 keeps SMAP and SMEP on under TCG (three times slower copies)
#   LAB_APPEND     more kernel command line
#   LAB_GRACE      [180] seconds beyond LAB_TIMEOUT before a silent guest counts as dead
#   LAB_SLOTS      [number of CPUs] guests at once on this machine, whoever starts them; the next one waits
#   LAB_LOG        [build/lab] where the last guest's console.log and dmesg.log go
# Every other variable whose name starts with GPUCR_, LAB_ or TEST_ is set in the guest as it is here.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# Seconds beyond LAB_TIMEOUT that a guest gets to come up and go down on a busy host without KVM.
BOOT_GRACE=${LAB_GRACE:-180}

RUN=''
QPID=''

cleanup() {
	[[ -n $QPID ]] && kill "$QPID" 2>/dev/null
	[[ -n $RUN ]] && rm -rf "$RUN"
	return 0
}

# Is there a KVM that really works? Opening /dev/kvm says little: a guest must reach user space. Asked once per
# boot of this host.
have_kvm() {
	local verdict
	verdict=${XDG_RUNTIME_DIR:-/run}/gpucr-lab-kvm.$(</proc/sys/kernel/random/boot_id)
	[[ -s $verdict ]] || probe_kvm "$1" >"$verdict"
	[[ $(<"$verdict") == yes ]]
}

# probe_kvm IMAGE: prints yes or no
probe_kvm() {
	local log
	[[ -w /dev/kvm ]] || {
		echo no
		return
	}
	log=$(timeout -k 2 20 qemu-system-x86_64 -machine q35 -accel kvm -cpu host -m 512M -display none -no-reboot \
		-nic none -vga none -serial stdio -kernel "$1/vmlinuz" -initrd "$1/initrd" \
		-append 'console=ttyS0 quiet panic=-1 lab.probe' 2>&1 </dev/null) || true
	[[ $log == *"lab-probe: user space reached"* ]] && echo yes || echo no
}

cpu_args() {
	if have_kvm "$1"; then
		printf '%s\n' -accel kvm -cpu host
	elif [[ ${LAB_SMAP:-0} == 1 ]]; then
		printf '%s\n' -accel tcg,thread=multi -cpu max,-erms,-fsrm
	else
		# Without SMAP a guest's read() and write() are three times as fast under TCG.
		printf '%s\n' -accel tcg,thread=multi -cpu max,-erms,-fsrm,-smap,-smep
	fi
}

device_args() {
	local d
	for d in ${LAB_DEVICES-}; do
		case $d in
		virtio-gpu) printf '%s\n' -device virtio-gpu-pci ;;
		bochs) printf '%s\n' -device bochs-display ;;
		*) die "LAB_DEVICES: unknown device '$d' (virtio-gpu, bochs)" ;;
		esac
	done
}

# share_args TAG DIR [ro]
share_args() {
	printf '%s\n' -virtfs "local,path=$2,mount_tag=$1,security_model=none,multidevs=remap${3:+,readonly=on}"
}

disk_args() {
	printf '%s\n' -drive "file=$1/rootfs.ext4,if=virtio,format=raw,snapshot=on"
	[[ -n ${LAB_DISK-} ]] || return 0
	local how=(-O ^has_journal)
	[[ $LAB_DISK != *:journal ]] || how=(-O has_journal -b 4096)
	truncate -s "${LAB_DISK%:journal}" "$RUN/data.img"
	mke2fs -q -t ext4 "${how[@]}" -m 0 "$RUN/data.img" >/dev/null
	local limit=${LAB_DISK_RATE:+,throttling.bps-total=$LAB_DISK_RATE}
	printf '%s\n' -drive "file=$RUN/data.img,if=virtio,format=raw,cache=${LAB_DISK_CACHE:-unsafe}$limit"
}

cmdline() {
	local line='console=ttyS0 quiet loglevel=4 panic=-1 panic_on_warn=1 oops=panic mitigations=off tsc=reliable'
	# A busy host makes the guest's check of its timer fail.
	line+=' no_timer_check'
	# The others come with guest-init.sh, when the kernel has patched its code.
	line+=' maxcpus=1'
	[[ ${LAB_BLACKLIST:=amdgpu} == none ]] || line+=" module_blacklist=${LAB_BLACKLIST// /,}"
	echo "$line ${LAB_APPEND-}"
}

# What the guest's init reads: the command and the environment.
write_control() {
	local v
	mkdir -p "$RUN/ctl"
	if [[ -d ${LAB_TOPOLOGY-} ]]; then
		"$TOP/selftests/kfdsim/simctl" pack "$LAB_TOPOLOGY" "$RUN/ctl/topology" || die "LAB_TOPOLOGY cannot be packed"
		LAB_TOPOLOGY=/run/lab/topology
	fi
	printf '%s\n' "$1" >"$RUN/ctl/cmd"
	export LAB_TIMEOUT LAB_GUEST=$GUEST LAB_KERNEL=${KERNEL:-stock} LAB_SHELL=$2
	for v in $(compgen -e | grep -E '^(GPUCR|LAB|TEST)_'); do
		[[ $v == LAB_OUT || $v == LAB_IN ]] && continue
		printf 'export %s=%q\n' "$v" "${!v}"
	done >"$RUN/ctl/env"
	[[ -z ${LAB_OUT-} ]] || echo 'export LAB_OUT=/out' >>"$RUN/ctl/env"
	[[ -z ${LAB_IN-} ]] || echo 'export LAB_IN=/in' >>"$RUN/ctl/env"
}

# Sets ARGS.
qemu_args() {
	local img=$1 kernel=$2 initrd=$3 io=(-serial "file:$RUN/console")
	if [[ $LAB_SHELL == 1 ]]; then
		io+=(-chardev 'stdio,id=tty,signal=off' -device virtio-serial-pci -device 'virtconsole,chardev=tty')
	else
		# Not stdio: at the end of its input QEMU would call the channel closed, and the guest would block.
		io+=(-chardev "file,id=out,path=$RUN/out" -device virtio-serial-pci
			-device 'virtserialport,chardev=out,name=lab.out')
	fi
	ARGS=(qemu-system-x86_64 -machine q35 -smp "${LAB_CPUS:-2}" -m "${LAB_MEM:-3G}" -display none -monitor none
		-no-reboot -nic none -vga none "${io[@]}" -kernel "$kernel" -initrd "$initrd" -append "$(cmdline)")
	local more
	mapfile -t more < <(cpu_args "$img" && share_args src "$TOP" ro && share_args ctl "$RUN/ctl" &&
		disk_args "$img" && device_args && echo ok)
	[[ ${more[-1]-} == ok ]] || exit 1
	unset 'more[-1]'
	ARGS+=("${more[@]}")
	[[ -z ${LAB_OUT-} ]] || mapfile -t -O ${#ARGS[@]} ARGS < <(share_args out "$(realpath "$LAB_OUT")")
	[[ -z ${LAB_IN-} ]] || mapfile -t -O ${#ARGS[@]} ARGS < <(share_args in "$(realpath "$LAB_IN")" ro)
}

# More emulated guests than CPUs starve each other into time-outs. Waits, before any clock of the guest runs, for one
# of LAB_SLOTS locks, which QEMU inherits as fd 8 and gives up when it ends.
take_slot() {
	local dir=$CACHE/slots n
	mkdir -p "$dir"
	while :; do
		for ((n = 0; n < ${LAB_SLOTS:-$(nproc)}; n++)); do
			exec 8>"$dir/$n.lock"
			flock -n 8 && return
		done
		sleep 1
	done
}

# The guest's output comes through a pipe and cat: QEMU would make our stdout non-blocking for all who share it.
run_guest() {
	local limit=$((LAB_TIMEOUT + BOOT_GRACE)) catpid
	mkfifo "$RUN/out"
	# Held open here, so that cat neither ends early nor waits for a QEMU that never opened it.
	exec 7<>"$RUN/out"
	cat "$RUN/out" 7>&- &
	catpid=$!
	timeout -k 10 "$limit" "${ARGS[@]}" </dev/null >"$RUN/qemu.err" 2>&1 7>&- &
	QPID=$!
	wait "$QPID" || true
	QPID=''
	exec 7>&-
	wait "$catpid" || true
}

# Without a status file the guest ended by itself: say how, and show its last words.
verdict() {
	local dir=${LAB_LOG:-$TOP/build/lab}
	mkdir -p "$dir"
	cp "$RUN/console" "$dir/console.log" 2>/dev/null || true
	cp "$RUN/ctl/dmesg" "$dir/dmesg.log" 2>/dev/null || true
	if [[ -s $RUN/ctl/status ]]; then
		return "$(<"$RUN/ctl/status")"
	fi
	{
		echo "lab: the guest died or hung; the end of its console:"
		tail -n 50 "$RUN/console" | sed 's/^/  | /'
		cat "$RUN/qemu.err"
	} >&2
	return 125
}

main() {
	[[ $# -eq 2 ]] || die "usage: boot.sh GUEST COMMAND | --shell"
	guest_load "$1"
	need_root
	: "${LAB_TIMEOUT:=300}"
	LAB_SHELL=0
	[[ $2 == --shell ]] && LAB_SHELL=1
	[[ $LAB_SHELL == 0 || -t 0 ]] || die "a shell needs a terminal"
	"$VM_DIR/image.sh" "$GUEST"
	local img kernel initrd criu
	img=$("$VM_DIR/image.sh" "$GUEST" guest)
	kernel=$img/vmlinuz initrd=$img/initrd
	criu=$("$VM_DIR/criu.sh" "$GUEST_NAME")
	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
	RUN=$(mktemp -d /tmp/gpucr-lab.XXXXXX)
	write_control "$2" "$LAB_SHELL"
	[[ -z $criu ]] || cp -r "$criu" "$RUN/ctl/criu"
	if [[ ${KERNEL:-stock} == debug ]]; then
		kernel=$("$VM_DIR/debug-kernel.sh" path)
		cp -r "$kernel/modules" "$RUN/ctl/modules"
		kernel=$kernel/bzImage initrd=$img/initrd-bare
	fi
	[[ -z ${LAB_OUT-} ]] || mkdir -p "$LAB_OUT"
	qemu_args "$img" "$kernel" "$initrd"
	take_slot
	if [[ $LAB_SHELL == 1 ]]; then
		"${ARGS[@]}" 2>"$RUN/qemu.err" || true
	else
		run_guest
	fi
	verdict
}

main "$@"
