// SPDX-License-Identifier: BSD-3-Clause
#include "access/pin_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "access/kdev.h"
#include "base/env.h"
#include "uapi/onecopy.h"

#define BUDGET_SHARE 4		  /* all ranks together may keep this part of memory pinned */
#define BUDGET_MIN   (64ul << 20) /* of one rank */
#define SEEN	     256

/*
 * How often memory has to be asked for in vain after ...; twice as often each
 * time that happens to it again, up to WAIT_MAX, until it has been of use.
 */
#define AFTER_FIRST   1	 /* ... nothing, when only reused memory is wanted */
#define AFTER_STALE   4	 /* ... it was replaced: maybe it is at every call */
#define AFTER_REFUSAL 64 /* ... the kernel would not pin it, or a peer not map it */
#define WAIT_MAX      4096

struct place {
	uintptr_t base;
	size_t bytes; /* 0: free */
	struct oc_kdev_region region;
	uint64_t used; /* the cache's clock when it was last asked for */
	uint32_t holds;
	bool write;
	bool again;  /* the memory came more than once */
	bool blamed; /* not to be used again */
};

/* Memory that was asked for, pinned or not. */
struct seen {
	uintptr_t base;
	size_t bytes;
	uint64_t asked;	  /* the cache's clock then */
	uint32_t wait;	  /* askings left until it is worth pinning */
	uint32_t penalty; /* what it was made to wait last, 0 nothing */
	bool refused;
};

/* What is asked for: whole pages. */
struct want {
	uintptr_t base;
	size_t bytes;
	bool write;
	bool stale;	/* a region around it was, and is no more */
	uint64_t since; /* askings since this was asked for, UINT64_MAX never */
	struct seen *seen;
};

struct oc_pin_cache {
	pthread_mutex_t lock;
	size_t page;
	size_t pinned;
	size_t budget;
	uint64_t clock; /* counts what is asked for */
	uint32_t top;	/* places from here on were never used */
	bool said;	/* that a limit was met */
	struct place place[OC_PIN_CACHE_PLACES];
	struct seen seen[SEEN];
};

int oc_pin_cache_create(struct oc_node *node)
{
	struct oc_pin_cache *cache = calloc(1, sizeof(*cache));
	size_t memory;

	if (!cache)
		return -ENOMEM;
	pthread_mutex_init(&cache->lock, NULL);
	cache->page = (size_t)sysconf(_SC_PAGESIZE);
	memory = (size_t)sysconf(_SC_PHYS_PAGES) * cache->page;
	cache->budget = memory / BUDGET_SHARE / node->nranks;
	if (cache->budget < BUDGET_MIN)
		cache->budget = BUDGET_MIN;
	node->pin_cache = cache;
	return 0;
}

static struct oc_pin_cache_entry *entry_of(const struct oc_node *node, const struct place *place)
{
	return &oc_pin_cache_area(node, node->rank)->entry[place - node->pin_cache->place];
}

static void drop(struct oc_node *node, struct place *place)
{
	atomic_store_explicit(&entry_of(node, place)->cookie, 0, memory_order_relaxed);
	oc_kdev_region_destroy(place->region.cookie);
	node->pin_cache->pinned -= place->bytes;
	*place = (struct place){0};
}

void oc_pin_cache_destroy(struct oc_node *node)
{
	struct oc_pin_cache *cache = node->pin_cache;

	if (!cache)
		return;
	for (uint32_t i = 0; oc_node_mine(node) && i < cache->top; i++)
		if (cache->place[i].bytes)
			drop(node, &cache->place[i]);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
	node->pin_cache = NULL;
}

static void ask(struct oc_pin_cache *cache, const void *p, size_t len, bool write, uint32_t first,
		struct want *want)
{
	uintptr_t mask = ~(uintptr_t)(cache->page - 1);
	struct seen *seen;
	uint64_t hash;

	*want = (struct want){.base = (uintptr_t)p & mask, .write = write, .since = UINT64_MAX};
	want->bytes = (((uintptr_t)p + len + cache->page - 1) & mask) - want->base;
	hash = (want->base / cache->page + want->bytes) * 0x9e3779b97f4a7c15u;
	want->seen = seen = &cache->seen[hash >> 32 & (SEEN - 1)];
	cache->clock++;
	if (seen->base == want->base && seen->bytes == want->bytes)
		want->since = cache->clock - seen->asked;
	else
		*seen = (struct seen){.base = want->base, .bytes = want->bytes, .wait = first};
	seen->asked = cache->clock;
}

