#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The fault matrix of this CRIU with the module's backend: all of it.
export TEST_MATRIX_BACKENDS=${TEST_MATRIX_BACKENDS:-netlink}
exec "$(dirname "$0")/matrix.sh"
