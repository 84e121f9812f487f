// SPDX-License-Identifier: BSD-3-Clause
/*
 * An offer is a copy cut into pieces, and a word with its number and the piece to be taken next.
 * Whoever moves that word on owns the piece: the one who asks, or the peer. A peer reads what the
 * offer says before it moves the word, and it can move it only if the offer still is the one it
 * has read about, for the next one has another number; and an offer ends only when all of its
 * pieces are done. So nobody writes where he is no longer asked to.
 */
#include "help.h"

#include <sched.h>
#include <stdatomic.h>

#include "access/window.h"
#include "base/futex.h"
#include "bytes/copy.h"
#include "heap/heap.h"
#include "heap/place.h"
#include "heap/static_data.h"
#include "segment/alive.h"
#include "segment/area.h"

/* Below it asking costs as much as is won, or more where cores share no cache. Of a message of 64
 * KiB Open MPI sends the first 4 by itself. */
#define SHARED_MIN ((size_t)64 << 10)

/* Pieces are long, for two that write into the same pages by turns get into each other's way:
 * halves, or eighths of what is very long, so that who comes late still finds some. */
#define EIGHTHS_FROM ((size_t)256 << 10) /* bytes of such a piece */

/* A peer that has taken no piece of so many offers in turn has messages of its own to copy, as both
 * ends of a Sendrecv have. Then one of a few is offered, but of what is long, where an offer costs
 * nothing that counts. */
#define IN_VAIN	    8
#define ONE_OF	    16
#define ALWAYS_FROM ((size_t)512 << 10)

#define SPINS	 2000
#define LIVED_MS 10

#define CLOSED UINT32_MAX /* as a piece: there is none left */

/* What a rank may be asked by: not at all, now, or it is, by rank + ASKED. */
enum { DEAF, FREE, ASKED };

struct help {
	_Alignas(OC_CACHELINE) _Atomic uint32_t asked;
	/* The offer of this rank to @to. */
	_Alignas(OC_CACHELINE) _Atomic uint64_t next; /* number of the offer << 32 | piece */
	_Atomic uint32_t done;			      /* pieces, by the peer */
	_Atomic uint32_t to;
	_Atomic uint32_t direction; /* enum oc_direction, as the one who asks sees it */
	_Atomic uint32_t stream;
	_Atomic uint64_t here; /* offsets in the arenas, of who asks */
	_Atomic uint64_t there;
	_Atomic uint64_t bytes;
};
_Static_assert(sizeof(struct help) <= OC_AREA_HELP_BYTES, "fits");

struct offer {
	uint64_t number; /* in the place it has in help.next */
	size_t bytes;
	size_t piece;
	uint32_t pieces;
};

static struct help *_Atomic own;    /* where peers ask; NULL: they do not */
static const uint32_t *is_mine;	    /* as in struct oc_node */
static _Atomic bool offering;	    /* a thread of this process has one out, and this is its: */
static uint16_t vain[OC_MAX_RANKS]; /* by peer: offers it took nothing of, or was not made */

static struct help *help_of(const struct oc_node *node, uint32_t rank)
{
	return (struct help *)(oc_node_area(node, rank) + OC_AREA_HELP_OFF);
}

/* A rank that shares its core would take pieces and then be put to sleep over them. */
bool oc_procvm_help_begin(struct oc_node *node)
{
	if (node->oversubscribed || !node->mine)
		return false;
	is_mine = node->mine;
	atomic_store(&own, help_of(node, node->rank));
	atomic_store(&help_of(node, node->rank)->asked, FREE);
	return true;
}

void oc_procvm_help_end(struct oc_node *node)
{
	if (atomic_exchange(&own, NULL))
		atomic_store(&help_of(node, node->rank)->asked, DEAF);
}

bool oc_procvm_is_asked(void)
{
	const struct help *help = atomic_load_explicit(&own, memory_order_acquire);

	return help && *is_mine &&
	       atomic_load_explicit(&help->asked, memory_order_relaxed) >= ASKED;
}

