// SPDX-License-Identifier: GPL-2.0-only
#include "criuwhole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "criuread.h"
#include "log.h"
#include "wire.h"

#define CRIU_PAGE	4096
#define ENTRY_MAX	(64u << 20)
#define TASKS_MAX	(1u << 20)
#define PAGES_MAX	(UINT64_C(1) << 44)

/* Of a task in core-<pid>.img: it has left nothing but its exit status. */
#define TASK_DEAD	2
/* Of an entry of pagemap-*.img. */
#define PE_PARENT	(1u << 0)
#define PE_PRESENT	(1u << 2)
/* Of a mapping in mm-<pid>.img. */
#define VMA_ANON_SHARED	(1u << 8)

static const struct gpucr_criukind any_kind = {
	GPUCR_CRIU_COMMON, GPUCR_CRIU_ANY, ENTRY_MAX,
};

/*
 * Only what this dump's tasks need is looked at: an earlier dump into the same
 * directory may have left anything.
 */
struct look {
	int dir;
	long faults;
	uint32_t *tasks;	/* leaders and other threads */
	bool *leads;
	size_t num_tasks;
	uint32_t files;		/* table of descriptors of the last task */
};

static void incomplete(struct look *l, const char *name, const char *what)
{
	gpucr_err("%s: %s (image-incomplete); restore another checkpoint", name,
		  what);
	l->faults++;
}

static int skip_entry(void *ctx, const uint8_t *data, size_t len, void *arg)
{
	(void)ctx;
	(void)data;
	(void)len;
	(void)arg;
	return 0;
}

/* Has it a head, does it end where an entry ends? false: it has been told. */
static bool look_at(struct look *l, const char *name, bool needed,
		    gpucr_criu_entry fn, void *arg)
{
	bool there = false;

	if (gpucr_criu_read(l->dir, name, &any_kind, fn, l, arg, &there)) {
		l->faults++;
		return false;
	}
	if (!there && needed)
		incomplete(l, name, "it is missing");
	return there;
}

static bool look_at_id(struct look *l, const char *kind, uint64_t id,
		       bool needed, gpucr_criu_entry fn, void *arg)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%" PRIu64 ".img", kind, id);
	return look_at(l, name, needed, fn, arg);
}

/* What a pagemap says of its page file. */
struct pagemap {
	bool has_head;
	uint32_t id;
	uint64_t pages;
};

/*
 * CRIU 4.2 and newer have the number of pages in field 5, and 0 in the old
 * one. With fields that are not known, nothing follows for the page file.
 */
static int pagemap_entry(void *ctx, const uint8_t *data, size_t len, void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	uint64_t pages = 0, flags = PE_PRESENT, first = 0;
	struct pagemap *p = arg;
	bool known = true;
	int r;

	(void)ctx;
	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field == 1)
			first = w.number;
		else if (w.field == 2 || w.field == 5)
			pages = w.number;
		else if (w.field == 3 && w.number)
			flags = PE_PARENT;
		else if (w.field == 4)
			flags = w.number;
		else if (w.field > 5)
			known = false;
	}
	if (r || pages > PAGES_MAX)
		return -EBADMSG;
	if (!p->has_head)
		p->id = (uint32_t)first;
	else if (known && flags & PE_PRESENT)
		p->pages += pages;
	p->has_head = true;
	return p->pages > PAGES_MAX ? -EBADMSG : 0;
}

static void check_pages(struct look *l, const struct pagemap *p)
{
	struct stat st;
	char name[32];

	if (!p->pages)
		return;
	snprintf(name, sizeof(name), "pages-%u.img", p->id);
	if (fstatat(l->dir, name, &st, 0))
		incomplete(l, name, "it is missing");
	else if ((uint64_t)st.st_size < p->pages * CRIU_PAGE)
		incomplete(l, name, "it is shorter than its pagemap says");
}

static void check_memory(struct look *l, const char *kind, uint64_t id,
			 bool needed)
{
	struct pagemap p = { 0 };

	if (look_at_id(l, kind, id, needed, pagemap_entry, &p))
		check_pages(l, &p);
}

