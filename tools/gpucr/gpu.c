// SPDX-License-Identifier: GPL-2.0-only
/* GPUs, by KFD's topology. Read once, at the first question. */
#include <errno.h>
#include <stdbool.h>

#include "fail.h"
#include "gpu.h"
#include "out.h"
#include "proc.h"
#include "topology.h"

static const struct gpucr_topology *topology(int *err)
{
	static struct gpucr_topology *topo;
	static int error;
	static bool done;

	if (!done)
		error = gpucr_topology_read(NULL, &topo);
	done = true;
	if (err)
		*err = error;
	return topo;
}

size_t gpu_count(void)
{
	const struct gpucr_topology *t = topology(NULL);

	return t ? t->num_gpus : 0;
}

uint32_t gpu_of_minor(uint32_t dev_minor)
{
	const struct gpucr_topology *t = topology(NULL);
	const struct gpucr_node *n;
	uint32_t render;

	if (!t || !t->num_gpus)
		return 0;
	render = gpucr_dev_render_minor(dev_minor);
	n = render ? gpucr_topology_find_by_minor(t, render) : NULL;
	return n ? n->gpu_id : 0;
}

void gpu_driver(char *name, size_t size)
{
	const struct gpucr_topology *t = topology(NULL);

	name[0] = '\0';
	if (t && t->num_gpus)
		gpucr_dev_driver(t->gpus[0]->drm_render_minor, name, size);
}

int gpu_check(const struct args *args)
{
	const struct gpucr_topology *t;
	int err;

	if (!args->has[KEY_GPU])
		return EXIT_DONE;
	t = topology(&err);
	if (!t)
		return fail(TOKEN_NO_KFD, -err, "KFD: there is no topology");
	if (gpucr_topology_find_by_gpu_id(t, (uint32_t)args->value[KEY_GPU]))
		return EXIT_DONE;
	return fail(TOKEN_NO_GPU, 0, "GPU %s: not in the topology",
		    args->text[KEY_GPU]);
}

void gpu_add(struct json_object *row, uint32_t gpu_id)
{
	if (gpu_id)
		out_add_u64(row, "gpu", gpu_id);
	else
		out_add_null(row, "gpu");
}
