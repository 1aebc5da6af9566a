#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A model with a graphics ring: Vega10's takes PM4 packets as a compute ring does, and draws nothing.
set -u

modprobe kfdsim topology=vega10 vram_mb=64 || exit 1
rc=0
"$O/selftests/kfdsim/drm_smoke" gfx || rc=$?
modprobe -r kfdsim || rc=1
exit $rc
