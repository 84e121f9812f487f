// SPDX-License-Identifier: BSD-3-Clause
/*
 * The cache of windows. Lookups take no lock: a table of pointers, by rank and chunk,
 * says which window was found there last; a miss looks through the rank's windows
 * under the lock, or makes one.
 *
 * A window that shall go is first taken out of its rank's list and the table
 * (retired), and unmapped when no use is left that began before that. This is
 * reclamation by epochs (Fraser, "Practical lock-freedom", 2004), with the uses in a
 * list, since they are few and each is an operation long.
 */
#include "access/window.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "access/arena_map.h"

#define PAGE  4096u
#define FOUND 4096 /* places of the table */
#define PARTS 64   /* of a window, in which touching it is noted */

struct oc_window {
	uint32_t rank;
	uint64_t off; /* in the arena */
	size_t len;
	char *at;
	_Atomic uint64_t used;	  /* the clock when it was last asked for */
	_Atomic uint64_t touched; /* bit a part */
	uint64_t retired;	  /* the clock when it was */
	size_t counted;		  /* of what was touched, no longer in the sum */
	struct oc_window *next;	  /* of its rank's, or of those retired */
};

struct oc_windows {
	pthread_mutex_t lock;
	struct oc_space_windows bounds;
	uint32_t nranks;
	_Atomic uint64_t clock;
	_Atomic size_t touched; /* bytes, of windows in use */
	size_t mapped;		/* bytes, of windows in use */
	size_t leaving;		/* bytes, of those retired */
	struct oc_window *retired;
	struct oc_window_use *uses;
	struct oc_window **of; /* [nranks] */
	struct oc_window *_Atomic found[FOUND];
};

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

int oc_windows_create(struct oc_node *node)
{
	struct oc_space_windows bounds;
	struct oc_windows *windows;
	struct oc_space space;
	uint64_t all = 0;

	oc_space_measure(&space);
	oc_space_windows(&space, node->nranks, &bounds);
	for (uint32_t i = 0; i < node->nranks; i++)
		all += i == node->rank ? 0 : node->ranks[i].arena_size;
	if (all <= bounds.total)
		return 0;
	windows = calloc(1, sizeof(*windows));
	if (windows)
		windows->of = calloc(node->nranks, sizeof(struct oc_window *));
	if (!windows || !windows->of) {
		free(windows);
		return -ENOMEM;
	}
	pthread_mutex_init(&windows->lock, NULL);
	windows->bounds = bounds;
	windows->nranks = node->nranks;
	node->windows = windows;
	oc_space_take(bounds.total + bounds.step);
	return 0;
}

static void free_list(struct oc_window *list, bool mine)
{
	while (list) {
		struct oc_window *next = list->next;

		if (mine)
			munmap(list->at, list->len);
		free(list);
		list = next;
	}
}

void oc_windows_destroy(struct oc_node *node)
{
	struct oc_windows *windows = node->windows;
	bool mine = oc_node_mine(node);

	for (uint32_t i = 0; windows && i < windows->nranks; i++)
		free_list(windows->of[i], mine);
	for (uint32_t i = 0; mine && node->peers && i < node->nranks; i++)
		if (i != node->rank)
			oc_window_close(node, i);
	if (!windows)
		return;
	oc_space_give(windows->bounds.total + windows->bounds.step);
	free_list(windows->retired, mine);
	free(windows->of);
	free(windows);
	node->windows = NULL;
}

int oc_window_open(struct oc_node *node, uint32_t rank, int fd)
{
	struct oc_node_peer *peer = &node->peers[rank];
	uint64_t size = node->ranks[rank].arena_size;
	struct stat st;
	int err;

	/* Beyond the end of the file lies SIGBUS. */
	if (fstat(fd, &st))
		return -errno;
	if (!size || size > (uint64_t)st.st_size || size % PAGE)
		return -EPROTO;
	if (node->windows)
		err = oc_arena_map_seeds(fd, size, node->windows->bounds.step, &peer->seeds);
	else
		err = oc_arena_map(fd, size, &peer->arena);
	if (err)
		return err;
	peer->arena_size = size;
	if (peer->arena)
		oc_space_take(size);
	return 0;
}

