// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/gpucr.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink_gen.h"

#include <uapi/linux/gpucr.h>

/* GPUCR_CMD_INFO_GET - do */
static const struct nla_policy gpucr_info_get_nl_policy[GPUCR_A_INFO_PROTOCOL_VERSION + 1] = {
	[GPUCR_A_INFO_PROTOCOL_VERSION] = { .type = NLA_U32, },
};

/* GPUCR_CMD_BO_GET - dump */
static const struct nla_policy gpucr_bo_get_nl_policy[GPUCR_A_BO_FD + 1] = {
	[GPUCR_A_BO_FD] = { .type = NLA_U32, },
};

/* GPUCR_CMD_VMA_GET - dump */
static const struct nla_policy gpucr_vma_get_nl_policy[GPUCR_A_VMA_FD + 1] = {
	[GPUCR_A_VMA_PID] = { .type = NLA_U32, },
	[GPUCR_A_VMA_FD] = { .type = NLA_U32, },
};

/* GPUCR_CMD_SESSION_NEW - do */
static const struct nla_policy gpucr_session_new_nl_policy[GPUCR_A_SESSION_DIRECTION + 1] = {
	[GPUCR_A_SESSION_PID] = { .type = NLA_U32, },
	[GPUCR_A_SESSION_FD] = { .type = NLA_U32, },
	[GPUCR_A_SESSION_DIRECTION] = NLA_POLICY_MAX(NLA_U32, 1),
};

/* GPUCR_CMD_SESSION_GET - dump */
static const struct nla_policy gpucr_session_get_nl_policy[GPUCR_A_SESSION_ID + 1] = {
	[GPUCR_A_SESSION_ID] = { .type = NLA_U64, },
};

/* GPUCR_CMD_SESSION_DEL - do */
static const struct nla_policy gpucr_session_del_nl_policy[GPUCR_A_SESSION_ID + 1] = {
	[GPUCR_A_SESSION_ID] = { .type = NLA_U64, },
};

/* GPUCR_CMD_SESSION_JOIN - do */
static const struct nla_policy gpucr_session_join_nl_policy[GPUCR_A_SESSION_FD + 1] = {
	[GPUCR_A_SESSION_ID] = { .type = NLA_U64, },
	[GPUCR_A_SESSION_FD] = { .type = NLA_U32, },
};

/* GPUCR_CMD_SESSION_PAUSE - dump */
static const struct nla_policy gpucr_session_pause_nl_policy[GPUCR_A_RELAY_ID + 1] = {
	[GPUCR_A_RELAY_ID] = { .type = NLA_U64, },
};

/* GPUCR_CMD_SESSION_CHECKPOINT - dump */
static const struct nla_policy gpucr_session_checkpoint_nl_policy[GPUCR_A_RELAY_NUM_OBJECTS + 1] = {
	[GPUCR_A_RELAY_ID] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_DEVICES] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_NUM_DEVICES] = { .type = NLA_U32, },
	[GPUCR_A_RELAY_BOS] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_NUM_BOS] = { .type = NLA_U32, },
	[GPUCR_A_RELAY_PRIV] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_PRIV_SIZE] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_NUM_OBJECTS] = { .type = NLA_U32, },
};

/* GPUCR_CMD_SESSION_UNPAUSE - dump */
static const struct nla_policy gpucr_session_unpause_nl_policy[GPUCR_A_RELAY_ID + 1] = {
	[GPUCR_A_RELAY_ID] = { .type = NLA_U64, },
};

/* GPUCR_CMD_SESSION_RESTORE - dump */
static const struct nla_policy gpucr_session_restore_nl_policy[GPUCR_A_RELAY_IMAGE_PID + 1] = {
	[GPUCR_A_RELAY_ID] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_KFD_FD] = { .type = NLA_U32, },
	[GPUCR_A_RELAY_DEVICES] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_NUM_DEVICES] = { .type = NLA_U32, },
	[GPUCR_A_RELAY_BOS] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_NUM_BOS] = { .type = NLA_U32, },
	[GPUCR_A_RELAY_PRIV] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_PRIV_SIZE] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_NUM_OBJECTS] = { .type = NLA_U32, },
	[GPUCR_A_RELAY_IMAGE_PID] = { .type = NLA_U32, },
};

