// SPDX-License-Identifier: GPL-2.0-only
/* info-get: what it tells, to whom, and the protocol version that it refuses. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ktap.h"
#include "raw.h"

static struct raw nl;
static struct raw_ans *ans;

/* Does an attribute that may come several times have this number? */
static bool has_op(const struct raw_msg *m, uint32_t op)
{
	struct nlattr *a;
	size_t off = 0;

	for (; off + NLA_HDRLEN <= m->len; off += NLA_ALIGN(a->nla_len)) {
		a = (void *)(m->attrs + off);
		if (a->nla_type == GPUCR_A_INFO_OP &&
		    *(uint32_t *)((char *)a + NLA_HDRLEN) == op)
			return true;
	}
	return false;
}

static bool has_driver(const struct raw_msg *m, const char *name)
{
	struct nlattr *a;
	size_t off = 0;

	for (; off + NLA_HDRLEN <= m->len; off += NLA_ALIGN(a->nla_len)) {
		a = (void *)(m->attrs + off);
		if (a->nla_type == GPUCR_A_INFO_DRIVER &&
		    !strcmp((char *)a + NLA_HDRLEN, name))
			return true;
	}
	return false;
}

static int ask_version(uint32_t version)
{
	return raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false,
		       GPUCR_A_INFO_PROTOCOL_VERSION, version, 0, 0);
}

static void test_content(void)
{
	const struct raw_msg *m = &ans->msgs[0];
	uint32_t op;
	bool all = true;

	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0);
	ktap_ok(!ans->err && ans->num == 1, "one message answers");
	ktap_ok(strlen(raw_str(m, GPUCR_A_INFO_MODULE_VERSION)) >= 5,
		"module version is told");
	ktap_ok(raw_u32(m, GPUCR_A_INFO_PROTOCOL_VERSION) ==
		GPUCR_FAMILY_VERSION, "protocol version is the family's");
	for (op = GPUCR_CMD_INFO_GET; op <= GPUCR_CMD_SESSION_RESUME; op++)
		all &= has_op(m, op);
	ktap_ok(all && !has_op(m, GPUCR_CMD_SESSION_NTF),
		"all operations are told, and no event");
	ktap_ok(has_driver(m, "amdgpu") && has_driver(m, "vgem") &&
		has_driver(m, "virtio_gpu") && !has_driver(m, "bochs-drm"),
		"the drivers are told");
	ktap_ok(raw_u32(m, GPUCR_A_INFO_MAX_OBJECTS) >= 10000 &&
		raw_u32(m, GPUCR_A_INFO_MAX_SESSIONS) >= 64,
		"limits are told");
	ktap_ok(!strcmp(raw_str(m, GPUCR_A_INFO_RECOVERY_HELPER),
			"/usr/sbin/gpucr"), "the default helper is told");
	ktap_ok(raw_has(m, GPUCR_A_INFO_SESSIONS_OPEN) &&
		raw_has(m, GPUCR_A_INFO_SESSIONS_TOTAL) &&
		raw_has(m, GPUCR_A_INFO_SESSIONS_ABANDONED) &&
		raw_has(m, GPUCR_A_INFO_SESSIONS_RECOVERED),
		"counters are told");
}

static void test_version(void)
{
	ktap_ok(!ask_version(GPUCR_FAMILY_VERSION),
		"the module's protocol version is accepted");
	ask_version(GPUCR_FAMILY_VERSION + 1);
	ktap_ok(ans->err == EPROTONOSUPPORT &&
		ans->bad == GPUCR_A_INFO_PROTOCOL_VERSION &&
		strstr(ans->text, "another protocol version"),
		"another one is refused, by name (%d, %s)", ans->err, ans->text);
}

static void test_malformed(void)
{
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, GPUCR_A_INFO_OP, 1, 0, 0);
	ktap_ok(ans->err == EINVAL,
		"an attribute that is no input is refused (%d)", ans->err);
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, GPUCR_A_INFO_MAX + 1, 1,
		0, 0);
	ktap_ok(ans->err == EINVAL, "an unknown attribute is refused (%d)",
		ans->err);
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, true, 0, 0, 0, 0);
	ktap_ok(ans->err == EOPNOTSUPP, "it is not a dump (%d)", ans->err);
	raw_ask(&nl, ans, GPUCR_CMD_MAX + 1, false, 0, 0, 0, 0);
	ktap_ok(ans->err == EOPNOTSUPP, "an unknown operation is refused (%d)",
		ans->err);
	raw_ask(&nl, ans, GPUCR_CMD_BO_GET, false, 0, 0, 0, 0);
	ktap_ok(ans->err == EOPNOTSUPP, "bo-get is only a dump (%d)", ans->err);
}

static void test_unprivileged(void)
{
	pid_t pid = fork();
	int st;

	if (!pid) {
		struct raw own;

		if (setgid(65534) || setuid(65534) || raw_open(&own))
			_exit(2);
		_exit(raw_ask(&own, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0,
			      0) ? 1 : 0);
	}
	waitpid(pid, &st, 0);
	ktap_ok(WIFEXITED(st) && !WEXITSTATUS(st),
		"an unprivileged caller gets it too");
}

int main(void)
{
	ktap_plan(16);
	ans = raw_ans_new();
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	test_content();
	test_version();
	test_malformed();
	test_unprivileged();
	return ktap_exit();
}
