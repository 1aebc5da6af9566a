// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slow and small readers: a list comes whole into 4, 8 and 32 KiB buffers, is
 * of one moment while buffers and mappings come and go, and a reader that
 * never reads holds nothing of the target.
 *
 * One moment: a thread moves a token, a buffer or mapping that is made at one
 * place before it is unmade at the other. It is there once or twice at any
 * time; a list that is put together over a while misses it now and then.
 *
 * Mutations that must turn this red: the locks let go and taken again in the
 * middle of either walk; the list made in the dump callbacks; a reference of
 * the device or the memory map kept until the list was read.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <drm.h>
#include <drm_mode.h>

#include "../ktap.h"
#include "raw.h"
#include "util.h"

#define BUFFERS		10000
#define MAPPINGS	4000
#define LISTS		30
#define PAGE		4096UL

static struct raw nl;
static struct raw_ans *ans;
static int card;
static volatile bool stop;

/* A buffer of so many pages, which may be mapped. */
static uint32_t create(int fd, uint32_t pages, uint64_t *offset)
{
	struct drm_mode_create_dumb c = {
		.width = 1024, .height = pages, .bpp = 32,
	};
	struct drm_mode_map_dumb m = { 0 };

	if (ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &c))
		return 0;
	m.handle = c.handle;
	ioctl(fd, DRM_IOCTL_MODE_MAP_DUMB, &m);
	if (offset)
		*offset = m.offset;
	return c.handle;
}

static void destroy(int fd, uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	ioctl(fd, DRM_IOCTL_GEM_CLOSE, &c);
}

/* Every handle from 1 to BUFFERS once, and no other of one page. */
static bool all_there(void)
{
	static char seen[BUFFERS + 1];
	size_t i, n = 0;
	uint32_t h;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < ans->num; i++) {
		if (raw_u64(&ans->msgs[i], GPUCR_A_BO_SIZE) != PAGE)
			continue;
		h = raw_u32(&ans->msgs[i], GPUCR_A_BO_HANDLE);
		if (h < 1 || h > BUFFERS || seen[h]++)
			return false;
		n++;
	}
	return n == BUFFERS - 1;
}

static size_t tokens(void)
{
	size_t i, n = 0;

	for (i = 0; i < ans->num; i++)
		n += raw_u64(&ans->msgs[i], GPUCR_A_BO_SIZE) == 2 * PAGE;
	return n;
}

/* The kernel adapts to the largest read that a socket has seen: a new one. */
static struct raw small_reader(size_t size)
{
	struct raw r = nl;

	r.fd = raw_socket();
	r.buf = size;
	return r;
}

static void ask_bos(struct raw *r)
{
	raw_ask(r, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD, card, 0, 0);
}

/* Our own; an exec or a busy map may have it say "ask again". */
static void ask_vmas(struct raw *r)
{
	do {
		raw_ask(r, ans, GPUCR_CMD_VMA_GET, true, GPUCR_A_VMA_PID,
			getpid(), 0, 0);
	} while (ans->err == EAGAIN);
}

static const size_t sizes[] = { 4096, 8192, 32768 };

static void test_bo_sizes(void)
{
	struct raw small;
	size_t i;

	for (i = 0; i < 3; i++) {
		small = small_reader(sizes[i]);
		ask_bos(&small);
		ktap_ok(!ans->err && ans->num == BUFFERS && all_there() &&
			tokens() == 1,
			"%d buffers come whole in %zu-byte reads (%zu; %d %s)",
			BUFFERS, sizes[i], ans->num, ans->err, ans->text);
		raw_close(&small);
	}
}

/*
 * Handles are given lowest first: with one buffer missing at the low end, the
 * token jumps from one end of the list to the other.
 */
static void *churn_buffers(void *arg)
{
	uint32_t old = *(uint32_t *)arg, new;

	while (!stop) {
		new = create(card, 2, NULL);
		destroy(card, old);
		old = new;
	}
	*(uint32_t *)arg = old;
	return NULL;
}

/* The lists that were right, of LISTS. */
static int lists_meanwhile(void *(*churn)(void *), void *arg, bool (*right)(void),
			   void (*ask)(struct raw *r))
{
	struct raw small = small_reader(4096);
	int i, good = 0;
	pthread_t t;

	stop = false;
	if (pthread_create(&t, NULL, churn, arg))
		ktap_bail("thread");
	for (i = 0; i < LISTS; i++) {
		ask(&small);
		good += !ans->err && right();
	}
	stop = true;
	pthread_join(t, NULL);
	raw_close(&small);
	return good;
}

static bool bos_right(void)
{
	size_t n = tokens();

	if (n != 1 && n != 2)
		ktap_note("%zu tokens", n);
	return (n == 1 || n == 2) && all_there();
}

static void test_bo_moment(uint32_t *token)
{
	int good = lists_meanwhile(churn_buffers, token, bos_right, ask_bos);

	ktap_ok(good == LISTS, "%d of %d lists are of one moment while buffers come and go",
		good, LISTS);
}

/* Where mappings are made: a token's place at each end, others between. */
static char *area;
static uint64_t token_offset;

static char *place(size_t n)
{
	return area + n * 2 * PAGE;
}

static void map_at(size_t n, uint64_t offset)
{
	if (mmap(place(n), PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, card,
		 offset) == MAP_FAILED)
		ktap_bail("mmap: %s", strerror(errno));
}

