/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_VERSION_H
#define GPUCR_VERSION_H

/* The same as PACKAGE_VERSION in dkms.conf. */
#define GPUCR_VERSION	"0.1.0"

#endif
