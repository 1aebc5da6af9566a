/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which GPU here may stand for which GPU of an image, all of them at once.
 *
 * A search with backtracking: a hive stays together, a link between two GPUs
 * is as good as it was, and CPU nodes are mapped one to one. What the caller
 * knows of each pair of GPUs is in the table fits.
 */
#ifndef GPUCR_MAPSOLVE_H
#define GPUCR_MAPSOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How good a link is: a better one may replace a worse one. */
enum gpucr_rank {
	GPUCR_RANK_NONE,
	GPUCR_RANK_PCIE,
	GPUCR_RANK_XGMI,
};

/* To a CPU node. */
struct gpucr_solve_cpu {
	uint32_t node;
	uint8_t rank;
};

struct gpucr_solve_gpu {
	uint64_t hive;			/* 0: none */
	const struct gpucr_solve_cpu *cpus;
	size_t num_cpus;
};

struct gpucr_solve {
	size_t num_there, num_here;
	const struct gpucr_solve_gpu *there, *here;
	/* [there * num_here + here]: 0 no; up to 3, higher is tried first. */
	const uint8_t *fits;
	const uint8_t *rank_there;	/* [from * num_there + to] */
	const uint8_t *rank_here;	/* [from * num_here + to] */
	bool numa;			/* CPU nodes one to one, not just any */
	bool links;			/* hives, and links between GPUs */
	unsigned long max_steps;	/* 0: GPUCR_SOLVE_STEPS */
};

#define GPUCR_SOLVE_BEST	3	/* highest value in fits */
#define GPUCR_SOLVE_STEPS	300000	/* well below a second */

/*
 * at[there]: index here. 0; -ENODEV where there is no such map; -EAGAIN where
 * none was found in max_steps; -ENOMEM.
 */
int gpucr_solve_run(const struct gpucr_solve *s, size_t *at);
/*
 * The largest number of GPUs of the image that have one here each, by fits
 * alone. -ENOMEM.
 */
long gpucr_solve_match(const struct gpucr_solve *s);

#endif
