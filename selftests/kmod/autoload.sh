#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The module comes by itself when somebody asks for the family by name, and leaves again.
set -u

# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/../ktap.sh"

plan 3
[[ ! -d /sys/module/gpucr ]]
result $? 'the module is not there at first'
"$O/selftests/kmod/info" >/dev/null && [[ -d /sys/module/gpucr ]]
result $? 'asking for the family loads it'
modprobe -r gpucr && [[ ! -d /sys/module/gpucr ]]
result $? 'it can be removed'
finish
