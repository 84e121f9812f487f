// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes that matter are those after which the owner's addresses may show other
 * pages: unmapping, moving, replacing, the end of the process. Protection
 * changes (mprotect(), fork(), NUMA scanning) leave pinned pages where they are.
 */
#include "notify.h"

#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "pin.h"
#include "stats.h"

#define OCK_WORDS_PER_PAGE (PAGE_SIZE / sizeof(u64))

void ock_generations_init(struct ock_generations *generations)
{
	mutex_init(&generations->lock);
}

void ock_generations_deinit(struct ock_generations *generations)
{
	for (size_t i = 0; i < ARRAY_SIZE(generations->pages); i++) {
		/* Not __free_page(): user space may have pinned it through its mapping. */
		if (generations->pages[i])
			put_page(generations->pages[i]);
		generations->pages[i] = NULL;
	}
	bitmap_free(generations->used);
	generations->used = NULL;
}

/* Under generations->lock. */
static int ock_generations_prepare(struct ock_generations *generations)
{
	if (generations->used)
		return 0;
	generations->used = bitmap_zalloc(OCK_GENERATION_SLOTS, GFP_KERNEL_ACCOUNT);
	if (!generations->used)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(generations->pages); i++) {
		generations->pages[i] = alloc_page(OCK_GFP_USER);
		if (!generations->pages[i]) {
			ock_generations_deinit(generations);
			return -ENOMEM;
		}
	}
	return 0;
}

int ock_generations_mmap(struct ock_generations *generations, struct vm_area_struct *vma)
{
	int err;

	if (!(vma->vm_flags & VM_SHARED) || vma_pages(vma) > ARRAY_SIZE(generations->pages))
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	mutex_lock(&generations->lock);
	err = ock_generations_prepare(generations);
	if (!err)
		err = vm_map_pages_zero(vma, generations->pages, ARRAY_SIZE(generations->pages));
	mutex_unlock(&generations->lock);
	return err;
}

#ifdef CONFIG_MMU_NOTIFIER

static u64 *ock_generation(const struct ock_generations *generations, u32 slot)
{
	u64 *words = page_address(generations->pages[slot / OCK_WORDS_PER_PAGE]);

	return words + slot % OCK_WORDS_PER_PAGE;
}

static void ock_generation_bump(const struct ock_generations *generations, u32 slot)
{
	atomic64_inc((atomic64_t *)ock_generation(generations, slot));
}

struct ock_span {
	struct mmu_interval_notifier notifier;
	struct ock_watch *watch;
};

struct ock_watch {
	ock_watch_changed *changed;
	struct ock_region *region;
	struct ock_generations *generations;
	u32 slot;
	u64 generation; /* while the region is good */
	u32 nr;
	struct ock_span spans[];
};

static bool ock_span_invalidate(struct mmu_interval_notifier *notifier,
				const struct mmu_notifier_range *range, unsigned long sequence)
{
	struct ock_watch *watch = container_of(notifier, struct ock_span, notifier)->watch;

	mmu_interval_set_seq(notifier, sequence);
	switch (range->event) {
	case MMU_NOTIFY_PROTECTION_VMA:
	case MMU_NOTIFY_PROTECTION_PAGE:
	case MMU_NOTIFY_SOFT_DIRTY:
		return true;
	default:
		ock_generation_bump(watch->generations, watch->slot);
	}
	/* When the process ends or executes another program, its regions look
	 * destroyed at once, though its files may be closed much later. */
	watch->changed(watch->region, range->event == MMU_NOTIFY_RELEASE ? -ENOENT : -ESTALE);
	return true;
}

static const struct mmu_interval_notifier_ops span_ops = {
	.invalidate = ock_span_invalidate,
};

