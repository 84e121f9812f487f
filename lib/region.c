// SPDX-License-Identifier: BSD-3-Clause
#include "region.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "futex.h"
#include "heap.h"
#include "stage.h"

/*
 * A cookie, before the node's random mask: owner, slot, and 42 random bits that
 * nobody can know who was not told.
 */
#define OWNER_BITS 10
#define SLOT_BITS  12

#define SEG_BLOCK  16 /* segments are handed out in such blocks */
#define SEG_BLOCKS (OC_REGION_SEGS / SEG_BLOCK)

#define ALIVE_MS 100 /* how stale the news of an owner's life may be */
#define RANDOMS	 32

#define REGION_FLAGS (OC_REGION_READ | OC_REGION_WRITE | OC_REGION_SINGLEUSE)

_Static_assert(OC_MAX_RANKS == 1 << OWNER_BITS, "an owner fits");
_Static_assert(OC_REGION_SLOTS == 1 << SLOT_BITS, "a slot fits");

struct oc_region_table {
	pthread_mutex_t lock; /* all below but owned */
	uint64_t randoms[RANDOMS];
	uint32_t nrandoms;
	uint32_t nfree;
	uint16_t free[OC_REGION_SLOTS];
	uint8_t seg_used[SEG_BLOCKS];
	bool serving; /* the service thread was asked for */
	/* The cookie of each slot until its owner has destroyed it, used up or
	 * not. Written under the lock. */
	_Atomic uint64_t owned[OC_REGION_SLOTS];
};

static uint32_t cookie_owner(const struct oc_node *node, oc_cookie cookie)
{
	return (uint32_t)((cookie ^ node->ctl->cookie_mask) & (OC_MAX_RANKS - 1));
}

static uint32_t cookie_slot(const struct oc_node *node, oc_cookie cookie)
{
	return (uint32_t)((cookie ^ node->ctl->cookie_mask) >> OWNER_BITS & (OC_REGION_SLOTS - 1));
}

static int make_cookie(struct oc_node *node, uint32_t slot, oc_cookie *cookie)
{
	struct oc_region_table *table = node->table;

	do {
		uint64_t bits;

		if (!table->nrandoms) {
			if (getrandom(table->randoms, sizeof(table->randoms), 0) !=
			    sizeof(table->randoms))
				return -EIO;
			table->nrandoms = RANDOMS;
		}
		bits = table->randoms[--table->nrandoms];
		bits = bits << (OWNER_BITS + SLOT_BITS) | slot << OWNER_BITS | node->rank;
		*cookie = bits ^ node->ctl->cookie_mask;
	} while (!*cookie);
	return 0;
}

int oc_region_table_create(struct oc_node *node)
{
	struct oc_region_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	pthread_mutex_init(&table->lock, NULL);
	for (uint32_t i = 0; i < OC_REGION_SLOTS; i++)
		table->free[i] = (uint16_t)(OC_REGION_SLOTS - 1 - i);
	table->nfree = OC_REGION_SLOTS;
	node->table = table;
	return 0;
}

/* Does any thread of @rank hold @cookie? */
static bool rank_holds(const struct oc_node *node, uint32_t rank, oc_cookie cookie)
{
	struct oc_region_area *area = oc_region_area(node, rank);
	uint64_t top = atomic_load(&area->hazard_top);

	for (uint64_t i = 0; i < top && i < OC_REGION_HAZARDS; i++)
		if (atomic_load(&area->hazard[i]) == cookie)
			return true;
	return false;
}

static bool in_use(const struct oc_node *node, oc_cookie cookie)
{
	for (uint32_t rank = 0; rank < node->nranks; rank++)
		if (rank_holds(node, rank, cookie) && oc_node_peer_alive(node, rank))
			return true;
	return oc_stage_serves(node, cookie);
}

