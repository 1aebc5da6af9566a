/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_NETLINK_H
#define GPUCR_NETLINK_H

#include <linux/types.h>

struct genl_family;
struct gpucr_session_info;
struct sk_buff;

extern struct genl_family gpucr_family;

int gpucr_netlink_init(void);
void gpucr_netlink_exit(void);
int gpucr_netlink_fill_session(struct sk_buff *msg,
			       const struct gpucr_session_info *info);
void gpucr_netlink_event(const struct gpucr_session_info *info);

#endif
