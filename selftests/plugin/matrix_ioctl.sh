#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A third of the fault matrix without the module, another one every day.
export TEST_MATRIX_BACKENDS=${TEST_MATRIX_BACKENDS:-ioctl} TEST_MATRIX_PARTS=${TEST_MATRIX_PARTS:-3}
exec "$(dirname "$0")/matrix.sh"
