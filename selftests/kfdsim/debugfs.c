// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/kfdsim: what tests read and no real driver has. The
 * formats are fixed: a header line, then words separated by single spaces.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <uapi/drm/amdgpu_drm.h>
#include "kfdsim_kfd.h"

#define FAULT_LINE_MAX	256

struct kfdsim_stats kfdsim_stats;

static bool expect_misuse;
module_param(expect_misuse, bool, 0644);
MODULE_PARM_DESC(expect_misuse, "misuse that would harm a real driver is logged as a notice, not as an error");

static struct dentry *root;

/**
 * kfdsim_misuse() - say that a client did what breaks a real kernel
 * @fmt: as printk(); any context
 *
 * An error in the kernel log, which fails a test run, but where a test does it
 * on purpose.
 */
void kfdsim_misuse(const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	if (READ_ONCE(expect_misuse))
		pr_notice("kfdsim: %pV", &vaf);
	else
		pr_err("kfdsim: %pV", &vaf);
	va_end(args);
}

struct dentry *kfdsim_debugfs_root(void)
{
	return root;
}

static const char *queue_type_name(const struct kfdsim_queue *q)
{
	if (q->type == KFDSIM_QUEUE_SDMA)
		return "sdma";
	if (q->type == KFDSIM_QUEUE_SDMA_XGMI)
		return "sdma_xgmi";
	return q->format == KFDSIM_FORMAT_AQL ? "compute_aql" : "compute";
}

/* Spinlock only: answers while a CRIU operation hangs in the process lock. */
static void show_queues_of(struct seq_file *m, struct kfdsim_pdd *pdd)
{
	struct kfdsim_process *p = pdd->process;
	struct kfdsim_queue *q;

	spin_lock(&p->evict_lock);
	list_for_each_entry(q, &pdd->queues, node)
		seq_printf(m, "%d %u %u %s %llu %d %llu %llu %d\n", p->pid,
			   pdd->gpu->gpu_id, q->qid, queue_type_name(q),
			   READ_ONCE(q->progress), pdd->evicted > 0,
			   READ_ONCE(q->rptr), READ_ONCE(q->wptr),
			   READ_ONCE(q->error));
	spin_unlock(&p->evict_lock);
}

static int queues_show(struct seq_file *m, void *unused)
{
	struct kfdsim_process *p = NULL;
	unsigned int i;

	seq_puts(m, "pid gpu_id qid type progress evicted rptr wptr error\n");
	while ((p = kfdsim_process_next(p)))
		for (i = 0; i < p->n_pdds; i++)
			show_queues_of(m, p->pdds[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queues);

/* One BO of the digest file, referenced at open. */
struct digest_entry {
	struct kfdsim_bo *bo;
	int pid;
	u32 gpu_id;
	int handle;
	u64 va;
	u64 size;
};

struct digest_list {
	size_t n;
	size_t max;
	struct digest_entry *entries;
};

static int digest_grow(struct digest_list *l)
{
	size_t max = max_t(size_t, 64, l->max * 2);
	struct digest_entry *more = kvcalloc(max, sizeof(*more), GFP_KERNEL);

	if (!more)
		return -ENOMEM;
	if (l->n)
		memcpy(more, l->entries, l->n * sizeof(*more));
	kvfree(l->entries);
	l->entries = more;
	l->max = max;
	return 0;
}

static int digest_add(struct digest_list *l, struct kfdsim_mem *mem, int handle)
{
	if (!mem->bo || mem->bo->userptr || mem->bo->borrowed)
		return 0;
	if (l->n == l->max && digest_grow(l))
		return -ENOMEM;
	kfdsim_bo_get(mem->bo);
	l->entries[l->n++] = (struct digest_entry) {
		.bo = mem->bo,
		.pid = mem->pdd->process->pid,
		.gpu_id = mem->pdd->gpu->gpu_id,
		.handle = handle,
		.va = mem->va,
		.size = mem->size,
	};
	return 0;
}

static int digest_collect(struct digest_list *l)
{
	struct kfdsim_process *p = NULL;
	struct kfdsim_mem *mem;
	unsigned int i;
	int id, ret = 0;

	while ((p = kfdsim_process_next(p))) {
		mutex_lock(&p->lock);
		for (i = 0; !ret && i < p->n_pdds; i++) {
			idr_for_each_entry(&p->pdds[i]->mems, mem, id) {
				ret = digest_add(l, mem, id);
				if (ret)
					break;
			}
		}
		mutex_unlock(&p->lock);
	}
	return ret;
}

static void *digest_start(struct seq_file *m, loff_t *pos)
{
	struct digest_list *l = m->private;

	if (!*pos)
		return SEQ_START_TOKEN;
	return *pos <= l->n ? &l->entries[*pos - 1] : NULL;
}

static void *digest_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return digest_start(m, pos);
}

static void digest_stop(struct seq_file *m, void *v)
{
}

static int digest_show(struct seq_file *m, void *v)
{
	struct digest_entry *e = v;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "pid gpu_id handle va size domain digest\n");
		return 0;
	}
	seq_printf(m, "%d %u %d 0x%llx %llu %s %016llx\n", e->pid, e->gpu_id,
		   e->handle, e->va, e->size,
		   e->bo->domain == AMDGPU_GEM_DOMAIN_VRAM ? "vram" : "gtt",
		   kfdsim_bo_digest(e->bo));
	return 0;
}