/* Whether this memory has been asked for often enough; counts this time. */
static bool is_due(struct seen *seen)
{
	if (!seen->wait)
		return true;
	seen->wait--;
	return false;
}

static void postpone(struct seen *seen, uint32_t least)
{
	uint32_t wait = 2 * seen->penalty > least ? 2 * seen->penalty : least;

	seen->wait = seen->penalty = wait < WAIT_MAX ? wait : WAIT_MAX;
	seen->refused = least == AFTER_REFUSAL;
}

static bool covers(uintptr_t base, size_t bytes, const struct want *want)
{
	return base <= want->base && want->base + want->bytes <= base + bytes;
}

/* The place of a region around this memory that is still good. On the way drops
 * all that are not: they hold memory that the program has given back. */
static struct place *find(struct oc_node *node, struct want *want)
{
	struct oc_pin_cache *cache = node->pin_cache;

	for (uint32_t i = 0; i < cache->top; i++) {
		struct place *place = &cache->place[i];
		bool around, fresh;

		if (!place->bytes)
			continue;
		around = covers(place->base, place->bytes, want);
		fresh = oc_kdev_region_fresh(&place->region);
		if (around && fresh && !place->blamed && (place->write || !want->write))
			return place;
		want->stale = want->stale || (around && !fresh);
		if (!fresh && !place->holds)
			drop(node, place);
	}
	return NULL;
}

/*
 * Drops the region that has rested longest, but none that comes again more often
 * than what it would make room for: where more memory is used in turns than may
 * be pinned, part of it is served well instead of all of it badly (the reuse
 * distances of LIRS, Jiang and Zhang). The bytes, 0 when there is none.
 */
static size_t evict(struct oc_node *node, const struct want *want)
{
	struct oc_pin_cache *cache = node->pin_cache;
	struct place *oldest = NULL;
	size_t bytes;

	for (uint32_t i = 0; i < cache->top; i++) {
		struct place *place = &cache->place[i];

		if (place->bytes && !place->holds &&
		    (!place->again || cache->clock - place->used > want->since) &&
		    (!oldest || place->used < oldest->used))
			oldest = place;
	}
	if (!oldest)
		return 0;
	bytes = oldest->bytes;
	drop(node, oldest);
	return bytes;
}

static struct place *free_place(struct oc_node *node, const struct want *want)
{
	struct oc_pin_cache *cache = node->pin_cache;

	do {
		for (uint32_t i = 0; i < cache->top; i++)
			if (!cache->place[i].bytes)
				return &cache->place[i];
		if (cache->top < OC_PIN_CACHE_PLACES)
			return &cache->place[cache->top++];
	} while (evict(node, want));
	return NULL;
}

/* -EAGAIN: there is no room for it, beside what comes again more often. */
static int pin(struct oc_node *node, const struct want *want, struct oc_kdev_region *region)
{
	struct iovec iov = {.iov_base = (void *)want->base, .iov_len = want->bytes};
	uint32_t flags = ONECOPY_REGION_READ | ONECOPY_REGION_LINGER;
	struct oc_pin_cache *cache = node->pin_cache;
	size_t freed = 0, bytes;
	int err;

	if (want->bytes > cache->budget)
		return -EDQUOT;
	if (want->write)
		flags |= ONECOPY_REGION_WRITE;
	while (cache->pinned + want->bytes > cache->budget)
		if (!evict(node, want))
			return -EAGAIN;
	for (;;) {
		err = oc_kdev_region_create(&iov, 1, flags, region);
		/* What does not fit after as much has gone will not fit. */
		if ((err != -ENOMEM && err != -EDQUOT && err != -ENOSPC) || freed >= want->bytes)
			return err;
		bytes = evict(node, want);
		if (!bytes)
			return err;
		freed += bytes;
	}
}

