/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel module, as commands use it. Functions return exit statuses. */
#ifndef MODULE_H
#define MODULE_H

#include "nl.h"

/* Opens the family, which loads the module; refuses another protocol. */
int module_open(struct gpucr_nl **ret);
/*
 * The same where the module is there already: *ret is NULL and the status 0
 * where it is not, or --backend ioctl is given.
 */
int module_open_if_loaded(struct gpucr_nl **ret);
/* Reports what a call gave (-errno) about the subject. */
int module_fail(const struct gpucr_nl *nl, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The module's sentence about err, or the errno's. */
const char *module_sentence(const struct gpucr_nl *nl, int err);

#endif
