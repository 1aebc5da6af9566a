#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kills.sh where KFD counts: one UNPAUSE too few, or one PROCESS_INFO too many, and the queues stand still for ever.
KILLS=${KILLS:-1} exec "$(dirname "$0")/kills.sh"
