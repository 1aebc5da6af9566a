// SPDX-License-Identifier: GPL-2.0
/*
 * Where BOs are. Those of a GPU that is full go elsewhere: the one used longest
 * ago first, from VRAM to GTT, and from GTT to plain memory, of which there is
 * as much again. Bytes need not be moved for that, as all of it is system
 * memory; only accounts, counters and the order change, and processes of KFD's
 * are stopped that have such a BO mapped.
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include "kfdsim_drm.h"
#include "kfdsim_trace.h"

/*
 * What submissions may move of others to have their own BOs back: 8 bytes a
 * microsecond, saved up for 200 ms at most, and the last BO may cost more.
 */
#define MOVE_SAVED_US	200000
#define MOVE_SHIFT	3

static atomic64_t *place_used(struct kfdsim_gpu *gpu, u32 place)
{
	switch (place) {
	case AMDGPU_GEM_DOMAIN_VRAM:
		return &gpu->vram_used;
	case AMDGPU_GEM_DOMAIN_GTT:
		return &gpu->gtt_used;
	default:
		return &gpu->moved_out;
	}
}

static u64 place_size(const struct kfdsim_gpu *gpu, u32 place)
{
	return place == AMDGPU_GEM_DOMAIN_VRAM ? gpu->vram_size : gpu->gtt_size;
}

static bool has_room(struct kfdsim_gpu *gpu, u32 place, u64 size)
{
	u64 total = place_size(gpu, place);
	u64 used = atomic64_read(place_used(gpu, place));

	lockdep_assert_held(&gpu->place_lock);
	return used <= total && size <= total - used;
}

static bool is_placed(const struct kfdsim_bo *bo)
{
	return !bo->userptr && !bo->borrowed && !(bo->domain & KFDSIM_ON_CHIP);
}

static struct list_head *place_list(struct kfdsim_gpu *gpu, u32 place)
{
	switch (place) {
	case AMDGPU_GEM_DOMAIN_VRAM:
		return &gpu->in_vram;
	case AMDGPU_GEM_DOMAIN_GTT:
		return &gpu->in_gtt;
	default:
		return &gpu->in_memory;
	}
}

/* How TTM numbers the places of amdgpu. */
static u32 ttm_place(u32 place)
{
	switch (place) {
	case AMDGPU_GEM_DOMAIN_VRAM:
		return 2;
	case AMDGPU_GEM_DOMAIN_GTT:
		return 1;
	default:
		return 0;
	}
}

/*
 * Count one step of a way. 6.1 counts whatever changes its place, new BOs too,
 * later kernels what is copied: to VRAM or from there. from: 0 for a new BO.
 */
static void step(struct kfdsim_bo *bo, u32 from, u32 to, bool evict)
{
	bool copied = from && (from | to) & AMDGPU_GEM_DOMAIN_VRAM;

	trace_amdgpu_bo_move(bo, bo->base.size, ttm_place(to),
			     from ? ttm_place(from) : ~0U);
	if (!copied && kfdsim_personality >= KFDSIM_6_12)
		return;
	if (evict)
		atomic64_inc(&bo->gpu->evictions);
	atomic64_add(bo->base.size, &bo->gpu->bytes_moved);
}

/* Between VRAM and plain memory there is no way but through GTT. */
static void moved(struct kfdsim_bo *bo, u32 from, u32 to, bool evict)
{
	if ((from | to) == (AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_CPU)) {
		step(bo, from, AMDGPU_GEM_DOMAIN_GTT, false);
		from = AMDGPU_GEM_DOMAIN_GTT;
	}
	step(bo, from, to, evict);
}

/* Where a BO would go. 0: nowhere. */
static u32 way_out(struct kfdsim_bo *bo)
{
	struct kfdsim_gpu *gpu = bo->gpu;
	u64 size = bo->base.size;

	if (bo->pins || bo->place == AMDGPU_GEM_DOMAIN_CPU)
		return 0;
	if (bo->place == AMDGPU_GEM_DOMAIN_VRAM &&
	    has_room(gpu, AMDGPU_GEM_DOMAIN_GTT, size))
		return AMDGPU_GEM_DOMAIN_GTT;
	if (size <= gpu->gtt_size && has_room(gpu, AMDGPU_GEM_DOMAIN_CPU, size))
		return AMDGPU_GEM_DOMAIN_CPU;
	return 0;
}

