// SPDX-License-Identifier: BSD-3-Clause
#include "kreg.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "env.h"
#include "kdev.h"
#include "../include/uapi/onecopy.h"

#define BUDGET_SHARE 4		  /* all ranks together may keep this part of memory pinned */
#define BUDGET_MIN   (64ul << 20) /* of one rank */
#define SEEN	     256

/* How often memory has to be asked for in vain after ... */
#define AFTER_FIRST   1	 /* ... nothing, when only reused memory is wanted */
#define AFTER_STALE   4	 /* ... it was replaced: maybe it is at every call */
#define AFTER_REFUSAL 64 /* ... the kernel would not pin it */

struct place {
	uintptr_t base;
	size_t bytes; /* 0: free */
	struct oc_kdev_region region;
	uint64_t used; /* the cache's clock when it was last asked for */
	uint32_t holds;
	bool write;
	bool kept; /* a failed operation may still use it */
};

/* Memory that was asked for, pinned or not. */
struct seen {
	uintptr_t base;
	size_t bytes;
	uint32_t wait; /* askings left until it is worth pinning */
	bool refused;
};

struct oc_kreg {
	pthread_mutex_t lock;
	size_t page;
	size_t pinned;
	size_t budget;
	uint64_t clock;
	uint32_t top; /* places from here on were never used */
	bool said;    /* that a limit was met */
	struct place place[OC_KREG_PLACES];
	struct seen seen[SEEN];
};

int oc_kreg_create(struct oc_node *node)
{
	struct oc_kreg *kreg = calloc(1, sizeof(*kreg));
	size_t memory;

	if (!kreg)
		return -ENOMEM;
	pthread_mutex_init(&kreg->lock, NULL);
	kreg->page = (size_t)sysconf(_SC_PAGESIZE);
	memory = (size_t)sysconf(_SC_PHYS_PAGES) * kreg->page;
	kreg->budget = memory / BUDGET_SHARE / node->nranks;
	if (kreg->budget < BUDGET_MIN)
		kreg->budget = BUDGET_MIN;
	node->kreg = kreg;
	return 0;
}

static struct oc_kreg_entry *entry_of(const struct oc_node *node, const struct place *place)
{
	return &oc_kreg_area(node, node->rank)->entry[place - node->kreg->place];
}

static void drop(struct oc_node *node, struct place *place)
{
	atomic_store_explicit(&entry_of(node, place)->cookie, 0, memory_order_relaxed);
	oc_kdev_region_destroy(place->region.cookie);
	node->kreg->pinned -= place->bytes;
	*place = (struct place){0};
}

void oc_kreg_destroy(struct oc_node *node)
{
	struct oc_kreg *kreg = node->kreg;

	if (!kreg)
		return;
	for (uint32_t i = 0; oc_node_mine(node) && i < kreg->top; i++)
		if (kreg->place[i].bytes && !kreg->place[i].kept)
			drop(node, &kreg->place[i]);
	pthread_mutex_destroy(&kreg->lock);
	free(kreg);
	node->kreg = NULL;
}

/* Whole pages around [p, p + len). */
static void round_out(const struct oc_kreg *kreg, const void *p, size_t len, uintptr_t *base,
		      size_t *bytes)
{
	uintptr_t mask = ~(uintptr_t)(kreg->page - 1);

	*base = (uintptr_t)p & mask;
	*bytes = (((uintptr_t)p + len + kreg->page - 1) & mask) - *base;
}

static struct seen *seen_of(struct oc_kreg *kreg, uintptr_t base, size_t bytes)
{
	uint64_t hash = (base / kreg->page + bytes) * 0x9e3779b97f4a7c15u;

	return &kreg->seen[hash >> 32 & (SEEN - 1)];
}

/* Whether this memory has been asked for often enough; counts this time. */
static bool is_due(struct oc_kreg *kreg, uintptr_t base, size_t bytes, uint32_t first)
{
	struct seen *seen = seen_of(kreg, base, bytes);

	if (seen->base != base || seen->bytes != bytes)
		*seen = (struct seen){.base = base, .bytes = bytes, .wait = first};
	if (!seen->wait)
		return true;
	seen->wait--;
	return false;
}

static void postpone(struct oc_kreg *kreg, uintptr_t base, size_t bytes, uint32_t wait)
{
	*seen_of(kreg, base, bytes) = (struct seen){
		.base = base, .bytes = bytes, .wait = wait, .refused = wait == AFTER_REFUSAL};
}

static bool covers(const struct place *place, uintptr_t base, size_t bytes)
{
	return place->bytes && place->base <= base && base + bytes <= place->base + place->bytes;
}

/*
 * The place of a region around this memory that is still good. On the way drops
 * those that are not, and those that a new region would make superfluous.
 */
static struct place *find(struct oc_node *node, uintptr_t base, size_t bytes, bool write,
			  bool *stale)
{
	struct oc_kreg *kreg = node->kreg;
	struct place *found = NULL;

	for (uint32_t i = 0; i < kreg->top && !found; i++) {
		struct place *place = &kreg->place[i];
		bool around = covers(place, base, bytes);
		bool fresh = around && oc_kdev_region_fresh(&place->region);

		*stale = *stale || (around && !fresh);
		if (fresh && (place->write || !write))
			found = place;
		else if (around && !place->holds && !place->kept)
			drop(node, place);
	}
	return found;
}

