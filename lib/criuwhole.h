/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Are CRIU's own images all there? CRIU syncs none of them, so that after a
 * power cut its inventory may be on the disk and what it stands for not.
 */
#ifndef GPUCR_CRIUWHOLE_H
#define GPUCR_CRIUWHOLE_H

/* Number of faults, each logged. */
long gpucr_criu_missing(int dir);

#endif
