#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The module comes by itself when somebody asks for the family by name, and leaves again.
set -u

echo 'KTAP version 1'
echo '1..3'
bad=0

result() {
	if [[ $1 == 0 ]]; then
		echo "ok $2 - $3"
	else
		echo "not ok $2 - $3"
		bad=1
	fi
}

[[ ! -d /sys/module/gpucr ]]
result $? 1 'the module is not there at first'
"$O/selftests/kmod/info" >/dev/null && [[ -d /sys/module/gpucr ]]
result $? 2 'asking for the family loads it'
modprobe -r gpucr && [[ ! -d /sys/module/gpucr ]]
result $? 3 'it can be removed'
exit $bad
