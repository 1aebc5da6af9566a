// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device mapping on machines that are made up: each property by itself,
 * hives, links, CPU nodes, partitions, names in device-map, many GPUs.
 *
 * Seen to fail: without agrees() in the solver "links" and "64 GPUs", without
 * the pairs of CPU nodes "CPU nodes", without the kinds of GPU "alike".
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <time.h>

#include "devmap.h"
#include "mapsolve.h"
#include "sample.h"
#include "table.h"

#define MAX_NODES	80

struct machine {
	struct gpucr_topology topo;
	struct gpucr_node nodes[MAX_NODES];
	const struct gpucr_node *gpus[MAX_NODES];
	struct gpucr_link links[MAX_NODES][MAX_NODES];
};

static struct machine there, here;
static struct gpucr_opts opts;
static struct gpucr_devmap map;
static uint32_t closed_minor;

static int open_node(uint32_t minor)
{
	return minor == closed_minor ? -EPERM : open("/dev/null", O_RDONLY);
}

static void add_link(struct machine *m, uint32_t from, uint32_t to,
		     uint32_t type, bool p2p)
{
	struct gpucr_node *n = &m->nodes[from];

	n->links[n->num_links++] = (struct gpucr_link){ to, type, p2p };
	n->io_links_count += !p2p;
}

static void add_node(struct machine *m)
{
	struct gpucr_node *n = &m->nodes[m->topo.num_nodes];

	memset(n, 0, sizeof(*n));
	n->node = (uint32_t)m->topo.num_nodes++;
	n->links = m->links[n->node];
}

/* A GPU under CPU node cpu. */
static struct gpucr_node *add_gpu(struct machine *m, uint32_t cpu,
				  uint64_t hive)
{
	struct gpucr_node *n = &m->nodes[m->topo.num_nodes];
	uint32_t num = (uint32_t)m->topo.num_gpus;

	add_node(m);
	n->gpu_id = 1000 + num;
	n->drm_render_minor = 128 + num;
	n->location_id = (num + 1) << 8;
	n->unique_id = 0xabc000 + num;
	n->hive_id = hive;
	n->vendor_id = 0x1002;
	n->device_id = 0x740f;
	n->gfx_target_version = 90010;
	n->num_xcc = 1;
	n->simd_count = 416;
	n->array_count = 8;
	n->simd_arrays_per_engine = 1;
	n->cu_per_simd_array = 14;
	n->simd_per_cu = 4;
	n->max_waves_per_simd = 8;
	n->wave_front_size = 64;
	n->lds_size_in_kb = 64;
	n->max_slots_scratch_cu = 32;
	n->num_sdma_engines = 2;
	n->num_sdma_xgmi_engines = 3;
	n->num_sdma_queues_per_engine = 8;
	n->num_cp_queues = 24;
	n->mem_banks_count = 1;
	n->vram_public = 1;
	n->caches_count = 100;
	n->num_gws = 64;
	n->capability = 611820160;
	n->fw_version = 92;
	n->sdma_fw_version = 9;
	n->vram_size = UINT64_C(64) << 30;
	add_link(m, n->node, cpu, GPUCR_LINK_PCIE, false);
	m->gpus[m->topo.num_gpus++] = n;
	return n;
}

static void machine(struct machine *m, int num_cpus)
{
	memset(m, 0, sizeof(*m));
	m->topo.nodes = m->nodes;
	m->topo.gpus = m->gpus;
	while (num_cpus--)
		add_node(m);
}

/* Every two GPUs of a hive by xGMI. */
static void join_hives(struct machine *m)
{
	size_t i, j;

	for (i = 0; i < m->topo.num_gpus; i++) {
		for (j = 0; j < m->topo.num_gpus; j++) {
			const struct gpucr_node *a = m->gpus[i];
			const struct gpucr_node *b = m->gpus[j];

			if (i != j && a->hive_id && a->hive_id == b->hive_id)
				add_link(m, a->node, b->node, GPUCR_LINK_XGMI,
					 false);
		}
	}
}

