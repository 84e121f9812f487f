/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_COMPAT_H
#define OCK_COMPAT_H

/*
 * What differs between the kernels this builds for, 5.10 and later. Kbuild looks
 * into the headers and says OCK_HAVE_...; no other file asks.
 */

#include <linux/cred.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/eventfd.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#ifdef CONFIG_PAGE_TABLE_CHECK
#include <linux/page_table_check.h>
#endif
#include <linux/sched/user.h>
#include <linux/uaccess.h> /* untagged_addr(), which was mm.h's */
#include <linux/user_namespace.h>

#ifndef CONFIG_64BIT
#error "onecopy needs a 64-bit kernel: pages are reached through the direct map"
#endif

/*
 * Whether memory may be mapped into another process by entries of our own. A kernel that
 * checks page tables (page_table_check=on) takes the second writable entry of an
 * anonymous page for a bug of its own, and panics.
 */
static inline bool ock_map_allowed(void)
{
#ifdef CONFIG_PAGE_TABLE_CHECK
	return static_branch_likely(&page_table_check_disabled);
#else
	return true;
#endif
}

/* Zeroed pages that user space will map. Before 5.11 charged pages could not be. */
#ifdef OCK_HAVE_MAPPABLE_KMEMCG
#define OCK_GFP_USER (GFP_HIGHUSER | __GFP_ZERO | __GFP_ACCOUNT)
#else
#define OCK_GFP_USER (GFP_HIGHUSER | __GFP_ZERO)
#endif

/*
 * Whether a long-term pin for reading gives private memory its final page. If
 * not (before 6.2), a page of zeroes or one shared after fork() could be pinned,
 * and the owner's next write would go elsewhere.
 */
#ifdef OCK_HAVE_UNSHARE_ALL
#define OCK_PIN_UNSHARES true
#else
#define OCK_PIN_UNSHARES false
#endif

static inline void ock_eventfd_signal(struct eventfd_ctx *ctx)
{
#ifdef OCK_HAVE_EVENTFD_SIGNAL_ONE
	eventfd_signal(ctx);
#else
	eventfd_signal(ctx, 1);
#endif
}

/* Processes and threads that RLIMIT_NPROC counts as the caller's. */
static inline unsigned long ock_nr_processes(void)
{
#if defined(OCK_HAVE_RLIMIT_VALUE)
	return get_rlimit_value(current_ucounts(), UCOUNT_RLIMIT_NPROC);
#elif defined(OCK_HAVE_UCOUNTS_VALUE)
	return get_ucounts_value(current_ucounts(), UCOUNT_RLIMIT_NPROC);
#else
	return atomic_read(&current_user()->processes);
#endif
}

#ifdef CONFIG_DMA_ENGINE
/* The one to map memory for: a channel may have a device of its own. */
static inline struct device *ock_dma_device(struct dma_chan *chan)
{
#ifdef OCK_HAVE_DMA_DEVICE
	return dmaengine_get_dma_device(chan);
#else
	return chan->device->dev;
#endif
}

/*
 * Who copies to one place many times at once has asked for that. A kernel that looks after DMA
 * mappings (CONFIG_DMA_API_DEBUG) takes more than eight of a cache line for a leak, and warns.
 * Only new ones can be told.
 */
#ifdef DMA_ATTR_DEBUGGING_IGNORE_CACHELINES
#define OCK_DMA_TO_ATTRS DMA_ATTR_DEBUGGING_IGNORE_CACHELINES
#else
#define OCK_DMA_TO_ATTRS 0
#endif
#endif

#ifndef OCK_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#ifndef OCK_HAVE_UNPIN_RANGE
static inline void unpin_user_page_range_dirty_lock(struct page *page, unsigned long npages,
						    bool make_dirty)
{
	for (unsigned long i = 0; i < npages; i++) {
		struct page *one = nth_page(page, i);

		unpin_user_pages_dirty_lock(&one, 1, make_dirty);
	}
}
#endif

/*
 * A huge entry that shows ordinary memory must be one that get_user_pages_fast()
 * keeps its hands off, or a peer could pin the pages through its mapping and
 * reach them after the region is gone. Kernels since 6.12 have a "special" bit
 * for huge entries; before that, the "device" bit sends get_user_pages_fast()
 * to the slow path (no dev_pagemap is found), which refuses VM_PFNMAP.
 */
#if defined(CONFIG_TRANSPARENT_HUGEPAGE) && defined(CONFIG_ARCH_SUPPORTS_PMD_PFNMAP)
#define OCK_HUGE_MAP 1

static inline pmd_t ock_pmd_make(unsigned long pfn, pgprot_t prot)
{
	return pmd_mkspecial(pmd_mkhuge(pfn_pmd(pfn, prot)));
}
#elif defined(CONFIG_TRANSPARENT_HUGEPAGE) && defined(CONFIG_ARCH_HAS_PTE_DEVMAP) &&               \
	defined(CONFIG_ZONE_DEVICE)
#define OCK_HUGE_MAP 1

static inline pmd_t ock_pmd_make(unsigned long pfn, pgprot_t prot)
{
	return pmd_mkdevmap(pmd_mkhuge(pfn_pmd(pfn, prot)));
}
#else
#define OCK_HUGE_MAP 0
#endif

/* Of a huge entry. */
#define OCK_HUGE_PAGES (1u << (PMD_SHIFT - PAGE_SHIFT))

/*
 * Maps PMD_SIZE at @addr by one entry. False: *pmd holds a table of small ones, or has
 * to, or this kernel has no such entries. vmf_insert_pfn_pmd() would ask for the cache
 * attributes of each, which are those of all memory.
 *
 * An area that wants to hear of writes (soft-dirty tracking) has a vm_page_prot that
 * does not allow them. The first write makes a small entry writable; a huge one it
 * would take away, and the next fault bring back as it was, for ever.
 */
static inline bool ock_pmd_insert(struct vm_area_struct *vma, unsigned long addr, pmd_t *pmd,
				  unsigned long pfn)
{
#if OCK_HUGE_MAP
	spinlock_t *lock;
	bool huge;

	/* For the archs whose huge entries need a spare table. */
	if (arch_needs_pgtable_deposit())
		return false;
	lock = pmd_lock(vma->vm_mm, pmd);
	if (pmd_none(*pmd)) {
		pmd_t entry = pmd_mkyoung(ock_pmd_make(pfn, vma->vm_page_prot));

		if (vma->vm_flags & VM_WRITE) {
			if (!pmd_write(entry)) {
				spin_unlock(lock);
				return false;
			}
			entry = pmd_mkdirty(entry);
		}
		set_pmd_at(vma->vm_mm, addr, pmd, entry);
		update_mmu_cache_pmd(vma, addr, pmd);
	}
	huge = pmd_leaf(*pmd);
	spin_unlock(lock);
	return huge;
#else
	return false;
#endif
}

#endif
