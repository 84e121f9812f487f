// SPDX-License-Identifier: BSD-3-Clause
#include "plan/cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct oc_plan_entry {
	struct oc_plan_entry *chain; /* in the bucket */
	struct oc_plan_entry *newer;
	struct oc_plan_entry *older;
	struct oc_plan *plan; /* has the shape */
	uint64_t hash;
	size_t bytes; /* of it all */
	uint32_t narrays;
	uint32_t holds;
	uint64_t numbers[];
};

static uint64_t mix(uint64_t hash, const void *words, size_t bytes)
{
	for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, (const char *)words + at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash;
}

static size_t array_bytes(const struct oc_plan_key *key)
{
	return key->shape.size * sizeof(uint64_t);
}

static uint64_t hash_of(const struct oc_plan_key *key)
{
	uint64_t hash = mix(key->narrays, &key->shape, sizeof(key->shape));

	_Static_assert(sizeof(key->shape) % sizeof(uint64_t) == 0, "all of it counts");
	for (uint32_t i = 0; i < key->narrays; i++)
		hash = mix(hash, key->array[i], array_bytes(key));
	return hash;
}

static bool is_for(const struct oc_plan_entry *entry, const struct oc_plan_key *key)
{
	if (entry->narrays != key->narrays ||
	    memcmp(&entry->plan->shape, &key->shape, sizeof(key->shape)))
		return false;
	for (uint32_t i = 0; i < key->narrays; i++)
		if (memcmp(entry->numbers + (size_t)i * key->shape.size, key->array[i],
			   array_bytes(key)))
			return false;
	return true;
}

static struct oc_plan_entry **bucket_of(struct oc_plan_cache *cache, uint64_t hash)
{
	return &cache->bucket[hash % OC_PLAN_CACHE_BUCKETS];
}

/* Takes an entry out of the order of use. */
static void unlink_entry(struct oc_plan_cache *cache, struct oc_plan_entry *entry)
{
	*(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
	*(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void link_newest(struct oc_plan_cache *cache, struct oc_plan_entry *entry)
{
	entry->newer = NULL;
	entry->older = cache->newest;
	*(entry->older ? &entry->older->newer : &cache->oldest) = entry;
	cache->newest = entry;
}

static void drop(struct oc_plan_cache *cache, struct oc_plan_entry *entry)
{
	struct oc_plan_entry **at = bucket_of(cache, entry->hash);

	while (*at != entry)
		at = &(*at)->chain;
	*at = entry->chain;
	unlink_entry(cache, entry);
	cache->bytes -= entry->bytes;
	free(entry->plan);
	free(entry);
}

/* Down to the bound, the oldest first. Whatever its own length, the newest is to be used. */
static void shrink(struct oc_plan_cache *cache)
{
	struct oc_plan_entry *entry = cache->oldest, *newer;

	for (; cache->bytes > OC_PLAN_CACHE_BYTES && entry != cache->newest; entry = newer) {
		newer = entry->newer;
		if (!entry->holds)
			drop(cache, entry);
	}
}

static struct oc_plan_entry *add(struct oc_plan_cache *cache, const struct oc_plan_key *key,
				 uint64_t hash, struct oc_plan *plan)
{
	size_t bytes = sizeof(struct oc_plan_entry) + key->narrays * array_bytes(key);
	struct oc_plan_entry *entry = plan ? malloc(bytes) : NULL;
	struct oc_plan_entry **bucket = bucket_of(cache, hash);

	if (!entry) {
		free(plan);
		return NULL;
	}
	*entry = (struct oc_plan_entry){.chain = *bucket,
					.plan = plan,
					.hash = hash,
					.bytes = bytes + plan->size,
					.narrays = key->narrays};
	for (uint32_t i = 0; i < key->narrays; i++)
		memcpy(entry->numbers + (size_t)i * key->shape.size, key->array[i],
		       array_bytes(key));
	*bucket = entry;
	link_newest(cache, entry);
	cache->bytes += entry->bytes;
	return entry;
}

const struct oc_plan *oc_plan_cache_get(struct oc_plan_cache *cache, const struct oc_plan_key *key,
					struct oc_plan *(*make)(const struct oc_plan_key *key))
{
	struct oc_plan_entry *entry = cache->newest;
	uint64_t hash;

	if (entry && is_for(entry, key))
		return entry->plan;
	hash = hash_of(key);
	entry = *bucket_of(cache, hash);
	while (entry && !(entry->hash == hash && is_for(entry, key)))
		entry = entry->chain;
	if (entry) {
		unlink_entry(cache, entry);
		link_newest(cache, entry);
	} else {
		entry = add(cache, key, hash, make(key));
		shrink(cache);
	}
	return entry ? entry->plan : NULL;
}

struct oc_plan_entry *oc_plan_cache_hold(struct oc_plan_cache *cache)
{
	cache->newest->holds++;
	return cache->newest;
}

void oc_plan_cache_release(struct oc_plan_cache *cache, struct oc_plan_entry *entry)
{
	if (!--entry->holds)
		shrink(cache);
}

void oc_plan_cache_clear(struct oc_plan_cache *cache)
{
	while (cache->oldest)
		drop(cache, cache->oldest);
}