static void wire(struct machine *m, size_t a, size_t b, uint32_t type, bool p2p)
{
	add_link(m, m->gpus[a]->node, m->gpus[b]->node, type, p2p);
	add_link(m, m->gpus[b]->node, m->gpus[a]->node, type, p2p);
}

static struct gpucr_node *gpu_here(size_t i)
{
	return (struct gpucr_node *)here.gpus[i];
}

/* The map from there to here. */
static int solve(void)
{
	struct gpucr_here h = {
		.topo = &here.topo, .opts = &opts, .open_render = open_node,
	};
	size_t i;

	gpucr_devmap_clear(&map);
	for (i = 0; i < there.topo.num_gpus; i++) {
		struct gpucr_img_device d;

		gpucr_img_device_from_node(&d, &there.topo, there.gpus[i],
					   there.gpus[i]->gpu_id);
		if (gpucr_devmap_add(&map, &d))
			return -ENOMEM;
	}
	return gpucr_devmap_solve(&map, &h);
}

static uint32_t is_now(uint32_t there_gpu_id)
{
	return gpucr_devmap_find(&map, there_gpu_id)->gpu_id;
}

static void fresh(int gpus)
{
	struct machine *m[] = { &there, &here };
	int i, j;

	gpucr_opts_defaults(&opts);
	closed_minor = 0;
	for (i = 0; i < 2; i++) {
		machine(m[i], 1);
		for (j = 0; j < gpus; j++)
			add_gpu(m[i], 0, 0);
	}
	sample_errors();
}

/* One field that is lower, or higher, here: what is the verdict? */
struct field {
	const char *name;
	size_t offset, size;
	bool may_grow;		/* more here is as good */
	const char *option;	/* that allows it */
	size_t check;
};

#define FIELD(f) \
	{ #f, offsetof(struct gpucr_node, f), \
	  sizeof(((struct gpucr_node *)0)->f), false, NULL, 0 }
#define OPTION(f, grow, opt, c) \
	{ #f, offsetof(struct gpucr_node, f), \
	  sizeof(((struct gpucr_node *)0)->f), grow, opt, \
	  offsetof(struct gpucr_opts, c) }

static const struct field fields[] = {
	FIELD(vendor_id), FIELD(device_id), FIELD(gfx_target_version),
	FIELD(num_xcc), FIELD(simd_count), FIELD(array_count),
	FIELD(simd_arrays_per_engine), FIELD(cu_per_simd_array),
	FIELD(simd_per_cu), FIELD(max_waves_per_simd), FIELD(wave_front_size),
	FIELD(lds_size_in_kb), FIELD(max_slots_scratch_cu),
	FIELD(num_sdma_engines), FIELD(num_sdma_xgmi_engines),
	FIELD(num_sdma_queues_per_engine), FIELD(num_cp_queues),
	FIELD(mem_banks_count), FIELD(vram_public),
	OPTION(io_links_count, false, "link-check", check_links),
	OPTION(capability, false, "capability-check", check_capability),
	OPTION(vram_size, true, "vram-size-check", check_vram_size),
	OPTION(num_gws, true, "num-gws-check", check_num_gws),
	OPTION(caches_count, true, "caches-count-check", check_caches_count),
	OPTION(fw_version, true, "fw-ver-check", check_fw_ver),
	OPTION(sdma_fw_version, true, "sdma-fw-ver-check", check_sdma_fw_ver),
};

#define NUM_FIELDS	(sizeof(fields) / sizeof(fields[0]))

static void change(const struct field *f, int by)
{
	char *at = (char *)gpu_here(0) + f->offset;

	if (f->size == sizeof(uint64_t))
		*(uint64_t *)at += (uint64_t)by;
	else
		*(uint32_t *)at += (uint32_t)by;
}

static int refused_as(const struct field *f)
{
	char want[64];

	CHECK(sample_errors() == 1);
	snprintf(want, sizeof(want), "here: %s is ", f->name);
	CHECK(strstr(sample_last_error(), want));
	if (f->option)
		CHECK(strstr(sample_last_error(), f->option));
	else
		CHECK(!strstr(sample_last_error(), "allow it"));
	return 0;
}

