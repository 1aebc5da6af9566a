// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dump: the tree is paused as a whole, by whichever hook comes first, each
 * KFD process once; files are written as CRIU asks for them; everything is
 * undone in dump_exit(), whatever happened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backend.h"
#include "log.h"
#include "owner.h"
#include "proc.h"
#include "rendernode.h"
#include "report.h"
#include "stream.h"
#include "upstream.h"

#include "guard.h"
#include "host.h"
#include "plugin.h"
#include "streamer.h"
#include "target.h"
#include "tree.h"

static struct {
	struct gpucr_owner owner;
	dev_t kfd;
	bool claimed;		/* inventory entry made */
	bool tried;		/* the tree was read; err tells how it went */
	int err;
	bool stuck;		/* an UNPAUSE failed */
	struct tree tree;
	struct gpucr_opts opts;
	struct gpucr_topology *topo;
	struct gpucr_backend *backend;
	struct guard guard;
	struct target *targets;
	struct target_env env;
	int run;		/* the /run that CRIU was started in */
	char **written;
	size_t num_written;
} dump = { .guard = GUARD_NONE, .run = -1 };

int dump_init(dev_t kfd)
{
	memset(&dump, 0, sizeof(dump));
	dump.kfd = kfd;
	dump.env.dir = -1;
	dump.guard.fd = -1;
	dump.run = open("/run", O_PATH | O_DIRECTORY | O_CLOEXEC);
	gpucr_log_reset();
	plugin_report = gpucr_report_new("dump");
	return gpucr_owner_init(&dump.owner);
}

/* Before the first thing of ours: may it be ours, and by which rules? */
static int claim(void)
{
	const char *self, *twin, *entry;
	int err;

	if (dump.claimed)
		return 0;
	twin = host_find_twin(PLUGIN_NAME, &self);
	if (*twin) {
		gpucr_err("two plugins named %s are loaded, %s and %s (plugin-twice); keep one of them",
			  PLUGIN_NAME, self, twin);
		return -EEXIST;
	}
	dump.env.dir = fcntl(host_image_dir(), F_DUPFD_CLOEXEC, 3);
	if (dump.env.dir < 0) {
		gpucr_err("CRIU tells no image directory");
		return -ENOENT;
	}
	err = gpucr_opts_load(&dump.opts, GPUCR_OPT_FILE, dump.env.dir);
	if (!err)
		err = streamer_begin_dump(dump.opts.format);
	if (err)
		return err;
	entry = dump.opts.format == GPUCR_FORMAT_UPSTREAM ?
		GPUCR_ENTRY_UPSTREAM : GPUCR_ENTRY_NATIVE;
	if (host_add_inventory(entry)) {
		gpucr_err("CRIU refuses the inventory entry %s", entry);
		return -EIO;
	}
	dump.claimed = true;
	dump.env.progress = gpucr_progress_open(dump.run, "dump");
	return 0;
}

/* A failed dump removes it. */
static void wrote(const char *name)
{
	char **more = reallocarray(dump.written, dump.num_written + 1,
				   sizeof(*more));

	if (!more)
		return;
	dump.written = more;
	dump.written[dump.num_written] = strdup(name);
	if (dump.written[dump.num_written])
		dump.num_written++;
}

/* Until it has its name, it is this that would be left. */
static void writing(const char *name)
{
	char tmp[GPUCR_IMG_NAME_MAX + 8];

	snprintf(tmp, sizeof(tmp), "%s.tmp", name);
	wrote(tmp);
}

