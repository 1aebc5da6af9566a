/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_TASK_H
#define GPUCR_TASK_H

#include <linux/types.h>

struct file;
struct netlink_ext_ack;
struct pid;
struct sk_buff;
struct task_struct;

int gpucr_caller_capable(struct sk_buff *skb, struct netlink_ext_ack *ack);
int gpucr_caller_is_process(struct netlink_ext_ack *ack);
struct pid *gpucr_task_find(u32 nr);
bool gpucr_task_gone(struct pid *tgid);
bool gpucr_task_is_caller(struct pid *tgid);
bool gpucr_task_traced(struct pid *tgid);
int gpucr_task_check_mine(struct pid *tgid, struct netlink_ext_ack *ack);
int gpucr_task_lock_exec(struct task_struct *task, struct netlink_ext_ack *ack);
void gpucr_task_unlock_exec(struct task_struct *task);
bool gpucr_task_holds(struct task_struct *task, struct file *file);

#endif
