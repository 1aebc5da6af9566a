// SPDX-License-Identifier: GPL-2.0-only
#include "mapsolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE	SIZE_MAX

struct cpu_pair {
	uint32_t there, here;
};

struct search {
	const struct gpucr_solve *s;
	size_t *at;
	size_t *order;		/* GPUs of the image, as they are placed */
	size_t *kind;		/* GPU here: first one that is just like it */
	bool *taken;
	bool *tried;		/* [depth * num_here + kind] */
	size_t *tight;		/* fewest choices of any GPU of its hive */
	struct cpu_pair *cpus;
	size_t num_cpus;
	unsigned long steps;
};

static uint8_t fit(const struct gpucr_solve *s, size_t there, size_t here)
{
	return s->fits[there * s->num_here + here];
}

static uint8_t rank_here(const struct gpucr_solve *s, size_t from, size_t to)
{
	return s->rank_here[from * s->num_here + to];
}

static bool same_cpus(const struct gpucr_solve_gpu *a,
		      const struct gpucr_solve_gpu *b)
{
	size_t i, j;

	if (a->num_cpus != b->num_cpus)
		return false;
	for (i = 0; i < a->num_cpus; i++) {
		for (j = 0; j < b->num_cpus; j++) {
			if (a->cpus[i].node == b->cpus[j].node &&
			    a->cpus[i].rank == b->cpus[j].rank)
				break;
		}
		if (j == b->num_cpus)
			return false;
	}
	return true;
}

/* Could the two change places without anybody noticing? */
static bool alike(const struct gpucr_solve *s, size_t a, size_t b)
{
	size_t i;

	if (s->here[a].hive != s->here[b].hive ||
	    !same_cpus(&s->here[a], &s->here[b]) ||
	    rank_here(s, a, b) != rank_here(s, b, a))
		return false;
	for (i = 0; i < s->num_there; i++) {
		if (!fit(s, i, a) != !fit(s, i, b))
			return false;
	}
	for (i = 0; i < s->num_here; i++) {
		if (i == a || i == b)
			continue;
		if (rank_here(s, a, i) != rank_here(s, b, i) ||
		    rank_here(s, i, a) != rank_here(s, i, b))
			return false;
	}
	return true;
}

static void find_kinds(struct search *x)
{
	size_t i, j;

	for (i = 0; i < x->s->num_here; i++) {
		for (j = 0; j < i; j++) {
			if (x->kind[j] == j && alike(x->s, j, i))
				break;
		}
		x->kind[i] = j;
	}
}

static size_t count_fits(const struct gpucr_solve *s, size_t there)
{
	size_t i, num = 0;

	for (i = 0; i < s->num_here; i++)
		num += !!fit(s, there, i);
	return num;
}

static void find_tight(struct search *x)
{
	const struct gpucr_solve *s = x->s;
	size_t i, j;

	for (i = 0; i < s->num_there; i++)
		x->tight[i] = count_fits(s, i);
	for (i = 0; i < s->num_there; i++) {
		for (j = 0; s->there[i].hive && j < s->num_there; j++) {
			if (s->there[j].hive == s->there[i].hive &&
			    x->tight[j] < x->tight[i])
				x->tight[i] = x->tight[j];
		}
	}
}

static bool goes_before(const struct search *x, size_t a, size_t b)
{
	const struct gpucr_solve *s = x->s;

	if (x->tight[a] != x->tight[b])
		return x->tight[a] < x->tight[b];
	if (s->there[a].hive != s->there[b].hive)
		return s->there[a].hive > s->there[b].hive;
	return a < b;
}

/* Those with the fewest choices first, a hive in one piece. */
static void find_order(struct search *x)
{
	size_t i, j;

	find_tight(x);
	for (i = 0; i < x->s->num_there; i++) {
		for (j = i; j && goes_before(x, i, x->order[j - 1]); j--)
			x->order[j] = x->order[j - 1];
		x->order[j] = i;
	}
}

static size_t hive_size(const struct gpucr_solve_gpu *v, size_t num,
			uint64_t hive)
{
	size_t i, n = 0;

	for (i = 0; i < num; i++)
		n += v[i].hive == hive;
	return n;
}

/* As seen from one pair of GPUs that is placed already. */
static bool agrees(const struct gpucr_solve *s, size_t there, size_t here,
		   size_t there2, size_t here2)
{
	const struct gpucr_solve_gpu *t = &s->there[there];
	const struct gpucr_solve_gpu *h = &s->here[here];

	if (t->hive && t->hive == s->there[there2].hive &&
	    h->hive != s->here[here2].hive)
		return false;
	return s->rank_there[there * s->num_there + there2] <=
		       rank_here(s, here, here2) &&
	       s->rank_there[there2 * s->num_there + there] <=
		       rank_here(s, here2, here);
}

static bool links_agree(const struct search *x, size_t depth, size_t here)
{
	const struct gpucr_solve *s = x->s;
	size_t i, there = x->order[depth];
	uint64_t hive = s->there[there].hive;

	if (!s->links)
		return true;
	if (hive && (!s->here[here].hive ||
		     hive_size(s->here, s->num_here, s->here[here].hive) <
		     hive_size(s->there, s->num_there, hive)))
		return false;
	for (i = 0; i < depth; i++) {
		if (!agrees(s, there, here, x->order[i], x->at[x->order[i]]))
			return false;
	}
	return true;
}

static bool place(struct search *x, size_t depth);