void oc_window_close(struct oc_node *node, uint32_t rank)
{
	struct oc_node_peer *peer = &node->peers[rank];

	if (peer->arena) {
		munmap(peer->arena, peer->arena_size);
		oc_space_give(peer->arena_size);
	}
	if (peer->seeds)
		munmap(peer->seeds,
		       oc_arena_seed_bytes(peer->arena_size, node->windows->bounds.step));
	peer->arena = peer->seeds = NULL;
	peer->arena_size = 0;
}

void oc_window_enter(struct oc_window_use *use)
{
	struct oc_windows *windows = use->windows;

	pthread_mutex_lock(&windows->lock);
	use->since = atomic_fetch_add_explicit(&windows->clock, 1, memory_order_relaxed) + 1;
	use->next = windows->uses;
	if (use->next)
		use->next->prev = use;
	windows->uses = use;
	pthread_mutex_unlock(&windows->lock);
}

static size_t touched_bytes(const struct oc_window *window)
{
	return window->len / PARTS * (size_t)__builtin_popcountll(window->touched);
}

static struct oc_window *_Atomic *found_at(struct oc_windows *windows, uint32_t rank, uint64_t off)
{
	return &windows->found[(rank * 61 + off / windows->bounds.chunk) % FOUND];
}

static void retire(struct oc_windows *windows, struct oc_window **at)
{
	struct oc_window *window = *at;

	*at = window->next;
	for (uint64_t off = 0; off < window->len; off += windows->bounds.chunk) {
		struct oc_window *_Atomic *found =
			found_at(windows, window->rank, window->off + off);

		if (atomic_load_explicit(found, memory_order_relaxed) == window)
			atomic_store_explicit(found, NULL, memory_order_relaxed);
	}
	window->counted = touched_bytes(window);
	windows->touched -= window->counted;
	window->retired = atomic_fetch_add_explicit(&windows->clock, 1, memory_order_relaxed) + 1;
	window->next = windows->retired;
	windows->retired = window;
	windows->mapped -= window->len;
	windows->leaving += window->len;
}

/* Whether a use may have an address of a retired window. @mine has asked for none
 * since, and knows when it did last. */
static bool is_held(const struct oc_windows *windows, const struct oc_window *window,
		    const struct oc_window_use *mine)
{
	for (const struct oc_window_use *use = windows->uses; use; use = use->next) {
		uint64_t until = use == mine ? window->used : window->retired;

		if (use->since <= until)
			return true;
	}
	return false;
}

/* Unmaps what has been retired and nobody uses. */
static void reap(struct oc_windows *windows, const struct oc_window_use *mine)
{
	struct oc_window **at = &windows->retired;

	while (*at) {
		struct oc_window *window = *at;

		if (is_held(windows, window, mine)) {
			at = &window->next;
			continue;
		}
		*at = window->next;
		munmap(window->at, window->len);
		windows->leaving -= window->len;
		windows->touched -= touched_bytes(window) - window->counted;
		free(window);
	}
}

/* The window that has rested longest, of those not asked for since @since. */
static struct oc_window **find_oldest(struct oc_windows *windows, uint64_t since)
{
	struct oc_window **oldest = NULL;
	uint64_t least = since;

	for (uint32_t i = 0; i < windows->nranks; i++)
		for (struct oc_window **at = &windows->of[i]; *at; at = &(*at)->next) {
			uint64_t used = atomic_load_explicit(&(*at)->used, memory_order_relaxed);

			if (used >= least)
				continue;
			least = used;
			oldest = at;
		}
	return oldest;
}

void oc_window_leave(struct oc_window_use *use)
{
	struct oc_windows *windows = use->windows;

	pthread_mutex_lock(&windows->lock);
	*(use->prev ? &use->prev->next : &windows->uses) = use->next;
	if (use->next)
		use->next->prev = use->prev;
	if (windows->touched > windows->bounds.resident) {
		struct oc_window **at;

		while (windows->touched > windows->bounds.resident / 2 &&
		       (at = find_oldest(windows, UINT64_MAX)))
			retire(windows, at);
	}
	reap(windows, NULL);
	pthread_mutex_unlock(&windows->lock);
	use->windows = NULL;
}

/* An urgent use takes it in any case, and what it takes from other uses, or from its
 * own past, stays until they end: more than all of the room, for a moment. */
static bool make_room(struct oc_windows *windows, const struct oc_window_use *use, size_t bytes)
{
	size_t total = windows->bounds.total;

	if (!use->urgent)
		total -= total / 4;

	for (;;) {
		struct oc_window **at;

		reap(windows, use);
		if (windows->mapped + windows->leaving + bytes <= total)
			return true;
		/* Only the end of other threads' operations makes more room. */
		if (windows->mapped + bytes <= total)
			return use->urgent;
		at = find_oldest(windows, use->since);
		if (!at && use->urgent)
			at = find_oldest(windows, UINT64_MAX);
		if (!at)
			return false;
		retire(windows, at);
	}
}

