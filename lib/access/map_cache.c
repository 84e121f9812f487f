// SPDX-License-Identifier: BSD-3-Clause
#include "access/map_cache.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "access/kdev.h"

#define BUCKETS	    1024
#define SEEN	    512
#define SEEN_PROBES 4

struct oc_map_cache {
	uint64_t cookie; /* 0: the place is free */
	uint64_t offset;
	size_t length;
	bool write;
	uint32_t holds;
	uint64_t used; /* the cache's clock when it was last asked for */
	struct oc_kdev_map map;
	struct oc_map_cache *next; /* in its bucket */
};

static struct {
	pthread_mutex_t lock;
	bool handler; /* the fork handler is registered */
	uint64_t clock;
	struct oc_map_cache place[OC_MAP_CACHE_MAX];
	struct oc_map_cache *bucket[BUCKETS];
	uint64_t seen[SEEN]; /* cookies; a new one takes the place of an old one */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Cookies are random numbers: any bits of theirs are a hash. */
static struct oc_map_cache **bucket_of(uint64_t cookie)
{
	return &cache.bucket[cookie % BUCKETS];
}

/* A forked child has none of the mappings, and maybe other memory there. */
static void forget(void)
{
	pthread_mutex_init(&cache.lock, NULL);
	memset(cache.place, 0, sizeof(cache.place));
	memset(cache.bucket, 0, sizeof(cache.bucket));
}

static void free_place(struct oc_map_cache *map)
{
	struct oc_map_cache **at = bucket_of(map->cookie);

	while (*at != map)
		at = &(*at)->next;
	*at = map->next;
	oc_kdev_unmap(&map->map);
	map->cookie = 0;
}

/* A free place, or the one that has rested longest. NULL when all are held. */
static struct oc_map_cache *find_place(void)
{
	struct oc_map_cache *oldest = NULL;

	for (size_t i = 0; i < OC_MAP_CACHE_MAX; i++) {
		struct oc_map_cache *map = &cache.place[i];

		if (!map->cookie)
			return map;
		if (!map->holds && (!oldest || map->used < oldest->used))
			oldest = map;
	}
	if (oldest)
		free_place(oldest);
	return oldest;
}

static struct oc_map_cache *find(uint64_t cookie, uint64_t offset, size_t length, bool write)
{
	struct oc_map_cache *map = *bucket_of(cookie);

	for (; map; map = map->next) {
		uint64_t skip = offset - map->offset;

		if (map->cookie == cookie && map->offset <= offset && skip <= map->length &&
		    length <= map->length - skip && (map->write || !write))
			return map;
	}
	return NULL;
}

static int make(uint64_t cookie, uint64_t offset, size_t length, bool write,
		struct oc_map_cache **out)
{
	struct oc_map_cache *map = find_place();
	struct oc_kdev_map made;
	int err;

	if (!cache.handler)
		cache.handler = !pthread_atfork(NULL, NULL, forget);
	if (!map)
		return -ENOSPC;
	err = oc_kdev_map(cookie, offset, length, write, &made);
	if (err)
		return err;
	*map = (struct oc_map_cache){
		.cookie = cookie, .offset = offset, .length = length, .write = write, .map = made};
	map->next = *bucket_of(cookie);
	*bucket_of(cookie) = map;
	*out = map;
	return 0;
}

int oc_map_cache_get(uint64_t cookie, uint64_t offset, size_t length, bool write,
		     struct oc_map_cache **out, char **at)
{
	struct oc_map_cache *map;
	int err = 0;

	pthread_mutex_lock(&cache.lock);
	map = find(cookie, offset, length, write);
	if (!map)
		err = make(cookie, offset, length, write, &map);
	if (!err) {
		map->holds++;
		map->used = ++cache.clock;
		*at = map->map.at + (offset - map->offset);
		*out = map;
	}
	pthread_mutex_unlock(&cache.lock);
	return err;
}

void oc_map_cache_put(struct oc_map_cache *map)
{
	pthread_mutex_lock(&cache.lock);
	if (map->holds)
		map->holds--;
	pthread_mutex_unlock(&cache.lock);
}

bool oc_map_cache_seen(uint64_t cookie)
{
	bool seen = false;

	pthread_mutex_lock(&cache.lock);
	for (uint64_t i = 0; i < SEEN_PROBES && !seen; i++)
		seen = cache.seen[(cookie + i) % SEEN] == cookie;
	if (!seen)
		cache.seen[(cookie + cache.clock++ % SEEN_PROBES) % SEEN] = cookie;
	pthread_mutex_unlock(&cache.lock);
	return seen;
}

void oc_map_cache_drop(void)
{
	pthread_mutex_lock(&cache.lock);
	for (size_t i = 0; i < OC_MAP_CACHE_MAX; i++)
		if (cache.place[i].cookie && !cache.place[i].holds)
			free_place(&cache.place[i]);
	pthread_mutex_unlock(&cache.lock);
}
