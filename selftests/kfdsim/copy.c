// SPDX-License-Identifier: GPL-2.0
/*
 * Moves bytes into, out of and between BOs, a page at a time. User memory is
 * reached through current's address space, with no lock of ours held.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfdsim_drm.h"

#define CHUNK_WORDS	8

/**
 * kfdsim_copy_words() - memcpy() that is fast where there are no string
 *	instructions worth the name (TCG), and single where a word is aligned
 * @dst: to
 * @src: from
 * @len: bytes
 */
void kfdsim_copy_words(void *dst, const void *src, size_t len)
{
	unsigned long mix = (unsigned long)dst | (unsigned long)src | len;
	const u64 *s = src;
	u64 *d = dst;

	if (len == sizeof(u32) && IS_ALIGNED(mix, sizeof(u32))) {
		WRITE_ONCE(*(u32 *)dst, READ_ONCE(*(const u32 *)src));
		return;
	}
	if (!IS_ALIGNED(mix, sizeof(u64))) {
		memcpy(dst, src, len);
		return;
	}
	for (; len >= CHUNK_WORDS * sizeof(u64); len -= CHUNK_WORDS * sizeof(u64)) {
		u64 a = READ_ONCE(s[0]), b = READ_ONCE(s[1]);
		u64 c = READ_ONCE(s[2]), e = READ_ONCE(s[3]);
		u64 f = READ_ONCE(s[4]), g = READ_ONCE(s[5]);
		u64 h = READ_ONCE(s[6]), i = READ_ONCE(s[7]);

		WRITE_ONCE(d[0], a);
		WRITE_ONCE(d[1], b);
		WRITE_ONCE(d[2], c);
		WRITE_ONCE(d[3], e);
		WRITE_ONCE(d[4], f);
		WRITE_ONCE(d[5], g);
		WRITE_ONCE(d[6], h);
		WRITE_ONCE(d[7], i);
		s += CHUNK_WORDS;
		d += CHUNK_WORDS;
	}
	for (; len; len -= sizeof(u64))
		WRITE_ONCE(*d++, READ_ONCE(*s++));
}

static void fill_words(void *dst, u32 pattern, size_t words)
{
	u64 v = pattern | (u64)pattern << 32;
	u64 *d = dst;

	for (; words >= CHUNK_WORDS; words -= CHUNK_WORDS, d += CHUNK_WORDS) {
		WRITE_ONCE(d[0], v);
		WRITE_ONCE(d[1], v);
		WRITE_ONCE(d[2], v);
		WRITE_ONCE(d[3], v);
		WRITE_ONCE(d[4], v);
		WRITE_ONCE(d[5], v);
		WRITE_ONCE(d[6], v);
		WRITE_ONCE(d[7], v);
	}
	for (; words; words--)
		WRITE_ONCE(*d++, v);
}

/* Fill a page with KFDSIM_POISON. */
void kfdsim_fill_poison(void *dst)
{
	fill_words(dst, KFDSIM_POISON * 0x01010101U, PAGE_SIZE / sizeof(u64));
}

static void __user *user_ptr(struct kfdsim_bo *bo, u64 off)
{
	return (void __user *)(bo->user_addr + off);
}

static int user_check(struct kfdsim_bo *bo)
{
	return bo->user_mm == current->mm ? 0 : -EFAULT;
}

/* len bytes at off, all in one page of a BO that has pages. */
static int page_rw(struct kfdsim_bo *bo, u64 off, void *buf, size_t len,
		   bool write)
{
	unsigned int in = offset_in_page(off);
	struct page *page;
	void *va;

	if (!write) {
		page = kfdsim_bo_peek(bo, off >> PAGE_SHIFT);
		if (!page) {
			kfdsim_copy_words(buf, kfdsim_bo_fresh_page(bo) + in, len);
			return 0;
		}
	} else {
		page = kfdsim_bo_page(bo, off >> PAGE_SHIFT);
		if (!page)
			return -ENOMEM;
	}
	va = kmap_local_page(page);
	if (write)
		kfdsim_copy_words(va + in, buf, len);
	else
		kfdsim_copy_words(buf, va + in, len);
	kunmap_local(va);
	if (write && bo->written)
		bo->written(bo);
	return 0;
}

static int user_rw(struct kfdsim_bo *bo, u64 off, void *buf, size_t len,
		   bool write)
{
	int ret = user_check(bo);
	unsigned long left;

	if (ret)
		return ret;
	if (write)
		left = copy_to_user(user_ptr(bo, off), buf, len);
	else
		left = copy_from_user(buf, user_ptr(bo, off), len);
	return left ? -EFAULT : 0;
}

/**
 * kfdsim_bo_rw() - copy between a kernel buffer and a BO
 * @bo: the BO
 * @off: byte in it
 * @buf: the buffer
 * @len: bytes
 * @write: to the BO
 *
 * [off, off + len) lies within the BO. May sleep.
 * Return: 0, -EFAULT (user memory), -ENOMEM.
 */
int kfdsim_bo_rw(struct kfdsim_bo *bo, u64 off, void *buf, size_t len, bool write)
{
	while (len) {
		size_t n = min_t(size_t, len, PAGE_SIZE - offset_in_page(off));
		int ret;

		if (bo->userptr)
			ret = user_rw(bo, off, buf, n, write);
		else
			ret = page_rw(bo, off, buf, n, write);
		if (ret)
			return ret;
		off += n;
		buf += n;
		len -= n;
	}
	return 0;
}