/* The next BO that has to leave a place for mm, with a reference. */
static struct kfdsim_bo *victim_get(struct kfdsim_gpu *gpu, u32 place,
				    const struct mm_struct *mm)
{
	struct kfdsim_bo *bo;

	lockdep_assert_held(&gpu->place_lock);
	list_for_each_entry(bo, place_list(gpu, place), lru)
		if (way_out(bo) && kfdsim_users_may_lose(bo, mm) &&
		    kref_get_unless_zero(&bo->base.refcount))
			return bo;
	return NULL;
}

/* place_lock held. */
static void set_place(struct kfdsim_bo *bo, u32 to)
{
	struct kfdsim_gpu *gpu = bo->gpu;

	atomic64_sub(bo->base.size, place_used(gpu, bo->place));
	bo->place = to;
	list_move_tail(&bo->lru, place_list(gpu, to));
}

static void evict_from(struct kfdsim_bo *bo, u32 place)
{
	struct kfdsim_gpu *gpu = bo->gpu;
	u32 to = 0;

	spin_lock(&gpu->place_lock);
	if (bo->place == place)
		to = way_out(bo);
	if (to) {
		atomic64_add(bo->base.size, place_used(gpu, to));
		set_place(bo, to);
	}
	spin_unlock(&gpu->place_lock);
	if (to)
		moved(bo, place, to, true);
}

/*
 * Get so many bytes of a place for mm, by eviction if that is wanted.
 * Return: 0, they are charged; -ENOMEM; -EINTR.
 */
static int take_room(struct kfdsim_gpu *gpu, u32 place, u64 size, bool evict,
		     const struct mm_struct *mm)
{
	struct kfdsim_bo *victim;
	bool got;
	int ret;

	if (size > place_size(gpu, place))
		return -ENOMEM;
	for (;;) {
		victim = NULL;
		spin_lock(&gpu->place_lock);
		got = has_room(gpu, place, size);
		if (got)
			atomic64_add(size, place_used(gpu, place));
		else if (evict)
			victim = victim_get(gpu, place, mm);
		spin_unlock(&gpu->place_lock);
		if (got)
			return 0;
		if (!victim)
			return -ENOMEM;
		ret = kfdsim_users_stop(victim);
		if (!ret)
			evict_from(victim, place);
		kfdsim_bo_put(victim);
		if (ret)
			return ret;
		if (fatal_signal_pending(current))
			return -EINTR;
	}
}

/**
 * kfdsim_place_new() - find room for a new BO
 * @bo: not seen by anybody yet; its domain is set
 * @domains: where it may be: VRAM, GTT or both
 *
 * Where there is room, and only then where it can be made.
 * Return: 0; -ENOMEM; -EINTR.
 */
int kfdsim_place_new(struct kfdsim_bo *bo, u32 domains)
{
	static const u32 order[] = {
		AMDGPU_GEM_DOMAIN_VRAM, AMDGPU_GEM_DOMAIN_GTT,
	};
	struct kfdsim_gpu *gpu = bo->gpu;
	int evict, ret = -ENOMEM;
	unsigned int i;

	for (evict = 0; evict <= 1; evict++) {
		for (i = 0; i < ARRAY_SIZE(order); i++) {
			if (!(domains & order[i]))
				continue;
			ret = take_room(gpu, order[i], bo->base.size, evict,
					current->mm);
			if (!ret)
				goto found;
			if (ret != -ENOMEM)
				return ret;
		}
	}
	return ret;
found:
	bo->domain = order[i];
	spin_lock(&gpu->place_lock);
	bo->place = order[i];
	list_add_tail(&bo->lru, place_list(gpu, bo->place));
	spin_unlock(&gpu->place_lock);
	step(bo, 0, bo->place, false);
	return 0;
}

/** kfdsim_place_drop() - a BO goes; also one that never had a place */
void kfdsim_place_drop(struct kfdsim_bo *bo)
{
	struct kfdsim_gpu *gpu = bo->gpu;

	if (!is_placed(bo) || !bo->place)
		return;
	spin_lock(&gpu->place_lock);
	list_del_init(&bo->lru);
	atomic64_sub(bo->base.size, place_used(gpu, bo->place));
	spin_unlock(&gpu->place_lock);
	trace_amdgpu_bo_move(bo, bo->base.size, ~0U, ttm_place(bo->place));
}

