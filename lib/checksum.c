// SPDX-License-Identifier: GPL-2.0-only
#include "checksum.h"

#include <xxhash.h>

/*
 * The same, by the widest vectors that this CPU has: several times as fast. Not
 * every build of the library has it, and one that has not must still load.
 */
extern XXH64_hash_t XXH3_64bits_dispatch(const void *data, size_t len)
	__attribute__((weak));

uint64_t gpucr_checksum(const void *data, size_t len)
{
	return XXH3_64bits_dispatch ? XXH3_64bits_dispatch(data, len) :
				      XXH3_64bits(data, len);
}
