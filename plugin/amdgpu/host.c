// SPDX-License-Identifier: GPL-2.0-only
#include "host.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "log.h"

#include "plugin.h"

/*
 * CRIU's table of hook chains: one list head of two pointers per hook, and
 * one for the list of plugins.
 */
#define LIST_HEAD_SIZE	(2 * sizeof(void *))
/* The hook before which RESTORE_EXT_FILE got its second argument. */
#define RETRY_SINCE_HOOKS	14

static void *host_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

static size_t table_size(void)
{
	void *table = host_symbol("cr_plugin_ctl");
	const ElfW(Sym) *sym = NULL;
	Dl_info info;

	if (!table ||
	    !dladdr1(table, &info, (void **)&sym, RTLD_DL_SYMENT) || !sym)
		return 0;
	return sym->st_size;
}

bool host_unknown(void)
{
	return table_size() < LIST_HEAD_SIZE * (1 + HOST_MIN_HOOKS);
}

unsigned int host_max_hooks(void)
{
	size_t n = table_size() / LIST_HEAD_SIZE;

	if (n < 1 + HOST_MIN_HOOKS)
		return HOST_MIN_HOOKS;
	n -= 1;
	return n < PLUGIN_MAX_HOOKS ? n : PLUGIN_MAX_HOOKS;
}

bool host_has_retry(void)
{
	return host_max_hooks() >= RETRY_SINCE_HOOKS;
}

bool host_adopts_vma_fd(void)
{
	/* Came with the same release as the change of ownership. */
	return host_symbol("rpc_query_external_files") != NULL;
}

/* As CRIU's own lines look, which people and scripts search for. */
static void to_criu_log(enum gpucr_log_level level, const char *text)
{
	static const char * const prefix[] = {
		[GPUCR_LOG_ERROR] = "Error (amdgpu_plugin): gpucr: ",
		[GPUCR_LOG_WARN] = "Warn  (amdgpu_plugin): gpucr: ",
		[GPUCR_LOG_INFO] = "gpucr: ",
		[GPUCR_LOG_DEBUG] = "gpucr: ",
	};
	void (*print)(unsigned int level, const char *fmt, ...);

	*(void **)&print = host_symbol("print_on_level");
	if (print)
		print(level, "%s%s\n", prefix[level], text);
}

void host_log_init(void)
{
	gpucr_log_set_sink(to_criu_log);
}

int host_image_dir(void)
{
	int (*get)(void);

	*(void **)&get = host_symbol("criu_get_image_dir");
	return get ? get() : -1;
}

/* Is the other end of the socket one of a streamer's? */
static bool is_streamer(int fd)
{
	struct sockaddr_un a = { 0 };
	socklen_t len = sizeof(a) - 1;
	const char *name;

	if (getpeername(fd, (struct sockaddr *)&a, &len) ||
	    a.sun_family != AF_UNIX)
		return false;
	name = strrchr(a.sun_path, '/');
	name = name ? name + 1 : a.sun_path;
	return !strcmp(name, "streamer-capture.sock") ||
	       !strcmp(name, "streamer-serve.sock");
}

bool host_is_streaming(void)
{
	DIR *d = opendir("/proc/self/fd");
	bool found = false;
	struct dirent *e;

	while (d && !found && (e = readdir(d)))
		found = *e->d_name != '.' && is_streamer(atoi(e->d_name));
	if (d)
		closedir(d);
	return found;
}

bool host_can_stream(void)
{
	return host_symbol("img_streamer_open") != NULL;
}

int host_stream_open(const char *name, bool put)
{
	int (*open_file)(const char *name, int flags);
	int fd;

	*(void **)&open_file = host_symbol("img_streamer_open");
	if (!open_file)
		return -ENOSYS;
	/* As CRIU calls it: any other flags are its BUG(). */
	fd = open_file(name, put ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY);
	return fd < 0 && fd != -ENOENT ? -EIO : fd;
}

int host_unused_fd(pid_t pid)
{
	int (*find)(pid_t pid);

	*(void **)&find = host_symbol("find_unused_fd_pid");
	return find ? find(pid) : -ENOSYS;
}

bool host_can_overlap(void)
{
	return host_max_hooks() > HOOK_POST_FORKING &&
	       host_symbol("fdstore_add") && host_symbol("fdstore_get");
}

int host_store_fd(int fd)
{
	int (*add)(int fd);

	*(void **)&add = host_symbol("fdstore_add");
	return add ? add(fd) : -ENOSYS;
}

int host_stored_fd(int id)
{
	int (*get)(int id);

	*(void **)&get = host_symbol("fdstore_get");
	return get ? get(id) : -ENOSYS;
}

int host_add_inventory(const char *name)
{
	int (*add)(const char *name);

	*(void **)&add = host_symbol("add_inventory_plugin");
	return add ? add(name) : 0;
}

bool host_take_inventory(const char *name)
{
	bool (*take)(const char *name, size_t n);

	*(void **)&take = host_symbol("check_and_remove_inventory_plugin");
	/* Newer CRIU takes the name alone; a further argument is harmless. */
	return take ? take(name, strlen(name)) : true;
}

bool host_lists_plugins(void)
{
	/* Without a list every name is in it. */
	return !host_take_inventory("gpucr has no such plugin");
}

struct twin_search {
	const char *plugin_name;
	char self[4096];
	char twin[4096];
};

static int look_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct plugin_desc *desc;
	struct twin_search *s = arg;
	Dl_info where;
	void *h;

	(void)size;
	if (!info->dlpi_name || !*info->dlpi_name)
		return 0;
	h = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
	if (!h)
		return 0;
	desc = dlsym(h, "CR_PLUGIN_DESC");
	/* The symbol may have come from a library of that object. */
	if (desc && dladdr(desc, &where) &&
	    !strcmp(where.dli_fname, info->dlpi_name) && desc->name &&
	    !strcmp(desc->name, s->plugin_name))
		snprintf(desc == &CR_PLUGIN_DESC ? s->self : s->twin,
			 sizeof(s->twin), "%s", info->dlpi_name);
	dlclose(h);
	return 0;
}

const char *host_find_twin(const char *plugin_name, const char **self)
{
	static struct twin_search s;

	memset(&s, 0, sizeof(s));
	s.plugin_name = plugin_name;
	dl_iterate_phdr(look_at_object, &s);
	*self = s.self;
	return s.twin;
}
