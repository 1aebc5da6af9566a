// SPDX-License-Identifier: GPL-2.0-only
/* thunkloop: the same work as vecloop's, everything allocated by libhsakmt. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hsakmt/hsakmt.h>

#include "app.h"
#include "work.h"

#define RING_BYTES	(64u << 10)
#define MAX_GPUS	64

static HSAuint32 gpu_nodes[MAX_GPUS];

static bool ok(HSAKMT_STATUS status, const char *what)
{
	if (status == HSAKMT_STATUS_SUCCESS)
		return true;
	app_err("%s: status %d", what, status);
	return false;
}

static int open_gpus(unsigned int want)
{
	HsaSystemProperties sys;
	HsaNodeProperties node;
	unsigned int i, n = 0;

	if (hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS) {
		app_err("hsaKmtOpenKFD failed: no KFD");
		return APP_ABSENT;
	}
	if (!ok(hsaKmtAcquireSystemProperties(&sys), "hsaKmtAcquireSystemProperties"))
		return APP_FAILED;
	for (i = 0; i < sys.NumNodes && n < want; i++) {
		if (!ok(hsaKmtGetNodeProperties(i, &node), "hsaKmtGetNodeProperties"))
			return APP_FAILED;
		if (node.NumFComputeCores)
			gpu_nodes[n++] = i;
	}
	if (n == want)
		return APP_OK;
	app_err("%u GPUs wanted, %u here", want, n);
	return APP_ABSENT;
}

/* Paged host memory is a userptr BO, non-paged a GTT BO. */
static void *alloc(unsigned int gpu, enum app_heap heap, uint64_t size)
{
	HsaMemFlags flags = { .Value = 0 };
	HSAuint64 gpu_va;
	void *mem = NULL;

	flags.ui32.HostAccess = 1;
	flags.ui32.NonPaged = heap != APP_USERPTR;
	flags.ui32.ExecuteAccess = 1;
	flags.ui32.CoarseGrain = heap == APP_VRAM;
	if (!ok(hsaKmtAllocMemory(heap == APP_VRAM ? gpu_nodes[gpu] : 0, size, flags, &mem),
		"hsaKmtAllocMemory") ||
	    !ok(hsaKmtMapMemoryToGPU(mem, size, &gpu_va), "hsaKmtMapMemoryToGPU"))
		return NULL;
	if (!gpu_va || gpu_va == (uintptr_t)mem)
		return mem;
	app_err("memory at %p is at another address for the GPU", mem);
	return NULL;
}

static int wait_event(struct sdma *s, unsigned int ms)
{
	switch (hsaKmtWaitOnEvent(s->priv, ms)) {
	case HSAKMT_STATUS_SUCCESS:
		return 1;
	case HSAKMT_STATUS_WAIT_TIMEOUT:
		return 0;
	default:
		return -EIO;
	}
}

static int make_queue(struct work *w, unsigned int i)
{
	struct work_queue *q = &w->queues[i];
	HsaEventDescriptor desc = { .EventType = HSA_EVENTTYPE_SIGNAL };
	HsaQueueResource res = { 0 };
	HsaEvent *event;

	q->sdma.ring = alloc(q->gpu, i % 2 ? APP_USERPTR : APP_GTT, RING_BYTES);
	q->sdma.fence = alloc(q->gpu, APP_GTT, 4096);
	q->scratch = alloc(q->gpu, APP_VRAM, w->opt->size);
	if (!q->sdma.ring || !q->sdma.fence || !q->scratch)
		return -ENOMEM;
	memset(q->sdma.ring, 0, RING_BYTES);
	*q->sdma.fence = 0;
	desc.NodeId = gpu_nodes[q->gpu];
	if (!ok(hsaKmtCreateEvent(&desc, false, false, &event), "hsaKmtCreateEvent") ||
	    !ok(hsaKmtCreateQueue(gpu_nodes[q->gpu], HSA_QUEUE_SDMA, 100,
				  HSA_QUEUE_PRIORITY_NORMAL, q->sdma.ring, RING_BYTES, NULL, &res),
		"hsaKmtCreateQueue"))
		return -EIO;
	q->sdma.bytes = RING_BYTES;
	q->sdma.wptr = (volatile uint64_t *)res.Queue_write_ptr_aql;
	q->sdma.doorbell = (volatile uint64_t *)res.Queue_DoorBell_aql;
	q->sdma.event_id = event->EventId;
	q->sdma.slot = (volatile uint64_t *)(uintptr_t)event->EventData.HWData2;
	q->sdma.wait = wait_event;
	q->sdma.priv = event;
	return 0;
}

static int make_bufs(struct work *w, unsigned int gpu)
{
	unsigned int i;
	void *source;

	for (i = 0; i < w->nbufs; i++) {
		if (w->bufs[i].gpu != gpu)
			continue;
		w->bufs[i].mem = alloc(gpu, w->bufs[i].heap, w->bufs[i].size);
		if (!w->bufs[i].mem)
			return -ENOMEM;
	}
	work_describe(w, gpu);
	source = alloc(gpu, APP_GTT, work_source_bytes(w));
	if (!source)
		return -ENOMEM;
	return work_fill(w, gpu, source);
}

int main(int argc, char **argv)
{
	static struct work work;
	struct app_opt opt;
	unsigned int i;
	int ret;

	app_parse(&opt, argc, argv);
	if (opt.heaps & APP_SVM) {
		app_err("the thunk has no heap 'svm'");
		return APP_USAGE;
	}
	app_start(&opt);
	ret = open_gpus(opt.gpus);
	if (ret)
		return ret;
	if (work_init(&work, &opt)) {
		app_err("out of memory");
		return APP_FAILED;
	}
	for (i = 0; i < work.nqueues; i++) {
		if (make_queue(&work, i))
			return APP_FAILED;
	}
	for (i = 0; i < opt.gpus; i++) {
		if (make_bufs(&work, i))
			return APP_FAILED;
	}
	return work_run(&work);
}
