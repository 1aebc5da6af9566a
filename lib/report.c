// SPDX-License-Identifier: GPL-2.0-only
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "copy.h"
#include "log.h"
#include "version.h"

#define MAX_PHASES	512
#define MAX_MEMBERS	48
#define NAME_SIZE	32
#define TEXT_SIZE	128
#define ERROR_SIZE	480

struct phase {
	char name[NAME_SIZE];
	pid_t pid;
	uint64_t start_us, end_us;	/* since the report's start; 0: none */
	uint64_t bytes;
};

struct member {
	char key[NAME_SIZE];
	char text[TEXT_SIZE];
	uint64_t number;
	bool is_text, is_option;
};

struct gpucr_report {
	char operation[NAME_SIZE];
	uint64_t start_us;		/* of the monotonic clock */
	time_t time;
	atomic_int num_phases, num_members, has_error, has_place;
	struct phase phases[MAX_PHASES];
	struct member members[MAX_MEMBERS];
	char error[ERROR_SIZE];
	pid_t error_pid;
	int error_errno;
	struct gpucr_copy_place place;	/* of the error */
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct gpucr_report *gpucr_report_new(const char *operation)
{
	struct gpucr_report *r;

	r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED)
		return NULL;
	snprintf(r->operation, sizeof(r->operation), "%s", operation);
	r->start_us = now_us();
	r->time = time(NULL);
	return r;
}

void gpucr_report_free(struct gpucr_report *r)
{
	if (r)
		munmap(r, sizeof(*r));
}

int gpucr_report_begin(struct gpucr_report *r, const char *phase, pid_t pid)
{
	struct phase *p;
	int n;

	if (!r)
		return -1;
	n = atomic_fetch_add(&r->num_phases, 1);
	if (n >= MAX_PHASES)
		return -1;
	p = &r->phases[n];
	snprintf(p->name, sizeof(p->name), "%s", phase);
	p->pid = pid;
	p->start_us = now_us() - r->start_us;
	return n;
}

void gpucr_report_end(struct gpucr_report *r, int phase, uint64_t bytes)
{
	if (!r || phase < 0 || phase >= MAX_PHASES)
		return;
	r->phases[phase].bytes = bytes;
	r->phases[phase].end_us = now_us() - r->start_us + 1;
}

static struct member *find_member(struct gpucr_report *r, const char *key,
				  bool is_option)
{
	int i, num = atomic_load(&r->num_members);
	struct member *m;

	for (i = 0; i < num && i < MAX_MEMBERS; i++) {
		m = &r->members[i];
		if (m->is_option == is_option && !strcmp(m->key, key))
			return m;
	}
	i = atomic_fetch_add(&r->num_members, 1);
	if (i >= MAX_MEMBERS)
		return NULL;
	m = &r->members[i];
	m->is_option = is_option;
	snprintf(m->key, sizeof(m->key), "%s", key);
	return m;
}

void gpucr_report_number(struct gpucr_report *r, const char *key,
			 uint64_t value)
{
	struct member *m = r ? find_member(r, key, false) : NULL;

	if (m)
		m->number = value;
}

static void set_text(struct gpucr_report *r, const char *key,
		     const char *value, bool is_option)
{
	struct member *m = r ? find_member(r, key, is_option) : NULL;

	if (!m)
		return;
	m->is_text = true;
	snprintf(m->text, sizeof(m->text), "%s", value);
}

void gpucr_report_text(struct gpucr_report *r, const char *key,
		       const char *value)
{
	set_text(r, key, value, false);
}

void gpucr_report_option(struct gpucr_report *r, const char *name,
			 const char *value)
{
	set_text(r, name, value, true);
}

void gpucr_report_error(struct gpucr_report *r, const char *message, int err)
{
	if (!r || atomic_exchange(&r->has_error, 1))
		return;
	snprintf(r->error, sizeof(r->error), "%s", message);
	r->error_pid = getpid();
	r->error_errno = err;
}

void gpucr_report_place(struct gpucr_report *r,
			const struct gpucr_copy_place *p)
{
	if (r && !atomic_exchange(&r->has_place, 1))
		r->place = *p;
}

/*
 * Bytes of the UTF-8 character that text begins with; 0: it begins with none,
 * or with what is no character (a surrogate, one written too long).
 */
static size_t utf8_len(const unsigned char *text, size_t max)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t i, n = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 :
		      text[0] < 0xf0 ? 3 : 4;
	uint32_t c;

	if (n == 1)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4 || n > max)
		return 0;
	c = text[0] & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ?
	       0 : n;
}

/*
 * A string of JSON, len bytes at most. A file's name or a message that was cut
 * short may hold any bytes: what is no UTF-8 becomes U+FFFD.
 */
static void put_string(FILE *f, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i, n;

	len = strnlen(text, len);
	fputc('"', f);
	for (i = 0; i < len; i += n ?: 1) {
		n = utf8_len(s + i, len - i);
		if (!n)
			fputs("\\ufffd", f);
		else if (s[i] == '"' || s[i] == '\\')
			fprintf(f, "\\%c", s[i]);
		else if (s[i] < 0x20 || s[i] == 0x7f)
			fprintf(f, "\\u%04x", s[i]);
		else
			fwrite(s + i, 1, n, f);
	}
	fputc('"', f);
}

static void put_key(FILE *f, const char *key)
{
	fputs(",\n\t", f);
	put_string(f, key, SIZE_MAX);
	fputs(": ", f);
}