/* GPUCR_CMD_SESSION_RESUME - dump */
static const struct nla_policy gpucr_session_resume_nl_policy[GPUCR_A_RELAY_PID + 1] = {
	[GPUCR_A_RELAY_ID] = { .type = NLA_U64, },
	[GPUCR_A_RELAY_KFD_FD] = { .type = NLA_U32, },
	[GPUCR_A_RELAY_PID] = { .type = NLA_U32, },
};

/* GPUCR_CMD_QUEUE_GET - dump */
static const struct nla_policy gpucr_queue_get_nl_policy[GPUCR_A_QUEUE_HOLDER_FD + 1] = {
	[GPUCR_A_QUEUE_ID] = { .type = NLA_U64, },
	[GPUCR_A_QUEUE_HOLDER_FD] = { .type = NLA_U32, },
};

/* GPUCR_CMD_REMAP_GET - dump */
static const struct nla_policy gpucr_remap_get_nl_policy[GPUCR_A_REMAP_IMAGE_PID + 1] = {
	[GPUCR_A_REMAP_ID] = { .type = NLA_U64, },
	[GPUCR_A_REMAP_HOLDER_FD] = { .type = NLA_U32, },
	[GPUCR_A_REMAP_IMAGE_PID] = { .type = NLA_U32, },
};

/* GPUCR_CMD_REMAP_SET - do */
static const struct nla_policy gpucr_remap_set_nl_policy[GPUCR_A_REMAP_NEW_PGOFF + 1] = {
	[GPUCR_A_REMAP_ID] = { .type = NLA_U64, },
	[GPUCR_A_REMAP_FD] = { .type = NLA_U32, },
	[GPUCR_A_REMAP_IMAGE_PID] = { .type = NLA_U32, },
	[GPUCR_A_REMAP_GPU_ID] = { .type = NLA_U32, },
	[GPUCR_A_REMAP_OLD_PGOFF] = { .type = NLA_U64, },
	[GPUCR_A_REMAP_SIZE] = { .type = NLA_U64, },
	[GPUCR_A_REMAP_NEW_PGOFF] = { .type = NLA_U64, },
};

/* GPUCR_CMD_REMAP_RESOLVE - do */
static const struct nla_policy gpucr_remap_resolve_nl_policy[GPUCR_A_REMAP_SIZE + 1] = {
	[GPUCR_A_REMAP_ID] = { .type = NLA_U64, },
	[GPUCR_A_REMAP_FD] = { .type = NLA_U32, },
	[GPUCR_A_REMAP_IMAGE_PID] = { .type = NLA_U32, },
	[GPUCR_A_REMAP_GPU_ID] = { .type = NLA_U32, },
	[GPUCR_A_REMAP_OLD_PGOFF] = { .type = NLA_U64, },
	[GPUCR_A_REMAP_SIZE] = { .type = NLA_U64, },
};

/* GPUCR_CMD_SESSION_DRAIN - do */
static const struct nla_policy gpucr_session_drain_nl_policy[GPUCR_A_SESSION_DRAIN + 1] = {
	[GPUCR_A_SESSION_DRAIN] = NLA_POLICY_MAX(NLA_U32, 1),
};

