/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PLAN_CACHE_H
#define OC_PLAN_CACHE_H

/*
 * Plans that have been made, by what they were made for. Bounded in bytes, not in number, for a
 * plan is longer the more ranks there are: what was not asked for longest goes first. One thread
 * at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

/* Enough for a Reduce from each of 64 roots in turn, whose plans are the longest. */
#define OC_PLAN_CACHE_BYTES ((size_t)1 << 20)

#define OC_PLAN_CACHE_BUCKETS 64
#define OC_PLAN_KEY_ARRAYS    4

/* All that a generator looks at. Padding in it is zero. */
struct oc_plan_key {
	struct oc_shape shape;
	uint32_t narrays;
	const uint64_t *array[OC_PLAN_KEY_ARRAYS]; /* of shape.size numbers each */
};

/* All-zero: empty. */
struct oc_plan_cache {
	struct oc_plan_entry *bucket[OC_PLAN_CACHE_BUCKETS];
	struct oc_plan_entry *newest;
	struct oc_plan_entry *oldest;
	size_t bytes;
};

/*
 * The plan for @key, from @make unless it is there; NULL when that has none or without memory.
 * It is the cache's, until the next call unless it is held. The arrays may go after the call.
 */
const struct oc_plan *oc_plan_cache_get(struct oc_plan_cache *cache, const struct oc_plan_key *key,
					struct oc_plan *(*make)(const struct oc_plan_key *key));

/* Keeps the plan got last, once for each call, for an operation that goes on; what is returned
 * says which it was. One must have been got. Plans held may exceed the bound. */
struct oc_plan_entry *oc_plan_cache_hold(struct oc_plan_cache *cache);
void oc_plan_cache_release(struct oc_plan_cache *cache, struct oc_plan_entry *entry);

/* None is held. */
void oc_plan_cache_clear(struct oc_plan_cache *cache);

#endif
