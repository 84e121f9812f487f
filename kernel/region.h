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
 * One state, which ock_region_move() alone changes, and only so:
 *
 *	state     from                   by                               lookups
 *	MAKING    - SPOILED              who creates it                   none yet
 *	SPOILED   MAKING                 its memory changed               none yet
 *	LIVE      MAKING SPOILED         who creates it                   find it
 *	STALE     LIVE                   its memory changed               -ESTALE
 *	ORPHANED  LIVE STALE             its process ended                -ENOENT
 *	ENDED     LIVE STALE ORPHANED    destroy, close, or use, under    -ENOENT
 *	                                 owner->lock: leaves owner->regions
 *	REVOKED   ENDED                  destroy, under map_lock          -ENOENT
 *
 * What a move makes due, who made it does: once, for it succeeds once. Out of LIVE: the
 * table's user goes. To ENDED: the table's reference, too. To REVOKED: the keepers' user.
 * VMAs show the region while it is LIVE, or LINGERs and is not REVOKED.
 *
 * A region that is found often gets @hot, a per-CPU count in front of @users,
 * so that many readers do not take turns at one cache line. One-shot regions
 * never do, so their end needs no RCU grace period.
 */

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

#include "pages.h"

struct ock_owner;
struct ock_hot;
struct ock_watch;

enum ock_region_state {
	OCK_REGION_NONE, /* of no region: a move that was refused */
	OCK_REGION_MAKING,
	OCK_REGION_SPOILED,
	OCK_REGION_LIVE,
	OCK_REGION_STALE,
	OCK_REGION_ORPHANED,
	OCK_REGION_ENDED,
	OCK_REGION_REVOKED,
	OCK_REGION_STATES,
};

/* The flags are those of the ABI: ONECOPY_REGION_*. */
struct ock_region {
	u64 cookie;
	struct rhash_head hash;
	u32 flags;
	atomic_t state; /* enum ock_region_state */
	kuid_t uid;	/* whose it is: owner->uid */
	struct ock_pages pages;
	struct ock_watch *watch;

	refcount_t users ____cacheline_aligned_in_smp;
	unsigned int found; /* lookups so far, roughly */
	struct ock_hot __rcu *hot;

	refcount_t refs ____cacheline_aligned_in_smp;
	struct ock_owner *owner; /* compared; followed only under its rules, see table.c */
	struct list_head node;	 /* of owner->regions, under owner->lock */
	struct ock_user *user;

	/* Mapping, map.c's. Who fills in page table entries holds map_lock for reading. */
	struct rw_semaphore map_lock;
	unsigned int keepers; /* VMAs of a LINGER region: together one user */
	bool mapped;	      /* was ever mapped: there may be entries to revoke */
	u64 map_page;	      /* offset in the address space of all mappings; 0: none yet */
	u32 map_nr;	      /* pages there */

	struct work_struct work; /* what leaving LIVE makes due, where notifiers cannot do it */
	struct rcu_head rcu;
};

/*
 * To @to, if it is in a state that leads there, which is the value; else OCK_REGION_NONE, and
 * nothing has changed. Fully ordered if it has. Any context.
 */
enum ock_region_state ock_region_move(struct ock_region *region, enum ock_region_state to);

static inline enum ock_region_state ock_region_state(const struct ock_region *region)
{
	return atomic_read(&region->state);
}

/* What lookups get: 0, -ESTALE, -ENOENT. */
static inline int ock_region_refusal(const struct ock_region *region)
{
	switch (ock_region_state(region)) {
	case OCK_REGION_LIVE:
		return 0;
	case OCK_REGION_STALE:
		return -ESTALE;
	default:
		return -ENOENT;
	}
}

/* Whether VMAs show it. */
bool ock_region_shown(const struct ock_region *region);

/* Another user; the caller has one, or the state says that there is. */
void ock_region_add_user(struct ock_region *region);

/* Gives a user back. May sleep. */
void ock_region_put_user(struct ock_region *region);

/* The struct only, not the pages; the caller has it already. */
void ock_region_ref(struct ock_region *region);
void ock_region_unref(struct ock_region *region);

#endif
