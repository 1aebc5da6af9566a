// SPDX-License-Identifier: GPL-2.0-only
#include "kfdrules.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <gpucr_kfdpriv.h>

#include "btf.h"
#include "kfd.h"
#include "log.h"
#include "topology.h"

#define RUN_DIR		"/run/gpucr"
#define SEEN_FILE	RUN_DIR "/kfd-seen"
#define BO_RECORD	"kfd_criu_bo_priv_data"
/* Where no GPU tells whose KFD it is. */
#define USUAL_PROVIDER	"amdgpu"

static const char * const rule_names[] = {
	[GPUCR_OFFSET_LOCAL] = "local", [GPUCR_OFFSET_USER] = "user",
};

static void find_provider(struct gpucr_kfd_rules *r)
{
	struct gpucr_topology *topo;
	char path[128], link[PATH_MAX];
	ssize_t n = -1;

	snprintf(r->provider, sizeof(r->provider), "%s", USUAL_PROVIDER);
	if (gpucr_topology_read(NULL, &topo))
		return;
	if (topo->num_gpus) {
		snprintf(path, sizeof(path),
			 "/sys/class/drm/renderD%u/device/driver/module",
			 topo->gpus[0]->drm_render_minor);
		n = readlink(path, link, sizeof(link) - 1);
	}
	gpucr_topology_free(topo);
	if (n <= 0)
		return;
	link[n] = '\0';
	snprintf(r->provider, sizeof(r->provider), "%.63s",
		 strrchr(link, '/') ? strrchr(link, '/') + 1 : link);
}

/* Another one after each load of the module. */
static unsigned long long provider_load(const struct gpucr_kfd_rules *r)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "/sys/module/%s", r->provider);
	return stat(path, &st) ? 0 : (unsigned long long)st.st_ino;
}

static void read_seen(struct gpucr_kfd_rules *r)
{
	char provider[64], rule[16];
	unsigned long long load;
	unsigned int size;
	FILE *f = fopen(SEEN_FILE, "re");
	int n;

	if (!f)
		return;
	n = fscanf(f, "%63s %llu %u %15s", provider, &load, &size, rule);
	fclose(f);
	if (n != 4 || strcmp(provider, r->provider) ||
	    load != provider_load(r))
		return;
	if (size && r->bo_known == GPUCR_KNOWN_NOT) {
		r->bo_record = size;
		r->bo_known = GPUCR_KNOWN_SEEN;
	}
	for (n = GPUCR_OFFSET_LOCAL; n <= GPUCR_OFFSET_USER; n++) {
		if (!strcmp(rule, rule_names[n]))
			r->offsets = n;
	}
}

void gpucr_kfd_rules_read(struct gpucr_kfd_rules *r)
{
	memset(r, 0, sizeof(*r));
	find_provider(r);
	if (!gpucr_btf_module_struct_size(r->provider, BO_RECORD,
					  &r->bo_record))
		r->bo_known = GPUCR_KNOWN_BTF;
	read_seen(r);
}

void gpucr_kfd_rules_note(const struct gpucr_kfd_rules *r)
{
	char tmp[64];
	FILE *f;

	mkdir(RUN_DIR, 0755);
	snprintf(tmp, sizeof(tmp), SEEN_FILE ".%d", getpid());
	f = fopen(tmp, "we");
	if (!f)
		return;
	fprintf(f, "%s %llu %u %s\n", r->provider, provider_load(r),
		r->bo_record,
		r->offsets == GPUCR_OFFSET_UNKNOWN ? "-" :
		rule_names[r->offsets]);
	if (fclose(f) || rename(tmp, SEEN_FILE))
		unlink(tmp);
}

/* " text" of an attribute of the module; nothing where it has none. */
static void append_attribute(const struct gpucr_kfd_rules *r, const char *name,
			     char *text, size_t size)
{
	char path[128], value[64] = "";
	size_t len = strlen(text);
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/%s/%s", r->provider, name);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fscanf(f, "%63s", value) == 1)
		snprintf(text + len, size - len, " %s", value);
	fclose(f);
}

void gpucr_kfd_driver(const struct gpucr_kfd_rules *r, char *text, size_t size)
{
	snprintf(text, size, "%s", r->provider);
	append_attribute(r, "version", text, size);
	append_attribute(r, "srcversion", text, size);
}

static int refuse(const struct gpucr_kfd_rules *r, uint32_t walked)
{
	struct utsname u;

	if (uname(&u))
		u.release[0] = '\0';
	if (walked && r->bo_known == GPUCR_KNOWN_BTF)
		gpucr_err("kernel %s: BTF of %s says that KFD's record of a BO has %u bytes, but the data fit %u (layout-mismatch)",
			  u.release, r->provider, r->bo_record, walked);
	else
		gpucr_err("KFD's private data of kernel %s, module %s, have a layout that is not known (layout-unknown)",
			  u.release, r->provider);
	return -EPROTO;
}

int gpucr_kfd_rules_match(const struct gpucr_kfd_rules *r,
			  const struct gpucr_kfd_state *s,
			  uint32_t *bo_record)
{
	struct gpucr_kfdpriv p = {
		.data = s->priv,
		.size = s->n.priv_size,
		.num_devices = s->n.num_devices,
		.num_bos = s->n.num_bos,
		.num_objects = s->n.num_objects,
	};
	int err;

	*bo_record = 0;
	err = gpucr_kfdpriv_open(&p, 0);
	if (!p.num_bos)
		return err ? refuse(r, 0) : 0;
	/* A size that fits by chance beside the right one is no contradiction. */
	if (r->bo_record && !gpucr_kfdpriv_open(&p, r->bo_record)) {
		*bo_record = r->bo_record;
		return 0;
	}
	if (err)
		return refuse(r, 0);
	gpucr_kfdpriv_open(&p, 0);
	if (r->bo_known == GPUCR_KNOWN_BTF)
		return refuse(r, p.bo_size);
	*bo_record = p.bo_size;
	return 0;
}
