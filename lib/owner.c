// SPDX-License-Identifier: GPL-2.0-only
#include "owner.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define OWNER_PAGE	4096
#define OWNER_MARK	0x5a

int gpucr_owner_init(struct gpucr_owner *o)
{
	void *p;

	p = mmap(NULL, OWNER_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	if (madvise(p, OWNER_PAGE, MADV_WIPEONFORK)) {
		int err = -errno;

		munmap(p, OWNER_PAGE);
		return err;
	}
	o->page = p;
	o->page[0] = OWNER_MARK;
	return 0;
}

bool gpucr_owner_is_self(const struct gpucr_owner *o)
{
	return o->page && o->page[0] == OWNER_MARK;
}

void gpucr_owner_fini(struct gpucr_owner *o)
{
	if (o->page)
		munmap((void *)o->page, OWNER_PAGE);
	o->page = NULL;
}