/* Ops table for gpucr */
const struct genl_split_ops gpucr_nl_ops[17] = {
	{
		.cmd		= GPUCR_CMD_INFO_GET,
		.doit		= gpucr_nl_info_get_doit,
		.policy		= gpucr_info_get_nl_policy,
		.maxattr	= GPUCR_A_INFO_PROTOCOL_VERSION,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= GPUCR_CMD_BO_GET,
		.start		= gpucr_nl_bo_get_start,
		.dumpit		= gpucr_nl_bo_get_dumpit,
		.done		= gpucr_nl_snapshot_done,
		.policy		= gpucr_bo_get_nl_policy,
		.maxattr	= GPUCR_A_BO_FD,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_VMA_GET,
		.start		= gpucr_nl_vma_get_start,
		.dumpit		= gpucr_nl_vma_get_dumpit,
		.done		= gpucr_nl_snapshot_done,
		.policy		= gpucr_vma_get_nl_policy,
		.maxattr	= GPUCR_A_VMA_FD,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_NEW,
		.doit		= gpucr_nl_session_new_doit,
		.policy		= gpucr_session_new_nl_policy,
		.maxattr	= GPUCR_A_SESSION_DIRECTION,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_GET,
		.start		= gpucr_nl_session_get_start,
		.dumpit		= gpucr_nl_session_get_dumpit,
		.done		= gpucr_nl_snapshot_done,
		.policy		= gpucr_session_get_nl_policy,
		.maxattr	= GPUCR_A_SESSION_ID,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_DEL,
		.doit		= gpucr_nl_session_del_doit,
		.policy		= gpucr_session_del_nl_policy,
		.maxattr	= GPUCR_A_SESSION_ID,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_JOIN,
		.doit		= gpucr_nl_session_join_doit,
		.policy		= gpucr_session_join_nl_policy,
		.maxattr	= GPUCR_A_SESSION_FD,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_PAUSE,
		.start		= gpucr_nl_session_pause_start,
		.dumpit		= gpucr_nl_session_pause_dumpit,
		.done		= gpucr_nl_relay_done,
		.policy		= gpucr_session_pause_nl_policy,
		.maxattr	= GPUCR_A_RELAY_ID,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_CHECKPOINT,
		.start		= gpucr_nl_session_checkpoint_start,
		.dumpit		= gpucr_nl_session_checkpoint_dumpit,
		.done		= gpucr_nl_relay_done,
		.policy		= gpucr_session_checkpoint_nl_policy,
		.maxattr	= GPUCR_A_RELAY_NUM_OBJECTS,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_UNPAUSE,
		.start		= gpucr_nl_session_unpause_start,
		.dumpit		= gpucr_nl_session_unpause_dumpit,
		.done		= gpucr_nl_relay_done,
		.policy		= gpucr_session_unpause_nl_policy,
		.maxattr	= GPUCR_A_RELAY_ID,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_RESTORE,
		.start		= gpucr_nl_session_restore_start,
		.dumpit		= gpucr_nl_session_restore_dumpit,
		.done		= gpucr_nl_relay_done,
		.policy		= gpucr_session_restore_nl_policy,
		.maxattr	= GPUCR_A_RELAY_IMAGE_PID,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_RESUME,
		.start		= gpucr_nl_session_resume_start,
		.dumpit		= gpucr_nl_session_resume_dumpit,
		.done		= gpucr_nl_relay_done,
		.policy		= gpucr_session_resume_nl_policy,
		.maxattr	= GPUCR_A_RELAY_PID,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_QUEUE_GET,
		.start		= gpucr_nl_queue_get_start,
		.dumpit		= gpucr_nl_queue_get_dumpit,
		.done		= gpucr_nl_snapshot_done,
		.policy		= gpucr_queue_get_nl_policy,
		.maxattr	= GPUCR_A_QUEUE_HOLDER_FD,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_REMAP_GET,
		.start		= gpucr_nl_remap_get_start,
		.dumpit		= gpucr_nl_remap_get_dumpit,
		.done		= gpucr_nl_snapshot_done,
		.policy		= gpucr_remap_get_nl_policy,
		.maxattr	= GPUCR_A_REMAP_IMAGE_PID,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= GPUCR_CMD_REMAP_SET,
		.doit		= gpucr_nl_remap_set_doit,
		.policy		= gpucr_remap_set_nl_policy,
		.maxattr	= GPUCR_A_REMAP_NEW_PGOFF,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= GPUCR_CMD_REMAP_RESOLVE,
		.doit		= gpucr_nl_remap_resolve_doit,
		.policy		= gpucr_remap_resolve_nl_policy,
		.maxattr	= GPUCR_A_REMAP_SIZE,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= GPUCR_CMD_SESSION_DRAIN,
		.doit		= gpucr_nl_session_drain_doit,
		.policy		= gpucr_session_drain_nl_policy,
		.maxattr	= GPUCR_A_SESSION_DRAIN,
		.flags		= GENL_CMD_CAP_DO,
	},
};
