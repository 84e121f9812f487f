/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_REGION_REF_H
#define OC_REGION_REF_H

/*
 * Regions as peers see them. Each rank keeps the table of its own in its area
 * of the control segment, where peers look cookies up without asking it.
 *
 * Who copies says so first: it puts the cookie into one of its hazard slots,
 * then makes sure that the cookie is still valid (Michael, "Hazard pointers:
 * safe memory reclamation for lock-free objects", 2004). The owner destroys in
 * the opposite order: it voids the cookie, then waits until no hazard slot of a
 * living rank holds it. So each reference is accounted to the rank that holds
 * it, and one that died holds nothing.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <onecopy/onecopy.h>

#include "access/target.h"
#include "access/window.h"
#include "segment/area.h"
#include "segment/node.h"

#define OC_REGION_SLOTS	  4096
#define OC_REGION_SEGS	  32768 /* of all regions with more than one segment */
#define OC_REGION_HAZARDS 127

/*
 * A cookie, before the node's random mask: owner, slot, and 42 random bits, so
 * that one that is wrong or outdated is refused. Peers could read it here.
 */
#define OC_COOKIE_OWNER_BITS 10
#define OC_COOKIE_SLOT_BITS  12
_Static_assert(OC_MAX_RANKS == 1 << OC_COOKIE_OWNER_BITS, "an owner fits");
_Static_assert(OC_REGION_SLOTS == 1 << OC_COOKIE_SLOT_BITS, "a slot fits");

struct oc_region_slot {
	_Alignas(OC_CACHELINE) _Atomic uint64_t cookie; /* 0: none, or used up */
	uint32_t flags;
	uint32_t nsegs;
	uint64_t bytes;
	uint32_t first;	  /* of the segments, when there are several */
	uint32_t heap;	  /* all of it lies in the owner's arena */
	struct iovec one; /* the segment, when there is only one */
	uint64_t kernel;  /* the same as a kernel region: its cookie, or 0 */
};

/* Written by its owner; hazards by the owner's copying threads. Addresses are
 * the owner's, those in its arena less arena_base are offsets. */
struct oc_region_area {
	_Atomic uint64_t hazard_top; /* hazards from here on were never used */
	_Atomic uint64_t hazard[OC_REGION_HAZARDS];
	struct oc_region_slot slot[OC_REGION_SLOTS];
	struct iovec seg[OC_REGION_SEGS];
};
_Static_assert(sizeof(struct oc_region_area) <= OC_AREA_REGION_BYTES, "fits its part of the area");

/* A region somebody is copying. */
struct oc_region_ref {
	struct oc_target target; /* its segments are in the control segment */
	_Atomic uint64_t *hazard;
	struct oc_region_slot *slot;
	struct oc_window_use window; /* of the owner's arena */
};

static inline struct oc_region_area *oc_region_area(const struct oc_node *node, uint32_t rank)
{
	return (struct oc_region_area *)(oc_node_area(node, rank) + OC_AREA_REGION_OFF);
}

static inline uint32_t oc_cookie_owner(const struct oc_node *node, oc_cookie cookie)
{
	return (uint32_t)((cookie ^ node->segment->cookie_mask) & (OC_MAX_RANKS - 1));
}

static inline uint32_t oc_cookie_slot(const struct oc_node *node, oc_cookie cookie)
{
	return (uint32_t)((cookie ^ node->segment->cookie_mask) >> OC_COOKIE_OWNER_BITS &
			  (OC_REGION_SLOTS - 1));
}

/*
 * Looks a cookie up and keeps the region from going away until
 * oc_region_release(). @need: OC_REGION_READ, _WRITE. -EINVAL unknown, -EACCES
 * protection, -EPIPE the owner is gone. Any thread.
 */
int oc_region_acquire(struct oc_node *node, oc_cookie cookie, uint32_t need,
		      struct oc_region_ref *ref);

/* Uses up a region for single use: -EINVAL when somebody else was first. */
int oc_region_consume(struct oc_region_ref *ref);
void oc_region_release(struct oc_region_ref *ref);

/* Fills in, beside cookie and owner, what the slot says, which must be kept from changing. */
void oc_region_read(const struct oc_node *node, const struct oc_region_slot *slot,
		    struct oc_target *target);

#endif
