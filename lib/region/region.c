// SPDX-License-Identifier: BSD-3-Clause
#include "region/region.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "access/kdev.h"
#include "base/futex.h"
#include "heap/heap.h"
#include "region/region_ref.h"
#include "access/stage.h"
#include "segment/alive.h"
#include "uapi/onecopy.h"

#define SEG_BLOCK  16 /* segments are handed out in such blocks */
#define SEG_BLOCKS (OC_REGION_SEGS / SEG_BLOCK)

#define RANDOMS 32

#define REAP_TURNS 50 /* of waiting for copies that end when the table is full */

/* Below this pinning costs more than any mechanism saves. */
#define KERNEL_BYTES  (32u << 10)
#define KERNEL_SINGLE 16 /* so many single-use regions may be pinned in vain */

#define REGION_FLAGS (OC_REGION_READ | OC_REGION_WRITE | OC_REGION_SINGLEUSE)

struct oc_region_table {
	pthread_mutex_t lock; /* all below but owned */
	uint64_t randoms[RANDOMS];
	uint32_t nrandoms;
	uint32_t nfree;
	uint16_t free[OC_REGION_SLOTS];
	uint8_t seg_used[SEG_BLOCKS];
	bool serving;			  /* the service thread was asked for */
	uint64_t kernel[OC_REGION_SLOTS]; /* cookies of kernel regions, or 0 */
	uint32_t nsingle;		  /* single-use regions among them, and when to look ... */
	uint32_t reap_at;		  /* ... which of those have been used */
	/* The cookie of each slot until its owner has destroyed it, used up or
	 * not. Written under the lock. */
	_Atomic uint64_t owned[OC_REGION_SLOTS];
};

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
		bits = bits << (OC_COOKIE_OWNER_BITS + OC_COOKIE_SLOT_BITS) |
		       slot << OC_COOKIE_OWNER_BITS | node->rank;
		*cookie = bits ^ node->segment->cookie_mask;
	} while (!*cookie);
	return 0;
}

/* For this rank's service thread: the region behind a peer's request, without a hazard;
 * oc_region_destroy() asks oc_stage_serves() instead. */
static int own(struct oc_node *node, oc_cookie cookie, uint32_t need, struct oc_target *target)
{
	uint32_t index = oc_cookie_slot(node, cookie);

	if (!cookie || oc_cookie_owner(node, cookie) != node->rank ||
	    atomic_load(&node->table->owned[index]) != cookie)
		return -EINVAL;
	*target = (struct oc_target){.owner = node->rank, .cookie = cookie};
	oc_region_read(node, &oc_region_area(node, node->rank)->slot[index], target);
	return (target->flags & need) == need ? 0 : -EACCES;
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

	if (table->kernel[index]) {
		oc_kdev_region_destroy(table->kernel[index]);
		table->nsingle -= slot->flags & OC_REGION_SINGLEUSE ? 1 : 0;
	}
	table->kernel[index] = slot->kernel = 0;
	if (slot->nsegs > 1)
		memset(&table->seg_used[slot->first / SEG_BLOCK], 0, seg_blocks(slot->nsegs));
	slot->nsegs = 0;
	table->free[table->nfree++] = (uint16_t)index;
}

/* Takes back the slots of single-use regions that have been used. True if there
 * are more, whose last copy is not quite over. */
static bool reap(struct oc_node *node)
{
	struct oc_region_table *table = node->table;
	struct oc_region_area *area = oc_region_area(node, node->rank);
	bool more = false;

	for (uint32_t i = 0; i < OC_REGION_SLOTS; i++) {
		uint64_t cookie = atomic_load(&table->owned[i]);

		if (!cookie || atomic_load(&area->slot[i].cookie) == cookie)
			continue;
		if (in_use(node, cookie)) {
			more = true;
			continue;
		}
		/* Whoever used it up is done or dead. If dead, the service may
		 * still be at it: it looks at owned, then says what it serves. */
		atomic_store(&table->owned[i], 0);
		if (in_use(node, cookie))
			atomic_store(&table->owned[i], cookie);
		else
			free_slot(node, i);
	}
	return more;
}

/* Until a slot is free, or none will be soon. */
static void reap_full(struct oc_node *node)
{
	struct timespec nap = {.tv_nsec = 200000};

	for (int turn = 0; turn < REAP_TURNS && !node->table->nfree && reap(node); turn++)
		if (!node->table->nfree)
			nanosleep(&nap, NULL);
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

/*
 * Pins the memory for map and kcopy, if any of them may be used and can tell
 * when the pages are not the memory any more. That it cannot be pinned, or not
 * so much of it, leaves it to the other mechanisms.
 */
static void pin(struct oc_node *node, uint32_t index, const struct iovec *iov, bool heap)
{
	struct oc_region_slot *slot = &oc_region_area(node, node->rank)->slot[index];
	struct oc_region_table *table = node->table;
	uint32_t mask = atomic_load_explicit(&node->mech_mask, memory_order_relaxed);
	uint32_t flags = ONECOPY_REGION_LINGER;
	struct oc_kdev_region region;

	if (!node->kdev || !oc_kdev_tracks() || !(mask & (OC_MECH_MAP | OC_MECH_KCOPY)) ||
	    (heap && mask & OC_MECH_HEAP) || !slot->bytes ||
	    (slot->bytes < KERNEL_BYTES && mask & (OC_MECH_CMA | OC_MECH_STAGED)))
		return;
	if (slot->flags & OC_REGION_READ)
		flags |= ONECOPY_REGION_READ;
	if (slot->flags & OC_REGION_WRITE)
		flags |= ONECOPY_REGION_WRITE;
	if (oc_kdev_region_create(iov, slot->nsegs, flags, &region))
		return;
	table->kernel[index] = slot->kernel = region.cookie;
	if (slot->flags & OC_REGION_SINGLEUSE)
		table->nsingle++;
}

/* Used regions for single use keep their memory pinned until somebody looks. */
static void reap_pinned(struct oc_node *node)
{
	struct oc_region_table *table = node->table;

	if (table->nsingle < KERNEL_SINGLE || table->nsingle < table->reap_at)
		return;
	reap(node);
	table->reap_at = 2 * table->nsingle;
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
	reap_pinned(node);
	reap_full(node);
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
	pin(node, index,
	    slot->nsegs > 1 ? &oc_region_area(node, node->rank)->seg[slot->first] : &slot->one,
	    heap);
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
		oc_stage_start(node, own);
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

	if (!node || !oc_node_mine(node) || !cookie || oc_cookie_owner(node, cookie) != node->rank)
		return -EINVAL;
	table = node->table;
	index = oc_cookie_slot(node, cookie);
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
