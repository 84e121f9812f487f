// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life of a region.
 *
 * The states are in region.h. Whoever moves it to ENDED, and takes it out of owner->regions
 * with that, destroys it, and so exactly one does: REGION_DESTROY, the lookup that uses
 * up a single-use one, or close. From then on, in this order:
 *
 *  1. it leaves the table: lookups that begin later do not find it;
 *  2. its watch ends, and what the watch has set off: no notifier knows it any more;
 *  3. its mappings are revoked (see map.c);
 *  4. @hot is closed (see hot.h): lookups that found it before cannot hold it through that;
 *  5. the table's user goes. The last user unpins.
 *
 * A region that becomes stale passes 3 to 5 early, from a work item, and stays in
 * the table as a shell that says so; who destroys it waits for that (2).
 *
 * A lookup runs under rcu_read_lock() from the table to the count, and the struct
 * is freed by RCU, so it never touches freed memory; it fails if the count is
 * 0 already. It may well succeed on a region just destroyed while a copy still
 * runs: it began before, and the pages are there.
 *
 * region->owner may be followed while the region is in owner->regions, or under
 * rcu_read_lock() after it was found in the table: close frees owner by RCU, after
 * it took all regions out.
 */
#include "table.h"

#include <linux/cred.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>

#include <onecopy.h>

#include "hot.h"
#include "map.h"
#include "notify.h"
#include "stats.h"
#include "trace.h"
#include "user_memory.h"

/* Lookups after which a region gets a per-CPU count. */
#define OCK_HOT 64

static struct rhashtable table;
static hsiphash_key_t table_key __ro_after_init;
static struct workqueue_struct *workqueue;

/*
 * Cookies are random, but who makes regions may keep those that it likes. With a key that
 * nobody knows it cannot tell which of them would lie in one chain. The seed is another
 * when chains have become long all the same.
 */
static u32 ock_cookie_hash(const void *data, u32 len, u32 seed)
{
	u64 cookie = *(const u64 *)data;

	return hsiphash_3u32(cookie >> 32, cookie, seed, &table_key);
}

static const struct rhashtable_params table_params = {
	.key_len = sizeof_field(struct ock_region, cookie),
	.key_offset = offsetof(struct ock_region, cookie),
	.head_offset = offsetof(struct ock_region, hash),
	.hashfn = ock_cookie_hash,
	.automatic_shrinking = true,
};

int ock_region_init(void)
{
	int err;

	get_random_bytes(&table_key, sizeof(table_key));
	workqueue = alloc_workqueue("onecopy", WQ_UNBOUND, 0);
	if (!workqueue)
		return -ENOMEM;
	err = ock_hot_init();
	if (err)
		goto destroy;
	err = rhashtable_init(&table, &table_params);
	if (err)
		goto exit;
	return 0;
exit:
	ock_hot_exit();
destroy:
	destroy_workqueue(workqueue);
	return err;
}

void ock_region_exit(void)
{
	ock_hot_exit();
	destroy_workqueue(workqueue);
	rhashtable_destroy(&table);
}

/* The table needs the pages no more: by who moved it out of LIVE. */
static void ock_region_drop(struct ock_region *region)
{
	ock_hot_close(region);
	ock_region_put_user(region);
}

static void ock_region_unwatch(struct ock_region *region)
{
	if (!region->watch)
		return;
	ock_watch_destroy(region->watch);
	flush_work(&region->work);
}

/* The caller moved it from @was to ENDED. */
static void ock_region_finish(struct ock_region *region, enum ock_region_state was, bool revoke)
{
	trace_onecopy_region_destroy(region->cookie);
	rhashtable_remove_fast(&table, &region->hash, table_params);
	ock_region_unwatch(region);
	if (revoke)
		ock_map_revoke(region);
	if (was == OCK_REGION_LIVE)
		ock_region_drop(region);
	ock_stat_inc(OCK_STAT_DESTROYED);
	ock_region_unref(region);
}

static void ock_region_stale_work(struct work_struct *work)
{
	struct ock_region *region = container_of(work, struct ock_region, work);

	if (!(region->flags & ONECOPY_REGION_LINGER))
		ock_map_revoke(region);
	ock_region_drop(region);
}

/*
 * From a notifier, any context: lookups are refused from now on; soon mappings are
 * revoked, unless they may LINGER, and the pages are given back when nobody uses them any
 * more. A region in the making is only marked: its creator sees to it. (If that
 * sets it back just now, it waits for this change and pins after it.)
 */