/* Until no copy is on the region whose cookie has been voided. */
static void drain(const struct oc_node *node, oc_cookie cookie)
{
	struct timespec nap = {.tv_nsec = 200000};
	uint32_t turn = 0;

	while (in_use(node, cookie)) {
		if (turn++ < node->spin)
			oc_cpu_relax();
		else if (turn < 2 * node->spin + 64)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

static uint32_t seg_blocks(uint32_t nsegs)
{
	return (nsegs + SEG_BLOCK - 1) / SEG_BLOCK;
}

/* First fit: tables of many large regions are not what this is for. */
static int take_segs(struct oc_region_table *table, uint32_t nsegs, uint32_t *first)
{
	uint32_t want = seg_blocks(nsegs), run = 0;

	for (uint32_t i = 0; i < SEG_BLOCKS; i++) {
		run = table->seg_used[i] ? 0 : run + 1;
		if (run < want)
			continue;
		memset(&table->seg_used[i + 1 - want], 1, want);
		*first = (i + 1 - want) * SEG_BLOCK;
		return 0;
	}
	return -ENOSPC;
}

/* Under the lock; nobody can reach the slot any more. */
static void free_slot(struct oc_node *node, uint32_t index)
{
	struct oc_region_table *table = node->table;
	struct oc_region_slot *slot = &oc_region_area(node, node->rank)->slot[index];

	if (slot->nsegs > 1)
		memset(&table->seg_used[slot->first / SEG_BLOCK], 0, seg_blocks(slot->nsegs));
	slot->nsegs = 0;
	table->free[table->nfree++] = (uint16_t)index;
}

/* Takes back the slots of single-use regions that have been used. */
static void reap(struct oc_node *node)
{
	struct oc_region_table *table = node->table;
	struct oc_region_area *area = oc_region_area(node, node->rank);

	for (uint32_t i = 0; i < OC_REGION_SLOTS; i++) {
		uint64_t cookie = atomic_load(&table->owned[i]);

		if (!cookie || atomic_load(&area->slot[i].cookie) == cookie || in_use(node, cookie))
			continue;
		/* Whoever used it up is done or dead. If dead, the service may
		 * still be at it: it looks at owned, then says what it serves. */
		atomic_store(&table->owned[i], 0);
		if (in_use(node, cookie))
			atomic_store(&table->owned[i], cookie);
		else
			free_slot(node, i);
	}
}

/* Sums up @iov; counts the segments that are not empty. */
static int measure(const struct iovec *iov, size_t iovcnt, uint64_t *bytes, size_t *nsegs,
		   bool *heap)
{
	*bytes = 0;
	*nsegs = 0;
	*heap = true;
	for (size_t i = 0; i < iovcnt; i++) {
		size_t len = iov[i].iov_len;

		if (!len)
			continue;
		if ((uintptr_t)iov[i].iov_base > UINTPTR_MAX - len || len > SSIZE_MAX - *bytes)
			return -EINVAL;
		*bytes += len;
		(*nsegs)++;
		*heap = *heap && oc_heap_contains(iov[i].iov_base, len);
	}
	return 0;
}

static int fill_slot(struct oc_node *node, struct oc_region_slot *slot, const struct iovec *iov,
		     size_t iovcnt, size_t nsegs)
{
	struct iovec *seg = &slot->one;

	slot->nsegs = 0;
	if (nsegs > 1) {
		int err = nsegs > OC_REGION_SEGS
				  ? -ENOSPC
				  : take_segs(node->table, (uint32_t)nsegs, &slot->first);

		if (err)
			return err;
		seg = &oc_region_area(node, node->rank)->seg[slot->first];
	}
	slot->nsegs = (uint32_t)nsegs;
	for (size_t i = 0; i < iovcnt; i++)
		if (iov[i].iov_len)
			*seg++ = iov[i];
	return 0;
}

/* Under the lock. */
static int publish(struct oc_node *node, const struct iovec *iov, size_t iovcnt, uint32_t flags,
		   oc_cookie *cookie)
{
	struct oc_region_table *table = node->table;
	struct oc_region_slot *slot;
	uint64_t bytes;
	uint32_t index;
	size_t nsegs;
	bool heap;
	int err = measure(iov, iovcnt, &bytes, &nsegs, &heap);

	if (err)
		return err;
	if (!table->nfree)
		reap(node);
	if (!table->nfree)
		return -ENOSPC;
	index = table->free[table->nfree - 1];
	slot = &oc_region_area(node, node->rank)->slot[index];
	err = make_cookie(node, index, cookie);
	if (!err)
		err = fill_slot(node, slot, iov, iovcnt, nsegs);
	if (err == -ENOSPC) {
		reap(node);
		err = fill_slot(node, slot, iov, iovcnt, nsegs);
	}
	if (err)
		return err;
	slot->flags = flags;
	slot->bytes = bytes;
	slot->heap = heap && node->peers[node->rank].arena;
	table->nfree--;
	atomic_store(&table->owned[index], *cookie);
	atomic_store(&slot->cookie, *cookie);
	return 0;
}

int oc_region_create(oc_node *node, const struct iovec *iov, size_t iovcnt, uint32_t flags,
		     oc_cookie *out)
{
	oc_cookie cookie;
	int err;

	if (!node || !oc_node_mine(node) || !iov || !iovcnt || !out || flags & ~REGION_FLAGS ||
	    !(flags & (OC_REGION_READ | OC_REGION_WRITE)))
		return -EINVAL;
	pthread_mutex_lock(&node->table->lock);
	/* Any region may have to be staged, now or after a demotion: only the
	 * requester finds out, and then it is too late to start the thread. */
	if (!node->table->serving) {
		node->table->serving = true;
		oc_stage_start(node);
	}
	err = publish(node, iov, iovcnt, flags, &cookie);
	pthread_mutex_unlock(&node->table->lock);
	if (!err)
		*out = cookie;
	return err;
}

int oc_region_destroy(oc_node *node, oc_cookie cookie)
{
	struct oc_region_table *table;
	uint64_t expected = cookie;
	uint32_t index;
	bool known;

	if (!node || !oc_node_mine(node) || !cookie || cookie_owner(node, cookie) != node->rank)
		return -EINVAL;
	table = node->table;
	index = cookie_slot(node, cookie);
	pthread_mutex_lock(&table->lock);
	known = atomic_compare_exchange_strong(&table->owned[index], &expected, 0);
	pthread_mutex_unlock(&table->lock);
	if (!known)
		return -EINVAL;
	/* The slot is neither free nor owned now: it is this thread's alone. */
	atomic_store(&oc_region_area(node, node->rank)->slot[index].cookie, 0);
	drain(node, cookie);
	pthread_mutex_lock(&table->lock);
	free_slot(node, index);
	pthread_mutex_unlock(&table->lock);
	return 0;
}

void oc_region_table_destroy(struct oc_node *node)
{
	if (!node->table)
		return;
	if (oc_node_mine(node)) {
		for (uint32_t i = 0; i < OC_REGION_SLOTS; i++) {
			oc_cookie cookie = atomic_load(&node->table->owned[i]);

			if (cookie)
				oc_region_destroy(node, cookie);
		}
	}
	pthread_mutex_destroy(&node->table->lock);
	free(node->table);
	node->table = NULL;
}

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
	struct timespec ts;
	uint64_t now;

	if (atomic_load_explicit(&node->ranks[owner].state, memory_order_acquire) == OC_RANK_LEFT)
		return false;
	if (owner == node->rank)
		return true;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	if (now - atomic_load_explicit(seen, memory_order_relaxed) < ALIVE_MS)
		return true;
	if (!oc_node_peer_alive(node, owner))
		return false;
	atomic_store_explicit(seen, now, memory_order_relaxed);
	return true;
}

static void read_slot(const struct oc_node *node, struct oc_region_ref *ref)
{
	const struct oc_region_slot *slot = ref->slot;
	struct oc_region_area *area = oc_region_area(node, ref->owner);
	uint32_t first = slot->first;

	ref->flags = slot->flags;
	ref->bytes = slot->bytes;
	ref->heap = slot->heap;
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
	ref->owner = cookie_owner(node, cookie);
	if (!cookie || ref->owner >= node->nranks)
		return -EINVAL;
	if (!owner_alive(node, ref->owner))
		return -EPIPE;
	ref->slot = &oc_region_area(node, ref->owner)->slot[cookie_slot(node, cookie)];
	err = -EINVAL;
	/* Look before taking hold: who tries a void cookie over and over must
	 * not keep the owner waiting in drain(). */
	if (atomic_load(&ref->slot->cookie) != cookie)
		return owner_alive(node, ref->owner) ? err : -EPIPE;
	ref->hazard = take_hazard(node, cookie);
	if (atomic_load(&ref->slot->cookie) != cookie) {
		/* An owner that leaves says so before it voids its cookies. */
		if (!owner_alive(node, ref->owner))
			err = -EPIPE;
		goto release;
	}
	read_slot(node, ref);
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
}

int oc_region_own(struct oc_node *node, oc_cookie cookie, uint32_t need, struct oc_region_ref *ref)
{
	uint32_t index = cookie_slot(node, cookie);

	if (!cookie || cookie_owner(node, cookie) != node->rank ||
	    atomic_load(&node->table->owned[index]) != cookie)
		return -EINVAL;
	ref->cookie = cookie;
	ref->owner = node->rank;
	ref->slot = &oc_region_area(node, node->rank)->slot[index];
	ref->hazard = NULL;
	read_slot(node, ref);
	return (ref->flags & need) == need ? 0 : -EACCES;
}