static void put_member(FILE *f, const struct member *m)
{
	if (m->is_text)
		put_string(f, m->text, sizeof(m->text));
	else
		fprintf(f, "%" PRIu64, m->number);
}

static int count(const atomic_int *n, int max)
{
	int v = atomic_load(n);

	return v < max ? v : max;
}

static void put_members(FILE *f, const struct gpucr_report *r)
{
	int i, num = count(&r->num_members, MAX_MEMBERS), options = 0;

	for (i = 0; i < num; i++) {
		if (r->members[i].is_option)
			continue;
		put_key(f, r->members[i].key);
		put_member(f, &r->members[i]);
	}
	put_key(f, "options");
	fputc('{', f);
	for (i = 0; i < num; i++) {
		if (!r->members[i].is_option)
			continue;
		fputs(options++ ? ", " : "", f);
		put_string(f, r->members[i].key, NAME_SIZE);
		fputs(": ", f);
		put_member(f, &r->members[i]);
	}
	fputc('}', f);
}

static void put_phase(FILE *f, const struct phase *p)
{
	fputs("{\"phase\": ", f);
	put_string(f, p->name, sizeof(p->name));
	fprintf(f, ", \"start_us\": %" PRIu64 ", ", p->start_us);
	if (p->end_us)
		fprintf(f, "\"duration_us\": %" PRIu64,
			p->end_us - 1 - p->start_us);
	else
		fputs("\"duration_us\": null", f);
	if (p->pid)
		fprintf(f, ", \"pid\": %d", p->pid);
	if (p->bytes)
		fprintf(f, ", \"bytes\": %" PRIu64, p->bytes);
	fputc('}', f);
}

static void put_phases(FILE *f, const struct gpucr_report *r)
{
	int i, num = count(&r->num_phases, MAX_PHASES);

	put_key(f, "phases");
	fputc('[', f);
	for (i = 0; i < num; i++) {
		fputs(i ? ",\n\t\t" : "\n\t\t", f);
		put_phase(f, &r->phases[i]);
	}
	fputs(num ? "\n\t]" : "]", f);
}

/* "what (token); hint" */
static void put_error(FILE *f, const struct gpucr_report *r, int err)
{
	const char *text = r->error, *open, *close = NULL;

	put_key(f, "error");
	for (open = strstr(text, " ("); open; open = strstr(open + 1, " (")) {
		close = open + 2 + strspn(open + 2,
					  "abcdefghijklmnopqrstuvwxyz-");
		if (*close == ')' && memchr(open + 2, '-', close - open - 2))
			break;
	}
	fputs("{\"message\": ", f);
	put_string(f, text, open ? (size_t)(open - text) : SIZE_MAX);
	fputs(", \"token\": ", f);
	if (open)
		put_string(f, open + 2, close - open - 2);
	else
		fputs("null", f);
	fputs(", \"hint\": ", f);
	if (open && !strncmp(close, "); ", 3))
		put_string(f, close + 3, SIZE_MAX);
	else
		fputs("null", f);
	fputs(", \"errno\": ", f);
	if (err)
		put_string(f, strerrorname_np(err) ? : "unknown", SIZE_MAX);
	else
		fputs("null", f);
	if (atomic_load(&r->has_place))
		fprintf(f, ", \"gpu\": \"0x%04x\", \"bo\": %u, \"offset\": %"
			PRIu64, r->place.gpu_id, r->place.bo, r->place.offset);
	fprintf(f, ", \"pid\": %d}", r->error_pid);
}

static void put_report(FILE *f, const struct gpucr_report *r, bool good,
		       int err)
{
	struct utsname u;
	struct tm tm;
	char text[32];

	fputs("{\n\t\"gpucr_report\": 1", f);
	put_key(f, "operation");
	put_string(f, r->operation, sizeof(r->operation));
	put_key(f, "result");
	put_string(f, good ? "done" : "failed", SIZE_MAX);
	put_key(f, "version");
	put_string(f, GPUCR_LIB_VERSION, SIZE_MAX);
	if (!uname(&u)) {
		put_key(f, "kernel");
		put_string(f, u.release, SIZE_MAX);
	}
	if (gmtime_r(&r->time, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm)) {
		put_key(f, "time");
		put_string(f, text, SIZE_MAX);
	}
	put_key(f, "duration_us");
	fprintf(f, "%" PRIu64, now_us() - r->start_us);
	put_members(f, r);
	put_phases(f, r);
	if (atomic_load(&r->has_error))
		put_error(f, r, err ? : r->error_errno);
	fputs("\n}\n", f);
}

static int write_file(const struct gpucr_report *r, int dir, const char *tmp,
		      bool good, int err)
{
	int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
			O_NOFOLLOW, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	bool bad;

	if (!f) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	put_report(f, r, good, err);
	bad = ferror(f);
	if (fclose(f) || bad)
		return -EIO;
	return 0;
}

void gpucr_report_write(struct gpucr_report *r, int dir, const char *name,
			bool good, int err)
{
	char tmp[64];
	int ret;

	if (!r)
		return;
	snprintf(tmp, sizeof(tmp), "%s.tmp", name);
	ret = write_file(r, dir, tmp, good, err);
	if (!ret && renameat(dir, tmp, dir, name))
		ret = -errno;
	if (!ret)
		return;
	unlinkat(dir, tmp, 0);
	gpucr_dbg("%s: cannot be written: %s", name, strerror(-ret));
}
