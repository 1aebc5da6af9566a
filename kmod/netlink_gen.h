/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/gpucr.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_GPUCR_GEN_H
#define _LINUX_GPUCR_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/linux/gpucr.h>

/* Ops table for gpucr */
extern const struct genl_split_ops gpucr_nl_ops[17];

int gpucr_nl_bo_get_start(struct netlink_callback *cb);
int gpucr_nl_vma_get_start(struct netlink_callback *cb);
int gpucr_nl_session_get_start(struct netlink_callback *cb);
int gpucr_nl_session_pause_start(struct netlink_callback *cb);
int gpucr_nl_session_checkpoint_start(struct netlink_callback *cb);
int gpucr_nl_session_unpause_start(struct netlink_callback *cb);
int gpucr_nl_session_restore_start(struct netlink_callback *cb);
int gpucr_nl_session_resume_start(struct netlink_callback *cb);
int gpucr_nl_queue_get_start(struct netlink_callback *cb);
int gpucr_nl_remap_get_start(struct netlink_callback *cb);
int gpucr_nl_snapshot_done(struct netlink_callback *cb);
int gpucr_nl_relay_done(struct netlink_callback *cb);

int gpucr_nl_info_get_doit(struct sk_buff *skb, struct genl_info *info);
int gpucr_nl_bo_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int gpucr_nl_vma_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int gpucr_nl_session_new_doit(struct sk_buff *skb, struct genl_info *info);
int gpucr_nl_session_get_dumpit(struct sk_buff *skb,
				struct netlink_callback *cb);
int gpucr_nl_session_del_doit(struct sk_buff *skb, struct genl_info *info);
int gpucr_nl_session_join_doit(struct sk_buff *skb, struct genl_info *info);
int gpucr_nl_session_pause_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb);
int gpucr_nl_session_checkpoint_dumpit(struct sk_buff *skb,
				       struct netlink_callback *cb);
int gpucr_nl_session_unpause_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);
int gpucr_nl_session_restore_dumpit(struct sk_buff *skb,
				    struct netlink_callback *cb);
int gpucr_nl_session_resume_dumpit(struct sk_buff *skb,
				   struct netlink_callback *cb);
int gpucr_nl_queue_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int gpucr_nl_remap_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int gpucr_nl_remap_set_doit(struct sk_buff *skb, struct genl_info *info);
int gpucr_nl_remap_resolve_doit(struct sk_buff *skb, struct genl_info *info);
int gpucr_nl_session_drain_doit(struct sk_buff *skb, struct genl_info *info);

#endif /* _LINUX_GPUCR_GEN_H */
