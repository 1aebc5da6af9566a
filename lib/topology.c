// SPDX-License-Identifier: GPL-2.0-only
/* KFD's topology in sysfs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topology.h"

#define TEXT_SIZE	8192	/* a node's properties are about 1 KiB */
#define MAX_NODES	1024
#define MAX_BANKS	256
#define MAX_LINKS	1024

#define HEAP_FB_PUBLIC	1
#define HEAP_FB_PRIVATE	2

struct property {
	const char *name;
	size_t offset;
	size_t size;
};

#define PROP(f) { #f, offsetof(struct gpucr_node, f), \
		  sizeof(((struct gpucr_node *)0)->f) }

static const struct property properties[] = {
	PROP(cpu_cores_count), PROP(simd_count), PROP(mem_banks_count),
	PROP(caches_count), PROP(io_links_count), PROP(p2p_links_count),
	PROP(max_waves_per_simd), PROP(lds_size_in_kb),
	PROP(gds_size_in_kb), PROP(num_gws),
	PROP(wave_front_size), PROP(array_count),
	PROP(simd_arrays_per_engine), PROP(cu_per_simd_array),
	PROP(simd_per_cu), PROP(max_slots_scratch_cu),
	PROP(gfx_target_version), PROP(vendor_id), PROP(device_id),
	PROP(location_id), PROP(domain), PROP(drm_render_minor),
	PROP(num_sdma_engines), PROP(num_sdma_xgmi_engines),
	PROP(num_sdma_queues_per_engine), PROP(num_cp_queues),
	PROP(fw_version), PROP(sdma_fw_version), PROP(capability),
	PROP(num_xcc), PROP(hive_id), PROP(unique_id),
};

