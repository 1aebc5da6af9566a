#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest: a program of this suite, then whatever the checkers of a debug kernel have to say.
#
# usage: guest.sh PROGRAM
set -u

# Its scans would take most of the time.
[[ $LAB_KERNEL != debug ]] || echo scan=off >/sys/kernel/debug/kmemleak
# The fuzzer abandons sessions faster than programs start there: in a long run it does without the helper.
if [[ $1 == nlfuzz ]]; then
	modprobe -r gpucr && modprobe gpucr recovery_helper=
fi
rc=0
"$O/selftests/stress/$1" || rc=1
[[ $LAB_KERNEL == debug ]] || exit $rc

if ! grep -q 'debug_locks: *1' /proc/lockdep_stats; then
	echo 'not ok - lockdep has switched itself off: it saw something'
	rc=1
fi
# Twice, seconds apart: an object is reported once it was unreferenced for a while.
for _ in 1 2; do
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
done
leaks=$(cat /sys/kernel/debug/kmemleak)
if [[ -n $leaks ]]; then
	echo 'not ok - kmemleak has found something'
	echo "$leaks"
	rc=1
fi
exit $rc