/* User memory to user memory: rare, so through a small buffer. */
static int copy_user_user(struct kfdsim_bo *dst, u64 dst_off,
			  struct kfdsim_bo *src, u64 src_off, size_t len)
{
	u64 buf[32];
	size_t n;
	int ret;

	for (; len; len -= n, dst_off += n, src_off += n) {
		n = min(len, sizeof(buf));
		ret = user_rw(src, src_off, buf, n, false);
		if (!ret)
			ret = user_rw(dst, dst_off, buf, n, true);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Would a page that nobody has written read the same? So that VRAM may be
 * larger than memory, as long as most of it was never used, after a restore
 * too.
 */
static bool reads_as_fresh(struct kfdsim_bo *dst, struct kfdsim_bo *src,
			   u64 src_off)
{
	const void *fresh = kfdsim_bo_fresh_page(dst);
	bool same = false;
	u64 first;
	void *buf;

	/* Most pages differ at once, and cost nothing. */
	if (user_rw(src, src_off, &first, sizeof(first), false) ||
	    first != *(const u64 *)fresh)
		return false;
	buf = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!buf)
		return false;
	if (!user_rw(src, src_off, buf, PAGE_SIZE, false))
		same = !memcmp(buf, fresh, PAGE_SIZE);
	kfree(buf);
	return same;
}

/* One page at most on either side. */
static int copy_within_page(struct kfdsim_bo *dst, u64 dst_off,
			    struct kfdsim_bo *src, u64 src_off, size_t len)
{
	struct page *page;
	void *va;
	int ret;

	if (src->userptr && dst->userptr)
		return copy_user_user(dst, dst_off, src, src_off, len);
	if (!src->userptr) {
		page = kfdsim_bo_peek(src, src_off >> PAGE_SHIFT);
		if (!page)
			return kfdsim_bo_rw(dst, dst_off,
					    (void *)kfdsim_bo_fresh_page(src) +
					    offset_in_page(src_off), len, true);
		va = kmap_local_page(page);
		ret = kfdsim_bo_rw(dst, dst_off, va + offset_in_page(src_off),
				   len, true);
	} else {
		if (len == PAGE_SIZE &&
		    !kfdsim_bo_peek(dst, dst_off >> PAGE_SHIFT) &&
		    reads_as_fresh(dst, src, src_off))
			return 0;
		page = kfdsim_bo_page(dst, dst_off >> PAGE_SHIFT);
		if (!page)
			return -ENOMEM;
		va = kmap_local_page(page);
		ret = user_rw(src, src_off, va + offset_in_page(dst_off), len,
			      false);
	}
	kunmap_local(va);
	return ret;
}

/**
 * kfdsim_bo_copy() - copy between BOs, forwards
 * @dst: to
 * @dst_off: byte in it
 * @src: from
 * @src_off: byte in it
 * @len: bytes
 *
 * Both ranges lie within their BOs. May sleep. Return: as kfdsim_bo_rw().
 */
int kfdsim_bo_copy(struct kfdsim_bo *dst, u64 dst_off, struct kfdsim_bo *src,
		   u64 src_off, size_t len)
{
	while (len) {
		size_t n = min_t(size_t, len, PAGE_SIZE - offset_in_page(src_off));
		int ret;

		n = min_t(size_t, n, PAGE_SIZE - offset_in_page(dst_off));
		ret = copy_within_page(dst, dst_off, src, src_off, n);
		if (ret)
			return ret;
		dst_off += n;
		src_off += n;
		len -= n;
	}
	return 0;
}

/**
 * kfdsim_bo_fill() - write a 32-bit pattern, which starts anew at off
 * @dst: to
 * @off: byte in it
 * @len: bytes
 * @pattern: lowest byte first
 *
 * The range lies within the BO. May sleep. Return: as kfdsim_bo_rw().
 */
int kfdsim_bo_fill(struct kfdsim_bo *dst, u64 off, size_t len, u32 pattern)
{
	u64 buf[32];

	fill_words(buf, pattern, ARRAY_SIZE(buf));
	while (len) {
		size_t n = min(len, sizeof(buf));
		int ret = kfdsim_bo_rw(dst, off, buf, n, true);

		if (ret)
			return ret;
		off += n;
		len -= n;
	}
	return 0;
}

/**
 * kfdsim_bo_add64() - add to a 64-bit word, atomically against CPUs
 * @bo: the BO
 * @off: byte in it
 * @value: what to add
 *
 * off is a multiple of 8 within the BO. May sleep.
 * Return: 0, -EFAULT (user memory), -ENOMEM.
 */
int kfdsim_bo_add64(struct kfdsim_bo *bo, u64 off, u64 value)
{
	struct page *page;
	void *va;
	int ret;

	if (bo->userptr) {
		ret = user_check(bo);
		if (ret)
			return ret;
		if (pin_user_pages_fast((unsigned long)user_ptr(bo, off), 1,
					FOLL_WRITE, &page) != 1)
			return -EFAULT;
	} else {
		page = kfdsim_bo_page(bo, off >> PAGE_SHIFT);
		if (!page)
			return -ENOMEM;
	}
	va = kmap_local_page(page);
	atomic64_add(value, (atomic64_t *)(va + offset_in_page(off)));
	kunmap_local(va);
	if (bo->userptr)
		unpin_user_pages_dirty_lock(&page, 1, true);
	else if (bo->written)
		bo->written(bo);
	return 0;
}
