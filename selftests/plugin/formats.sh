#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# On the host: build upstream's CRIU plugin outside the tree, and have it and ours restore each other's images in a guest.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
GUEST=${GUEST:-trixie}

dir=$("$HERE/upstream-build.sh" "$GUEST")
LAB_IN=$dir LAB_CPUS=1 exec "$HERE/../vm/boot.sh" "$GUEST" selftests/plugin/formats-guest.sh
