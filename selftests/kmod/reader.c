// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slow and small readers: a list comes whole into 4, 8 and 32 KiB buffers, is
 * of one moment while buffers come and go, and a reader that never reads holds
 * nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <drm.h>
#include <drm_mode.h>

#include "../ktap.h"
#include "raw.h"
#include "util.h"

#define BUFFERS	3000

static struct raw nl;
static struct raw_ans *ans;
static int card;
static volatile bool stop;

static uint32_t create(int fd)
{
	struct drm_mode_create_dumb c = { .width = 1024, .height = 1, .bpp = 32 };
	struct drm_mode_map_dumb m = { 0 };

	if (ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &c))
		return 0;
	m.handle = c.handle;
	ioctl(fd, DRM_IOCTL_MODE_MAP_DUMB, &m);
	return c.handle;
}

static void destroy(int fd, uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	ioctl(fd, DRM_IOCTL_GEM_CLOSE, &c);
}

/* Every handle from 1 to BUFFERS once, whatever else is there. */
static bool all_there(void)
{
	static char seen[BUFFERS + 1];
	size_t i, n = 0;
	uint32_t h;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < ans->num; i++) {
		h = raw_u32(&ans->msgs[i], GPUCR_A_BO_HANDLE);
		if (h < 1 || h > BUFFERS)
			continue;
		if (seen[h]++)
			return false;
		n++;
	}
	return n == BUFFERS;
}

/* The kernel adapts to the largest read that a socket has seen: a new one. */
static struct raw small_reader(size_t size)
{
	struct raw r = nl;

	r.fd = raw_socket();
	r.buf = size;
	return r;
}

static void test_sizes(void)
{
	static const size_t sizes[] = { 4096, 8192, 32768 };
	struct raw small;
	size_t i;

	for (i = 0; i < 3; i++) {
		small = small_reader(sizes[i]);
		raw_ask(&small, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD, card,
			0, 0);
		ktap_ok(!ans->err && ans->num == BUFFERS && all_there(),
			"%d buffers come whole in %zu-byte reads (%zu; %d %s)",
			BUFFERS, sizes[i], ans->num, ans->err, ans->text);
		raw_close(&small);
	}
}

/* A pair is made and unmade together: never more than one is halfway. */
static void *churn(void *arg)
{
	uint32_t a, b;

	(void)arg;
	while (!stop) {
		a = create(card);
		b = create(card);
		destroy(card, a);
		destroy(card, b);
	}
	return NULL;
}

static void test_churn(void)
{
	struct raw small = small_reader(4096);
	int i, good = 0;
	pthread_t t;

	if (pthread_create(&t, NULL, churn, NULL))
		ktap_bail("thread");
	for (i = 0; i < 20; i++) {
		raw_ask(&small, ans, GPUCR_CMD_BO_GET, true, GPUCR_A_BO_FD,
			card, 0, 0);
		good += !ans->err && ans->num <= BUFFERS + 2 && all_there();
	}
	stop = true;
	pthread_join(t, NULL);
	raw_close(&small);
	ktap_ok(good == 20, "%d of 20 lists are of one moment while buffers come and go",
		good);
}

static int opens_card(void *arg)
{
	uint32_t *handle = arg;
	int fd = open_card("vgem");

	*handle = create(fd);
	return fd;
}

/* The list was made and is never read; the file must close all the same. */
static void test_never_read(void)
{
	uint32_t handle;
	struct helper h;
	struct raw lazy;
	struct raw_req q;
	int copy;

	if (raw_open(&lazy) || !helper_start(&h, opens_card, &handle))
		ktap_bail("helper");
	copy = fd_of(h.pid, h.fd);
	raw_begin(&lazy, &q, GPUCR_CMD_VMA_GET, true);
	raw_put_u32(&q, GPUCR_A_VMA_PID, h.pid);
	raw_put_u32(&q, GPUCR_A_VMA_FD, copy);
	raw_send(&lazy, &q);
	close(copy);
	kill(h.pid, SIGKILL);
	ktap_ok(waitpid(h.pid, NULL, 0) == h.pid,
		"the task of an unread list dies at once");
	raw_close(&lazy);
}

int main(void)
{
	int i;

	ktap_plan(5);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	card = open_card("vgem");
	if (card < 0)
		ktap_bail("no vgem device");
	for (i = 0; i < BUFFERS; i++)
		if (!create(card))
			ktap_bail("buffer %d: %s", i, strerror(errno));
	test_sizes();
	test_churn();
	test_never_read();
	return ktap_exit();
}
