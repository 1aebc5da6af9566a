// SPDX-License-Identifier: GPL-2.0-only
/*
 * The doctor's checks on machines that are made of files. Each problem has a
 * twin without it, so a check that always or never complains is found.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "doctor.h"
#include "doctor_elf.h"
#include "sample.h"
#include "table.h"

#define VERSION	"0.1.0"

static char root[256];
static char said[8192];		/* "status check token|" and the next */
static char text[8192];		/* what was said in words */

void doctor_say(enum doctor_status status, const char *check,
		const char *token, const char *fix, const char *fmt, ...)
{
	size_t len = strlen(said), tlen = strlen(text);
	va_list ap;

	snprintf(said + len, sizeof(said) - len, "%d %s %s|", status, check,
		 token ? token : "-");
	va_start(ap, fmt);
	vsnprintf(text + tlen, sizeof(text) - tlen, fmt, ap);
	va_end(ap);
	if (status != DOCTOR_OK && !fix)
		strcat(said, "NO FIX|");
}

static void forget(void)
{
	said[0] = text[0] = '\0';
}

/* Was exactly this said? */
static int was(const char *want)
{
	if (!strcmp(said, want))
		return 1;
	ktap_note("said \"%s\", not \"%s\": %s", said, want, text);
	return 0;
}

/* Makes the directories of a path below the root. */
static int put(const char *path, const char *content)
{
	char full[512], *slash;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, content, strlen(content)) < 0)
		return -1;
	return close(fd);
}

static const char *at(const char *path)
{
	static char full[4][512];
	static int n;

	n = (n + 1) % 4;
	snprintf(full[n], sizeof(full[n]), "%s/%s", root, path);
	return full[n];
}

static int copy(const char *from, const char *to)
{
	char buf[65536];
	int in = open(from, O_RDONLY), out;
	ssize_t n;

	unlink(at(to));
	if (put(to, ""))
		return -1;
	out = open(at(to), O_WRONLY);
	if (in < 0 || out < 0)
		return -1;
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			return -1;
	close(in);
	close(out);
	return chmod(at(to), 0755);
}

static const struct doctor_places *places(void)
{
	static char p[4][512];
	static struct doctor_places d = { p[0], p[1], p[2], p[3] };

	snprintf(p[0], sizeof(p[0]), "%s/proc", root);
	snprintf(p[1], sizeof(p[1]), "%s/sys", root);
	snprintf(p[2], sizeof(p[2]), "%s/dev", root);
	snprintf(p[3], sizeof(p[3]), "%s/criu.conf", root);
	return &d;
}

/* --- criu ---------------------------------------------------------------- */

static int criu_is_read(void)
{
	struct doctor_criu c;

	unsetenv("CRIU_LIBS_DIR");
	forget();
	CHECK(doctor_check_criu(FAKECRIU, NULL, at("criu.conf"), &c));
	CHECK(was("0 criu -|"));
	CHECK(c.major == 4 && c.minor == 1 && c.sublevel == 1);
	CHECK(c.hooks == 12);
	CHECK(!strcmp(c.libdir, "/usr/lib/criu/"));
	return 0;
}

/* Option, then configuration, then environment, then what is built in. */
static int libdir_in_order(void)
{
	struct doctor_criu c;

	setenv("CRIU_LIBS_DIR", "/env", 1);
	CHECK(doctor_check_criu(FAKECRIU, NULL, at("criu.conf"), &c));
	CHECK(!strcmp(c.libdir, "/env"));
	CHECK(!put("criu.conf", "# libdir /no\nlibdirs /no\n libdir /conf # x\n"));
	CHECK(doctor_check_criu(FAKECRIU, NULL, at("criu.conf"), &c));
	CHECK(!strcmp(c.libdir, "/conf"));
	CHECK(doctor_check_criu(FAKECRIU, "/opt", at("criu.conf"), &c));
	CHECK(!strcmp(c.libdir, "/opt"));
	unlink(at("criu.conf"));
	unsetenv("CRIU_LIBS_DIR");
	return 0;
}

static int criu_missing(void)
{
	struct doctor_criu c;

	forget();
	CHECK(!doctor_check_criu(at("nowhere"), NULL, at("criu.conf"), &c));
	CHECK(was("2 criu criu-missing|"));
	CHECK(!put("script", "#!/bin/sh\n"));
	forget();
	CHECK(!doctor_check_criu(at("script"), NULL, at("criu.conf"), &c));
	CHECK(was("2 criu criu-missing|"));
	return 0;
}

