/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * KFD's private checkpoint data: record layouts, and one bounded reader.
 *
 * AMDKFD_IOC_CRIU_OP returns private data that KFD calls opaque. Its order is
 * process, device[num_devices], bo[num_bos], object[num_objects]; an object is
 * a queue, an event or an SVM range and begins with its type. The BO record
 * has two sizes under one version number: 80 bytes where the kernel knows 16
 * GPU instances (6.1), 272 where it knows 64 (6.12 and newer). Nothing in the
 * data tells which; gpucr_kfdpriv_open() with bo_size 0 finds the one that
 * fits.
 *
 * Everything read here may be hostile: no count or size is believed before it
 * is compared with what is left. The data need not be aligned. Compiled by the
 * kernel module and by user space.
 */
#ifndef GPUCR_KFDPRIV_H
#define GPUCR_KFDPRIV_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#else
#include <errno.h>
#include <stddef.h>
#include <string.h>
#endif

#define GPUCR_KFDPRIV_VERSION	1

#define GPUCR_KFDPRIV_BO_16	80	/* bytes of a BO record, 16 instances */
#define GPUCR_KFDPRIV_BO_64	272	/* bytes of a BO record, 64 instances */

/* KFD records this many attributes of an SVM range, and one per device. */
#define GPUCR_KFDPRIV_SVM_ATTRS	4

enum gpucr_kfdpriv_type {
	GPUCR_KFDPRIV_QUEUE,
	GPUCR_KFDPRIV_EVENT,
	GPUCR_KFDPRIV_SVM,
};

struct gpucr_kfdpriv_process {
	__u32 version;
	__u32 xnack_mode;
};

struct gpucr_kfdpriv_device {
	__u64 reserved;
};

/* What both BO records begin with; the GPU ids follow. */
struct gpucr_kfdpriv_bo {
	__u64 user_addr;	/* of a userptr BO, else 0 */
	__u32 idr_handle;
	__u32 mapped_gpuids[];	/* ends with the first 0 or the record */
};

struct gpucr_kfdpriv_queue {
	__u32 type;		/* GPUCR_KFDPRIV_QUEUE */
	__u32 pad;
	__u64 q_address;
	__u64 q_size;
	__u64 read_ptr_addr;
	__u64 write_ptr_addr;
	__u64 doorbell_off;
	__u64 eop_ring_buffer_address;
	__u64 ctx_save_restore_area_address;
	__u32 gpu_id;
	__u32 q_type;		/* KFD_IOC_QUEUE_TYPE_*, as KFD numbers inside */
	__u32 format;
	__u32 q_id;
	__u32 priority;
	__u32 q_percent;
	__u32 doorbell_id;
	__u32 gws;
	__u32 sdma_id;
	__u32 eop_ring_buffer_size;
	__u32 ctx_save_restore_area_size;
	__u32 ctl_stack_size;
	__u32 mqd_size;
	__u32 pad2;
	/* mqd[mqd_size], then ctl_stack[ctl_stack_size] */
};

struct gpucr_kfdpriv_event {
	__u32 type;		/* GPUCR_KFDPRIV_EVENT */
	__u32 pad;
	__u64 user_handle;	/* event page; in the first event only */
	__u32 event_id;
	__u32 auto_reset;
	__u32 event_type;
	__u32 signaled;
	__u8 data[32];		/* memory or hardware exception */
};

struct gpucr_kfdpriv_attr {
	__u32 type;
	__u32 value;
};

struct gpucr_kfdpriv_svm {
	__u32 type;		/* GPUCR_KFDPRIV_SVM */
	__u32 pad;
	__u64 start;		/* pages */
	__u64 size;		/* pages */
	struct gpucr_kfdpriv_attr attrs[];
};

/**
 * struct gpucr_kfdpriv - private data being read
 * @data: the bytes; owned by the caller
 * @fetch: copies what lies inside the data and is not at @data but elsewhere;
 *	0 or -errno. NULL: they are at @data, unchanged while they are read.
 *	Where they may change, each call's result is good by itself only
 * @size: how many
 * @num_devices: as PROCESS_INFO said
 * @num_bos: as PROCESS_INFO said
 * @num_objects: as PROCESS_INFO said
 * @bo_size: bytes of a BO record
 * @objects: offset of the first object
 */
struct gpucr_kfdpriv {
	const __u8 *data;
	int (*fetch)(const struct gpucr_kfdpriv *p, __u64 offset, void *to,
		     __u64 len);
	__u64 size;
	__u32 num_devices;
	__u32 num_bos;
	__u32 num_objects;
	__u32 bo_size;
	__u64 objects;
};