/* What could be dumped but never be restored. */
static int refuse_file(const struct tree_file *f)
{
	const struct tree_holder *h = &f->holders[0];
	uint32_t handles = 0;
	int err;

	if (f->kfd) {
		if (!h->task->foreign_userns)
			return 0;
		gpucr_err("pid %d is in a user namespace of its own: KFD would not let it be restored (userns)",
			  h->task->pid);
		return -EPERM;
	}
	err = gpucr_drm_count_handles(f->fd, &handles);
	if (err) {
		gpucr_err("pid %d, fd %d: buffer objects of renderD%u cannot be counted: %s",
			  h->task->pid, h->fd, f->minor, strerror(-err));
		return err;
	}
	if (!handles)
		return 0;
	gpucr_err("pid %d, fd %d: %u buffer objects were made through renderD%u, not through KFD (render-bo); they cannot be restored yet",
		  h->task->pid, h->fd, handles, f->minor);
	return -EOPNOTSUPP;
}

/* VRAM in use is known before the pause; the rest is asked for after it. */
static int check_space_early(void)
{
	uint64_t bytes = 0;
	size_t i, j;

	for (i = 0; i < dump.tree.num_tasks; i++) {
		struct gpucr_kfd_proc p;

		if (gpucr_kfd_proc_read(dump.tree.tasks[i].pid, &p))
			continue;
		for (j = 0; j < p.num_gpus; j++)
			bytes += p.gpus[j].vram;
		gpucr_kfd_proc_clear(&p);
	}
	return target_check_space(dump.env.dir, bytes);
}

static int check_tree(void)
{
	size_t i;
	int err = 0;

	for (i = 0; i < dump.tree.num_files && !err; i++)
		err = refuse_file(&dump.tree.files[i]);
	if (!err && dump.opts.space_check)
		err = check_space_early();
	return err;
}

static struct target *find_target(pid_t pid)
{
	struct target *t;

	for (t = dump.targets; t; t = t->next) {
		if (t->task.pid == pid)
			return t;
	}
	return NULL;
}

/* Another open of a KFD process that is known already. */
static int attach(struct tree_file *f)
{
	size_t i;

	for (i = 0; i < f->num_holders && !f->target; i++)
		f->target = find_target(f->holders[i].task->pid);
	if (f->target)
		return 0;
	gpucr_err("pid %d, fd %d: the KFD process behind it is being checkpointed by somebody else (busy)",
		  f->holders[0].task->pid, f->holders[0].fd);
	return -EBUSY;
}

/* The holder that KFD names as the owner. */
static const struct gpucr_task *find_owner(const struct tree_file *f,
					   uint32_t ns_pid)
{
	size_t i;

	for (i = 0; i < f->num_holders; i++) {
		if (f->holders[i].task->ns_pid == (pid_t)ns_pid)
			return f->holders[i].task;
	}
	gpucr_err("pid %d, fd %d: its KFD process belongs to pid %u, which is not in the tree or has closed it (kfd-owner)",
		  f->holders[0].task->pid, f->holders[0].fd, ns_pid);
	return NULL;
}

static int add_target(struct tree_file *f, const struct gpucr_task *owner,
		      struct gpucr_ckpt *c, const struct gpucr_kfd_counts *n)
{
	const struct gpucr_task *restorer = tree_restorer(f);
	struct target *t = calloc(1, sizeof(*t));

	if (!t) {
		gpucr_ckpt_close(c);
		return -ENOMEM;
	}
	t->task = *owner;
	t->ckpt = c;
	if (n)
		t->counts = *n;
	t->no_gpu = !n;
	t->next = dump.targets;
	dump.targets = t;
	f->target = t;
	if (restorer->pid == owner->pid || !n)
		return 0;
	gpucr_err("pid %d owns a KFD file that pid %d holds too, and CRIU would restore it in the latter (kfd-owner); such an order of pids cannot be restored",
		  owner->pid, restorer->pid);
	return -EOPNOTSUPP;
}