/* Memory shared between tasks has a pagemap of its own, where it has pages. */
static int check_vma(struct look *l, const uint8_t *data, size_t len)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	uint64_t shmid = 0, status = 0;
	int r;

	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field == 4)
			shmid = w.number;
		else if (w.field == 7)
			status = w.number;
	}
	if (!r && status & VMA_ANON_SHARED)
		check_memory(l, "pagemap-shmem", shmid, false);
	return r;
}

static int mm_entry(void *ctx, const uint8_t *data, size_t len, void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	int r = 0, err = 0;

	(void)arg;
	while (!err && (r = gpucr_wire_next(&w)) > 0) {
		if (w.field == 14 && w.data)
			err = check_vma(ctx, w.data, w.len);
	}
	return err ? err : r;
}

/* Which table of descriptors the task has. */
static int ids_entry(void *ctx, const uint8_t *data, size_t len, void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	struct look *l = ctx;
	int r;

	(void)arg;
	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field == 2)
			l->files = (uint32_t)w.number;
	}
	return r;
}

static int add_task(struct look *l, uint64_t id, bool leads)
{
	uint32_t *tasks;
	bool *flags;

	if (l->num_tasks == TASKS_MAX || !id || id > INT32_MAX)
		return -EBADMSG;
	tasks = reallocarray(l->tasks, l->num_tasks + 1, sizeof(*tasks));
	if (!tasks)
		return -ENOMEM;
	l->tasks = tasks;
	flags = reallocarray(l->leads, l->num_tasks + 1, sizeof(*flags));
	if (!flags)
		return -ENOMEM;
	l->leads = flags;
	tasks[l->num_tasks] = (uint32_t)id;
	flags[l->num_tasks++] = leads;
	return 0;
}

/* A task: its pid, and the ids of its threads, the pid again among them. */
static int pstree_entry(void *ctx, const uint8_t *data, size_t len, void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len);
	uint64_t pid = 0;
	int r = 0, err = 0;

	(void)arg;
	while (!err && (r = gpucr_wire_next(&w)) > 0) {
		if (w.field == 1 && !w.data) {
			pid = w.number;
			err = add_task(ctx, pid, true);
		} else if (w.field == 5 && !w.data && w.number != pid) {
			err = add_task(ctx, w.number, false);
		}
	}
	return err ? err : r;
}

/* State of the task, to *arg. */
static int core_entry(void *ctx, const uint8_t *data, size_t len, void *arg)
{
	struct gpucr_wire w = gpucr_wire_of(data, len), tc;
	int r;

	(void)ctx;
	while ((r = gpucr_wire_next(&w)) > 0) {
		if (w.field != 3 || !w.data)
			continue;
		tc = gpucr_wire_of(w.data, w.len);
		while ((r = gpucr_wire_next(&tc)) > 0) {
			if (tc.field == 1)
				*(uint64_t *)arg = tc.number;
		}
		if (r)
			return r;
	}
	return r;
}

static void check_task(struct look *l, uint32_t pid)
{
	uint64_t state = 0;

	if (!look_at_id(l, "core", pid, true, core_entry, &state) ||
	    state == TASK_DEAD)
		return;
	l->files = 0;
	look_at_id(l, "fs", pid, true, skip_entry, NULL);
	look_at_id(l, "ids", pid, true, ids_entry, NULL);
	if (l->files)
		look_at_id(l, "fdinfo", l->files, false, skip_entry, NULL);
	look_at_id(l, "mm", pid, true, mm_entry, NULL);
	check_memory(l, "pagemap", pid, true);
}

long gpucr_criu_missing(int dir)
{
	struct look l = { .dir = dir };
	size_t i;

	look_at(&l, "pstree.img", true, pstree_entry, NULL);
	/* Not every CRIU writes them. */
	look_at(&l, "cgroup.img", false, skip_entry, NULL);
	look_at(&l, "seccomp.img", false, skip_entry, NULL);
	look_at(&l, "timens-0.img", false, skip_entry, NULL);
	for (i = 0; i < l.num_tasks; i++) {
		if (l.leads[i])
			check_task(&l, l.tasks[i]);
		else
			look_at_id(&l, "core", l.tasks[i], true, skip_entry,
				   NULL);
	}
	free(l.tasks);
	free(l.leads);
	return l.faults;
}