static int ock_watch_slot(struct ock_watch *watch)
{
	struct ock_generations *generations = watch->generations;
	int err;

	mutex_lock(&generations->lock);
	err = ock_generations_prepare(generations);
	if (err)
		goto out;
	watch->slot = find_first_zero_bit(generations->used, OCK_GENERATION_SLOTS);
	if (watch->slot == OCK_GENERATION_SLOTS) {
		err = -ENOSPC;
		goto out;
	}
	__set_bit(watch->slot, generations->used);
	watch->generation = READ_ONCE(*ock_generation(generations, watch->slot));
out:
	mutex_unlock(&generations->lock);
	return err;
}

static int ock_watch_span(struct ock_watch *watch, const struct ock_vec *vec)
{
	/* Only accesses know of tags in addresses; changes are told without. */
	unsigned long addr = untagged_addr((unsigned long)vec->addr);
	unsigned long start = addr & PAGE_MASK;
	struct ock_span *span = &watch->spans[watch->nr];
	int err;

	span->watch = watch;
	err = mmu_interval_notifier_insert(&span->notifier, current->mm, start,
					   PAGE_ALIGN(addr + vec->length) - start, &span_ops);
	if (err)
		return err;
	watch->nr++;
	/* A change under way that began before would not be told; wait for its end. */
	mmu_interval_read_begin(&span->notifier);
	return 0;
}

int ock_watch_create(struct ock_region *region, ock_watch_changed *changed,
		     struct ock_generations *generations, const struct ock_vec *vec, u32 nr,
		     struct ock_watch **result)
{
	struct ock_watch *watch;
	u64 length;
	int err;

	err = ock_vec_length(vec, nr, &length);
	if (err)
		return err;
	watch = kvzalloc(struct_size(watch, spans, nr), GFP_KERNEL_ACCOUNT);
	if (!watch)
		return -ENOMEM;
	watch->changed = changed;
	watch->region = region;
	watch->generations = generations;
	err = ock_watch_slot(watch);
	if (err) {
		kvfree(watch);
		return err;
	}
	ock_stat_inc(OCK_LIVE_WATCHES);
	for (u32 i = 0; i < nr; i++) {
		if (!vec[i].length)
			continue;
		err = fatal_signal_pending(current) ? -EINTR : ock_watch_span(watch, &vec[i]);
		if (err) {
			ock_watch_destroy(watch);
			return err;
		}
		cond_resched();
	}
	*result = watch;
	return 0;
}

void ock_watch_renew(struct ock_watch *watch)
{
	/* Of a change after the region's state was set back either the word tells, or the
	 * state, or both; one before has ended when this returns. */
	smp_mb();
	watch->generation = READ_ONCE(*ock_generation(watch->generations, watch->slot));
	for (u32 i = 0; i < watch->nr; i++) {
		mmu_interval_read_begin(&watch->spans[i].notifier);
		cond_resched();
	}
}

void ock_watch_word(const struct ock_watch *watch, u32 *slot, u64 *generation)
{
	*slot = watch->slot;
	*generation = watch->generation;
}

void ock_watch_destroy(struct ock_watch *watch)
{
	struct ock_generations *generations;

	if (!watch)
		return;
	generations = watch->generations;
	for (u32 i = 0; i < watch->nr; i++) {
		mmu_interval_notifier_remove(&watch->spans[i].notifier);
		cond_resched();
	}
	mutex_lock(&generations->lock);
	/* The slot's next region must not find the value that was good for this one. */
	ock_generation_bump(generations, watch->slot);
	__clear_bit(watch->slot, generations->used);
	mutex_unlock(&generations->lock);
	kvfree(watch);
	ock_stat_dec(OCK_LIVE_WATCHES);
}

#else

int ock_watch_create(struct ock_region *region, ock_watch_changed *changed,
		     struct ock_generations *generations, const struct ock_vec *vec, u32 nr,
		     struct ock_watch **result)
{
	return -EOPNOTSUPP;
}

void ock_watch_renew(struct ock_watch *watch)
{
}

void ock_watch_word(const struct ock_watch *watch, u32 *slot, u64 *generation)
{
}

void ock_watch_destroy(struct ock_watch *watch)
{
}

#endif
