/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who made this object? A page that every fork wipes: only the process that
 * made it reads its mark there. getpid() cannot tell, since a restored task
 * may have the number that the dumper had.
 */
#ifndef GPUCR_OWNER_H
#define GPUCR_OWNER_H

#include <stdbool.h>

struct gpucr_owner {
	volatile unsigned char *page;
};

/* Marks the caller as owner. -errno. */
int gpucr_owner_init(struct gpucr_owner *o);
/* False also where it was never initialised. */
bool gpucr_owner_is_self(const struct gpucr_owner *o);
void gpucr_owner_fini(struct gpucr_owner *o);

#endif