/* Equal but for one field, both ways: 52 machines. */
static int one_field(void)
{
	size_t i;
	int by;

	for (i = 0; i < NUM_FIELDS; i++) {
		for (by = -1; by <= 1; by += 2) {
			const struct field *f = &fields[i];
			int err;

			fresh(1);
			change(f, by);
			err = solve();
			ktap_note("%s %+d: %d", f->name, by, err);
			CHECK(err == (f->may_grow && by > 0 ? 0 : -EINVAL));
			if (err && refused_as(f))
				return 1;
		}
	}
	return 0;
}

static int fields_without_meaning(void)
{
	fresh(1);
	gpu_here(0)->gpu_id = 4711;
	gpu_here(0)->drm_render_minor = 160;
	gpu_here(0)->location_id = 0xc100;
	gpu_here(0)->domain = 2;
	gpu_here(0)->unique_id = 5;
	gpu_here(0)->hive_id = 7;
	gpu_here(0)->p2p_links_count = 3;
	CHECK(!solve());
	CHECK(is_now(1000) == 4711 && map.v[0].render_minor == 160);
	return 0;
}

static int switched_off(void)
{
	size_t i;

	for (i = 0; i < NUM_FIELDS; i++) {
		if (!fields[i].option)
			continue;
		fresh(1);
		change(&fields[i], -1);
		*((bool *)&opts + fields[i].check) = false;
		ktap_note("%s", fields[i].option);
		CHECK(!solve());
	}
	return 0;
}

/* Images of before the topology was recorded. */
static int early_image(void)
{
	struct gpucr_here h = {
		.topo = &here.topo, .opts = &opts, .open_render = open_node,
	};
	struct gpucr_img_device d;

	fresh(1);
	gpu_here(0)->wave_front_size = 32;
	sample_device(&d, 4711);
	d.capability = gpu_here(0)->capability;
	gpucr_devmap_clear(&map);
	CHECK(!gpucr_devmap_add(&map, &d));
	CHECK(!gpucr_devmap_solve(&map, &h));
	return 0;
}

static int keeps_its_id(void)
{
	fresh(3);
	there.topo.num_gpus = 2;
	/* Ids of the two are here in another order. */
	gpu_here(0)->gpu_id = 1001;
	gpu_here(1)->gpu_id = 4;
	gpu_here(2)->gpu_id = 1000;
	CHECK(!solve());
	CHECK(is_now(1000) == 1000 && is_now(1001) == 1001);
	return 0;
}

/* The first that fits is not taken where another needs it. */
static int backtracks(void)
{
	fresh(2);
	((struct gpucr_node *)there.gpus[1])->fw_version = 99;
	gpu_here(0)->fw_version = 99;
	gpu_here(0)->gpu_id = 1;
	gpu_here(1)->gpu_id = 2;
	CHECK(!solve());
	CHECK(is_now(1000) == 2 && is_now(1001) == 1);
	return 0;
}

static int too_few(void)
{
	fresh(2);
	here.topo.num_gpus = 1;
	CHECK(solve() == -ENODEV);
	CHECK(strstr(sample_last_error(), "(no-gpu)"));
	fresh(2);
	here.topo.num_gpus = 0;
	CHECK(solve() == -ENODEV);
	return 0;
}

static int render_node(void)
{
	fresh(2);
	there.topo.num_gpus = 1;
	closed_minor = 128;
	CHECK(!solve());
	CHECK(is_now(1000) == 1001);
	here.topo.num_gpus = 1;
	CHECK(solve() == -EINVAL);
	CHECK(strstr(sample_last_error(), "(no-render-node)"));
	return 0;
}

