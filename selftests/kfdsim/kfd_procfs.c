// SPDX-License-Identifier: GPL-2.0
/*
 * What sysfs shows of a process: kfd/proc/<pid>/. The files take spinlocks
 * only, so that they can be removed under the process lock. Failures to make
 * them are not errors of the process.
 */
#include <linux/atomic.h>
#include <linux/sysfs.h>
#include "kfdsim_kfd.h"

static struct kobject *proc_dir;

static void attr_add(struct kobject *kobj, struct kobj_attribute *attr,
		     const char *name,
		     ssize_t (*show)(struct kobject *kobj,
				     struct kobj_attribute *attr, char *buf))
{
	sysfs_attr_init(&attr->attr);
	attr->attr.name = name;
	attr->attr.mode = 0444;
	attr->show = show;
	if (sysfs_create_file(kobj, &attr->attr))
		pr_warn("kfdsim: no sysfs file %s\n", name);
}

static void dir_remove(struct kobject **kobj)
{
	struct kobject *gone = xchg(kobj, NULL);

	if (!gone)
		return;
	kobject_del(gone);
	kobject_put(gone);
}

static ssize_t pasid_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	struct kfdsim_process *p =
		container_of(attr, struct kfdsim_process, attr_pasid);

	return sysfs_emit(buf, "%d\n", kfdsim_personality == KFDSIM_7_3 ? 0 :
			  0x8000 + (p->pid & 0x7fff));
}

static ssize_t vram_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	struct kfdsim_pdd *pdd = container_of(attr, struct kfdsim_pdd, attr_vram);

	return sysfs_emit(buf, "%llu\n", (u64)atomic64_read(&pdd->vram_usage));
}

/* SDMA activity: packets of all queues. */
static ssize_t sdma_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	struct kfdsim_pdd *pdd = container_of(attr, struct kfdsim_pdd, attr_sdma);
	struct kfdsim_queue *q;
	u64 sum = 0;

	spin_lock(&pdd->process->evict_lock);
	list_for_each_entry(q, &pdd->queues, node)
		if (kfdsim_queue_is_sdma(q))
			sum += READ_ONCE(q->progress);
	spin_unlock(&pdd->process->evict_lock);
	return sysfs_emit(buf, "%llu\n", sum);
}

static ssize_t evicted_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	struct kfdsim_pdd *pdd =
		container_of(attr, struct kfdsim_pdd, attr_evicted);
	u64 ns;

	spin_lock(&pdd->process->evict_lock);
	ns = pdd->evicted_ns;
	spin_unlock(&pdd->process->evict_lock);
	return sysfs_emit(buf, "%llu\n", ns / NSEC_PER_MSEC);
}

static ssize_t cu_show(struct kobject *kobj, struct kobj_attribute *attr,
		       char *buf)
{
	return sysfs_emit(buf, "0\n");
}

static void add_pdd(struct kfdsim_process *p, struct kfdsim_pdd *pdd)
{
	u32 id = pdd->gpu->gpu_id;
	char name[24];

	snprintf(pdd->name_vram, sizeof(pdd->name_vram), "vram_%u", id);
	snprintf(pdd->name_sdma, sizeof(pdd->name_sdma), "sdma_%u", id);
	attr_add(p->kobj, &pdd->attr_vram, pdd->name_vram, vram_show);
	attr_add(p->kobj, &pdd->attr_sdma, pdd->name_sdma, sdma_show);
	snprintf(name, sizeof(name), "stats_%u", id);
	pdd->kobj_stats = kobject_create_and_add(name, p->kobj);
	if (!pdd->kobj_stats)
		return;
	attr_add(pdd->kobj_stats, &pdd->attr_evicted, "evicted_ms", evicted_show);
	attr_add(pdd->kobj_stats, &pdd->attr_cu, "cu_occupancy", cu_show);
}

/** kfdsim_procfs_add() - show a new process */
void kfdsim_procfs_add(struct kfdsim_process *p)
{
	unsigned int i;
	char name[12];

	snprintf(name, sizeof(name), "%d", p->pid);
	p->kobj = kobject_create_and_add(name, proc_dir);
	if (!p->kobj)
		return;
	attr_add(p->kobj, &p->attr_pasid, "pasid", pasid_show);
	p->kobj_queues = kobject_create_and_add("queues", p->kobj);
	for (i = 0; i < p->n_pdds; i++)
		add_pdd(p, p->pdds[i]);
}

/** kfdsim_procfs_remove() - hide it, once or again; process lock held */
void kfdsim_procfs_remove(struct kfdsim_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		dir_remove(&p->pdds[i]->kobj_stats);
	dir_remove(&p->kobj_queues);
	dir_remove(&p->kobj);
}

/* KFD's queue files have no newline. */
static ssize_t emit_bare(char *buf, u64 value)
{
	return scnprintf(buf, PAGE_SIZE, "%llu", value);
}

static ssize_t queue_gpuid_show(struct kobject *kobj,
				struct kobj_attribute *attr, char *buf)
{
	struct kfdsim_queue *q =
		container_of(attr, struct kfdsim_queue, attr_gpuid);

	return emit_bare(buf, q->pdd->gpu->gpu_id);
}

static ssize_t queue_size_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	struct kfdsim_queue *q =
		container_of(attr, struct kfdsim_queue, attr_size);

	return emit_bare(buf, q->ring_size);
}

static ssize_t queue_type_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	struct kfdsim_queue *q =
		container_of(attr, struct kfdsim_queue, attr_type);

	return emit_bare(buf, q->type);
}

/** kfdsim_procfs_add_queue() - show a new queue; process lock held */
void kfdsim_procfs_add_queue(struct kfdsim_queue *q)
{
	struct kobject *parent = q->pdd->process->kobj_queues;
	char name[12];

	if (!parent)
		return;
	snprintf(name, sizeof(name), "%u", q->qid);
	q->kobj = kobject_create_and_add(name, parent);
	if (!q->kobj)
		return;
	attr_add(q->kobj, &q->attr_gpuid, "gpuid", queue_gpuid_show);
	attr_add(q->kobj, &q->attr_size, "size", queue_size_show);
	attr_add(q->kobj, &q->attr_type, "type", queue_type_show);
}

void kfdsim_procfs_remove_queue(struct kfdsim_queue *q)
{
	dir_remove(&q->kobj);
}

int kfdsim_procfs_init(struct kobject *parent)
{
	proc_dir = kobject_create_and_add("proc", parent);
	return proc_dir ? 0 : -ENOMEM;
}

void kfdsim_procfs_exit(void)
{
	dir_remove(&proc_dir);
}
