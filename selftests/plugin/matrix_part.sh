#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A third of the fault matrix with one of the backends, another third or the other backend every day: all of it in six days,
# or at once by "make fault-matrix".
DAY=$(($(date +%s) / 86400))
BY_DAY=(netlink ioctl)
export TEST_MATRIX_BACKENDS=${TEST_MATRIX_BACKENDS:-${BY_DAY[DAY % 2]}} TEST_MATRIX_PARTS=${TEST_MATRIX_PARTS:-3}
export TEST_MATRIX_TURN=${TEST_MATRIX_TURN:-$((DAY / 2))}
exec "$(dirname "$0")/matrix.sh"