/* Two of a hive among GPUs of which only the last two are one. */
static int hives(void)
{
	int i;

	fresh(0);
	machine(&there, 1);
	machine(&here, 1);
	add_gpu(&there, 0, 5);
	add_gpu(&there, 0, 5);
	for (i = 0; i < 4; i++)
		add_gpu(&here, 0, i < 2 ? i + 1 : 9);
	join_hives(&there);
	join_hives(&here);
	/* All have as many links: only the hive tells. */
	for (i = 0; i < 2; i++)
		add_link(&here, here.gpus[i]->node, 0, GPUCR_LINK_PCIE, true);
	gpu_here(0)->io_links_count = 2;
	gpu_here(1)->io_links_count = 2;
	CHECK(!solve());
	CHECK(is_now(1000) >= 1002 && is_now(1001) >= 1002);
	gpu_here(3)->hive_id = 10;
	CHECK(solve() == -EINVAL);
	CHECK(strstr(sample_last_error(), "(links-differ)"));
	CHECK(strstr(sample_last_error(), "link-check"));
	opts.check_links = false;
	CHECK(!solve());
	return 0;
}

/* xGMI may replace PCIe, PCIe a way through the CPU; never the other way. */
static int links(void)
{
	static const struct { uint32_t there, here; int err; } cases[] = {
		{ 0, 0, 0 }, { 0, GPUCR_LINK_PCIE, 0 },
		{ GPUCR_LINK_PCIE, GPUCR_LINK_PCIE, 0 },
		{ GPUCR_LINK_PCIE, GPUCR_LINK_XGMI, 0 },
		{ GPUCR_LINK_PCIE, 0, -EINVAL },
		{ GPUCR_LINK_XGMI, GPUCR_LINK_PCIE, -EINVAL },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fresh(2);
		if (cases[i].there)
			wire(&there, 0, 1, cases[i].there, true);
		if (cases[i].here)
			wire(&here, 0, 1, cases[i].here, true);
		CHECK(solve() == cases[i].err);
	}
	/* A link to a GPU that is not in the image is nobody's loss. */
	fresh(2);
	wire(&there, 0, 1, GPUCR_LINK_XGMI, true);
	there.topo.num_gpus = 1;
	CHECK(!solve());
	return 0;
}

static void two_sockets(struct machine *m, const uint32_t *cpus, int num)
{
	int i;

	machine(m, 2);
	for (i = 0; i < num; i++)
		add_gpu(m, cpus[i], 0);
}

static int cpu_nodes(void)
{
	static const uint32_t a[] = { 0, 0, 1, 1 }, b[] = { 1, 0, 1, 0 };
	static const uint32_t c[] = { 0, 0, 0, 1 };
	uint32_t w[4];
	int i;

	fresh(0);
	two_sockets(&there, a, 4);
	two_sockets(&here, b, 4);
	CHECK(!solve());
	for (i = 0; i < 4; i++)
		w[i] = b[is_now(1000 + i) - 1000];
	CHECK(w[0] == w[1] && w[2] == w[3] && w[0] != w[2]);
	/* Three on one socket are not two and two. */
	two_sockets(&here, c, 4);
	CHECK(solve() == -EINVAL);
	CHECK(strstr(sample_last_error(), "(numa-differs)"));
	CHECK(strstr(sample_last_error(), "numa-check"));
	opts.check_numa = false;
	CHECK(!solve());
	return 0;
}

/* On an APU the CPU is at the other end of xGMI: PCIe is no match. */
static int cpu_link_kind(void)
{
	fresh(1);
	there.nodes[1].links[0].type = GPUCR_LINK_XGMI;
	CHECK(solve() == -EINVAL);
	CHECK(strstr(sample_last_error(), "(links-differ)"));
	here.nodes[1].links[0].type = GPUCR_LINK_XGMI;
	CHECK(!solve());
	there.nodes[1].links[0].type = GPUCR_LINK_PCIE;
	CHECK(!solve());
	return 0;
}

static int map_is(const char *text)
{
	return gpucr_opts_set_map(&opts, text);
}