/* CPU node here of one there, or where a node here comes from. */
static const struct cpu_pair *find_pair(const struct search *x, uint32_t there,
					uint32_t here)
{
	size_t i;

	for (i = 0; i < x->num_cpus; i++) {
		if (x->cpus[i].there == there || x->cpus[i].here == here)
			return &x->cpus[i];
	}
	return NULL;
}

/* The links to CPU nodes from the i-th on, and then all the rest. */
static bool place_cpus(struct search *x, size_t depth, size_t i)
{
	const struct gpucr_solve_gpu *t = &x->s->there[x->order[depth]];
	const struct gpucr_solve_gpu *h = &x->s->here[x->at[x->order[depth]]];
	size_t j;

	if (i == t->num_cpus || (!x->s->numa && !x->s->links))
		return place(x, depth + 1);
	for (j = 0; j < h->num_cpus; j++) {
		const struct cpu_pair *p;
		bool found;

		if (x->s->links && h->cpus[j].rank < t->cpus[i].rank)
			continue;
		if (!x->s->numa)
			return place_cpus(x, depth, i + 1);
		p = find_pair(x, t->cpus[i].node, h->cpus[j].node);
		if (p && (p->there != t->cpus[i].node ||
			  p->here != h->cpus[j].node))
			continue;
		if (!p)
			x->cpus[x->num_cpus++] = (struct cpu_pair){
				t->cpus[i].node, h->cpus[j].node,
			};
		found = place_cpus(x, depth, i + 1);
		if (!found && !p)
			x->num_cpus--;
		if (found || p)
			return found;
	}
	return false;
}

static bool try_here(struct search *x, size_t depth, size_t here)
{
	size_t there = x->order[depth];

	if (!x->steps)
		return false;
	x->steps--;
	if (!links_agree(x, depth, here))
		return false;
	x->at[there] = here;
	x->taken[here] = true;
	if (place_cpus(x, depth, 0))
		return true;
	x->taken[here] = false;
	return false;
}

/* What failed with one GPU fails with all that are just like it. */
static bool try_once(struct search *x, size_t depth, size_t here)
{
	bool *tried = &x->tried[depth * x->s->num_here + x->kind[here]];

	if (x->taken[here] || *tried)
		return false;
	*tried = true;
	return try_here(x, depth, here);
}

static bool place(struct search *x, size_t depth)
{
	const struct gpucr_solve *s = x->s;
	size_t there, here;
	int preference;

	if (depth == s->num_there)
		return true;
	there = x->order[depth];
	memset(&x->tried[depth * s->num_here], 0, s->num_here);
	for (preference = GPUCR_SOLVE_BEST; preference > 0; preference--) {
		for (here = 0; here < s->num_here; here++) {
			if (fit(s, there, here) == preference &&
			    try_once(x, depth, here))
				return true;
		}
	}
	return false;
}

static size_t count_cpus(const struct gpucr_solve *s)
{
	size_t i, num = 0;

	for (i = 0; i < s->num_there; i++)
		num += s->there[i].num_cpus;
	return num;
}

static int search_alloc(struct search *x)
{
	const struct gpucr_solve *s = x->s;

	x->order = calloc(s->num_there + 1, sizeof(*x->order));
	x->tight = calloc(s->num_there + 1, sizeof(*x->tight));
	x->kind = calloc(s->num_here + 1, sizeof(*x->kind));
	x->taken = calloc(s->num_here + 1, sizeof(*x->taken));
	x->tried = calloc(s->num_there + 1, s->num_here + 1);
	x->cpus = calloc(count_cpus(s) + 1, sizeof(*x->cpus));
	return x->order && x->tight && x->kind && x->taken && x->tried &&
	       x->cpus ? 0 : -ENOMEM;
}

static void search_free(struct search *x)
{
	free(x->order);
	free(x->tight);
	free(x->kind);
	free(x->taken);
	free(x->tried);
	free(x->cpus);
}

int gpucr_solve_run(const struct gpucr_solve *s, size_t *at)
{
	struct search x = {
		.s = s, .at = at,
		.steps = s->max_steps ? s->max_steps : GPUCR_SOLVE_STEPS,
	};
	long most = gpucr_solve_match(s);
	int err;

	if (most < 0)
		return (int)most;
	if ((size_t)most < s->num_there)
		return -ENODEV;
	err = search_alloc(&x);
	if (!err) {
		find_order(&x);
		find_kinds(&x);
		err = place(&x, 0) ? 0 : x.steps ? -ENODEV : -EAGAIN;
	}
	search_free(&x);
	return err;
}

/* An augmenting path from one GPU of the image. */
static bool augment(const struct gpucr_solve *s, size_t there, size_t *owner,
		    bool *seen)
{
	size_t i;

	for (i = 0; i < s->num_here; i++) {
		if (!fit(s, there, i) || seen[i])
			continue;
		seen[i] = true;
		if (owner[i] != NOWHERE && !augment(s, owner[i], owner, seen))
			continue;
		owner[i] = there;
		return true;
	}
	return false;
}

long gpucr_solve_match(const struct gpucr_solve *s)
{
	size_t *owner = calloc(s->num_here + 1, sizeof(*owner));
	bool *seen = calloc(s->num_here + 1, sizeof(*seen));
	long num = owner && seen ? 0 : -ENOMEM;
	size_t i;

	for (i = 0; !num && i < s->num_here; i++)
		owner[i] = NOWHERE;
	for (i = 0; num >= 0 && i < s->num_there; i++) {
		memset(seen, 0, s->num_here * sizeof(*seen));
		num += augment(s, i, owner, seen);
	}
	free(owner);
	free(seen);
	return num;
}
