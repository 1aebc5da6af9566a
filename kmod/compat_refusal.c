// SPDX-License-Identifier: GPL-2.0
/*
 * Up to 6.1 a dump's .start has nowhere to put a sentence: cb->extack comes
 * with 6.2. There .start of ours is run with an extack of its own; where it
 * refuses, the first callback refuses in its place, and the sentence goes out
 * with the end of the dump. The attribute that is to blame cannot.
 *
 * Compiled for such kernels only. genl_register_family() leads here.
 */
#include <linux/errno.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/genetlink.h>

#undef genl_register_family

#define MAX_OPS	32

/* A refusal on its way; its sentence is a constant of the module. */
struct refusal {
	int err;
	const char *message;
};

/* The family's own table; what the kernel gets is a copy with our callbacks. */
static const struct genl_ops *own_ops;
static struct genl_ops kernel_ops[MAX_OPS];
static unsigned int n_ops;

static const struct genl_ops *own_op(struct netlink_callback *cb)
{
	unsigned int i;

	for (i = 0; i < n_ops - 1; i++)
		if (own_ops[i].cmd == genl_dumpit_info(cb)->op.cmd)
			break;
	return &own_ops[i];
}

/* The last word of the callback's room; the operations use the first. */
static struct refusal **refusal_of(struct netlink_callback *cb)
{
	return (struct refusal **)(cb->ctx + sizeof(cb->ctx) - sizeof(void *));
}

static int late_start(struct netlink_callback *cb)
{
	struct netlink_ext_ack extack = { };
	struct refusal *r;
	int err;

	*refusal_of(cb) = NULL;
	cb->extack = &extack;
	err = own_op(cb)->start(cb);
	cb->extack = NULL;
	if (!err || !extack._msg)
		return err;
	r = kmalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return err;
	r->err = err;
	r->message = extack._msg;
	*refusal_of(cb) = r;
	return 0;
}

static int late_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct refusal *r = *refusal_of(cb);

	if (!r)
		return own_op(cb)->dumpit(skb, cb);
	if (cb->extack)
		cb->extack->_msg = r->message;
	return r->err;
}

/* A start that refused has left nothing to be done with. */
static int late_done(struct netlink_callback *cb)
{
	const struct genl_ops *op = own_op(cb);
	struct refusal *r = *refusal_of(cb);
	int ret = 0;

	if (!r && op->done)
		ret = op->done(cb);
	kfree(r);
	return ret;
}

/**
 * gpucr_register_family() - genl_register_family() with late refusals
 * @family: the only one of this module, not yet registered
 *
 * Return: as genl_register_family(); -E2BIG for more operations than MAX_OPS.
 */
int gpucr_register_family(struct genl_family *family)
{
	unsigned int i;

	if (family->n_ops > MAX_OPS)
		return -E2BIG;
	own_ops = family->ops;
	n_ops = family->n_ops;
	memcpy(kernel_ops, own_ops, n_ops * sizeof(*own_ops));
	for (i = 0; i < n_ops; i++) {
		if (!own_ops[i].start)
			continue;
		kernel_ops[i].start = late_start;
		kernel_ops[i].dumpit = late_dumpit;
		kernel_ops[i].done = late_done;
	}
	family->ops = kernel_ops;
	return genl_register_family(family);
}
