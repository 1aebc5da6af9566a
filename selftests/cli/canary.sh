#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# With GPUCR_CANARY=1 the program's truth has one wrong handle: the comparison must see it.
exec "$(dirname "$0")/gem_truth.sh" vgem