static void unmap_at(size_t n)
{
	mmap(place(n), PAGE, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

static void *churn_mappings(void *arg)
{
	size_t ends[] = { 0, MAPPINGS + 1 };
	unsigned int i;

	(void)arg;
	for (i = 0; !stop; i++) {
		map_at(ends[(i + 1) & 1], token_offset);
		unmap_at(ends[i & 1]);
	}
	/* Back to where it was. */
	map_at(0, token_offset);
	unmap_at(MAPPINGS + 1);
	return NULL;
}

static bool vmas_right(void)
{
	size_t i, token = 0, others = 0;
	uint64_t start;

	for (i = 0; i < ans->num; i++) {
		start = raw_u64(&ans->msgs[i], GPUCR_A_VMA_START);
		if (start == (uintptr_t)place(0) ||
		    start == (uintptr_t)place(MAPPINGS + 1))
			token++;
		else
			others++;
	}
	if (token != 1 && token != 2)
		ktap_note("%zu tokens", token);
	return (token == 1 || token == 2) && others == MAPPINGS;
}

static void test_vmas(void)
{
	struct raw small;
	uint64_t offset;
	size_t i;
	int good;

	area = mmap(NULL, (MAPPINGS + 2) * 2 * PAGE, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED || !create(card, 1, &offset))
		ktap_bail("no place for mappings");
	for (i = 1; i <= MAPPINGS; i++)
		map_at(i, offset);
	map_at(0, token_offset);
	for (i = 0; i < 3; i++) {
		small = small_reader(sizes[i]);
		ask_vmas(&small);
		ktap_ok(!ans->err && ans->num == MAPPINGS + 1 && vmas_right(),
			"%d mappings come whole in %zu-byte reads (%zu; %d %s)",
			MAPPINGS + 1, sizes[i], ans->num, ans->err, ans->text);
		raw_close(&small);
	}
	good = lists_meanwhile(churn_mappings, NULL, vmas_right, ask_vmas);
	ktap_ok(good == LISTS, "%d of %d lists are of one moment while mappings come and go",
		good, LISTS);
	munmap(area, (MAPPINGS + 2) * 2 * PAGE);
}

/* A buffer with and one without a mapping. */
static int opens_card(void *arg)
{
	int fd = open_card("vgem");
	uint64_t offset;

	(void)arg;
	if (fd < 0 || !create(fd, 3, NULL) || !create(fd, 3, &offset) ||
	    mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, fd, offset) ==
	    MAP_FAILED)
		return -1;
	return fd;
}

static void ask_and_forget(struct raw *r, uint8_t cmd, uint16_t fd_type,
			   int fd, pid_t pid)
{
	struct raw_req q;

	if (raw_open(r))
		ktap_bail("socket");
	raw_begin(r, &q, cmd, true);
	raw_put_u32(&q, fd_type, fd);
	if (pid)
		raw_put_u32(&q, GPUCR_A_VMA_PID, pid);
	raw_send(r, &q);
}

/* Tries for two seconds: what has just ended may be on its way out. */
static bool unloads(const char *module)
{
	int i;

	for (i = 0; i < 100; i++) {
		if (!syscall(SYS_delete_module, module, O_NONBLOCK))
			return true;
		usleep(20000);
	}
	ktap_note("%s: %s", module, strerror(errno));
	return false;
}

/* Lists were made and are never read: neither task nor driver is held. */
static void test_never_read(void)
{
	struct raw bos, vmas;
	struct helper h;
	int copy;

	if (!helper_start(&h, opens_card, NULL))
		ktap_bail("helper");
	copy = fd_of(h.pid, h.fd);
	ask_and_forget(&bos, GPUCR_CMD_BO_GET, GPUCR_A_BO_FD, copy, 0);
	ask_and_forget(&vmas, GPUCR_CMD_VMA_GET, GPUCR_A_VMA_FD, copy, h.pid);
	close(copy);
	kill(h.pid, SIGKILL);
	ktap_ok(waitpid(h.pid, NULL, 0) == h.pid,
		"the task of unread lists dies at once");
	ktap_ok(unloads("vgem"), "and its driver unloads");
	raw_recv(&vmas, ans);
	ktap_ok(!ans->err && ans->num == 1 &&
		raw_u64(&ans->msgs[0], GPUCR_A_VMA_BO_SIZE) == 3 * PAGE,
		"the list can still be read");
	raw_close(&bos);
	raw_close(&vmas);
	raw_close(&nl);
	ktap_ok(unloads("gpucr"), "and with its readers gone gpucr unloads");
	if (system("modprobe vgem && modprobe gpucr"))
		ktap_bail("modules do not load again");
}

int main(void)
{
	uint32_t token;
	int i;

	ktap_plan(12);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	card = open_card("vgem");
	if (card < 0)
		ktap_bail("no vgem device");
	for (i = 0; i < BUFFERS; i++)
		if (!create(card, 1, NULL))
			ktap_bail("buffer %d: %s", i, strerror(errno));
	destroy(card, 1);
	token = create(card, 2, &token_offset);
	if (token != 1)
		ktap_bail("handles are not given lowest first");
	test_bo_sizes();
	test_bo_moment(&token);
	destroy(card, token);
	token = create(card, 2, &token_offset);
	test_vmas();
	close(card);
	test_never_read();
	return ktap_exit();
}