/* The same program without its request for a loader. */
static int criu_static(void)
{
	struct doctor_criu c;
	Elf64_Ehdr h;
	Elf64_Phdr p;
	int fd, i;

	CHECK(!copy(FAKECRIU, "static"));
	fd = open(at("static"), O_RDWR);
	CHECK(fd >= 0 && pread(fd, &h, sizeof(h), 0) == sizeof(h));
	for (i = 0; i < h.e_phnum; i++) {
		off_t where = (off_t)(h.e_phoff + i * sizeof(p));

		CHECK(pread(fd, &p, sizeof(p), where) == sizeof(p));
		if (p.p_type != PT_INTERP)
			continue;
		p.p_type = PT_NULL;
		CHECK(pwrite(fd, &p, sizeof(p), where) == sizeof(p));
	}
	close(fd);
	forget();
	CHECK(!doctor_check_criu(at("static"), NULL, at("criu.conf"), &c));
	CHECK(was("2 criu criu-static|"));
	return 0;
}

static int versions(void)
{
	struct doctor_criu c = { .major = 3, .minor = 17 };

	CHECK(doctor_parse_version("x\nVersion: 4.2\nGitID: v4.2\n", &c));
	CHECK(c.major == 4 && c.minor == 2 && !c.sublevel);
	CHECK(!doctor_parse_version("Version: four", &c));
	CHECK(!doctor_parse_version("", &c));
	forget();
	c.major = 3;
	doctor_check_criu_kernel(&c, "6.12.1-amd64");
	c.major = 4;
	doctor_check_criu_kernel(&c, "6.12.1-amd64");
	c.major = 3;
	doctor_check_criu_kernel(&c, "6.1.0-57-amd64");
	c.major = 0;
	doctor_check_criu_kernel(&c, "6.12.1-amd64");
	CHECK(was("1 criu-kernel criu-kernel|0 criu-kernel -|0 criu-kernel -|"));
	return 0;
}

/* --- plugins ------------------------------------------------------------- */

static struct doctor_criu criu(const char *libdir)
{
	struct doctor_criu c = { .major = 4, .hooks = 12 };

	snprintf(c.libdir, sizeof(c.libdir), "%s", at(libdir));
	mkdir(c.libdir, 0700);
	return c;
}

static int plugin_there(void)
{
	struct doctor_criu c = criu("lib");

	CHECK(!copy(PLUGIN, "lib/amdgpu_plugin.so"));
	CHECK(!put("lib/README", "no plugin"));
	forget();
	doctor_check_plugins(&c, VERSION);
	CHECK(was("0 plugin -|0 plugins -|"));
	forget();
	doctor_check_plugins(&c, "9.9.9");
	CHECK(was("1 plugin plugin-version|0 plugins -|"));
	return 0;
}

static int plugin_missing(void)
{
	struct doctor_criu c = criu("empty");

	forget();
	doctor_check_plugins(&c, VERSION);
	CHECK(was("2 plugin plugin-missing|"));
	rmdir(c.libdir);
	forget();
	doctor_check_plugins(&c, VERSION);
	CHECK(was("2 plugin plugin-missing|"));
	return 0;
}

static int plugin_twice(void)
{
	struct doctor_criu c = criu("two");

	CHECK(!copy(PLUGIN, "two/a.so") && !copy(PLUGIN, "two/b.so"));
	forget();
	doctor_check_plugins(&c, VERSION);
	CHECK(was("0 plugin -|2 plugins plugin-twice|"));
	CHECK(strstr(text, "/two/a.so and ") && strstr(text, "/two/b.so are"));
	return 0;
}

/* It asks for a library that nobody has. */
static int plugin_unloadable(void)
{
	static const char needs[] = "libprotobuf-c.so";
	struct doctor_criu c = criu("cut");
	uint8_t *file, *name;
	size_t len;

	file = sample_read(AT_FDCWD, PLUGIN, &len);
	CHECK(file && !put("cut/amdgpu_plugin.so", ""));
	name = memmem(file, len, needs, strlen(needs));
	CHECK(name);
	name[3] = 'x';
	CHECK(!sample_write(AT_FDCWD, at("cut/amdgpu_plugin.so"), file, len));
	free(file);
	forget();
	doctor_check_plugins(&c, VERSION);
	CHECK(was("2 plugin plugin-unloadable|0 plugins -|"));
	CHECK(strstr(text, "libxrotobuf-c.so"));
	return 0;
}

static int plugin_foreign(void)
{
	struct doctor_criu c = criu("foreign");

	CHECK(!copy(PLUGIN, "foreign/amdgpu_plugin.so"));
	CHECK(!put("foreign/x.so", "text"));
	forget();
	doctor_check_plugins(&c, VERSION);
	CHECK(was("0 plugin -|2 plugins plugin-foreign|0 plugins -|"));
	return 0;
}

/* --- the module ---------------------------------------------------------- */

