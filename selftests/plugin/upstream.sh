#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# On the host: build upstream's CRIU plugin outside the tree and let it dump and restore in a guest.
# If stock CRIU with upstream's plugin works on the simulator, the simulator is right in all that they use.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
GUEST=${GUEST:-trixie}

dir=$("$HERE/upstream-build.sh" "$GUEST")
LAB_IN=$dir LAB_PLUGIN=none LAB_MODULES=kfdsim exec "$HERE/../vm/boot.sh" "$GUEST" \
	selftests/plugin/upstream-guest.sh