/**
 * struct gpucr_kfdpriv_object - one object, and the cursor to the next
 * @index: position among the objects
 * @type: enum gpucr_kfdpriv_type
 * @offset: where the record begins in the data
 * @head: bytes of its fixed part
 * @length: bytes in all, what follows the fixed part included
 * @num_attrs: attributes of an SVM range, else 0
 * @mqd_size: bytes of a queue's MQD, which begin at @offset + @head
 * @ctl_stack_size: bytes of its control stack, which follow the MQD
 *
 * Begin with all members zero.
 */
struct gpucr_kfdpriv_object {
	__u32 index;
	__u32 type;
	__u64 offset;
	__u64 head;
	__u64 length;
	__u32 num_attrs;
	__u32 mqd_size;
	__u32 ctl_stack_size;
};

static inline int gpucr_kfdpriv_read(const struct gpucr_kfdpriv *p,
				     __u64 offset, void *to, __u64 len)
{
	if (offset > p->size || len > p->size - offset)
		return -EINVAL;
	if (p->fetch)
		return p->fetch(p, offset, to, len);
	memcpy(to, p->data + offset, len);
	return 0;
}

/* Fills head, length and the sizes of the record at o->offset. */
static inline int gpucr_kfdpriv_measure(const struct gpucr_kfdpriv *p,
					struct gpucr_kfdpriv_object *o)
{
	struct gpucr_kfdpriv_queue q;
	int err;

	o->num_attrs = 0;
	o->mqd_size = 0;
	o->ctl_stack_size = 0;
	err = gpucr_kfdpriv_read(p, o->offset, &o->type, sizeof(o->type));
	if (err)
		return err;
	switch (o->type) {
	case GPUCR_KFDPRIV_QUEUE:
		err = gpucr_kfdpriv_read(p, o->offset, &q, sizeof(q));
		if (err)
			return err;
		o->head = sizeof(q);
		o->mqd_size = q.mqd_size;
		o->ctl_stack_size = q.ctl_stack_size;
		o->length = o->head + o->mqd_size + (__u64)o->ctl_stack_size;
		break;
	case GPUCR_KFDPRIV_EVENT:
		o->head = sizeof(struct gpucr_kfdpriv_event);
		o->length = o->head;
		break;
	case GPUCR_KFDPRIV_SVM:
		o->num_attrs = GPUCR_KFDPRIV_SVM_ATTRS + p->num_devices;
		o->head = sizeof(struct gpucr_kfdpriv_svm);
		o->length = o->head + (__u64)o->num_attrs *
			    sizeof(struct gpucr_kfdpriv_attr);
		break;
	default:
		return -EINVAL;
	}
	return o->length > p->size - o->offset ? -EINVAL : 0;
}

/**
 * gpucr_kfdpriv_next() - go to the next object
 * @p: opened data
 * @o: all zero for the first object, then what the last call left
 *
 * Return: 1 with @o filled, 0 after the last object, -EINVAL where the record
 * is malformed or longer than the data.
 */
static inline int gpucr_kfdpriv_next(const struct gpucr_kfdpriv *p,
				     struct gpucr_kfdpriv_object *o)
{
	int err;

	if (!o->length) {
		o->index = 0;
		o->offset = p->objects;
	} else {
		o->index++;
		o->offset += o->length;
	}
	if (o->index >= p->num_objects)
		return 0;
	err = gpucr_kfdpriv_measure(p, o);
	return err ? err : 1;
}

/* Do the objects, read with this record size, end where the data ends? */
static inline int gpucr_kfdpriv_fits(struct gpucr_kfdpriv *p, __u32 bo_size)
{
	struct gpucr_kfdpriv_object o = { 0 };
	__u64 fixed;
	int r;

	/* 32-bit counts times small sizes: no overflow in 64 bits. */
	fixed = sizeof(struct gpucr_kfdpriv_process) +
		(__u64)p->num_devices * sizeof(struct gpucr_kfdpriv_device) +
		(__u64)p->num_bos * bo_size;
	if (fixed > p->size)
		return 0;
	p->bo_size = bo_size;
	p->objects = fixed;
	do {
		r = gpucr_kfdpriv_next(p, &o);
	} while (r > 0);
	return r == 0 && o.offset == p->size;
}