static void cut(struct offer *offer, size_t bytes)
{
	size_t piece = bytes / 8 < EIGHTHS_FROM ? EIGHTHS_FROM : bytes / 8;

	if (piece > bytes / 2)
		piece = bytes / 2;
	offer->bytes = bytes;
	offer->piece = (piece + OC_CACHELINE) & ~((size_t)OC_CACHELINE - 1);
	offer->pieces = (uint32_t)((bytes + offer->piece - 1) / offer->piece);
}

/* True with one's own piece in @index. */
static bool take(struct help *help, const struct offer *offer, uint32_t *index)
{
	uint64_t next = atomic_load_explicit(&help->next, memory_order_relaxed);

	do {
		*index = (uint32_t)next;
		if (next - *index != offer->number || *index >= offer->pieces)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&help->next, &next, next + 1, memory_order_acq_rel, memory_order_relaxed));
	return true;
}

static size_t piece_bytes(const struct offer *offer, uint32_t index)
{
	size_t from = index * offer->piece;

	return offer->bytes - from < offer->piece ? offer->bytes - from : offer->piece;
}

static bool is_worth_it(uint32_t peer, size_t bytes)
{
	if (vain[peer] < IN_VAIN || bytes >= ALWAYS_FROM)
		return true;
	if (++vain[peer] < IN_VAIN + ONE_OF)
		return false;
	vain[peer] = IN_VAIN;
	return true;
}

/* Who asks may be asked no more by the time his offer is there: then he is alone with it. */
static bool begin(struct oc_node *node, const struct oc_procvm_share *share, bool stream,
		  struct offer *offer)
{
	struct help *mine = help_of(node, node->rank), *theirs = help_of(node, share->peer);
	char *here = oc_heap_find(share->here, share->bytes);
	uint32_t nobody = FREE;
	uint64_t number;

	if (atomic_load_explicit(&theirs->asked, memory_order_relaxed) != FREE || !here ||
	    atomic_exchange_explicit(&offering, true, memory_order_acquire))
		return false;
	if (!is_worth_it(share->peer, share->bytes)) {
		atomic_store_explicit(&offering, false, memory_order_release);
		return false;
	}
	/* The peer must not be the first to touch it. */
	if (share->direction == OC_GET)
		oc_heap_place(here, share->bytes);
	cut(offer, share->bytes);
	number = (atomic_load_explicit(&mine->next, memory_order_relaxed) >> 32) + 1;
	offer->number = number << 32;
	atomic_store_explicit(&mine->done, 0, memory_order_relaxed);
	atomic_store_explicit(&mine->to, share->peer, memory_order_relaxed);
	atomic_store_explicit(&mine->direction, share->direction, memory_order_relaxed);
	atomic_store_explicit(&mine->stream, stream, memory_order_relaxed);
	atomic_store_explicit(&mine->here, (uintptr_t)here - node->ranks[node->rank].arena_base,
			      memory_order_relaxed);
	atomic_store_explicit(&mine->there, share->there_off, memory_order_relaxed);
	atomic_store_explicit(&mine->bytes, share->bytes, memory_order_relaxed);
	atomic_store_explicit(&mine->next, offer->number, memory_order_release);
	atomic_compare_exchange_strong(&theirs->asked, &nobody, node->rank + ASKED);
	return true;
}

