/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * May a GPU of an image become a certain GPU here? One rule for each property,
 * with upstream's meaning where upstream's plugin has it: what a program has
 * been told of its GPU, and what its kernels and firmware rely on.
 */
#ifndef GPUCR_GPURULE_H
#define GPUCR_GPURULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"
#include "opt.h"
#include "topology.h"

#define GPUCR_MAX_RULES	40

struct gpucr_rule {
	const char *field;	/* as KFD's topology calls it */
	const char *token;
	const char *option;	/* that switches it off; NULL: none does */
	uint64_t there, here;
	bool broken;
	bool forbids;		/* broken, and not switched off */
};

/* Fills ret, which has room for GPUCR_MAX_RULES; returns how many. */
size_t gpucr_rules_apply(const struct gpucr_img_device *there,
			 const struct gpucr_node *here,
			 const struct gpucr_opts *opts,
			 struct gpucr_rule *ret);

#endif