/* Bring a BO to a place, for mm, by eviction if that is wanted. */
static int bring(struct kfdsim_bo *bo, u32 to, bool evict,
		 const struct mm_struct *mm)
{
	struct kfdsim_gpu *gpu = bo->gpu;
	u32 from;
	int ret;

	if (READ_ONCE(bo->place) == to)
		return 0;
	ret = take_room(gpu, to, bo->base.size, evict, mm);
	if (ret)
		return ret;
	spin_lock(&gpu->place_lock);
	from = bo->place;
	/* somebody else may have brought it: then one charge is too many */
	set_place(bo, to);
	spin_unlock(&gpu->place_lock);
	if (from != to)
		moved(bo, from, to, false);
	return 0;
}

/**
 * kfdsim_place_back() - get a BO to where it was made
 * @bo: the BO
 * @evict: others may have to go for it
 * @mm: for whom
 *
 * Return: 0, it is there; -ENOMEM; -EINTR.
 */
int kfdsim_place_back(struct kfdsim_bo *bo, bool evict,
		      const struct mm_struct *mm)
{
	return is_placed(bo) ? bring(bo, bo->domain, evict, mm) : 0;
}

/** kfdsim_place_pin() - get a BO back and keep it there; -ENOMEM, -EINTR */
int kfdsim_place_pin(struct kfdsim_bo *bo)
{
	int ret;

	spin_lock(&bo->gpu->place_lock);
	bo->pins++;
	spin_unlock(&bo->gpu->place_lock);
	ret = kfdsim_place_back(bo, true, current->mm);
	if (ret)
		kfdsim_place_unpin(bo);
	return ret;
}

void kfdsim_place_unpin(struct kfdsim_bo *bo)
{
	spin_lock(&bo->gpu->place_lock);
	bo->pins--;
	spin_unlock(&bo->gpu->place_lock);
}

/* May a submission of now evict others? */
static bool may_move(struct kfdsim_gpu *gpu)
{
	u64 now = ktime_to_us(ktime_get());
	bool may;

	spin_lock(&gpu->place_lock);
	gpu->move_us = min_t(s64, gpu->move_us + (s64)(now - gpu->move_at),
			     MOVE_SAVED_US);
	gpu->move_at = now;
	may = gpu->move_us > 0;
	spin_unlock(&gpu->place_lock);
	return may;
}

static void spend(struct kfdsim_gpu *gpu, u64 bytes)
{
	spin_lock(&gpu->place_lock);
	gpu->move_us -= bytes >> MOVE_SHIFT;
	spin_unlock(&gpu->place_lock);
}

/* Is it well where it is? 6.1 leaves in GTT what may be there just as well. */
static bool stays(const struct kfdsim_bo *bo)
{
	u32 place = READ_ONCE(bo->place);

	return place == bo->domain || (kfdsim_personality == KFDSIM_6_1 &&
				       bo->preferred & place);
}

/* Out of plain memory, which no submission reaches, to wherever it may be. */
static int bring_out(struct kfdsim_bo *bo)
{
	bool vram = bo->domain == AMDGPU_GEM_DOMAIN_VRAM;
	int ret = -ENOMEM;

	if (vram)
		ret = bring(bo, AMDGPU_GEM_DOMAIN_GTT, false, current->mm);
	if (ret == -ENOMEM)
		ret = bring(bo, bo->domain, true, current->mm);
	if (ret == -ENOMEM && vram)
		ret = bring(bo, AMDGPU_GEM_DOMAIN_GTT, true, current->mm);
	return ret;
}

/**
 * kfdsim_place_use() - a submission uses a BO: it goes last, and should be back
 * @bo: the BO
 *
 * Return: 0, even where it is in GTT still; -ENOMEM; -EINTR.
 */
int kfdsim_place_use(struct kfdsim_bo *bo)
{
	struct kfdsim_gpu *gpu = bo->gpu;
	bool evict;
	int ret;

	if (!is_placed(bo))
		return 0;
	spin_lock(&gpu->place_lock);
	list_move_tail(&bo->lru, place_list(gpu, bo->place));
	spin_unlock(&gpu->place_lock);
	if (stays(bo))
		return 0;
	/* what may be in GTT too evicts nobody */
	evict = !(bo->preferred & AMDGPU_GEM_DOMAIN_GTT) && may_move(gpu);
	ret = kfdsim_place_back(bo, evict, current->mm);
	if (ret == -ENOMEM && READ_ONCE(bo->place) == AMDGPU_GEM_DOMAIN_CPU)
		ret = bring_out(bo);
	else if (ret == -ENOMEM)
		return 0;
	if (!ret)
		spend(gpu, bo->base.size);
	return ret;
}