static int given(void)
{
	fresh(3);
	there.topo.num_gpus = 2;
	CHECK(!map_is("1000=1002"));
	CHECK(!solve() && is_now(1000) == 1002 && is_now(1001) == 1001);
	CHECK(!map_is("0000:01:00.0=02:00.0,GPU-abc001=GPU-0000000000abc000"));
	CHECK(!solve() && is_now(1000) == 1001 && is_now(1001) == 1000);
	CHECK(!map_is("identity"));
	CHECK(!solve() && is_now(1000) == 1000);
	return 0;
}

static int given_wrong(void)
{
	static const char * const wrong[] = {
		"7=1000", "1000=7", "1000=1002,1001=1002",
		"GPU-7=1000", "0001:01:00.0=1000",
	};
	static const char * const malformed[] = {
		"1000", "1000=", "=1000", "0=1000", "1000=1001,", "x=1000",
		"1000=1001=1002", "GPU-=1000", "GPU-zz=1000", "01:00=1000",
		"01:00.9=1000", "0000:01:20.0=1000", "01:00.0x=1000",
	};
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fresh(3);
		ktap_note("%s", wrong[i]);
		CHECK(!map_is(wrong[i]));
		CHECK(solve() == -EINVAL);
		CHECK(strstr(sample_last_error(), "(device-map)"));
	}
	for (i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		ktap_note("%s", malformed[i]);
		CHECK(map_is(malformed[i]));
	}
	return 0;
}

/* What device-map says is checked as anything else. */
static int given_unlike(void)
{
	fresh(2);
	gpu_here(1)->gfx_target_version = 90402;
	CHECK(!map_is("1000=1001"));
	CHECK(solve() == -EINVAL);
	CHECK(strstr(sample_last_error(), "gfx_target_version is 90010 there, 90402 here"));
	return 0;
}

