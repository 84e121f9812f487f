// SPDX-License-Identifier: BSD-3-Clause
/* Looking a cookie up in its owner's table, and holding what it names. */
#include "region/region_ref.h"
#include "segment/alive.h"

#include <errno.h>
#include <sched.h>

#include "base/clock.h"

#define ALIVE_MS 100 /* how stale the news of an owner's life may be */

static _Atomic uint64_t *take_hazard(const struct oc_node *node, oc_cookie cookie)
{
	struct oc_region_area *area = oc_region_area(node, node->rank);

	for (;;) {
		for (uint64_t i = 0; i < OC_REGION_HAZARDS; i++) {
			uint64_t top = atomic_load(&area->hazard_top), none = 0;

			/* The owner must not miss a slot: raise the top first. */
			while (top <= i &&
			       !atomic_compare_exchange_weak(&area->hazard_top, &top, i + 1))
				;
			if (atomic_compare_exchange_strong(&area->hazard[i], &none, cookie))
				return &area->hazard[i];
		}
		/* More copying threads than slots: somebody will be done soon. */
		sched_yield();
	}
}

/*
 * A copy out of the shared heap of a dead process would go on for ever, since
 * the memory outlives it. So ask now and then, at the price of reading a clock.
 */
static bool owner_alive(struct oc_node *node, uint32_t owner)
{
	_Atomic uint64_t *seen = &node->peers[owner].seen_ms;
	uint64_t now;

	if (atomic_load_explicit(&node->ranks[owner].state, memory_order_acquire) == OC_RANK_LEFT)
		return false;
	if (owner == node->rank)
		return true;
	now = oc_clock_coarse_ms();
	if (now - atomic_load_explicit(seen, memory_order_relaxed) < ALIVE_MS)
		return true;
	if (!oc_node_peer_alive(node, owner))
		return false;
	atomic_store_explicit(seen, now, memory_order_relaxed);
	return true;
}

void oc_region_read(const struct oc_node *node, struct oc_region_ref *ref)
{
	const struct oc_region_slot *slot = ref->slot;
	struct oc_region_area *area = oc_region_area(node, ref->owner);
	uint32_t first = slot->first;

	ref->flags = slot->flags;
	ref->bytes = slot->bytes;
	ref->heap = slot->heap;
	ref->kernel = slot->kernel;
	ref->nsegs = slot->nsegs;
	ref->segs = &slot->one;
	if (ref->nsegs <= 1)
		return;
	/* Believe a peer's table only as far as it stays inside its area. */
	if (first > OC_REGION_SEGS || ref->nsegs > OC_REGION_SEGS - first)
		ref->nsegs = 0;
	else
		ref->segs = &area->seg[first];
}

int oc_region_acquire(struct oc_node *node, oc_cookie cookie, uint32_t need,
		      struct oc_region_ref *ref)
{
	int err;

	ref->cookie = cookie;
	ref->owner = oc_cookie_owner(node, cookie);
	if (!cookie || ref->owner >= node->nranks)
		return -EINVAL;
	if (!owner_alive(node, ref->owner))
		return -EPIPE;
	ref->slot = &oc_region_area(node, ref->owner)->slot[oc_cookie_slot(node, cookie)];
	err = -EINVAL;
	/* Look before taking hold: who tries a void cookie over and over must
	 * not keep the owner waiting in drain(). */
	if (atomic_load(&ref->slot->cookie) != cookie)
		return owner_alive(node, ref->owner) ? err : -EPIPE;
	oc_window_begin(&ref->window, node);
	ref->hazard = take_hazard(node, cookie);
	if (atomic_load(&ref->slot->cookie) != cookie) {
		/* An owner that leaves says so before it voids its cookies. */
		if (!owner_alive(node, ref->owner))
			err = -EPIPE;
		goto release;
	}
	oc_region_read(node, ref);
	err = -EACCES;
	if ((ref->flags & need) != need)
		goto release;
	return 0;

release:
	oc_region_release(ref);
	return err;
}

int oc_region_consume(struct oc_region_ref *ref)
{
	uint64_t expected = ref->cookie;

	if (!(ref->flags & OC_REGION_SINGLEUSE))
		return 0;
	return atomic_compare_exchange_strong(&ref->slot->cookie, &expected, 0) ? 0 : -EINVAL;
}

void oc_region_release(struct oc_region_ref *ref)
{
	atomic_store(ref->hazard, 0);
	oc_window_end(&ref->window);
}