/* What is written into it from now on can be read by nobody who then still takes a piece of it. */
static void end(struct oc_node *node, uint32_t peer, const struct offer *offer)
{
	struct help *mine = help_of(node, node->rank);
	uint32_t asking = node->rank + ASKED;

	atomic_store_explicit(&mine->next, offer->number | CLOSED, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_compare_exchange_strong(&help_of(node, peer)->asked, &asking, FREE);
	atomic_store_explicit(&offering, false, memory_order_release);
}

static void copy(const struct oc_procvm_share *share, size_t off, size_t len,
		 struct oc_store_turn *stores)
{
	if (share->direction == OC_GET)
		oc_store_policy_copy(stores, share->here + off, share->there + off, len);
	else
		oc_store_policy_copy(stores, share->there + off, share->here + off, len);
}

/* False when the peer has died over a piece. */
static bool wait_for_peer(struct oc_node *node, const struct oc_procvm_share *share,
			  uint32_t pieces)
{
	struct help *help = help_of(node, node->rank);

	for (uint32_t turn = 1; atomic_load_explicit(&help->done, memory_order_acquire) < pieces;
	     turn++) {
		if (turn < SPINS)
			oc_cpu_relax();
		else if (turn % SPINS)
			sched_yield();
		else if (!oc_node_peer_lived(node, share->peer, LIVED_MS))
			return false;
	}
	return true;
}

void oc_procvm_copy_with_help(struct oc_node *node, const struct oc_procvm_share *share,
			      struct oc_store_turn *stores)
{
	uint32_t index, taken = 0;
	struct offer offer;
	struct help *help;

	/* Without a control segment nobody can be asked. */
	if (share->bytes < SHARED_MIN || !node->segment ||
	    !begin(node, share, stores->past, &offer)) {
		copy(share, 0, share->bytes, stores);
		return;
	}
	help = help_of(node, node->rank);
	for (; take(help, &offer, &index); taken++)
		copy(share, index * offer.piece, piece_bytes(&offer, index), stores);
	if (taken < offer.pieces)
		vain[share->peer] = 0;
	else if (vain[share->peer] < IN_VAIN)
		vain[share->peer]++;
	if (!wait_for_peer(node, share, offer.pieces - taken))
		copy(share, 0, share->bytes, stores);
	end(node, share->peer, &offer);
}

/* Both ranges as this process sees them, or false. */
static bool see(struct oc_node *node, const struct oc_window_use *use, uint32_t asking,
		uint64_t theirs, uint64_t mine, size_t len, char **at, char **here)
{
	uint64_t size = node->peers[node->rank].arena_size;

	if (mine > size || len > size - mine)
		return false;
	*here = node->peers[node->rank].arena + mine;
	*at = oc_window_at(use, node, asking, theirs, len);
	return *at;
}

static uint64_t help_with(struct oc_node *node, const struct oc_window_use *use, uint32_t asking)
{
	struct help *help = help_of(node, asking);
	uint64_t next = atomic_load_explicit(&help->next, memory_order_acquire), moved = 0;
	bool get = atomic_load_explicit(&help->direction, memory_order_relaxed) == OC_GET;
	bool stream = atomic_load_explicit(&help->stream, memory_order_relaxed);
	uint64_t theirs = atomic_load_explicit(&help->here, memory_order_relaxed);
	uint64_t mine = atomic_load_explicit(&help->there, memory_order_relaxed);
	struct offer offer = {.number = next - (uint32_t)next};
	char *at, *here;
	uint32_t index;

	cut(&offer, atomic_load_explicit(&help->bytes, memory_order_relaxed));
	if ((uint32_t)next >= offer.pieces)
		return 0;
	/* What was read may be of two offers: then the first has ended, and take() refuses. */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&help->to, memory_order_relaxed) != node->rank ||
	    !see(node, use, asking, theirs, mine, offer.bytes, &at, &here))
		return 0;
	while (take(help, &offer, &index)) {
		size_t off = index * offer.piece, len = piece_bytes(&offer, index);

		oc_copy_bytes((get ? at : here) + off, (get ? here : at) + off, len, stream);
		moved += len;
		atomic_fetch_add_explicit(&help->done, 1, memory_order_release);
	}
	return moved;
}

/* Asked by one who is dead, a rank would be for ever. */
static bool is_asked_by(struct oc_node *node, uint32_t asking)
{
	struct help *mine = help_of(node, node->rank);
	uint32_t asked = asking + ASKED;

	if (oc_node_peer_lived(node, asking, LIVED_MS))
		return true;
	atomic_compare_exchange_strong(&mine->asked, &asked, FREE);
	return false;
}

uint64_t oc_procvm_give_help(struct oc_node *node)
{
	uint32_t asking = atomic_load(&help_of(node, node->rank)->asked) - ASKED;
	struct oc_window_use use;
	uint64_t moved;

	if (asking >= node->nranks || asking == node->rank || !is_asked_by(node, asking))
		return 0;
	oc_window_begin(&use, node);
	moved = help_with(node, &use, asking);
	oc_window_end(&use);
	return moved;
}