/* Partitions share a unique id; device-map by it moves them all. */
static int partitions(void)
{
	int i;

	fresh(4);
	for (i = 0; i < 4; i++) {
		struct gpucr_node *t = (struct gpucr_node *)there.gpus[i];

		t->num_xcc = 2;
		t->unique_id = i < 2 ? 0xa : 0xb;
		gpu_here(i)->num_xcc = 2;
		gpu_here(i)->unique_id = i < 2 ? 0xc : 0xd;
	}
	CHECK(!map_is("GPU-a=GPU-d"));
	CHECK(!solve());
	CHECK(is_now(1000) >= 1002 && is_now(1001) >= 1002);
	CHECK(is_now(1002) < 1002 && is_now(1003) < 1002);
	CHECK(is_now(1000) != is_now(1001));
	CHECK(!map_is("GPU-a=GPU-d,GPU-b=GPU-d"));
	CHECK(solve() == -EINVAL);
	CHECK(strstr(sample_last_error(), "given twice"));
	return 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* num GPUs, in hives of 8, half of them under each CPU. */
static void big(struct machine *m, int num)
{
	int i;

	machine(m, 2);
	for (i = 0; i < num; i++)
		add_gpu(m, i >= num / 2, 1 + i / 8);
	join_hives(m);
}

static int many(void)
{
	double start;
	int i;

	fresh(0);
	big(&there, 64);
	big(&here, 64);
	for (i = 0; i < 64; i++)
		gpu_here(i)->gpu_id = 5000 + (i * 37 + 11) % 64;
	start = seconds();
	CHECK(!solve());
	/* The last place of the last hive is one that nobody finds. */
	gpu_here(63)->hive_id = 99;
	CHECK(solve() == -EINVAL);
	/* None fits, but only all together show it. */
	gpu_here(63)->hive_id = 8;
	((struct gpucr_node *)there.gpus[0])->fw_version = 93;
	((struct gpucr_node *)there.gpus[8])->fw_version = 93;
	gpu_here(0)->fw_version = 93;
	gpu_here(1)->fw_version = 93;
	CHECK(solve() == -EINVAL);
	ktap_note("%.2f s", seconds() - start);
	CHECK(seconds() - start < 20);
	return 0;
}

/* 32 under each CPU there, 31 and 33 here: any order of them fails alike. */
static int many_alike(void)
{
	double start = seconds();
	int i;

	fresh(0);
	machine(&there, 2);
	machine(&here, 2);
	for (i = 0; i < 64; i++) {
		add_gpu(&there, i < 32, 0);
		add_gpu(&here, i < 31, 0);
	}
	CHECK(solve() == -EINVAL);
	CHECK(strstr(sample_last_error(), "(numa-differs)"));
	CHECK(seconds() - start < 20);
	return 0;
}

/* A puzzle: rings of links, one of them cut. */
static int gives_up(void)
{
	double start = seconds();
	int i;

	fresh(0);
	machine(&there, 1);
	machine(&here, 1);
	for (i = 0; i < 48; i++) {
		add_gpu(&there, 0, 0);
		add_gpu(&here, 0, 0);
	}
	for (i = 0; i < 48; i++) {
		wire(&there, i, (i + 1) % 48, GPUCR_LINK_PCIE, true);
		wire(&there, i, (i + 7) % 48, GPUCR_LINK_PCIE, true);
		wire(&here, i, (i * 5 + 1) % 48, GPUCR_LINK_PCIE, true);
		wire(&here, i, (i * 11 + 3) % 48, GPUCR_LINK_PCIE, true);
	}
	CHECK(solve() == -EINVAL);
	ktap_note("%.2f s, %s", seconds() - start, sample_last_error());
	CHECK(seconds() - start < 20);
	return 0;
}

static int explains(void)
{
	struct gpucr_here h = {
		.topo = &here.topo, .opts = &opts, .open_render = open_node,
	};
	struct gpucr_devmap_why w;
	size_t i, broken = 0;

	fresh(2);
	there.topo.num_gpus = 1;
	gpu_here(0)->fw_version = 88;
	gpu_here(0)->sdma_fw_version = 1;
	gpu_here(1)->fw_version = 90;
	opts.check_sdma_fw_ver = false;
	CHECK(solve() == -EINVAL);
	gpucr_devmap_explain(&map.v[0], &h, 0, &w);
	CHECK(w.here && w.here->gpu_id == 1000 && !w.fits && !w.open_err);
	for (i = 0; i < w.num_rules; i++) {
		broken += w.rules[i].broken;
		if (!strcmp(w.rules[i].field, "fw_version"))
			CHECK(w.rules[i].forbids && w.rules[i].there == 92 &&
			      w.rules[i].here == 88 &&
			      !strcmp(w.rules[i].token, "firmware-older"));
		if (!strcmp(w.rules[i].field, "sdma_fw_version"))
			CHECK(w.rules[i].broken && !w.rules[i].forbids);
	}
	CHECK(broken == 2);
	gpucr_devmap_explain(&map.v[0], &h, 1001, &w);
	CHECK(w.here->gpu_id == 1001);
	return 0;
}

static const struct ktap_test tests[] = {
	{ "one field that differs", one_field },
	{ "fields that may differ", fields_without_meaning },
	{ "rules that are switched off", switched_off },
	{ "an image without topology", early_image },
	{ "a GPU keeps its id", keeps_its_id },
	{ "the first choice is taken back", backtracks },
	{ "too few GPUs", too_few },
	{ "a render node that does not open", render_node },
	{ "hives stay together", hives },
	{ "links between GPUs", links },
	{ "CPU nodes one to one", cpu_nodes },
	{ "links to the CPU", cpu_link_kind },
	{ "device-map: ids, PCI addresses, UUIDs", given },
	{ "device-map: what makes no sense", given_wrong },
	{ "device-map: a GPU that is unlike", given_unlike },
	{ "device-map: partitions of one GPU", partitions },
	{ "64 GPUs in bounded time", many },
	{ "64 GPUs that are alike", many_alike },
	{ "a puzzle is given up in bounded time", gives_up },
	{ "what forbids it is told", explains },
};

int main(void)
{
	int ret;

	sample_quiet();
	ret = ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
	gpucr_devmap_clear(&map);
	return ret;
}
