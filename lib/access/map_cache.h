/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MAP_CACHE_H
#define OC_MAP_CACHE_H

/*
 * Peers' kernel regions mapped into this process: a bounded cache, keyed by the
 * region's cookie and the piece of it that is shown. A mapping costs a system
 * call and an entry a page to make, and translations to throw away, so it is
 * made for regions that come again and kept until others need its place. Never
 * more than OC_MAP_CACHE_MAX mappings at once, whatever a program does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OC_MAP_CACHE_MAX 512

struct oc_map_cache;

/*
 * Holds the mapping of [offset, offset + length) of a region, made if it is
 * missing; *@at is its first byte. Nobody unmaps it before oc_map_cache_put(). An
 * error of oc_kdev_map(), -ENOSPC when all places are held. Any thread.
 */
int oc_map_cache_get(uint64_t cookie, uint64_t offset, size_t length, bool write,
		     struct oc_map_cache **map, char **at);
void oc_map_cache_put(struct oc_map_cache *map);

/* Whether this process has asked before, mapped or not, among the last few
 * hundred regions it has met. */
bool oc_map_cache_seen(uint64_t cookie);

/* Unmaps everything that is not held: before the device is closed. */
void oc_map_cache_drop(void);

#endif
