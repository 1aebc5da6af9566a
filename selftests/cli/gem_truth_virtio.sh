#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2317 # functions are called by check
# The same on virtio-gpu.
exec "$(dirname "$0")/gem_truth.sh" virtio_gpu
