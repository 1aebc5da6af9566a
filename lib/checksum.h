/* SPDX-License-Identifier: GPL-2.0-only */
/* XXH3 with 64 bits, seed 0: the checksum of chunks and manifests. */
#ifndef GPUCR_CHECKSUM_H
#define GPUCR_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t gpucr_checksum(const void *data, size_t len);

#endif