/* Pauses what is behind f as a process of holder. -EINVAL: it is not its. */
static int pause_as(struct tree_file *f, const struct gpucr_task *holder)
{
	const struct gpucr_task *owner;
	struct gpucr_kfd_counts n;
	struct gpucr_ckpt *c;
	bool was_paused;
	struct target *t;
	int err;

	err = gpucr_ckpt_open(dump.backend, holder->pid, f->fd, &c);
	if (err == -EBUSY)
		return attach(f);
	if (err)
		return err;
	err = gpucr_ckpt_pause(c, &n, &was_paused);
	if (err == -ENODEV)
		return add_target(f, holder, c, NULL);
	owner = err ? NULL : find_owner(f, n.pid);
	if (!owner) {
		gpucr_ckpt_close(c);
		return err ? err : -ESRCH;
	}
	t = find_target(owner->pid);
	if (!t)
		return add_target(f, owner, c, &n);
	if (!was_paused) {
		gpucr_err("pid %d has more than one KFD context (kfd-context); only the first could be restored",
			  owner->pid);
		gpucr_ckpt_close(c);
		return -EOPNOTSUPP;
	}
	/* It was one of ours, undone and done again: still paused once. */
	gpucr_ckpt_forget_pause(c);
	gpucr_ckpt_close(c);
	f->target = t;
	return 0;
}

/* A guard that does not know of a pause could not undo it. */
static int tell_guard(const struct tree_file *f)
{
	size_t i;
	int err = 0;

	for (i = 0; i < f->num_holders && !err; i++)
		err = guard_add(&dump.guard, f->holders[i].task->pid,
				f->holders[i].fd);
	return err;
}

static int pause_file(struct tree_file *f)
{
	size_t i;
	int err = tell_guard(f);

	if (err)
		return err;
	err = -EINVAL;
	for (i = 0; i < f->num_holders && err == -EINVAL; i++)
		err = pause_as(f, f->holders[i].task);
	if (err && !*gpucr_log_first_error())
		gpucr_err("pid %d, fd %d: its KFD process cannot be checkpointed: %s (%s) (session-failed)",
			  f->holders[0].task->pid, f->holders[0].fd,
			  strerror(-err), gpucr_backend_why(dump.backend, err));
	return err;
}

/* GPU memory that a child got by fork would come back in nobody. */
static int refuse_foreign_maps(const struct gpucr_task *task)
{
	struct target *t = find_target(task->pid);
	struct gpucr_task_map *maps;
	size_t i, num;
	int err = 0;

	if (t && !t->no_gpu)
		return 0;
	if (gpucr_task_device_maps(task->pid, &maps, &num))
		return 0;
	for (i = 0; i < num && !err; i++) {
		if (!tree_is_gpu(&dump.tree, maps[i].rdev))
			continue;
		gpucr_err("pid %d maps GPU memory at 0x%llx and has no KFD process of its own (vma-unsupported); such a mapping cannot be restored yet",
			  task->pid, (unsigned long long)maps[i].start);
		err = -EOPNOTSUPP;
	}
	free(maps);
	return err;
}

static bool has_kfd(void)
{
	size_t i;

	for (i = 0; i < dump.tree.num_files; i++) {
		if (dump.tree.files[i].kfd)
			return true;
	}
	return false;
}

/* Before the first pause: without it a killed CRIU could not be undone. */
static int start_guard(void)
{
	if (!gpucr_backend_needs_guard(dump.backend) || !*dump.opts.guard ||
	    !has_kfd())
		return 0;
	return guard_start(&dump.guard, dump.opts.guard);
}

static int pause_tree(void)
{
	size_t i;
	int err;

	err = gpucr_topology_read(NULL, &dump.topo);
	if (err) {
		gpucr_err("KFD's topology cannot be read: %s", strerror(-err));
		return err;
	}
	err = check_tree();
	if (err)
		return err;
	gpucr_kfd_rules_read(&dump.env.rules);
	err = gpucr_backend_open(dump.opts.backend, dump.kfd, &dump.backend);
	if (!err)
		err = start_guard();
	if (err)
		return err;
	for (i = 0; i < dump.tree.num_files && !err; i++) {
		if (dump.tree.files[i].kfd)
			err = pause_file(&dump.tree.files[i]);
	}
	for (i = 0; i < dump.tree.num_tasks && !err; i++)
		err = refuse_foreign_maps(&dump.tree.tasks[i]);
	return err;
}

