/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_REGION_H
#define OCK_REGION_H

/*
 * Regions, and the table that finds them by cookie.
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
#include <linux/workqueue.h>

#include "ctx.h"
#include "pin.h"

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
	struct ock_ctx *ctx;   /* compared; followed only under its rules, see region.c */
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

/* A user's hold on a region: keeps the pages. On the stack or in a copy. */
struct ock_ref {
	struct ock_region *region; /* NULL: none */
	struct ock_hot *hot;	   /* through which count; NULL: users */
	bool paused;		   /* keeps the struct, not the pages */
};

int ock_region_init(void);
void ock_region_exit(void);

/*
 * Declares the current process's memory. @flags: ONECOPY_REGION_*. Owned by
 * @ctx; *cookie is not 0. Errors as in ONECOPY_IOC_REGION_CREATE. *slot and *generation (may both
 * be NULL without TRACK) as there.
 */
int ock_region_create(struct ock_ctx *ctx, const struct ock_vec *vec, u32 nr, u32 flags,
		      u64 *cookie, u32 *slot, u64 *generation);

/* -ENOENT unless @ctx owns such a region. Mappings are revoked on return. */
int ock_region_destroy(struct ock_ctx *ctx, u64 cookie);

/* All regions of @ctx. */
void ock_region_destroy_all(struct ock_ctx *ctx);

/*
 * Finds the region and holds its pages. @need: ONECOPY_REGION_READ and/or WRITE.
 * Checks in this order: -ENOENT, -EPERM (by the current real uid), -EACCES, -ESTALE. A SINGLE_USE
 * region is used up by success and by nothing else. Lock-free for readers (single use: the owner's
 * lock). Does not sleep on the common path, may on others.
 */
int ock_region_get(u64 cookie, u32 need, struct ock_ref *ref);

/* As ock_region_get(), but SINGLE_USE regions are not used up. */
int ock_region_look(u64 cookie, u32 need, struct ock_ref *ref);

/* Gives it back; the last one unpins. May sleep. An empty @ref is fine. */
void ock_region_put(struct ock_ref *ref);

/*
 * For who is going to wait, perhaps for long: keeps the region but not its pages,
 * which may be given back meanwhile. To be followed by ock_region_resume(), whose 0
 * says that the pages are there, the same ones; else @ref is empty and it says why not.
 * Between the two @ref may be given back, and is not to be used otherwise. A SINGLE_USE
 * region stays held: none but this user has it any more. So does what was not paused at
 * all. May sleep. An empty @ref is fine.
 */
void ock_region_pause(struct ock_ref *ref);
int ock_region_resume(struct ock_ref *ref);

/* Gives a user back, for who counts by itself (map.c). May sleep. */
void ock_region_put_user(struct ock_region *region);

/* The struct only, not the pages; the caller has it already. */
void ock_region_ref(struct ock_region *region);
void ock_region_unref(struct ock_region *region);

/*
 * From a notifier, any context: lookups are refused with @refusal from now on; soon
 * mappings are revoked, unless they may LINGER, and the pages are given back when
 * nobody uses them any more.
 */
void ock_region_make_stale(struct ock_region *region, int refusal);

#endif