static const struct seq_operations digest_seq_ops = {
	.start = digest_start,
	.next = digest_next,
	.stop = digest_stop,
	.show = digest_show,
};

static void digest_free(struct digest_list *l)
{
	while (l->n)
		kfdsim_bo_put(l->entries[--l->n].bo);
	kvfree(l->entries);
	l->entries = NULL;
}

static int digest_open(struct inode *inode, struct file *filp)
{
	struct digest_list *l = __seq_open_private(filp, &digest_seq_ops,
						   sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	ret = digest_collect(l);
	if (ret) {
		digest_free(l);
		seq_release_private(inode, filp);
	}
	return ret;
}

static int digest_release(struct inode *inode, struct file *filp)
{
	struct seq_file *m = filp->private_data;

	digest_free(m->private);
	return seq_release_private(inode, filp);
}

static const struct file_operations digest_fops = {
	.owner = THIS_MODULE,
	.open = digest_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = digest_release,
};

static void gpu_stats_show(struct seq_file *m)
{
	static const struct {
		const char *name;
		size_t offset;
	} counters[] = {
		{ "sdma_packets", offsetof(struct kfdsim_gpu, sdma_packets) },
		{ "sdma_bytes", offsetof(struct kfdsim_gpu, sdma_bytes) },
		{ "pm4_packets", offsetof(struct kfdsim_gpu, pm4_packets) },
		{ "pm4_bytes", offsetof(struct kfdsim_gpu, pm4_bytes) },
		{ "aql_packets", offsetof(struct kfdsim_gpu, aql_packets) },
		{ "count_overruns", offsetof(struct kfdsim_gpu, count_overruns) },
	};
	unsigned int i, c;

	for (c = 0; c < ARRAY_SIZE(counters); c++) {
		u64 sum = 0;

		for (i = 0; i < kfdsim_num_gpus; i++)
			if (kfdsim_gpus[i])
				sum += atomic64_read((void *)kfdsim_gpus[i] +
						     counters[c].offset);
		seq_printf(m, "%s %llu\n", counters[c].name, sum);
	}
}

static int stats_show(struct seq_file *m, void *unused)
{
	kfdsim_gpus_hold();
	gpu_stats_show(m);
	kfdsim_gpus_unhold();
	seq_printf(m, "resume_stray %lld\n",
		   atomic64_read(&kfdsim_stats.resume_stray));
	seq_printf(m, "resume_null %lld\n",
		   atomic64_read(&kfdsim_stats.resume_null));
	seq_printf(m, "corruption %lld\n",
		   atomic64_read(&kfdsim_stats.corruption));
	seq_printf(m, "bos %lld\n", atomic64_read(&kfdsim_stats.bos));
	seq_printf(m, "vms %lld\n", atomic64_read(&kfdsim_stats.vms));
	seq_printf(m, "processes %lld\n", atomic64_read(&kfdsim_stats.processes));
	seq_printf(m, "files %lld\n", atomic64_read(&kfdsim_stats.files));
	seq_printf(m, "queues %lld\n", atomic64_read(&kfdsim_stats.queues));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int fault_show(struct seq_file *m, void *unused)
{
	kfdsim_fault_show(m);
	return 0;
}

static int fault_open(struct inode *inode, struct file *filp)
{
	return single_open(filp, fault_show, NULL);
}

static ssize_t fault_write(struct file *filp, const char __user *user,
			   size_t len, loff_t *pos)
{
	char *line;
	ssize_t ret;

	if (len >= FAULT_LINE_MAX)
		return -EINVAL;
	line = memdup_user_nul(user, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	ret = kfdsim_fault_write(line);
	kfree(line);
	return ret ?: len;
}

static const struct file_operations fault_fops = {
	.owner = THIS_MODULE,
	.open = fault_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
	.write = fault_write,
};

int kfdsim_debugfs_init(void)
{
	root = debugfs_create_dir("kfdsim", NULL);
	debugfs_create_file("queues", 0444, root, NULL, &queues_fops);
	debugfs_create_file("digest", 0400, root, NULL, &digest_fops);
	debugfs_create_file("stats", 0444, root, NULL, &stats_fops);
	debugfs_create_file("fault", 0600, root, NULL, &fault_fops);
	kfdsim_bench_init(root);
	kfdsim_hotplug_init(root);
	return 0;
}

void kfdsim_debugfs_exit(void)
{
	debugfs_remove_recursive(root);
}