static void unpause_all(void)
{
	bool stuck = false;
	struct target *t;

	for (t = dump.targets; t; t = t->next) {
		if (t->ckpt && gpucr_ckpt_unpause(t->ckpt))
			stuck = true;
	}
	dump.stuck |= stuck;
	/* What we could not undo it tries when we have ended. */
	if (!stuck)
		guard_clear(&dump.guard);
}

/*
 * From every hook; the work is done by the first. ours: so is what CRIU asks
 * about; early: it has not read any memory yet.
 */
static int ensure_paused(bool ours, bool early)
{
	int phase;

	if (!dump.tried) {
		dump.env.late = !early;
		phase = gpucr_report_begin(plugin_report, "pause", 0);
		dump.err = tree_read(&dump.tree, dump.kfd);
		dump.tried = true;
		if (!dump.err && dump.tree.num_files) {
			dump.err = claim();
			gpucr_progress_phase(dump.env.progress, "pause", 0);
			if (!dump.err)
				dump.err = pause_tree();
			gpucr_progress_phase(dump.env.progress, "paused", 0);
		}
		/* At once: CRIU may go on for long before it gives up. */
		if (dump.err)
			unpause_all();
		gpucr_report_end(plugin_report, phase, 0);
	}
	if (!dump.err && ours && !dump.claimed)
		dump.err = claim();
	return dump.err;
}

int dump_checkpoint_devices(int pid)
{
	int err = ensure_paused(false, true);

	if (err)
		return hook_error(err);
	return find_target(pid) ? 0 : -ENOTSUP;
}

int dump_handle_vma(const struct stat *st)
{
	int err = ensure_paused(true, false);

	if (err || dump.tree.num_files)
		return hook_error(err);
	gpucr_err("a task maps GPU device %u:%u, whose file no task of the tree has open (vma-unsupported); such a mapping cannot be restored",
		  major(st->st_rdev), minor(st->st_rdev));
	dump.err = -EOPNOTSUPP;
	return hook_error(dump.err);
}

static int fd_in(const struct tree_file *f, pid_t pid)
{
	size_t i;

	for (i = 0; i < f->num_holders; i++) {
		if (f->holders[i].task->pid == pid)
			return f->holders[i].fd;
	}
	return -1;
}

/* Of the process's files of that GPU, the one opened first. */
static bool is_first_open(const struct tree_file *f, pid_t pid)
{
	size_t i;

	for (i = 0; i < dump.tree.num_files; i++) {
		const struct tree_file *o = &dump.tree.files[i];
		int fd = fd_in(o, pid);

		if (!o->kfd && o->minor == f->minor && fd >= 0 &&
		    fd < fd_in(f, pid))
			return false;
	}
	return true;
}

/*
 * May this very file map BOs of the target? KFD allows it to the file that it
 * got the address space from. Without a BO on that GPU nothing tells; ROCm's
 * runtime gives KFD the file that it opens first.
 */
static bool is_kfd_vm(const struct tree_file *f, const struct target *t,
		      uint32_t user_gpu_id)
{
	uint32_t i;

	for (i = 0; i < t->counts.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &t->state.bos[i];

		if (b->gpu_id == user_gpu_id &&
		    gpucr_kfd_bo_has_content(b->alloc_flags))
			return gpucr_drm_may_map(f->fd, b->offset, b->size);
	}
	return is_first_open(f, t->task.pid);
}

/* Is the GPU address space of the file that of the target's KFD process? */
static int describe_vm(const struct tree_file *f, struct target *t,
		       struct gpucr_img_render *img)
{
	uint32_t i;
	int err;

