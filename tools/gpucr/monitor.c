// SPDX-License-Identifier: GPL-2.0-only
/* gpucr monitor: dumps and restores as they go on, and events of sessions. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/gpucr.h>

#include "args.h"
#include "clock.h"
#include "events.h"
#include "fail.h"
#include "out.h"
#include "progress.h"
#include "session.h"

#define TICK_MS		200
/* Not on a terminal: a line a second is enough. */
#define LINE_MS		1000
#define BAR		20

/* What was last shown of a CRIU. */
struct shown {
	pid_t pid;
	char text[GPUCR_PROGRESS_LEN];
	uint64_t ms;
};

struct monitor {
	const struct args *args;
	struct events *events;
	bool live;			/* one line that changes */
	bool open_line;
	uint64_t left;			/* of count; 0: no limit */
	bool done;
	struct shown *shown;
	size_t num_shown;
};

static void clock_text(char text[16])
{
	struct timespec t;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &t);
	localtime_r(&t.tv_sec, &tm);
	snprintf(text, 16, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min,
		 tm.tm_sec, (int)(t.tv_nsec / 1000000));
}

static uint64_t number(struct json_object *row, const char *key)
{
	return json_object_get_uint64(json_object_object_get(row, key));
}

static const char *word(struct json_object *row, const char *key)
{
	const char *s = json_object_get_string(json_object_object_get(row,
								      key));

	return s ? s : "-";
}

static void counted(struct monitor *m)
{
	if (m->left && !--m->left)
		m->done = true;
}

static void print_json(struct json_object *row)
{
	puts(json_object_to_json_string_ext(row, out_options.pretty ?
					    JSON_C_TO_STRING_PRETTY :
					    JSON_C_TO_STRING_PLAIN));
	fflush(stdout);
}

static void print_bar(uint64_t done, uint64_t total)
{
	unsigned int i, full = total ? done * BAR / total : 0;

	putchar('[');
	for (i = 0; i < BAR; i++)
		putchar(i < full ? '#' : '.');
	putchar(']');
}

static void print_progress(struct monitor *m, struct json_object *row)
{
	uint64_t done = number(row, "done"), total = number(row, "total");
	uint64_t rate = number(row, "rate");
	uint64_t left = rate && total > done ? (total - done) / rate : 0;
	char clock[16];

	clock_text(clock);
	printf("%s%s %s pid %s %s ", m->live ? "\r\033[K" : "", clock,
	       word(row, "kind"), word(row, "target"), word(row, "phase"));
	out_size(row, "done", stdout);
	fputs(" of ", stdout);
	out_size(row, "total", stdout);
	printf("  %u%%  %.1f GB/s  %llu:%02u left  ",
	       (unsigned int)(total ? done * 100 / total : 0), rate / 1e9,
	       (unsigned long long)left / 60, (unsigned int)(left % 60));
	print_bar(done, total);
	if (!m->live)
		putchar('\n');
	m->open_line = m->live;
	fflush(stdout);
}

static bool has_ended(struct json_object *row)
{
	return !strcmp(word(row, "phase"), "done") ||
	       !strcmp(word(row, "phase"), "failed");
}

static struct shown *find_shown(struct monitor *m, pid_t pid)
{
	struct shown *more;
	size_t i;

	for (i = 0; i < m->num_shown; i++) {
		if (m->shown[i].pid == pid)
			return &m->shown[i];
	}
	more = reallocarray(m->shown, m->num_shown + 1, sizeof(*more));
	if (!more)
		return NULL;
	m->shown = more;
	more[m->num_shown] = (struct shown){ .pid = pid };
	return &more[m->num_shown++];
}

/* A change is worth a line; progress alone only now and then. */
static bool is_news(const struct monitor *m, const struct shown *s,
		    const char *text, struct json_object *row)
{
	struct json_object *old;
	bool same;

	if (!strcmp(s->text, text))
		return false;
	if (!*s->text || m->live)
		return true;
	old = json_tokener_parse(s->text);
	same = old && !strcmp(word(old, "phase"), word(row, "phase")) &&
	       number(old, "target") == number(row, "target");
	json_object_put(old);
	return !same || gpucr_now_ms() - s->ms >= LINE_MS;
}

