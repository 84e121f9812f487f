/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_REGION_H
#define OCK_REGION_H

/*
 * A region by itself, and its counts; table.h has what is done with regions.
 *
 * Two counts. @users says who needs the pages: the table (while it holds the
 * region and that is not stale) and each copy in flight; at 0 the pages are
 * unpinned. @refs keeps the struct: one for the table, one for all users together,
 * one for each VMA that maps it. So a destroyed region gives its pages back
 * at once, though somebody has yet to unmap what shows nothing any more.
 *
 * A region that is found often gets @hot, a per-CPU count in front of @users,
 * so that many readers do not take turns at one cache line. One-shot regions
 * never do, so their end needs no RCU grace period.
 */

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

#include "pages.h"

struct ock_ctx;
struct ock_hot;
struct ock_watch;

/* The flags are those of the ABI: ONECOPY_REGION_*. */
struct ock_region {
	u64 cookie;
	struct rhash_head hash;
	u32 flags;
	int refusal; /* -ESTALE or -ENOENT: what lookups get from now on; no lock */
	kuid_t uid;  /* whose it is: ctx->uid */
	struct ock_pages pages;
	struct ock_watch *watch;

	refcount_t users ____cacheline_aligned_in_smp;
	unsigned int found; /* lookups so far, roughly */
	struct ock_hot __rcu *hot;

	refcount_t refs ____cacheline_aligned_in_smp;
	struct ock_ctx *ctx;   /* compared; followed only under its rules, see table.c */
	struct list_head node; /* of ctx->regions, under ctx->lock */
	struct ock_user *user;

	/* Mapping, map.c's. @dead is written under map_lock for writing; who
	 * fills in page table entries holds it for reading and checks. */
	struct rw_semaphore map_lock;
	bool dead;
	unsigned int keepers; /* VMAs of a LINGER region: together one user */
	bool mapped;	      /* was ever mapped: there may be entries to revoke */
	u64 map_page;	      /* offset in the address space of all mappings; 0: none yet */
	u32 map_nr;	      /* pages there */

	bool pinned;		 /* @work may be queued */
	u32 dropped;		 /* the table's user is gone */
	struct work_struct work; /* has become stale */
	struct rcu_head rcu;
};

/* Gives a user back, for who counts by itself (map.c). May sleep. */
void ock_region_put_user(struct ock_region *region);

/* The struct only, not the pages; the caller has it already. */
void ock_region_ref(struct ock_region *region);
void ock_region_unref(struct ock_region *region);

#endif
