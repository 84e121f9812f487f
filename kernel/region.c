// SPDX-License-Identifier: GPL-2.0-only
#include "region.h"

#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "pin.h"
#include "stats.h"

void ock_region_ref(struct ock_region *region)
{
	refcount_inc(&region->refs);
}

void ock_region_unref(struct ock_region *region)
{
	if (refcount_dec_and_test(&region->refs))
		kfree_rcu(region, rcu);
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
