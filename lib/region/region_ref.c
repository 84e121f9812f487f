// SPDX-License-Identifier: BSD-3-Clause
/* Looking a cookie up in its owner's table, and holding what it names. */
#include "region/region_ref.h"
#include "segment/alive.h"

#include <errno.h>
#include <sched.h>

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

void oc_region_read(const struct oc_node *node, const struct oc_region_slot *slot,
		    struct oc_target *target)
{
	struct oc_region_area *area = oc_region_area(node, target->owner);
	uint32_t first = slot->first;

	target->flags = slot->flags;
	target->bytes = slot->bytes;
	target->heap = slot->heap;
	target->kernel = slot->kernel;
	target->nsegs = slot->nsegs;
	target->segs = &slot->one;
	if (target->nsegs <= 1)
		return;
	/* Believe a peer's table only as far as it stays inside its area. */
	if (first > OC_REGION_SEGS || target->nsegs > OC_REGION_SEGS - first)
		target->nsegs = 0;
	else
		target->segs = &area->seg[first];
}

int oc_region_acquire(struct oc_node *node, oc_cookie cookie, uint32_t need,
		      struct oc_region_ref *ref)
{
	uint32_t owner = oc_cookie_owner(node, cookie);
	int err;

	if (!cookie || owner >= node->nranks)
		return -EINVAL;
	if (!oc_node_peer_lived(node, owner, ALIVE_MS))
		return -EPIPE;
	ref->target = (struct oc_target){
		.owner = owner, .mech = UINT32_MAX, .cookie = cookie, .window = &ref->window};
	ref->slot = &oc_region_area(node, owner)->slot[oc_cookie_slot(node, cookie)];
	err = -EINVAL;
	/* Look before taking hold: who tries a void cookie over and over must
	 * not keep the owner waiting in drain(). */
	if (atomic_load(&ref->slot->cookie) != cookie)
		return oc_node_peer_lived(node, owner, ALIVE_MS) ? err : -EPIPE;
	oc_window_begin(&ref->window, node);
	ref->hazard = take_hazard(node, cookie);
	if (atomic_load(&ref->slot->cookie) != cookie) {
		/* An owner that leaves says so before it voids its cookies. */
		if (!oc_node_peer_lived(node, owner, ALIVE_MS))
			err = -EPIPE;
		goto release;
	}
	oc_region_read(node, ref->slot, &ref->target);
	err = -EACCES;
	if ((ref->target.flags & need) != need)
		goto release;
	return 0;

release:
	oc_region_release(ref);
	return err;
}

int oc_region_consume(struct oc_region_ref *ref)
{
	uint64_t expected = ref->target.cookie;

	if (!(ref->target.flags & OC_REGION_SINGLEUSE))
		return 0;
	return atomic_compare_exchange_strong(&ref->slot->cookie, &expected, 0) ? 0 : -EINVAL;
}

void oc_region_release(struct oc_region_ref *ref)
{
	atomic_store(ref->hazard, 0);
	oc_window_end(&ref->window);
}
