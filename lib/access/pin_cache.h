/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PIN_CACHE_H
#define OC_PIN_CACHE_H

/*
 * This process's own memory as kernel regions: a bounded cache. A buffer is
 * pinned when it is first used and stays so while it is used again, copied or
 * mapped by any number of peers (the idea of LiMIC2-overlap, Chakraborty and
 * others). Whether it still is the same memory is the kernel's word, read from
 * the region's generation; where the kernel cannot say (no MMU notifiers), a
 * region lasts one operation.
 *
 * The regions are whole pages. Peers of the job, who learn of them from the
 * table below, may also read (and, where a buffer was received into, write)
 * what else lies in the first and the last.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/area.h"
#include "segment/node.h"

#define OC_PIN_CACHE_PLACES 256

/* A region as peers see it: written by its owner before it names the place to
 * anybody, and not changed while they may look. */
struct oc_pin_cache_entry {
	_Atomic uint64_t cookie;
	_Atomic uint64_t base; /* in the owner's address space */
	_Atomic uint64_t bytes;
};

struct oc_pin_cache_area {
	struct oc_pin_cache_entry entry[OC_PIN_CACHE_PLACES];
};
_Static_assert(sizeof(struct oc_pin_cache_area) <= OC_AREA_PIN_CACHE_BYTES,
	       "fits its part of the area");

static inline struct oc_pin_cache_area *oc_pin_cache_area(const struct oc_node *node, uint32_t rank)
{
	return (struct oc_pin_cache_area *)(oc_node_area(node, rank) + OC_AREA_PIN_CACHE_OFF);
}

struct oc_pin_cache;

/* This rank's cache. The device is open; destroying revokes what peers have
 * mapped. */
int oc_pin_cache_create(struct oc_node *node);
void oc_pin_cache_destroy(struct oc_node *node);

/*
 * Holds a region around [p, p + len), readable, with @write writable too: its
 * place in the table. @again: it was there already. -EOPNOTSUPP this memory
 * cannot be pinned, or not as much of it; -EAGAIN not beside the regions that
 * are held or come again more often. Any thread.
 */
int oc_pin_cache_get(struct oc_node *node, const void *p, size_t len, bool write, uint32_t *place,
		     bool *again);

/* The same, but only for memory that has been asked for before: a buffer that
 * will not come again is not worth the pinning. -EAGAIN for the others. */
int oc_pin_cache_get_reused(struct oc_node *node, const void *p, size_t len, bool write,
			    uint32_t *place);

/* A peer could not get at the held region: does not use it any more once it is
 * free, nor this memory for a good while. */
void oc_pin_cache_blame(struct oc_node *node, uint32_t place);

/* Ends the hold: no peer is at it any more, but for one that uses another hold. */
void oc_pin_cache_put(struct oc_node *node, uint32_t place);

#endif