	err = target_read(t);
	for (i = 0; i < t->counts.num_devices && !err; i++) {
		if (t->state.devices[i].actual_gpu_id !=
		    img->device.local_gpu_id)
			continue;
		img->kfd_vm = is_kfd_vm(f, t, t->state.devices[i].user_gpu_id);
		if (!img->kfd_vm)
			continue;
		img->device.user_gpu_id = t->state.devices[i].user_gpu_id;
		img->owner_pid = t->task.ns_pid;
	}
	if (err || !img->kfd_vm || tree_restorer(f)->pid == t->task.pid)
		return err;
	gpucr_err("pid %d owns a render node file that pid %d holds too, and CRIU would restore it in the latter (kfd-owner); such an order of pids cannot be restored",
		  t->task.pid, tree_restorer(f)->pid);
	return -EOPNOTSUPP;
}

static int describe_render(const struct tree_file *f,
			   struct gpucr_img_render *img)
{
	const struct gpucr_node *node;
	size_t i;
	int err = 0;

	node = gpucr_topology_find_by_minor(dump.topo, f->minor);
	if (!node) {
		gpucr_err("renderD%u is of no GPU in KFD's topology (no-gpu)",
			  f->minor);
		return -ENODEV;
	}
	gpucr_img_device_from_node(&img->device, dump.topo, node,
				   node->gpu_id);
	for (i = 0; i < f->num_holders && !err && !img->kfd_vm; i++) {
		struct target *t = find_target(f->holders[i].task->pid);

		if (t && !t->no_gpu)
			err = describe_vm(f, t, img);
	}
	return err;
}

static int dump_render(const struct tree_file *f, int id)
{
	struct gpucr_img_render img = { .id = id };
	char name[GPUCR_IMG_NAME_MAX];
	int err;

	gpucr_image_render_name(name, dump.opts.format, id);
	writing(name);
	err = describe_render(f, &img);
	if (!err)
		err = dump.opts.format == GPUCR_FORMAT_UPSTREAM ?
		      gpucr_up_render_write(dump.env.dir, &img) :
		      gpucr_img_render_write(dump.env.dir, &img);
	if (err)
		return err;
	wrote(name);
	return 0;
}

/* A BO that two processes share would come back as two. */
static int refuse_shared(struct target *t)
{
	struct target *o;
	int err = 0;

	if (t->no_gpu)
		return 0;
	err = target_read(t);
	for (o = dump.targets; o && !err; o = o->next) {
		if (o == t || o->no_gpu)
			continue;
		err = target_read(o);
		if (!err)
			err = target_refuse_shared(t, o);
	}
	return err;
}

/* Of all of them, the one that waits longest. */
static uint64_t paused_ms(void)
{
	uint64_t most = 0;
	struct target *t;

	for (t = dump.targets; t; t = t->next) {
		uint64_t ms = t->no_gpu ? 0 : gpucr_ckpt_paused_ms(t->ckpt);

		if (ms > most)
			most = ms;
	}
	return most;
}

static int dump_kfd(struct tree_file *f, int id)
{
	int err;

	dump.env.kfd = dump.kfd;
	dump.env.watch.paused_ms = paused_ms;
	dump.env.watch.pause_limit = dump.opts.pause_limit;
	dump.env.pace.rate = dump.opts.bandwidth;
	dump.env.opts = &dump.opts;
	dump.env.topo = dump.topo;
	dump.env.writing = writing;
	dump.env.wrote = wrote;
	err = refuse_shared(f->target);
	if (!err)
		err = watch_pause(&dump.env.watch);
	return err ? err : target_write(f->target, &dump.env, id);
}

int dump_file(int fd, int id)
{
	struct tree_file *f;
	int err;

	err = ensure_paused(true, false);
	if (err)
		return hook_error(err);
	f = tree_find(&dump.tree, fd);
	if (!f) {
		gpucr_err("GPU file with image id %d is held by no task of the tree (file-unknown)",
			  id);
		err = -ENOENT;
	} else if (!f->kfd) {
		err = dump_render(f, id);
	} else {
		err = dump_kfd(f, id);
	}
	/* The dump is lost: do not let the GPU wait for its end. */
	if (err) {
		dump.err = err;
		unpause_all();
	}
	return hook_error(err);
}

