/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes to one file, several in flight, past the page cache where the
 * filesystem allows it.
 *
 * One thread uses a store, and in CRIU it is a thread that ends before CRIU
 * goes on: the kernel's workers behind a ring live as long as their thread.
 * Without io_uring (switched off, or refused by a sandbox) each write is done
 * when gpucr_store_write() returns: same bytes, slower.
 */
#ifndef GPUCR_STORE_H
#define GPUCR_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct gpucr_store;

/* O_DIRECT wants memory, lengths and offsets in multiples of this. */
#define GPUCR_STORE_ALIGN	4096

struct gpucr_store_config {
	int fd;			/* for writing; stays the caller's */
	const char *name;	/* for messages; outlives the store */
	bool uring;		/* try io_uring */
	bool direct;		/* try O_DIRECT */
	const struct iovec *buffers; /* that most writes come from; or NULL */
	unsigned int num_buffers;
	unsigned int deadline_ms; /* no write finished for so long: give up */
	uint64_t expect;	/* room to ask for in advance; 0: none */
};

#define GPUCR_STORE_DEADLINE_MS	120000

/* -ENOMEM; what the system does not offer is done without. */
int gpucr_store_open(const struct gpucr_store_config *cfg,
		     struct gpucr_store **ret);
/* Waits for what is in flight. */
void gpucr_store_close(struct gpucr_store *s);

/*
 * buf must not change before gpucr_store_settle(). -errno, logged; the first
 * failure of any write is returned by every later call.
 */
int gpucr_store_write(struct gpucr_store *s, const void *buf, size_t len,
		      uint64_t pos);
/* May a write use the memory? */
bool gpucr_store_needs(struct gpucr_store *s, const void *buf, size_t len);
/* Waits until no write uses the memory; buf NULL: until all are done. */
int gpucr_store_settle(struct gpucr_store *s, const void *buf, size_t len);

/* How it writes, for logs: "io_uring, direct". */
const char *gpucr_store_how(const struct gpucr_store *s);

#endif
