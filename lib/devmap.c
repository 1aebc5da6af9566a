// SPDX-License-Identifier: GPL-2.0-only
#include "devmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "mapsolve.h"

int gpucr_devmap_add(struct gpucr_devmap *m, const struct gpucr_img_device *d)
{
	struct gpucr_devmap_entry *more;

	if (gpucr_devmap_find(m, d->local_gpu_id))
		return 0;
	more = reallocarray(m->v, m->num + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	m->v = more;
	m->v[m->num++] = (struct gpucr_devmap_entry){ .there = *d };
	return 0;
}

const struct gpucr_devmap_entry *
gpucr_devmap_find(const struct gpucr_devmap *m, uint32_t there_gpu_id)
{
	size_t i;

	for (i = 0; i < m->num; i++) {
		if (m->v[i].there.local_gpu_id == there_gpu_id)
			return &m->v[i];
	}
	return NULL;
}

void gpucr_devmap_clear(struct gpucr_devmap *m)
{
	free(m->v);
	memset(m, 0, sizeof(*m));
}

static uint64_t pci(uint32_t domain, uint32_t location)
{
	return (uint64_t)domain << 32 | location;
}

static bool names_there(const struct gpucr_gpu_name *n,
			const struct gpucr_img_device *d)
{
	switch (n->kind) {
	case GPUCR_NAME_PCI:
		return n->value == pci(d->domain, d->location_id);
	case GPUCR_NAME_UUID:
		return n->value == d->unique_id;
	default:
		return n->value == d->local_gpu_id;
	}
}

static bool names_here(const struct gpucr_gpu_name *n,
		       const struct gpucr_node *g)
{
	switch (n->kind) {
	case GPUCR_NAME_PCI:
		return n->value == pci(g->domain, g->location_id);
	case GPUCR_NAME_UUID:
		return n->value == g->unique_id;
	default:
		return n->value == g->gpu_id;
	}
}

/* Does device-map allow the pair? It binds only the GPUs that it names. */
static bool map_allows(const struct gpucr_opts *o,
		       const struct gpucr_img_device *d,
		       const struct gpucr_node *n)
{
	bool named = false;
	size_t i;

	for (i = 0; i < o->map_len; i++) {
		if (!names_there(&o->map[i].image, d))
			continue;
		if (names_here(&o->map[i].local, n))
			return true;
		named = true;
	}
	return !named;
}

static size_t count_here(const struct gpucr_topology *t,
			 const struct gpucr_gpu_name *n)
{
	size_t i, num = 0;

	for (i = 0; i < t->num_gpus; i++)
		num += names_here(n, t->gpus[i]);
	return num;
}

static size_t count_there(const struct gpucr_devmap *m,
			  const struct gpucr_gpu_name *n)
{
	size_t i, num = 0;

	for (i = 0; i < m->num; i++)
		num += names_there(n, &m->v[i].there);
	return num;
}

/* GPUs of the image that device-map sends to the same name here. */
static size_t count_wanting(const struct gpucr_devmap *m,
			    const struct gpucr_opts *o,
			    const struct gpucr_gpu_name *n)
{
	size_t i, num = 0;

	for (i = 0; i < o->map_len; i++) {
		if (o->map[i].local.kind == n->kind &&
		    o->map[i].local.value == n->value)
			num += count_there(m, &o->map[i].image);
	}
	return num;
}

static int check_given(const struct gpucr_devmap *m,
		       const struct gpucr_here *h)
{
	size_t i;

	for (i = 0; i < h->opts->map_len; i++) {
		const struct gpucr_gpu_pair *p = &h->opts->map[i];
		size_t num = count_here(h->topo, &p->local);
		const char *what = NULL;

		if (!count_there(m, &p->image))
			what = "the image has no such GPU";
		else if (!num)
			what = "there is no such GPU here";
		else if (count_wanting(m, h->opts, &p->local) > num)
			what = "that GPU here is given twice";
		if (!what)
			continue;
		gpucr_err("device-map: pair %zu: %s (device-map)", i + 1, what);
		return -EINVAL;
	}
	return 0;
}

static int try_open(const struct gpucr_here *h, const struct gpucr_node *n)
{
	int fd = h->open_render(n->drm_render_minor);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static size_t count_forbidden(const struct gpucr_devmap_why *w)
{
	size_t i, num = !!w->open_err;

	for (i = 0; i < w->num_rules; i++)
		num += w->rules[i].forbids;
	return num;
}

static void explain_pair(const struct gpucr_devmap_entry *e,
			 const struct gpucr_here *h,
			 const struct gpucr_node *n,
			 struct gpucr_devmap_why *ret)
{
	ret->here = n;
	ret->open_err = try_open(h, n);
	ret->num_rules = gpucr_rules_apply(&e->there, n, h->opts, ret->rules);
	ret->fits = !count_forbidden(ret);
}

void gpucr_devmap_explain(const struct gpucr_devmap_entry *e,
			  const struct gpucr_here *h, uint32_t here_gpu_id,
			  struct gpucr_devmap_why *ret)
{
	struct gpucr_devmap_why w;
	size_t i;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < h->topo->num_gpus; i++) {
		const struct gpucr_node *n = h->topo->gpus[i];

		if ((here_gpu_id && n->gpu_id != here_gpu_id) ||
		    !map_allows(h->opts, &e->there, n))
			continue;
		explain_pair(e, h, n, &w);
		if (!ret->here || count_forbidden(&w) < count_forbidden(ret))
			*ret = w;
	}
}

/* One that keeps its place in the machine is tried first. */
static uint8_t preference(const struct gpucr_img_device *d,
			  const struct gpucr_node *n)
{
	if (d->local_gpu_id != n->gpu_id)
		return 1;
	return d->unique_id && d->unique_id == n->unique_id ? 3 : 2;
}

static uint8_t rank(uint32_t type)
{
	return type == GPUCR_LINK_XGMI ? GPUCR_RANK_XGMI : GPUCR_RANK_PCIE;
}

/* The tables of mapsolve.h, and memory for them. */
struct tables {
	struct gpucr_solve s;
	struct gpucr_solve_gpu *there, *here;
	struct gpucr_solve_cpu *cpus;	/* of all GPUs, one after the other */
	size_t num_cpus;
	uint8_t *fits, *rank_there, *rank_here;
};

static void tables_free(struct tables *t)
{
	free(t->there);
	free(t->here);
	free(t->cpus);
	free(t->fits);
	free(t->rank_there);
	free(t->rank_here);
}

static int tables_alloc(struct tables *t, const struct gpucr_devmap *m,
			const struct gpucr_topology *topo)
{
	size_t i, links = 0, n = m->num, g = topo->num_gpus;

	for (i = 0; i < n; i++)
		links += m->v[i].there.num_links;
	for (i = 0; i < g; i++)
		links += topo->gpus[i]->num_links;
	t->there = calloc(n + 1, sizeof(*t->there));
	t->here = calloc(g + 1, sizeof(*t->here));
	t->cpus = calloc(links + 1, sizeof(*t->cpus));
	t->fits = calloc(n * g + 1, 1);
	t->rank_there = calloc(n * n + 1, 1);
	t->rank_here = calloc(g * g + 1, 1);
	return t->there && t->here && t->cpus && t->fits && t->rank_there &&
	       t->rank_here ? 0 : -ENOMEM;
}

static void add_cpu(struct tables *t, struct gpucr_solve_gpu *gpu,
		    uint32_t node, uint32_t type)
{
	struct gpucr_solve_cpu *c = &t->cpus[t->num_cpus++];

	if (!gpu->num_cpus)
		gpu->cpus = c;
	gpu->num_cpus++;
	*c = (struct gpucr_solve_cpu){ node, rank(type) };
}

static void better(uint8_t *cell, uint32_t type)
{
	if (rank(type) > *cell)
		*cell = rank(type);
}

static void links_there(struct tables *t, const struct gpucr_devmap *m,
			size_t from)
{
	const struct gpucr_img_device *d = &m->v[from].there;
	size_t i, to;

	t->there[from].hive = d->hive_id;
	for (i = 0; i < d->num_links; i++) {
		const struct gpucr_img_link *l = &d->links[i];

		if (l->cpu && !l->p2p)
			add_cpu(t, &t->there[from], l->to, l->type);
		for (to = 0; !l->cpu && to < m->num; to++) {
			if (m->v[to].there.has_topology &&
			    m->v[to].there.node == l->to)
				better(&t->rank_there[from * m->num + to],
				       l->type);
		}
	}
}

static void links_here(struct tables *t, const struct gpucr_topology *topo,
		       size_t from)
{
	const struct gpucr_node *n = topo->gpus[from];
	size_t i, to;

	t->here[from].hive = n->hive_id;
	for (i = 0; i < n->num_links; i++) {
		const struct gpucr_link *l = &n->links[i];
		const struct gpucr_node *other;

		other = gpucr_topology_find_by_node(topo, l->to);
		if (other && !other->gpu_id && !l->p2p)
			add_cpu(t, &t->here[from], l->to, l->type);
		for (to = 0; to < topo->num_gpus; to++) {
			if (topo->gpus[to] == other)
				better(&t->rank_here[from * topo->num_gpus +
						     to], l->type);
		}
	}
}

static void fill_fits(struct tables *t, const struct gpucr_devmap *m,
		      const struct gpucr_here *h)
{
	size_t i, j, g = h->topo->num_gpus;

	for (j = 0; j < g; j++) {
		const struct gpucr_node *n = h->topo->gpus[j];
		bool opens = !try_open(h, n);

		for (i = 0; opens && i < m->num; i++) {
			const struct gpucr_img_device *d = &m->v[i].there;
			struct gpucr_devmap_why w = { 0 };

			w.num_rules = gpucr_rules_apply(d, n, h->opts,
							w.rules);
			if (map_allows(h->opts, d, n) && !count_forbidden(&w))
				t->fits[i * g + j] = preference(d, n);
		}
	}
}

static int tables_make(struct tables *t, const struct gpucr_devmap *m,
		       const struct gpucr_here *h)
{
	size_t i;

	memset(t, 0, sizeof(*t));
	if (tables_alloc(t, m, h->topo))
		return -ENOMEM;
	for (i = 0; i < m->num; i++)
		links_there(t, m, i);
	for (i = 0; i < h->topo->num_gpus; i++)
		links_here(t, h->topo, i);
	fill_fits(t, m, h);
	t->s = (struct gpucr_solve){
		.num_there = m->num,
		.num_here = h->topo->num_gpus,
		.there = t->there, .here = t->here, .fits = t->fits,
		.rank_there = t->rank_there, .rank_here = t->rank_here,
		.numa = h->opts->check_numa, .links = h->opts->check_links,
	};
	return 0;
}

static int tell_rule(const struct gpucr_devmap_entry *e,
		     const struct gpucr_devmap_why *w)
{
	const struct gpucr_rule *r = NULL;
	size_t i;

	for (i = 0; i < w->num_rules && !r; i++) {
		if (w->rules[i].forbids)
			r = &w->rules[i];
	}
	if (!r) {
		gpucr_err("GPU 0x%04x of the image cannot be GPU 0x%04x here: renderD%u cannot be opened: %s (no-render-node); give the container /dev/dri/renderD%u",
			  e->there.local_gpu_id, w->here->gpu_id,
			  w->here->drm_render_minor, strerror(-w->open_err),
			  w->here->drm_render_minor);
		return -EINVAL;
	}
	gpucr_err("GPU 0x%04x of the image cannot be GPU 0x%04x here: %s is %llu there, %llu here (%s)%s%s%s",
		  e->there.local_gpu_id, w->here->gpu_id, r->field,
		  (unsigned long long)r->there, (unsigned long long)r->here,
		  r->token, r->option ? "; allow it with " : "",
		  r->option ? r->option : "", r->option ? " = off" : "");
	return -EINVAL;
}

/* A GPU that fits none by itself; 0 where there is no such one. */
static int tell_unfit(const struct gpucr_devmap *m, const struct gpucr_here *h)
{
	struct gpucr_devmap_why w;
	size_t i;

	for (i = 0; i < m->num; i++) {
		gpucr_devmap_explain(&m->v[i], h, 0, &w);
		if (w.here && !w.fits)
			return tell_rule(&m->v[i], &w);
	}
	return 0;
}

static int tell_too_few(const struct gpucr_devmap *m,
			const struct gpucr_here *h, long most)
{
	gpucr_err("the image has %zu GPUs, and at most %ld of the %zu here can stand for them at once (no-gpu)",
		  m->num, most, h->topo->num_gpus);
	return -ENODEV;
}

/* How many different nodes the links lead to. */
static size_t count_cpus(const struct gpucr_solve_gpu *v, size_t num)
{
	size_t i, j, k, l, n = 0;

	for (i = 0; i < num; i++) {
		for (j = 0; j < v[i].num_cpus; j++) {
			bool first = true;

			for (k = 0; k <= i && first; k++)
				for (l = 0; l < (k < i ? v[k].num_cpus : j);
				     l++)
					first &= v[k].cpus[l].node !=
						 v[i].cpus[j].node;
			n += first;
		}
	}
	return n;
}

/* Each by itself would fit; which rule would have to go? */
static int tell_together(struct tables *t, size_t *at, int err)
{
	struct gpucr_solve *s = &t->s;

	if (err == -EAGAIN) {
		gpucr_err("no place for all GPUs of the image was found in %u steps (map-unsolved); give device-map",
			  GPUCR_SOLVE_STEPS);
		return -EINVAL;
	}
	if (s->numa) {
		s->numa = false;
		err = gpucr_solve_run(s, at);
		s->numa = true;
		if (!err) {
			gpucr_err("the GPUs of the image hang on %zu CPU nodes there, and cannot hang in the same way on the %zu here (numa-differs); allow it with numa-check = off",
				  count_cpus(s->there, s->num_there),
				  count_cpus(s->here, s->num_here));
			return -EINVAL;
		}
	}
	s->links = false;
	err = gpucr_solve_run(s, at);
	gpucr_err("the GPUs of the image are joined by xGMI or PCIe there in a way that those here are not (links-differ); allow it with link-check = off%s",
		  err ? " and numa-check = off" : "");
	return -EINVAL;
}

static void take(struct gpucr_devmap *m, const struct gpucr_here *h,
		 const size_t *at)
{
	size_t i;

	for (i = 0; i < m->num; i++) {
		struct gpucr_devmap_entry *e = &m->v[i];
		const struct gpucr_node *n = h->topo->gpus[at[i]];

		e->gpu_id = n->gpu_id;
		e->render_minor = n->drm_render_minor;
		gpucr_info("GPU 0x%04x of the image becomes GPU 0x%04x, renderD%u",
			   e->there.local_gpu_id, n->gpu_id,
			   n->drm_render_minor);
	}
}

static int solve(struct gpucr_devmap *m, const struct gpucr_here *h,
		 struct tables *t, size_t *at)
{
	int err = gpucr_solve_run(&t->s, at);
	long most;

	if (!err)
		take(m, h, at);
	if (!err || err == -ENOMEM)
		return err;
	most = gpucr_solve_match(&t->s);
	if (most < 0)
		return (int)most;
	if ((size_t)most == m->num)
		return tell_together(t, at, err);
	err = tell_unfit(m, h);
	return err ? err : tell_too_few(m, h, most);
}

int gpucr_devmap_solve(struct gpucr_devmap *m, const struct gpucr_here *h)
{
	size_t *at = calloc(m->num + 1, sizeof(*at));
	struct tables t = { 0 };
	int err = at ? check_given(m, h) : -ENOMEM;

	if (!err)
		err = tables_make(&t, m, h);
	if (!err)
		err = solve(m, h, &t, at);
	tables_free(&t);
	free(at);
	return err;
}
