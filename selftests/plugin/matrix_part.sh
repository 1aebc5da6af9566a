#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A third of the fault matrix with both backends, another one every day. All of it: "make fault-matrix".
export TEST_MATRIX_PARTS=${TEST_MATRIX_PARTS:-3}
exec "$(dirname "$0")/matrix.sh"
