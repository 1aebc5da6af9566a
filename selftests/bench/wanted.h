/* SPDX-License-Identifier: GPL-2.0-only */
/* What a case of the native bench must reach to be called good. */
#ifndef BENCH_WANTED_H
#define BENCH_WANTED_H

#define WANTED		0.85	/* of the slower of copies and storage */
#define CPU_LIMIT	0.5	/* seconds per GiB, engines taken off */

#endif
