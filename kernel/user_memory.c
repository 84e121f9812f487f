// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages are pinned for long, and let go of by whoever holds them last, in any process:
 * that it has another address space, or none, does not matter then.
 */
#include "user_memory.h"

#include <linux/mm.h>
#include <linux/sched.h>

#include "compat.h"

/* Of @nr pages from @addr on those that are in the same area of the process. */
static u32 ock_area_pages(unsigned long addr, u32 nr)
{
	struct vm_area_struct *vma;

	addr = untagged_addr(addr);
	mmap_read_lock(current->mm);
	vma = find_vma(current->mm, addr);
	if (vma && vma->vm_start <= addr)
		nr = min_t(u64, nr, (vma->vm_end - addr) >> PAGE_SHIFT);
	mmap_read_unlock(current->mm);
	return nr;
}

/*
 * Has up to @nr pages put there that somebody provides (userfaultfd). Before 6.3 a long-term pin
 * keeps the process's memory locked, and does not wait for them: it is refused.
 */
static bool ock_user_memory_fault_in(unsigned long addr, u32 nr, unsigned int flags,
				     struct page **pages)
{
	long got = get_user_pages_unlocked(addr, nr, pages, flags);

	for (long i = 0; i < got; i++)
		put_page(pages[i]);
	return got > 0;
}

static int ock_user_memory_pin_with(unsigned long addr, u32 nr, unsigned int flags,
				    struct page **pages)
{
	int got = pin_user_pages_fast(addr, nr, FOLL_LONGTERM | flags, pages);

	if (got != -EFAULT || !ock_user_memory_fault_in(addr, nr, flags, pages))
		return got;
	return pin_user_pages_fast(addr, nr, FOLL_LONGTERM | flags, pages);
}

/*
 * Up to @nr pages; how many, or an errno. See OCK_PIN_UNSHARES: private memory is
 * pinned as for writing, to get the page that its owner will write to. What cannot be
 * written is pinned for reading then, but nothing behind it that can be.
 */
static int ock_user_memory_get(unsigned long addr, u32 nr, bool writable, struct page **pages)
{
	int got;

	if (writable || !OCK_PIN_UNSHARES) {
		got = ock_user_memory_pin_with(addr, nr, FOLL_WRITE, pages);
		if (writable || got != -EFAULT)
			return got;
		nr = ock_area_pages(addr, nr);
	}
	return ock_user_memory_pin_with(addr, nr, 0, pages);
}

static int ock_user_memory_pin(u64 addr, u32 nr, bool writable, struct page **pages)
{
	int got = ock_user_memory_get(addr, nr, writable, pages);

	if (got > 0)
		return got;
	return got == -ENOMEM ? -ENOMEM : -EFAULT;
}

static void ock_user_memory_unpin(const struct ock_run *runs, u32 nr, bool dirty)
{
	for (u32 i = 0; i < nr; i++) {
		unpin_user_page_range_dirty_lock(runs[i].first, runs[i].nr, dirty);
		cond_resched();
	}
}

const struct ock_provider ock_user_memory = {
	.pin = ock_user_memory_pin,
	.unpin = ock_user_memory_unpin,
};