static void remove_written(void)
{
	size_t i;

	/* What a streamer has stays there, without the rest of CRIU's. */
	if (dump.opts.keep_partial || gpucr_stream_on())
		return;
	for (i = 0; i < dump.num_written; i++)
		unlinkat(dump.env.dir, dump.written[i], 0);
}

static void summary(int ret)
{
	struct target *t;
	unsigned int n = 0;

	for (t = dump.targets; t; t = t->next)
		n += !t->no_gpu;
	if ((ret || dump.err) && *gpucr_log_first_error())
		gpucr_err("dump failed%s; first error: %s",
			  dump.stuck ? "" : ", GPU work goes on",
			  gpucr_log_first_error());
	else if (ret || dump.err)
		gpucr_warn("dump failed outside of this plugin, GPU work goes on");
	else if (n)
		gpucr_warn("dumped %u GPU process%s: paused %.1f s, %.2f GiB at %.2f GB/s, %.2f GiB stored, backend %s",
			   n, n > 1 ? "es" : "", paused_ms() / 1e3,
			   dump.env.raw_bytes / GIB,
			   dump.env.raw_bytes / 1e6 / (dump.env.copy_ms ?: 1),
			   dump.env.stored_bytes / GIB,
			   gpucr_backend_name(dump.backend));
}

static void tell_option(void *arg, const char *name, const char *value)
{
	gpucr_report_option(arg, name, value);
}

/* What is left of a dump however it ended; its page files may be gone. */
static void write_report(bool good)
{
	struct gpucr_report *r = plugin_report;
	char driver[128];

	/* Beside a stream nothing is written. */
	if (dump.env.dir < 0 || gpucr_stream_on())
		return;
	gpucr_kfd_driver(&dump.env.rules, driver, sizeof(driver));
	gpucr_report_text(r, "driver", driver);
	gpucr_report_text(r, "backend", dump.backend ?
			  gpucr_backend_name(dump.backend) : "none");
	gpucr_report_number(r, "raw_bytes", dump.env.raw_bytes);
	gpucr_report_number(r, "stored_bytes", dump.env.stored_bytes);
	gpucr_report_number(r, "paused_us", paused_ms() * 1000);
	gpucr_opts_tell(&dump.opts, tell_option, r);
	if (!good && *gpucr_log_first_error())
		gpucr_report_error(r, gpucr_log_first_error(), -dump.err);
	gpucr_report_write(r, dump.env.dir, GPUCR_REPORT_DUMP, good,
			   -dump.err);
}

static void free_all(void)
{
	struct target *t;

	while ((t = dump.targets)) {
		dump.targets = t->next;
		target_free(t);
	}
	gpucr_backend_close(dump.backend);
	guard_stop(&dump.guard);
	tree_close(&dump.tree);
	gpucr_topology_free(dump.topo);
	while (dump.num_written)
		free(dump.written[--dump.num_written]);
	free(dump.written);
	if (dump.env.dir >= 0)
		close(dump.env.dir);
	if (dump.run >= 0)
		close(dump.run);
	gpucr_progress_close(dump.env.progress);
	gpucr_report_free(plugin_report);
	plugin_report = NULL;
	streamer_end();
	gpucr_owner_fini(&dump.owner);
	memset(&dump, 0, sizeof(dump));
}

void dump_exit(int ret)
{
	if (!gpucr_owner_is_self(&dump.owner))
		return;
	unpause_all();
	if (ret || dump.err)
		remove_written();
	gpucr_progress_phase(dump.env.progress,
			     ret || dump.err ? "failed" : "done", 0);
	if (dump.claimed || dump.err) {
		summary(ret);
		write_report(!ret && !dump.err);
	}
	free_all();
}

void dump_abandon(void)
{
	if (!gpucr_owner_is_self(&dump.owner))
		return;
	unpause_all();
	remove_written();
	if (dump.claimed)
		write_report(false);
}
