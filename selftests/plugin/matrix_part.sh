#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A part of the fault matrix that is another one every day; all of it: "make fault-matrix". The parts are of the errors that
# were seen to be met on CRIU 4.1.1; the list grows with what was run.
RAN='init-after devices-after vma-after file-before file-2-before pidfd-open pidfd-getfd-2 heal checkpoint copy-thread
	copy-submit-2 pages-open pages-write-2 pages-rename manifest-write manifest-sync render-open render-rename
	mod-session-file mod-relay mod-pause-after mod-checkpoint-after mod-unpause-after mod-event r-init-after r-file-after
	r-file-2-after r-manifest-read r-render-read'
export TEST_MATRIX_ONLY=${TEST_MATRIX_ONLY:-${RAN//[$'\n\t']/ }}
export TEST_MATRIX_ACTIONS=${TEST_MATRIX_ACTIONS:-e} TEST_MATRIX_BACKENDS=${TEST_MATRIX_BACKENDS:-netlink}
export TEST_MATRIX_CASES=${TEST_MATRIX_CASES:-9}
exec "$(dirname "$0")/matrix.sh"
