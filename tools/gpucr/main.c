// SPDX-License-Identifier: GPL-2.0-only
/* gpucr: look at GPU processes and checkpoint sessions. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "fail.h"
#include "out.h"

static const struct object * const objects[] = {
	&info_object, &ps_object, &file_object, &bo_object, &vma_object,
	&remap_object,
	&queue_object, &session_object, &monitor_object,
	&check_object, &image_object,
	&doctor_object, &report_object,
};

#define NUM_OBJECTS	(sizeof(objects) / sizeof(objects[0]))

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "pretty", no_argument, NULL, 'p' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "backend", required_argument, NULL, 'b' },
	{ "color", required_argument, NULL, 'c' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 }
};

static int usage(void)
{
	size_t i;

	puts("gpucr [OPTIONS] OBJECT [COMMAND] [KEY VALUE]...\n\n"
	     "  -j, --json          print JSON, errors too\n"
	     "  -p, --pretty        print indented JSON\n"
	     "  -q, --quiet         no header line, no warnings\n"
	     "  -v, --verbose       more columns\n"
	     "  -b, --backend auto|netlink|ioctl\n"
	     "                      netlink: the module must be there;\n"
	     "                      ioctl: do without it\n"
	     "      --color auto|always|never\n"
	     "  -V, --version\n"
	     "  -h, --help\n");
	for (i = 0; i < NUM_OBJECTS; i++)
		printf("  %-9s %s\n", objects[i]->name, objects[i]->what);
	putchar('\n');
	for (i = 0; i < NUM_OBJECTS; i++)
		object_usage(objects[i]);
	puts("gpucr OBJECT help");
	return out_flush(EXIT_DONE);
}

/* Index of the word in words, or -1. */
static int word(const char *text, const char * const *words)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -1;
}

static int set_color(const char *text)
{
	static const char * const words[] = { "auto", "always", "never", NULL };
	int w = word(text, words);

	if (w < 0)
		return fail(TOKEN_USAGE, 0,
			    "color \"%s\": not auto, always or never", text);
	out_options.color = w == 1 || (!w && isatty(STDOUT_FILENO));
	return EXIT_DONE;
}

static int set_backend(const char *text)
{
	static const char * const words[] = {
		[BACKEND_AUTO] = "auto", [BACKEND_NETLINK] = "netlink",
		[BACKEND_IOCTL] = "ioctl", NULL
	};
	int w = word(text, words);

	if (w < 0)
		return fail(TOKEN_USAGE, 0,
			    "backend \"%s\": not auto, netlink or ioctl", text);
	backend = (enum backend)w;
	return EXIT_DONE;
}

static int print_version(void)
{
	puts("gpucr " GPUCR_VERSION);
	exit(out_flush(EXIT_DONE));
}

static int set_option(int c, char **argv)
{
	switch (c) {
	case 'p':
		out_options.pretty = true;
		__attribute__((fallthrough));
	case 'j':
		out_options.json = true;
		return EXIT_DONE;
	case 'q':
		out_options.quiet = true;
		return EXIT_DONE;
	case 'v':
		out_options.verbose = true;
		return EXIT_DONE;
	case 'b':
		return set_backend(optarg);
	case 'c':
		return set_color(optarg);
	case 'V':
		return print_version();
	case 'h':
		exit(usage());
	default:
		return fail(TOKEN_USAGE, 0, "\"%s\": no such option, or its value is missing",
			    argv[optind - 1]);
	}
}

/*
 * The kernel starts the recovery with no file open: what is opened first must
 * not become standard output.
 */
static void open_standard_files(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			_exit(EXIT_FAILED);
}

/* So that a wrong option before or after --json is told as JSON too. */
static void look_for_json(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && *argv[i] == '-'; i++)
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j") ||
		    !strcmp(argv[i], "--pretty") || !strcmp(argv[i], "-p"))
			out_options.json = true;
}

int main(int argc, char **argv)
{
	const char *color = getenv("GPUCR_COLOR");
	int c, status;
	size_t i;

	open_standard_files();
	look_for_json(argc, argv);
	opterr = 0;
	status = set_color(color && *color ? color : "auto");
	if (status)
		return status;
	while ((c = getopt_long(argc, argv, "+jpqvb:Vh", options, NULL)) != -1) {
		status = set_option(c, argv);
		if (status)
			return status;
	}
	if (optind == argc)
		return fail(TOKEN_USAGE, 0, "no object is named");
	if (!strcmp(argv[optind], "help"))
		return usage();
	for (i = 0; i < NUM_OBJECTS; i++)
		if (!strcmp(objects[i]->name, argv[optind]))
			return object_run(objects[i], argc - optind - 1,
					  argv + optind + 1);
	return fail(TOKEN_USAGE, 0, "\"%s\": no such object", argv[optind]);
}