static bool is_wanted(const struct monitor *m, struct json_object *row)
{
	const struct args *a = m->args;

	if (a->has[KEY_PID])
		return number(row, "pid") == a->value[KEY_PID] ||
		       number(row, "target") == a->value[KEY_PID];
	return !a->has[KEY_SESSION];
}

static void show_progress(struct monitor *m, pid_t pid, const char *text)
{
	struct json_object *row = json_tokener_parse(text);
	struct shown *s = find_shown(m, pid);

	if (!row || !s || !is_wanted(m, row) || !is_news(m, s, text, row)) {
		json_object_put(row);
		return;
	}
	snprintf(s->text, sizeof(s->text), "%s", text);
	s->ms = gpucr_now_ms();
	json_object_object_del(row, "sum");
	if (out_options.json)
		print_json(row);
	else
		print_progress(m, row);
	if (m->open_line && has_ended(row)) {
		putchar('\n');
		m->open_line = false;
	}
	counted(m);
	json_object_put(row);
}

static void look(struct monitor *m)
{
	char text[GPUCR_PROGRESS_LEN];
	pid_t *pids;
	size_t i, num;
	int dir;

	dir = open(GPUCR_RUN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	if (!gpucr_progress_list(dir, &pids, &num)) {
		for (i = 0; i < num && !m->done; i++) {
			if (!gpucr_progress_read(dir, pids[i], text))
				show_progress(m, pids[i], text);
		}
	}
	free(pids);
	close(dir);
}

static void print_event(struct monitor *m, const struct session_event *ev)
{
	char clock[16];

	clock_text(clock);
	if (m->open_line)
		putchar('\n');
	m->open_line = false;
	printf("%s session %llx %s", clock, (unsigned long long)ev->id,
	       session_state(ev->state));
	if (ev->pid)
		printf(" pid %u", ev->pid);
	putchar('\n');
	fflush(stdout);
}

static void on_event(const struct session_event *ev, void *arg)
{
	struct monitor *m = arg;
	const struct args *a = m->args;
	struct json_object *row;

	if (m->done ||
	    (a->has[KEY_SESSION] && a->value[KEY_SESSION] != ev->id) ||
	    (a->has[KEY_PID] && a->value[KEY_PID] != ev->pid))
		return;
	if (!out_options.json) {
		print_event(m, ev);
	} else {
		row = json_object_new_object();
		out_add_u64(row, "gpucr", 1);
		out_add_str(row, "object", "session");
		out_add_fmt(row, "id", "%llx", (unsigned long long)ev->id);
		out_add_str(row, "state", session_state(ev->state));
		if (ev->pid)
			out_add_u64(row, "pid", ev->pid);
		else
			out_add_null(row, "pid");
		print_json(row);
		json_object_put(row);
	}
	counted(m);
}

/* One look around, and the wait for the next. */
static void tick(struct monitor *m)
{
	struct pollfd p = { .fd = -1, .events = POLLIN };

	look(m);
	if (m->done)
		return;
	/* It may be loaded later. */
	if (!m->events && backend != BACKEND_IOCTL)
		m->events = events_open();
	if (m->events)
		p.fd = events_fd(m->events);
	if (poll(&p, 1, TICK_MS) > 0 &&
	    events_read(m->events, on_event, m)) {
		events_close(m->events);
		m->events = NULL;
	}
}

static int monitor_show(const struct args *args)
{
	struct monitor m = {
		.args = args,
		.live = !out_options.json && isatty(STDOUT_FILENO),
		.left = args->value[KEY_COUNT],
	};
	uint64_t start = gpucr_now_ms(), limit = args->value[KEY_TIMEOUT] * 1000;

	while (!m.done && !ferror(stdout) &&
	       (!limit || gpucr_now_ms() - start < limit))
		tick(&m);
	if (m.open_line)
		putchar('\n');
	events_close(m.events);
	free(m.shown);
	return out_flush(m.left && !m.done ? EXIT_NO : EXIT_DONE);
}

static const struct command commands[] = {
	{ "show", 0, KEY(KEY_SESSION) | KEY(KEY_PID) | KEY(KEY_COUNT) |
	  KEY(KEY_TIMEOUT), monitor_show },
	{ 0 }
};

const struct object monitor_object = {
	"monitor", "dumps and restores as they go on, and events of sessions",
	commands,
};