static bool covers(const struct oc_window *window, uint32_t rank, uint64_t off, size_t len)
{
	return window->rank == rank && off >= window->off && off - window->off <= window->len &&
	       len <= window->len - (off - window->off);
}

/* Windows that a new one makes needless. */
static void retire_inner(struct oc_windows *windows, const struct oc_window *window)
{
	struct oc_window **at = &windows->of[window->rank];

	while (*at)
		if (covers(window, window->rank, (*at)->off, (*at)->len))
			retire(windows, at);
		else
			at = &(*at)->next;
}

static struct oc_window *make(struct oc_node *node, const struct oc_window_use *use, uint32_t rank,
			      uint64_t off, size_t len)
{
	struct oc_windows *windows = use->windows;
	struct oc_node_peer *peer = &node->peers[rank];
	uint64_t end = round_up(off + len, windows->bounds.chunk);
	struct oc_window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	*window = (struct oc_window){.rank = rank, .off = off - off % windows->bounds.chunk};
	window->len = (end < peer->arena_size ? end : peer->arena_size) - window->off;
	window->at = MAP_FAILED;
	if (make_room(windows, use, window->len))
		window->at = oc_arena_map_piece(peer->seeds, windows->bounds.step, window->off,
						window->len);
	if (window->at == MAP_FAILED) {
		free(window);
		return NULL;
	}
	retire_inner(windows, window);
	window->next = windows->of[rank];
	windows->of[rank] = window;
	windows->mapped += window->len;
	return window;
}

/* The latest use says that it is no older: an earlier one must not take that back. */
static void note_use(struct oc_window *window, uint64_t since)
{
	uint64_t used = atomic_load_explicit(&window->used, memory_order_relaxed);

	while (used < since &&
	       !atomic_compare_exchange_weak_explicit(&window->used, &used, since,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

static struct oc_window *look_up(struct oc_node *node, const struct oc_window_use *use,
				 uint32_t rank, uint64_t off, size_t len)
{
	struct oc_windows *windows = use->windows;
	struct oc_window *window;

	pthread_mutex_lock(&windows->lock);
	window = windows->of[rank];
	while (window && !covers(window, rank, off, len))
		window = window->next;
	if (!window)
		window = make(node, use, rank, off, len);
	if (window) {
		/* Before it can be thought of as old. */
		note_use(window, use->since);
		atomic_store_explicit(found_at(windows, rank, off), window, memory_order_release);
	}
	pthread_mutex_unlock(&windows->lock);
	return window;
}

/* Keeps account of the window's pages that are, or may be, mapped here. */
static void note_touch(struct oc_windows *windows, struct oc_window *window, uint64_t skip,
		       size_t len)
{
	size_t part = window->len / PARTS;
	uint64_t first = skip / part, last = len ? (skip + len - 1) / part : first;
	uint64_t seen = atomic_load_explicit(&window->touched, memory_order_relaxed), bits;

	last = last < PARTS ? last : PARTS - 1;
	first = first < last ? first : last;
	bits = UINT64_MAX << first & UINT64_MAX >> (PARTS - 1 - last);
	if ((seen & bits) == bits)
		return;
	seen = atomic_fetch_or_explicit(&window->touched, bits, memory_order_relaxed);
	windows->touched += part * (size_t)__builtin_popcountll(bits & ~seen);
}

char *oc_window_at(const struct oc_window_use *use, struct oc_node *node, uint32_t rank,
		   uint64_t off, size_t len)
{
	const struct oc_node_peer *peer = &node->peers[rank];
	struct oc_windows *windows = use->windows;
	struct oc_window *window;

	if (off > peer->arena_size || len > peer->arena_size - off)
		return NULL;
	if (peer->arena)
		return peer->arena + off;
	if (!windows)
		return NULL;
	window = atomic_load_explicit(found_at(windows, rank, off), memory_order_acquire);
	if (!window || !covers(window, rank, off, len))
		window = look_up(node, use, rank, off, len);
	if (!window)
		return NULL;
	note_use(window, use->since);
	note_touch(windows, window, off - window->off, len);
	return window->at + (off - window->off);
}