/**
 * gpucr_kfdpriv_open() - check private data as a whole
 * @p: data, size and the three counts set by the caller; the rest is filled
 * @bo_size: bytes of a BO record, or 0 to find out
 *
 * With @bo_size 0 the data must fit exactly one of the known sizes. Where
 * there is no BO any size fits and @p->bo_size stays 0.
 *
 * Return: 0, -EINVAL where the data is malformed, -ENODATA where @bo_size is 0
 * and both known sizes fit, -EPROTO where the version is unknown.
 */
static inline int gpucr_kfdpriv_open(struct gpucr_kfdpriv *p, __u32 bo_size)
{
	struct gpucr_kfdpriv_process process;
	int small, big;

	if (gpucr_kfdpriv_read(p, 0, &process, sizeof(process)))
		return -EINVAL;
	if (process.version != GPUCR_KFDPRIV_VERSION)
		return -EPROTO;
	if (bo_size || !p->num_bos)
		return gpucr_kfdpriv_fits(p, bo_size) ? 0 : -EINVAL;
	small = gpucr_kfdpriv_fits(p, GPUCR_KFDPRIV_BO_16);
	big = gpucr_kfdpriv_fits(p, GPUCR_KFDPRIV_BO_64);
	if (small && big)
		return -ENODATA;
	if (!small && !big)
		return -EINVAL;
	return gpucr_kfdpriv_fits(p, small ? GPUCR_KFDPRIV_BO_16 :
					     GPUCR_KFDPRIV_BO_64) ? 0 : -EINVAL;
}

/* Fixed part of BO record index; its GPU ids are not copied. */
static inline int gpucr_kfdpriv_bo(const struct gpucr_kfdpriv *p, __u32 index,
				   struct gpucr_kfdpriv_bo *bo)
{
	if (index >= p->num_bos || p->bo_size < sizeof(*bo))
		return -EINVAL;
	return gpucr_kfdpriv_read(p, p->objects - (__u64)(p->num_bos - index) *
				     p->bo_size, bo,
				  offsetof(struct gpucr_kfdpriv_bo,
					   mapped_gpuids));
}

/* The n-th GPU id that BO record index is mapped on; 0: no more. */
static inline __u32 gpucr_kfdpriv_bo_gpu(const struct gpucr_kfdpriv *p,
					 __u32 index, __u32 n)
{
	const __u32 first = offsetof(struct gpucr_kfdpriv_bo, mapped_gpuids);
	__u32 id;

	if (index >= p->num_bos || p->bo_size < sizeof(struct gpucr_kfdpriv_bo))
		return 0;
	/* Padded to 8 bytes: the last word of the record is no id. */
	if (n >= (p->bo_size - sizeof(struct gpucr_kfdpriv_bo)) / sizeof(id))
		return 0;
	if (gpucr_kfdpriv_read(p, p->objects - (__u64)(p->num_bos - index) *
				  p->bo_size + first + n * sizeof(id),
			       &id, sizeof(id)))
		return 0;
	return id;
}

static inline int gpucr_kfdpriv_queue(const struct gpucr_kfdpriv *p,
				      const struct gpucr_kfdpriv_object *o,
				      struct gpucr_kfdpriv_queue *q)
{
	if (o->type != GPUCR_KFDPRIV_QUEUE)
		return -EINVAL;
	return gpucr_kfdpriv_read(p, o->offset, q, sizeof(*q));
}

static inline int gpucr_kfdpriv_event(const struct gpucr_kfdpriv *p,
				      const struct gpucr_kfdpriv_object *o,
				      struct gpucr_kfdpriv_event *e)
{
	if (o->type != GPUCR_KFDPRIV_EVENT)
		return -EINVAL;
	return gpucr_kfdpriv_read(p, o->offset, e, sizeof(*e));
}

/* Fixed part of an SVM range. */
static inline int gpucr_kfdpriv_svm(const struct gpucr_kfdpriv *p,
				    const struct gpucr_kfdpriv_object *o,
				    struct gpucr_kfdpriv_svm *s)
{
	if (o->type != GPUCR_KFDPRIV_SVM)
		return -EINVAL;
	return gpucr_kfdpriv_read(p, o->offset, s, sizeof(*s));
}

static inline int gpucr_kfdpriv_svm_attr(const struct gpucr_kfdpriv *p,
					 const struct gpucr_kfdpriv_object *o,
					 __u32 n, struct gpucr_kfdpriv_attr *a)
{
	if (o->type != GPUCR_KFDPRIV_SVM || n >= o->num_attrs)
		return -EINVAL;
	return gpucr_kfdpriv_read(p, o->offset + o->head +
				     (__u64)n * sizeof(*a), a, sizeof(*a));
}

#endif