static struct doctor_module module(void)
{
	struct doctor_module m = {
		.loaded = VERSION, .installed = VERSION, .helper = "/bin/sh",
		.has_helper = true, .release = "6.12",
	};

	return m;
}

#define MODULE(name, change, want) \
static int name(void) \
{ \
	struct doctor_module m = module(); \
	change; \
	forget(); \
	doctor_judge_module(&m, VERSION); \
	CHECK(was(want)); \
	return 0; \
}

MODULE(module_good, m.signer[0] = 'x',
       "0 module -|0 signature -|0 helper -|")
MODULE(module_absent, m.loaded[0] = m.installed[0] = 0,
       "1 module module-missing|")
MODULE(module_not_loaded, m.loaded[0] = 0, "0 module -|0 signature -|")
MODULE(module_other, m.installed[0] = '9',
       "1 module module-version|0 signature -|0 helper -|")
MODULE(module_not_tools, m.installed[0] = m.loaded[0] = '9',
       "1 module module-version|0 signature -|0 helper -|")
MODULE(module_unsigned, m.loaded[0] = 0; m.sig_enforce = true,
       "0 module -|2 signature module-unsigned|")
MODULE(module_secure_boot, m.loaded[0] = 0; m.secure_boot = true,
       "0 module -|2 signature module-unsigned|")
MODULE(helper_off, m.helper[0] = 0,
       "0 module -|0 signature -|1 helper helper-off|")
MODULE(helper_hidden, m.has_helper = false,
       "0 module -|0 signature -|1 helper helper-unknown|")
MODULE(helper_missing, strcpy(m.helper, "/nowhere/gpucr"),
       "0 module -|0 signature -|2 helper helper-missing|")

