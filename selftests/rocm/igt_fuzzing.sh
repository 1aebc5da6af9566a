#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# IGT's fuzzers alone. On the debug kernel the runner finds what KASAN, lockdep and UBSAN say of it.
exec "$(dirname "$0")/igt.sh" amd_fuzzing amd_fuzzing_kfd
