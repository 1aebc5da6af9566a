// SPDX-License-Identifier: GPL-2.0-only
#include "devmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "rendernode.h"

int devmap_add(struct devmap *m, const struct gpucr_img_device *d)
{
	struct devmap_entry *more;

	if (devmap_find(m, d->local_gpu_id))
		return 0;
	more = reallocarray(m->v, m->num + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	m->v = more;
	m->v[m->num++] = (struct devmap_entry){ .there = *d };
	return 0;
}

const struct devmap_entry *devmap_find(const struct devmap *m,
				       uint32_t there_gpu_id)
{
	size_t i;

	for (i = 0; i < m->num; i++) {
		if (m->v[i].there.local_gpu_id == there_gpu_id)
			return &m->v[i];
	}
	return NULL;
}

void devmap_clear(struct devmap *m)
{
	free(m->v);
	memset(m, 0, sizeof(*m));
}

/* One property that differs in a way that forbids the restore. */
struct difference {
	const char *name;
	const char *option;	/* that would allow it; NULL: none */
	uint64_t there, here;
};

/* Fills *ret and returns true at the first such property. */
static bool differs(const struct gpucr_img_device *d,
		    const struct gpucr_node *n, const struct gpucr_opts *o,
		    struct difference *ret)
{
	const struct rule {
		struct difference d;
		bool bad;
	} rules[] = {
#define EQUAL(f) { { #f, NULL, d->f, n->f }, d->f != n->f }
		EQUAL(vendor_id), EQUAL(device_id), EQUAL(gfx_target_version),
		EQUAL(simd_count), EQUAL(num_xcc),
#undef EQUAL
		{ { "capability", "capability-check", d->capability,
		    n->capability },
		  o->check_capability && d->capability != n->capability },
#define AT_LEAST(f, nf, opt, check) \
		{ { #nf, opt, d->f, n->nf }, o->check && d->f > n->nf }
		AT_LEAST(vram_bytes, vram_size, "vram-size-check",
			 check_vram_size),
		AT_LEAST(num_gws, num_gws, "num-gws-check", check_num_gws),
		AT_LEAST(caches_count, caches_count, "caches-count-check",
			 check_caches_count),
		AT_LEAST(fw_version, fw_version, "fw-ver-check", check_fw_ver),
		AT_LEAST(sdma_fw_version, sdma_fw_version, "sdma-fw-ver-check",
			 check_sdma_fw_ver),
#undef AT_LEAST
	};
	size_t i;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!rules[i].bad)
			continue;
		*ret = rules[i].d;
		return true;
	}
	return false;
}

static bool is_taken(const struct devmap *m, uint32_t gpu_id)
{
	size_t i;

	for (i = 0; i < m->num; i++) {
		if (m->v[i].gpu_id == gpu_id)
			return true;
	}
	return false;
}

static int tell_difference(const struct devmap_entry *e,
			   const struct gpucr_node *n,
			   const struct difference *x)
{
	gpucr_err("GPU 0x%04x of the image cannot be GPU 0x%04x here: %s is %llu there, %llu here (gpu-differs)%s%s%s",
		  e->there.local_gpu_id, n->gpu_id, x->name,
		  (unsigned long long)x->there, (unsigned long long)x->here,
		  x->option ? "; allow it with " : "",
		  x->option ? x->option : "", x->option ? " = off" : "");
	return -EINVAL;
}

static void take(struct devmap_entry *e, const struct gpucr_node *n)
{
	e->gpu_id = n->gpu_id;
	e->render_minor = n->drm_render_minor;
	gpucr_info("GPU 0x%04x of the image becomes GPU 0x%04x, renderD%u",
		   e->there.local_gpu_id, n->gpu_id, n->drm_render_minor);
}

/* What device-map says. */
static int solve_given(struct devmap *m, const struct gpucr_topology *topo,
		       const struct gpucr_opts *opts)
{
	size_t i;

	for (i = 0; i < opts->map_len; i++) {
		const struct gpucr_gpu_pair *p = &opts->map[i];
		const struct gpucr_node *n;
		struct devmap_entry *e;
		struct difference x;

		e = (struct devmap_entry *)devmap_find(m, p->image);
		n = gpucr_topology_find_by_gpu_id(topo, p->local);
		if (!e || !n || is_taken(m, p->local)) {
			gpucr_err("device-map: %u=%u: %s (device-map)",
				  p->image, p->local,
				  !e ? "the image has no such GPU" :
				  !n ? "there is no such GPU here" :
				  "that GPU is given twice");
			return -EINVAL;
		}
		if (differs(&e->there, n, opts, &x))
			return tell_difference(e, n, &x);
		take(e, n);
	}
	return 0;
}

/* A GPU that keeps its id. */
static void solve_same(struct devmap *m, const struct gpucr_topology *topo,
		       const struct gpucr_opts *opts)
{
	struct difference x;
	size_t i;

	for (i = 0; i < m->num; i++) {
		struct devmap_entry *e = &m->v[i];
		const struct gpucr_node *n;

		n = gpucr_topology_find_by_gpu_id(topo, e->there.local_gpu_id);
		if (!e->gpu_id && n && !is_taken(m, n->gpu_id) &&
		    !differs(&e->there, n, opts, &x))
			take(e, n);
	}
}

/* Any other that will do, and whose render node opens. */
static int solve_other(struct devmap *m, struct devmap_entry *e,
		       const struct gpucr_topology *topo,
		       const struct gpucr_opts *opts)
{
	const struct gpucr_node *nearest = NULL;
	struct difference x, why = { 0 };
	size_t i;

	for (i = 0; i < topo->num_gpus; i++) {
		const struct gpucr_node *n = topo->gpus[i];
		int fd;

		if (is_taken(m, n->gpu_id))
			continue;
		if (differs(&e->there, n, opts, &x)) {
			nearest = n;
			why = x;
			continue;
		}
		fd = gpucr_drm_open_render(n->drm_render_minor);
		if (fd < 0)
			continue;
		close(fd);
		take(e, n);
		return 0;
	}
	if (nearest)
		return tell_difference(e, nearest, &why);
	gpucr_err("GPU 0x%04x of the image has no counterpart: %zu GPUs here, %zu needed (no-gpu)",
		  e->there.local_gpu_id, topo->num_gpus, m->num);
	return -ENODEV;
}

int devmap_solve(struct devmap *m, const struct gpucr_topology *topo,
		 const struct gpucr_opts *opts)
{
	size_t i;
	int err;

	err = solve_given(m, topo, opts);
	if (err)
		return err;
	solve_same(m, topo, opts);
	for (i = 0; i < m->num && !err; i++) {
		if (!m->v[i].gpu_id)
			err = solve_other(m, &m->v[i], topo, opts);
	}
	return err;
}