static int module_is_gathered(void)
{
	struct doctor_module m;

	CHECK(!put("sys/module/gpucr/version", "1.2.3\n"));
	CHECK(!put("sys/module/gpucr/parameters/recovery_helper", "/x\n"));
	CHECK(!put("sys/module/module/parameters/sig_enforce", "Y\n"));
	CHECK(!put("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		   "\x06\x01\x01\x01\x01"));
	doctor_gather_module(places(), &m);
	CHECK(!strcmp(m.loaded, "1.2.3") && !strcmp(m.helper, "/x"));
	CHECK(m.has_helper && m.sig_enforce && m.secure_boot && *m.release);
	return 0;
}

/* --- devices, rights, settings ------------------------------------------- */

static int kfd_absent(void)
{
	forget();
	doctor_check_kfd(places());
	CHECK(was("2 kfd no-kfd|"));
	CHECK(!put("sys/class/kfd/kfd/dev", "1:3\n"));
	forget();
	doctor_check_kfd(places());
	CHECK(was("2 kfd no-device|"));
	CHECK(!put("dev/kfd", ""));
	forget();
	doctor_check_kfd(places());
	CHECK(was("2 kfd wrong-device|"));
	unlink(at("dev/kfd"));
	return 0;
}

/* The null device under KFD's name. */
static int kfd_opens(void)
{
	if (mknod(at("dev/kfd"), S_IFCHR | 0600, makedev(1, 3))) {
		ktap_note("no mknod here: not shown");
		return 0;
	}
	forget();
	doctor_check_kfd(places());
	/* A /tmp that is mounted nodev cannot show more. */
	CHECK(!strcmp(said, "0 kfd -|") || was("2 kfd device-access|"));
	unlink(at("dev/kfd"));
	/* Another device under that name, as after a change of numbers. */
	CHECK(!mknod(at("dev/kfd"), S_IFCHR | 0600, makedev(1, 5)));
	forget();
	doctor_check_kfd(places());
	CHECK(was("2 kfd wrong-device|"));
	unlink(at("dev/kfd"));
	return 0;
}

static int render_nodes(void)
{
	forget();
	doctor_check_render(places());
	CHECK(was(""));
	CHECK(!put("sys/class/kfd/kfd/topology/nodes/0/properties",
		   "cpu_cores_count 8\n"));
	forget();
	doctor_check_render(places());
	CHECK(was("2 render no-gpu|"));
	CHECK(!put("sys/class/kfd/kfd/topology/nodes/1/properties",
		   "drm_render_minor 128\n"));
	CHECK(!put("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "77\n"));
	forget();
	doctor_check_render(places());
	CHECK(was("1 render no-render-node|2 render no-render-node|"));
	CHECK(!put("dev/dri/renderD128", ""));
	forget();
	doctor_check_render(places());
	CHECK(was("0 render -|"));
	return 0;
}

static int capabilities(const char *caps, const char *map, const char *want)
{
	char status[128];

	snprintf(status, sizeof(status), "Name:\tx\nCapEff:\t%s\n", caps);
	CHECK(!put("proc/self/status", status));
	CHECK(!put("proc/self/uid_map", map));
	forget();
	doctor_check_capabilities(places());
	CHECK(was(want));
	return 0;
}

static int rights(void)
{
	static const char all[] = "         0          0 4294967295\n";

	CHECK(!put("proc/self/limits", "Limit Soft Hard\nMax locked memory         8388608              8388608              bytes\n"));
	CHECK(!capabilities("000001ffffffffff", all,
			    "0 capabilities -|0 memlock -|"));
	CHECK(!capabilities("0000000000000000", all,
			    "2 capabilities no-capability|1 memlock memlock-low|"));
	/* CHECKPOINT_RESTORE alone, with PTRACE, without. */
	CHECK(!capabilities("0000010000080000", all,
			    "0 capabilities -|1 memlock memlock-low|"));
	CHECK(!capabilities("0000010000000000", all,
			    "2 capabilities no-capability|1 memlock memlock-low|"));
	CHECK(!capabilities("000001ffffffffff", "0 1000 1\n",
			    "2 capabilities user-namespace|0 memlock -|"));
	CHECK(!put("proc/self/limits", "Max locked memory         unlimited            unlimited            bytes\n"));
	CHECK(!capabilities("0000010000080000", all,
			    "0 capabilities -|0 memlock -|"));
	return 0;
}

static int kernel(void)
{
	forget();
	doctor_check_kernel(places());
	CHECK(!put("proc/sys/kernel/ns_last_pid", "1\n"));
	doctor_check_kernel(places());
	CHECK(was("2 kernel kernel-config|0 kernel -|"));
	return 0;
}

static int link_fd(const char *fd, const char *to)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/42/fd/%s", fd);
	unlink(at(path));
	return symlink(to, at(path));
}

static int process(void)
{
	forget();
	doctor_check_pid(places(), 42);
	CHECK(was("2 pid no-process|"));
	CHECK(!put("proc/42/fd/x", "") && !put("proc/42/ns/x", "") &&
	      !put("proc/self/ns/x", ""));
	CHECK(!symlink("user:[1]", at("proc/self/ns/user")));
	CHECK(!symlink("user:[1]", at("proc/42/ns/user")));
	CHECK(!link_fd("3", "/dev/kfd"));
	forget();
	doctor_check_pid(places(), 42);
	CHECK(was("0 pid -|") && strstr(text, "open 1 time"));
	CHECK(!link_fd("4", "anon_inode:[io_uring]"));
	forget();
	doctor_check_pid(places(), 42);
	CHECK(was("2 pid io-uring|"));
	unlink(at("proc/42/ns/user"));
	CHECK(!symlink("user:[2]", at("proc/42/ns/user")));
	forget();
	doctor_check_pid(places(), 42);
	CHECK(was("2 pid user-namespace|"));
	return 0;
}

/* An ELF file cut at places, and with each byte of its headers changed. */
static int hostile_elf(void)
{
	size_t len, n, i;
	uint8_t *file;

	file = sample_read(AT_FDCWD, FAKECRIU, &len);
	CHECK(file);
	for (n = 0; n < len; n += n < 4096 ? 13 : 997) {
		struct doctor_sym s;
		struct doctor_elf e;
		uint8_t *part = malloc(n + 1);

		CHECK(part);
		memcpy(part, file, n);
		if (n)
			part[n / 2] ^= 0xff;
		if (doctor_elf_parse(part, n, &e))
			continue;
		doctor_elf_is_dynamic(&e);
		for (i = 0; i < 3; i++)
			doctor_elf_symbol(&e, "cr_plugin_ctl", &s);
		doctor_elf_pointer(&e, n * 8);
		doctor_elf_close(&e);
	}
	free(file);
	return 0;
}

#define TEST(f) { #f, f }

int main(void)
{
	static const struct ktap_test tests[] = {
		TEST(criu_is_read), TEST(libdir_in_order), TEST(criu_missing),
		TEST(criu_static), TEST(versions), TEST(plugin_there),
		TEST(plugin_missing), TEST(plugin_twice),
		TEST(plugin_unloadable), TEST(plugin_foreign),
		TEST(module_good), TEST(module_absent),
		TEST(module_not_loaded), TEST(module_other),
		TEST(module_not_tools), TEST(module_unsigned),
		TEST(module_secure_boot), TEST(helper_off),
		TEST(helper_hidden), TEST(helper_missing),
		TEST(module_is_gathered), TEST(kfd_absent), TEST(kfd_opens),
		TEST(render_nodes), TEST(rights), TEST(kernel), TEST(process),
		TEST(hostile_elf),
	};
	const char *base = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/doctor.XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(root))
		return 1;
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
