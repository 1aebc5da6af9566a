/* SPDX-License-Identifier: GPL-2.0 */
/* Shims for kernels up to 6.1; see docs/kernels.md. */
#ifndef GPUCR_COMPAT_NET_GENETLINK_H
#define GPUCR_COMPAT_NET_GENETLINK_H

#include_next <net/genetlink.h>

#ifndef GPUCR_HAVE_GENL_SPLIT_OPS
/*
 * An operation of ours is either a do or a dump, so that one entry of the
 * older table says the same as one entry of the newer.
 */
#define genl_split_ops	genl_ops
#define split_ops	ops
#define n_split_ops	n_ops
#endif

#ifndef GPUCR_HAVE_GENL_INFO_DUMP
/* Both have the attributes, and nothing else of it is used. */
#define genl_info_dump(cb)	genl_dumpit_info(cb)
#endif

#ifndef GPUCR_HAVE_DUMP_START_EXTACK
/* compat_refusal.c */
int gpucr_register_family(struct genl_family *family);
#define genl_register_family(family)	gpucr_register_family(family)
#endif

#endif