/* Drops the region that has rested longest. False when there is none. */
static bool evict(struct oc_node *node)
{
	struct oc_kreg *kreg = node->kreg;
	struct place *oldest = NULL;

	for (uint32_t i = 0; i < kreg->top; i++) {
		struct place *place = &kreg->place[i];

		if (place->bytes && !place->holds && !place->kept &&
		    (!oldest || place->used < oldest->used))
			oldest = place;
	}
	if (oldest)
		drop(node, oldest);
	return oldest;
}

static struct place *free_place(struct oc_node *node)
{
	struct oc_kreg *kreg = node->kreg;

	do {
		for (uint32_t i = 0; i < kreg->top; i++)
			if (!kreg->place[i].bytes)
				return &kreg->place[i];
		if (kreg->top < OC_KREG_PLACES)
			return &kreg->place[kreg->top++];
	} while (evict(node));
	return NULL;
}

static int pin(struct oc_node *node, uintptr_t base, size_t bytes, bool write,
	       struct oc_kdev_region *region)
{
	struct iovec iov = {.iov_base = (void *)base, .iov_len = bytes};
	uint32_t flags = ONECOPY_REGION_READ | ONECOPY_REGION_LINGER;
	struct oc_kreg *kreg = node->kreg;
	int err;

	if (write)
		flags |= ONECOPY_REGION_WRITE;
	while (kreg->pinned + bytes > kreg->budget)
		if (!evict(node))
			return -EDQUOT;
	do
		err = oc_kdev_region_create(&iov, 1, flags, region);
	while ((err == -ENOMEM || err == -EDQUOT || err == -ENOSPC) && evict(node));
	return err;
}

static int add(struct oc_node *node, uintptr_t base, size_t bytes, bool write, struct place **out)
{
	struct oc_kreg *kreg = node->kreg;
	struct place *place = free_place(node);
	struct oc_kreg_entry *entry;
	int err;

	if (!place)
		return -ENOSPC;
	err = pin(node, base, bytes, write, &place->region);
	if (err) {
		if (err != -EFAULT && !kreg->said) {
			kreg->said = true;
			oc_note("memory is not mapped for peers: no more may be pinned "
				"(ulimit -l)");
		}
		postpone(kreg, base, bytes, AFTER_REFUSAL);
		return -EOPNOTSUPP;
	}
	place->base = base;
	place->bytes = bytes;
	place->write = write;
	kreg->pinned += bytes;
	entry = entry_of(node, place);
	atomic_store_explicit(&entry->base, base, memory_order_relaxed);
	atomic_store_explicit(&entry->bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&entry->cookie, place->region.cookie, memory_order_release);
	*out = place;
	return 0;
}

/* Under the lock. */
static uint32_t hold(struct oc_kreg *kreg, struct place *place)
{
	place->holds++;
	place->used = ++kreg->clock;
	return (uint32_t)(place - kreg->place);
}

int oc_kreg_get(struct oc_node *node, const void *p, size_t len, bool write, uint32_t *place,
		bool *again)
{
	struct oc_kreg *kreg = node->kreg;
	struct place *found;
	bool stale = false;
	uintptr_t base;
	size_t bytes;
	int err = 0;

	round_out(kreg, p, len, &base, &bytes);
	pthread_mutex_lock(&kreg->lock);
	found = find(node, base, bytes, write, &stale);
	*again = found;
	if (!found && seen_of(kreg, base, bytes)->refused && !is_due(kreg, base, bytes, 0))
		err = -EOPNOTSUPP;
	else if (!found)
		err = add(node, base, bytes, write, &found);
	if (!err)
		*place = hold(kreg, found);
	pthread_mutex_unlock(&kreg->lock);
	return err;
}

int oc_kreg_get_reused(struct oc_node *node, const void *p, size_t len, bool write, uint32_t *place)
{
	struct oc_kreg *kreg = node->kreg;
	struct place *found;
	bool stale = false;
	uintptr_t base;
	size_t bytes;
	int err = 0;

	round_out(kreg, p, len, &base, &bytes);
	pthread_mutex_lock(&kreg->lock);
	found = find(node, base, bytes, write, &stale);
	if (!found && stale)
		postpone(kreg, base, bytes, AFTER_STALE);
	if (!found && !is_due(kreg, base, bytes, AFTER_FIRST))
		err = -EAGAIN;
	else if (!found)
		err = add(node, base, bytes, write, &found);
	if (!err)
		*place = hold(kreg, found);
	pthread_mutex_unlock(&kreg->lock);
	return err;
}

void oc_kreg_put(struct oc_node *node, uint32_t index, bool failed)
{
	struct oc_kreg *kreg = node->kreg;
	struct place *place = &kreg->place[index];

	pthread_mutex_lock(&kreg->lock);
	place->holds--;
	place->kept = place->kept || failed;
	if (!place->holds && !place->kept && !oc_kdev_tracks())
		drop(node, place);
	pthread_mutex_unlock(&kreg->lock);
}