/* Reads a small text file below dir. Longer ones are cut. 0 or -errno. */
static int read_text(int dir, const char *path, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;
	int fd, err = 0;

	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		n = read(fd, text + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	close(fd);
	return err;
}

static int parse_u64(const char *s, uint64_t *ret)
{
	char *end;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(s, &end, 10);
	if (errno)
		return -errno;
	return *end == '\0' || *end == ' ' || *end == '\n' ? 0 : -EINVAL;
}

/*
 * Calls fn for each line "name number". Any other line is passed over: one
 * that this version does not know must not hide the rest.
 */
static void for_each_property(char *text,
			      void (*fn)(const char *name, uint64_t value,
					 void *arg), void *arg)
{
	char *line, *next, *value;
	uint64_t n;

	for (line = text; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		value = strchr(line, ' ');
		if (!value)
			continue;
		*value++ = '\0';
		if (!parse_u64(value, &n))
			fn(line, n, arg);
	}
}

static void set_property(const char *name, uint64_t value, void *arg)
{
	size_t i;

	for (i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
		const struct property *p = &properties[i];
		char *at = (char *)arg + p->offset;
		uint32_t v32 = (uint32_t)value;

		if (strcmp(p->name, name))
			continue;
		if (p->size == sizeof(value))
			memcpy(at, &value, sizeof(value));
		else if (value <= UINT32_MAX)
			memcpy(at, &v32, sizeof(v32));
		return;
	}
}

struct bank {
	uint64_t heap_type, size;
};

static void set_bank(const char *name, uint64_t value, void *arg)
{
	struct bank *b = arg;

	if (!strcmp(name, "heap_type"))
		b->heap_type = value;
	else if (!strcmp(name, "size_in_bytes"))
		b->size = value;
}

static void read_vram(int dir, struct gpucr_node *node, char *text)
{
	uint32_t i, banks = node->mem_banks_count;
	char path[64];

	for (i = 0; i < banks && i < MAX_BANKS; i++) {
		struct bank b = { 0 };

		snprintf(path, sizeof(path), "mem_banks/%u/properties", i);
		if (read_text(dir, path, text, TEXT_SIZE))
			continue;
		for_each_property(text, set_bank, &b);
		if (b.heap_type != HEAP_FB_PUBLIC &&
		    b.heap_type != HEAP_FB_PRIVATE)
			continue;
		if (!node->vram_size)
			node->vram_public = b.heap_type == HEAP_FB_PUBLIC;
		node->vram_size += b.size;
	}
}

struct link_text {
	uint64_t type, to;
};

static void set_link(const char *name, uint64_t value, void *arg)
{
	struct link_text *l = arg;

	if (!strcmp(name, "type"))
		l->type = value;
	else if (!strcmp(name, "node_to"))
		l->to = value;
}

/* Appends those of one kind; one that cannot be read is as one not there. */
static int read_links(int dir, const char *kind, uint32_t count, bool p2p,
		      struct gpucr_node *node, char *text)
{
	struct gpucr_link *more;
	char path[64];
	uint32_t i;

	if (count > MAX_LINKS)
		count = MAX_LINKS;
	more = reallocarray(node->links, node->num_links + count + 1,
			    sizeof(*more));
	if (!more)
		return -ENOMEM;
	node->links = more;
	for (i = 0; i < count; i++) {
		struct link_text l = { .to = UINT64_MAX };

		snprintf(path, sizeof(path), "%s/%u/properties", kind, i);
		if (read_text(dir, path, text, TEXT_SIZE))
			continue;
		for_each_property(text, set_link, &l);
		if (l.to > INT_MAX || l.type > INT_MAX)
			continue;
		node->links[node->num_links++] = (struct gpucr_link){
			.to = (uint32_t)l.to, .type = (uint32_t)l.type,
			.p2p = p2p,
		};
	}
	return 0;
}

static int read_node(int nodes_dir, uint32_t number, struct gpucr_node *node)
{
	char path[16], text[TEXT_SIZE];
	uint64_t value;
	int dir, err;

	memset(node, 0, sizeof(*node));
	node->node = number;
	snprintf(path, sizeof(path), "%u", number);
	dir = openat(nodes_dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	err = read_text(dir, "properties", text, sizeof(text));
	if (err)
		goto close_dir;
	for_each_property(text, set_property, node);
	err = read_text(dir, "gpu_id", text, sizeof(text));
	if (!err && !parse_u64(text, &value) && value <= UINT32_MAX)
		node->gpu_id = (uint32_t)value;
	else if (err == -ENOENT)
		err = 0;	/* a captured tree may lack it */
	if (err)
		goto close_dir;
	if (!read_text(dir, "name", text, sizeof(node->name)))
		memcpy(node->name, text, strcspn(text, "\n"));
	read_vram(dir, node, text);
	err = read_links(dir, "io_links", node->io_links_count, false, node,
			 text);
	if (!err)
		err = read_links(dir, "p2p_links", node->p2p_links_count, true,
				 node, text);
close_dir:
	close(dir);
	return err;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Numbers of the nodes, sorted. Returns how many or -errno. */
static int list_nodes(int nodes_dir, uint32_t *numbers)
{
	struct dirent *de;
	int copy, num = 0;
	uint64_t value;
	DIR *d;

	copy = fcntl(nodes_dir, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return -errno;
	d = fdopendir(copy);
	if (!d) {
		close(copy);
		return -ENOMEM;
	}
	while (num < MAX_NODES && (de = readdir(d)))
		if (!parse_u64(de->d_name, &value) && value <= INT_MAX)
			numbers[num++] = (uint32_t)value;
	closedir(d);
	qsort(numbers, num, sizeof(*numbers), compare_u32);
	return num;
}

static int read_nodes(int nodes_dir, struct gpucr_topology *t)
{
	uint32_t numbers[MAX_NODES];
	int i, num, err;

	num = list_nodes(nodes_dir, numbers);
	if (num < 0)
		return num;
	t->nodes = calloc(num ? num : 1, sizeof(*t->nodes));
	t->gpus = calloc(num ? num : 1, sizeof(*t->gpus));
	if (!t->nodes || !t->gpus)
		return -ENOMEM;
	for (i = 0; i < num; i++) {
		struct gpucr_node *node = &t->nodes[t->num_nodes];

		err = read_node(nodes_dir, numbers[i], node);
		if (err) {
			/* Hidden by the device cgroup, or just unplugged. */
			free(node->links);
			memset(node, 0, sizeof(*node));
			t->num_skipped++;
			continue;
		}
		t->num_nodes++;
		if (node->gpu_id)
			t->gpus[t->num_gpus++] = node;
	}
	return 0;
}

int gpucr_topology_read(const char *root, struct gpucr_topology **ret)
{
	struct gpucr_topology *t;
	int dir, nodes, err;
	char text[32];
	uint64_t gen;

	*ret = NULL;
	dir = open(root ? root : GPUCR_TOPOLOGY_ROOT,
		   O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	err = -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (!t)
		goto close_dir;
	nodes = openat(dir, "nodes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = nodes < 0 ? -errno : 0;
	if (err)
		goto free_topology;
	if (!read_text(dir, "generation_id", text, sizeof(text)) &&
	    !parse_u64(text, &gen) && gen <= UINT32_MAX)
		t->generation = (uint32_t)gen;
	err = read_nodes(nodes, t);
	close(nodes);
	if (err)
		goto free_topology;
	close(dir);
	*ret = t;
	return 0;

free_topology:
	gpucr_topology_free(t);
close_dir:
	close(dir);
	return err;
}

void gpucr_topology_free(struct gpucr_topology *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->num_nodes; i++)
		free(t->nodes[i].links);
	free(t->nodes);
	free(t->gpus);
	free(t);
}

const struct gpucr_node *
gpucr_topology_find_by_gpu_id(const struct gpucr_topology *t, uint32_t gpu_id)
{
	size_t i;

	for (i = 0; i < t->num_gpus; i++)
		if (t->gpus[i]->gpu_id == gpu_id)
			return t->gpus[i];
	return NULL;
}

const struct gpucr_node *
gpucr_topology_find_by_minor(const struct gpucr_topology *t, uint32_t minor)
{
	size_t i;

	for (i = 0; i < t->num_gpus; i++)
		if (t->gpus[i]->drm_render_minor == minor)
			return t->gpus[i];
	return NULL;
}

const struct gpucr_node *
gpucr_topology_find_by_node(const struct gpucr_topology *t, uint32_t node)
{
	size_t i;

	for (i = 0; i < t->num_nodes; i++)
		if (t->nodes[i].node == node)
			return &t->nodes[i];
	return NULL;
}
