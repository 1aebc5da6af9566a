// SPDX-License-Identifier: GPL-2.0-only
/* Proves that the suite can fail: as a canary it expects a wrong answer. */
#include "../ktap.h"
#include "raw.h"

int main(void)
{
	uint32_t wanted = GPUCR_FAMILY_VERSION + (ktap_canary() ? 1 : 0);
	struct raw_ans *ans = raw_ans_new();
	struct raw nl;

	ktap_plan(1);
	if (raw_open(&nl))
		ktap_bail("family gpucr is absent");
	raw_ask(&nl, ans, GPUCR_CMD_INFO_GET, false, 0, 0, 0, 0);
	ktap_ok(!ans->err && raw_u32(&ans->msgs[0],
				     GPUCR_A_INFO_PROTOCOL_VERSION) == wanted,
		"the protocol version is %u", wanted);
	return ktap_exit();
}