/* Regions that the new one makes superfluous. */
static void supersede(struct oc_node *node, const struct place *by)
{
	struct oc_pin_cache *cache = node->pin_cache;

	for (uint32_t i = 0; i < cache->top; i++) {
		struct place *place = &cache->place[i];
		struct want same = {.base = place->base, .bytes = place->bytes};

		if (place != by && place->bytes && !place->holds && (by->write || !place->write) &&
		    covers(by->base, by->bytes, &same))
			drop(node, place);
	}
}

static int add(struct oc_node *node, const struct want *want, struct place **out)
{
	struct oc_pin_cache *cache = node->pin_cache;
	struct place *place = free_place(node, want);
	struct oc_pin_cache_entry *entry;
	int err;

	if (!place)
		return -EAGAIN;
	err = pin(node, want, &place->region);
	if (err == -EAGAIN)
		return err;
	if (err) {
		if (err != -EFAULT && !cache->said) {
			cache->said = true;
			oc_note("memory is not mapped for peers: no more may be pinned "
				"(ulimit -l)");
		}
		postpone(want->seen, AFTER_REFUSAL);
		return -EOPNOTSUPP;
	}
	place->base = want->base;
	place->bytes = want->bytes;
	place->write = want->write;
	place->again = want->since != UINT64_MAX;
	cache->pinned += want->bytes;
	entry = entry_of(node, place);
	atomic_store_explicit(&entry->base, want->base, memory_order_relaxed);
	atomic_store_explicit(&entry->bytes, want->bytes, memory_order_relaxed);
	atomic_store_explicit(&entry->cookie, place->region.cookie, memory_order_release);
	supersede(node, place);
	*out = place;
	return 0;
}

/* Under the lock. */
static uint32_t hold(struct oc_pin_cache *cache, struct place *place, const struct want *want,
		     bool again)
{
	place->holds++;
	place->used = cache->clock;
	place->again = place->again || again;
	if (again)
		want->seen->penalty = 0;
	want->seen->refused = false;
	return (uint32_t)(place - cache->place);
}

int oc_pin_cache_get(struct oc_node *node, const void *p, size_t len, bool write, uint32_t *place,
		     bool *again)
{
	struct oc_pin_cache *cache = node->pin_cache;
	struct place *found;
	struct want want;
	int err = 0;

	pthread_mutex_lock(&cache->lock);
	ask(cache, p, len, write, 0, &want);
	found = find(node, &want);
	*again = found;
	if (!found && want.seen->refused && !is_due(want.seen))
		err = -EOPNOTSUPP;
	else if (!found)
		err = add(node, &want, &found);
	if (!err)
		*place = hold(cache, found, &want, *again);
	pthread_mutex_unlock(&cache->lock);
	return err;
}

int oc_pin_cache_get_reused(struct oc_node *node, const void *p, size_t len, bool write,
			    uint32_t *place)
{
	struct oc_pin_cache *cache = node->pin_cache;
	struct place *found;
	struct want want;
	bool again;
	int err = 0;

	pthread_mutex_lock(&cache->lock);
	ask(cache, p, len, write, AFTER_FIRST, &want);
	found = find(node, &want);
	again = found;
	if (!found && want.stale)
		postpone(want.seen, AFTER_STALE);
	if (!found && !is_due(want.seen))
		err = -EAGAIN;
	else if (!found)
		err = add(node, &want, &found);
	if (!err)
		*place = hold(cache, found, &want, again);
	pthread_mutex_unlock(&cache->lock);
	return err;
}

void oc_pin_cache_blame(struct oc_node *node, uint32_t index)
{
	struct oc_pin_cache *cache = node->pin_cache;
	struct place *place = &cache->place[index];
	struct want want;

	pthread_mutex_lock(&cache->lock);
	if (!place->blamed) {
		ask(cache, (void *)place->base, place->bytes, false, 0, &want);
		postpone(want.seen, AFTER_REFUSAL);
	}
	place->blamed = true;
	pthread_mutex_unlock(&cache->lock);
}

void oc_pin_cache_put(struct oc_node *node, uint32_t index)
{
	struct oc_pin_cache *cache = node->pin_cache;
	struct place *place = &cache->place[index];

	pthread_mutex_lock(&cache->lock);
	place->holds--;
	if (!place->holds && (place->blamed || !oc_kdev_tracks()))
		drop(node, place);
	pthread_mutex_unlock(&cache->lock);
}
