#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Proves that the suite can fail: as a canary the stress test leaves a session behind.
exec "$O/selftests/stress/stress" 3
