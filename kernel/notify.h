/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_NOTIFY_H
#define OCK_NOTIFY_H

/*
 * Regions that follow their addresses (ONECOPY_REGION_TRACK). An MMU interval
 * notifier over each segment sees the owner unmap, move or replace memory, then
 * bumps the region's generation word, which the owner's library reads before
 * it uses a cached region again, and makes the region stale.
 */

#include <linux/bitmap.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct ock_region;
struct ock_vec;

#define OCK_GENERATION_SLOTS 4096u

/* The words of one file. */
struct ock_generations {
	struct mutex lock;
	/* Made at first use, live as long as the file. */
	struct page *pages[DIV_ROUND_UP(OCK_GENERATION_SLOTS * sizeof(u64), PAGE_SIZE)];
	unsigned long *used; /* slots */
};

void ock_generations_init(struct ock_generations *generations);
void ock_generations_deinit(struct ock_generations *generations);

/* mmap() of the words, read-only. -EACCES, -EINVAL, -ENOMEM. */
int ock_generations_mmap(struct ock_generations *generations, struct vm_area_struct *vma);

#ifdef CONFIG_MMU_NOTIFIER
#define OCK_NOTIFY_SUPPORTED true
#else
#define OCK_NOTIFY_SUPPORTED false
#endif

struct ock_watch;

/* The memory is another now (-ESTALE), or its process has ended (-ENOENT). Any context. */
typedef void ock_watch_changed(struct ock_region *region, int why);

/*
 * Watches @vec, memory of the current process, for @region. To be called before
 * the pages are pinned, so that no change between is missed; the region is
 * not published yet. @changed may be called until ock_watch_destroy(). -EOPNOTSUPP, -ENOSPC,
 * -ENOMEM.
 */
int ock_watch_create(struct ock_region *region, ock_watch_changed *changed,
		     struct ock_generations *generations, const struct ock_vec *vec, u32 nr,
		     struct ock_watch **watch);

/*
 * Forgets what was seen so far: the caller, who said that the region is as new, is going to
 * pin the pages again. Waits for changes under way.
 */
void ock_watch_renew(struct ock_watch *watch);

/* The slot of the word and the value it has while the region is good. */
void ock_watch_word(const struct ock_watch *watch, u32 *slot, u64 *generation);

/* Ends when no callback runs any more. May sleep. NULL is fine. */
void ock_watch_destroy(struct ock_watch *watch);

#endif