static void ock_region_changed(struct ock_region *region, int why)
{
	enum ock_region_state was;

	if (ock_region_move(region, OCK_REGION_SPOILED))
		return;
	/* The end of a process is followed by unmapping: ENOENT is the last word. */
	was = ock_region_move(region, why == -ENOENT ? OCK_REGION_ORPHANED : OCK_REGION_STALE);
	if (was != OCK_REGION_LIVE)
		return;
	ock_stat_inc(OCK_STAT_STALE);
	trace_onecopy_region_stale(region->cookie);
	/* Revoking and unpinning take locks under which notifiers are called. The
	 * region waits for this work before it goes. */
	queue_work(workqueue, &region->work);
}

/* From here on it can become stale in full; what came before is made up for. */
static void ock_region_pinned(struct ock_region *region)
{
	if (ock_region_move(region, OCK_REGION_LIVE) == OCK_REGION_SPOILED)
		ock_region_changed(region, -ESTALE);
}

/* Whoever is told the state it was in destroys it. Under RCU, or owner is the caller's. */
static enum ock_region_state ock_region_claim(struct ock_region *region, struct ock_owner *owner)
{
	enum ock_region_state was;

	spin_lock(&owner->lock);
	was = ock_region_move(region, OCK_REGION_ENDED);
	if (was)
		list_del(&region->node);
	spin_unlock(&owner->lock);
	return was;
}

/* Publishes; from here on others may find and destroy it. */
static int ock_region_insert(struct ock_owner *owner, struct ock_region *region, u64 *cookie)
{
	u64 random;
	int err;

	spin_lock(&owner->lock);
	list_add(&region->node, &owner->regions);
	spin_unlock(&owner->lock);
	do {
		do
			random = get_random_u64();
		while (!random);
		region->cookie = random;
		trace_onecopy_region_create(random, region->flags, region->pages.length,
					    region->pages.nr_runs);
		err = rhashtable_lookup_insert_fast(&table, &region->hash, table_params);
	} while (err == -EEXIST);
	if (!err) {
		*cookie = random;
		return 0;
	}
	return -ENOMEM;
}

/*
 * Pinning may itself put other pages behind the addresses: copies on write, memory
 * instead of the page of zeroes, pages that have to move before they can stay. The watch
 * takes that for the owner's doing. Once more, then: now there is nothing to replace.
 */
#define OCK_PIN_TRIES 3

static int ock_region_pin(struct ock_region *region, const struct ock_vec *vec, u32 nr,
			  const struct ock_limits *limits)
{
	for (int try = 1;; try++) {
		int err = ock_pages_pin(&region->pages, &ock_user_memory, vec, nr,
					region->flags & ONECOPY_REGION_WRITE, limits);

		if (err || ock_region_state(region) == OCK_REGION_MAKING || try == OCK_PIN_TRIES)
			return err;
		ock_pages_unpin(&region->pages);
		ock_region_move(region, OCK_REGION_MAKING);
		ock_watch_renew(region->watch);
	}
}

static int ock_region_try(struct ock_owner *owner, const struct ock_vec *vec, u32 nr, u32 flags,
			  u64 *cookie, u32 *slot, u64 *generation)
{
	struct ock_region *region;
	int err;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return -ENOMEM;
	atomic_set(&region->state, OCK_REGION_MAKING);
	region->flags = flags;
	region->uid = owner->uid;
	region->owner = owner;
	region->user = owner->limits.user;
	refcount_set(&region->users, 1);
	refcount_set(&region->refs, 2);
	init_rwsem(&region->map_lock);
	INIT_WORK(&region->work, ock_region_stale_work);

	err = ock_user_take(&owner->limits, OCK_REGIONS);
	if (err)
		goto free;
	/* First the watch, then the pages: a change in between is seen. */
	if (flags & ONECOPY_REGION_TRACK) {
		err = ock_watch_create(region, ock_region_changed, &owner->generations, vec, nr,
				       &region->watch);
		if (err)
			goto give;
	}
	err = ock_region_pin(region, vec, nr, &owner->limits);
	if (err)
		goto unwatch;
	if (region->watch)
		ock_watch_word(region->watch, slot, generation);
	/* Counted before others can find the region and destroy it. */
	ock_stat_inc(OCK_LIVE_REGIONS);
	ock_stat_inc(OCK_STAT_CREATED);
	ock_region_pinned(region);
	err = ock_region_insert(owner, region, cookie);
	if (err)
		ock_region_finish(region, ock_region_claim(region, owner), false);
	return err;
unwatch:
	ock_watch_destroy(region->watch);
give:
	ock_user_give(region->user, OCK_REGIONS);
free:
	kfree(region);
	return err;
}

int ock_region_create(struct ock_owner *owner, const struct ock_vec *vec, u32 nr, u32 flags,
		      u64 *cookie, u32 *slot, u64 *generation)
{
	bool owes = ock_user_owes(owner->limits.user);
	int err = ock_region_try(owner, vec, nr, flags, cookie, slot, generation);

	/* What stands in the way may have been destroyed already. */
	if (owes && ock_user_settle(owner->limits.user, err))
		err = ock_region_try(owner, vec, nr, flags, cookie, slot, generation);
	return err;
}

