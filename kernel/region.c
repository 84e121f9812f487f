// SPDX-License-Identifier: GPL-2.0-only
/* The table of moves, and what the last user and the last reference set free. */
#include "region.h"

#include <linux/bits.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include <onecopy.h>

#include "pin.h"
#include "stats.h"

enum ock_region_state ock_region_move(struct ock_region *region, enum ock_region_state to)
{
	/* The table of region.h. */
	static const u8 from[OCK_REGION_STATES] = {
		[OCK_REGION_MAKING] = BIT(OCK_REGION_SPOILED),
		[OCK_REGION_SPOILED] = BIT(OCK_REGION_MAKING),
		[OCK_REGION_LIVE] = BIT(OCK_REGION_MAKING) | BIT(OCK_REGION_SPOILED),
		[OCK_REGION_STALE] = BIT(OCK_REGION_LIVE),
		[OCK_REGION_ORPHANED] = BIT(OCK_REGION_LIVE) | BIT(OCK_REGION_STALE),
		[OCK_REGION_ENDED] =
			BIT(OCK_REGION_LIVE) | BIT(OCK_REGION_STALE) | BIT(OCK_REGION_ORPHANED),
		[OCK_REGION_REVOKED] = BIT(OCK_REGION_ENDED),
	};
	int state = atomic_read(&region->state);

	do {
		if (!(from[to] & BIT(state)))
			return OCK_REGION_NONE;
	} while (!atomic_try_cmpxchg(&region->state, &state, to));
	return state;
}

bool ock_region_shown(const struct ock_region *region)
{
	enum ock_region_state state = ock_region_state(region);

	if (region->flags & ONECOPY_REGION_LINGER)
		return state != OCK_REGION_REVOKED;
	return state == OCK_REGION_LIVE;
}

void ock_region_ref(struct ock_region *region)
{
	refcount_inc(&region->refs);
}

void ock_region_unref(struct ock_region *region)
{
	if (refcount_dec_and_test(&region->refs))
		kfree_rcu(region, rcu);
}

void ock_region_add_user(struct ock_region *region)
{
	refcount_inc(&region->users);
}

void ock_region_put_user(struct ock_region *region)
{
	if (!refcount_dec_and_test(&region->users))
		return;
	ock_pages_unpin(&region->pages);
	ock_user_give(region->user, OCK_REGIONS);
	ock_stat_dec(OCK_LIVE_REGIONS);
	ock_region_unref(region);
}
