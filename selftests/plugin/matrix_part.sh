#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A part of the fault matrix that is another one every day: a quarter of the module's backend, errors, delays and kills. All
# of it: "make fault-matrix".
export TEST_MATRIX_BACKENDS=${TEST_MATRIX_BACKENDS:-netlink} TEST_MATRIX_CASES=${TEST_MATRIX_CASES:-56}
exec "$(dirname "$0")/matrix.sh"