int ock_region_destroy(struct ock_owner *owner, u64 cookie)
{
	struct ock_region *region;
	enum ock_region_state was = OCK_REGION_NONE;

	rcu_read_lock();
	region = rhashtable_lookup(&table, &cookie, table_params);
	if (region && region->owner == owner)
		was = ock_region_claim(region, owner);
	rcu_read_unlock();
	if (!was)
		return -ENOENT;
	ock_region_finish(region, was, true);
	return 0;
}

void ock_regions_close(struct ock_owner *owner)
{
	for (;;) {
		struct ock_region *region;
		enum ock_region_state was;

		spin_lock(&owner->lock);
		region = list_first_entry_or_null(&owner->regions, struct ock_region, node);
		if (region) {
			was = ock_region_move(region, OCK_REGION_ENDED);
			list_del(&region->node);
		}
		spin_unlock(&owner->lock);
		if (!region)
			break;
		ock_region_finish(region, was, !(region->flags & ONECOPY_REGION_LINGER));
		cond_resched();
	}
}

/* Takes a user of a region found under RCU. */
static bool ock_region_hold(struct ock_region *region, struct ock_ref *ref)
{
	struct ock_hot *hot = ock_hot_get(region);

	if (!hot && !refcount_inc_not_zero(&region->users))
		return false;
	*ref = (struct ock_ref){.region = region, .hot = hot};
	return true;
}

static int ock_region_check(const struct ock_region *region, u32 need)
{
	if (!(region->flags & ONECOPY_REGION_ANY_USER) && !uid_eq(region->uid, current_uid()))
		return -EPERM;
	if ((region->flags & need) != need)
		return -EACCES;
	return ock_region_refusal(region);
}

/* @use: SINGLE_USE regions are used up: the table's user becomes the caller's. */
static int ock_region_find(u64 cookie, u32 need, bool use, struct ock_ref *ref)
{
	struct ock_region *region;
	enum ock_region_state was = OCK_REGION_NONE;
	int err = -ENOENT;

	rcu_read_lock();
	region = rhashtable_lookup(&table, &cookie, table_params);
	if (!region)
		goto out;
	err = ock_region_check(region, need);
	if (err)
		goto out;
	if (use && region->flags & ONECOPY_REGION_SINGLE_USE) {
		was = ock_region_claim(region, region->owner);
		/* If it was LIVE the table's user is ours then: holding cannot fail. */
		if (!was || !ock_region_hold(region, ref))
			err = -ENOENT;
	} else if (!ock_region_hold(region, ref)) {
		err = ock_region_refusal(region) ?: -ENOENT;
	}
out:
	rcu_read_unlock();
	if (was)
		ock_region_finish(region, was, true);
	if (err)
		ock_stat_inc(OCK_STAT_REFUSED);
	return err;
}

/* Lookups in a row make a region hot; the count is racy, and may be. */
static void ock_region_warm(struct ock_region *region)
{
	unsigned int found = READ_ONCE(region->found);

	if (found > OCK_HOT)
		return;
	WRITE_ONCE(region->found, found + 1);
	if (found == OCK_HOT)
		ock_hot_open(region);
}

int ock_region_get(u64 cookie, u32 need, struct ock_ref *ref)
{
	int err = ock_region_find(cookie, need, true, ref);

	if (!err && !ref->hot)
		ock_region_warm(ref->region);
	return err;
}

int ock_region_look(u64 cookie, u32 need, struct ock_ref *ref)
{
	return ock_region_find(cookie, need, false, ref);
}

static void ock_region_release(struct ock_region *region, struct ock_hot *hot)
{
	if (hot)
		ock_hot_put(hot);
	else
		ock_region_put_user(region);
}

void ock_region_pause(struct ock_ref *ref)
{
	struct ock_region *region = ref->region;

	if (!region || region->flags & ONECOPY_REGION_SINGLE_USE)
		return;
	ock_region_ref(region);
	ref->paused = true;
	ock_region_release(region, ref->hot);
}

int ock_region_resume(struct ock_ref *ref)
{
	struct ock_region *region = ref->region;
	bool held;
	int err;

	if (!region || !ref->paused)
		return 0;
	err = ock_region_refusal(region);
	*ref = (struct ock_ref){};
	if (!err) {
		rcu_read_lock();
		held = ock_region_hold(region, ref);
		rcu_read_unlock();
		if (!held)
			err = ock_region_refusal(region) ?: -ENOENT;
	}
	ock_region_unref(region);
	return err;
}

void ock_region_put(struct ock_ref *ref)
{
	struct ock_region *region = ref->region;

	if (!region)
		return;
	ref->region = NULL;
	if (ref->paused)
		ock_region_unref(region);
	else
		ock_region_release(region, ref->hot);
}
