/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_ARENA_H
#define OC_HEAP_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

/* What its file is called, for those who look at /proc. */
#define OC_HEAP_FILE "onecopy-heap"

/* The memory under the shared heap: a sparse file in memory and its mapping. */
struct oc_heap_arena {
	char *base;  /* aligned to 32 MiB, to 1 GiB when that large */
	size_t size; /* a multiple of 64 MiB */
	int fd;
	struct oc_file file; /* what fd is open on, as long as the program lets it */
};

/* Twice as large as the host's memory, or as addresses and limits allow. Maps it MAP_SHARED,
 * not inherited by fork. 0, or -errno as of oc_heap_init() with a static string
 * in @why. */
int oc_heap_arena_create(struct oc_heap_arena *arena, const char **why);
void oc_heap_arena_destroy(struct oc_heap_arena *arena);

/* Makes it this process's: what follows is about that one. */
void oc_heap_arena_publish(const struct oc_heap_arena *arena);
const struct oc_heap_arena *oc_heap_arena(void);

/* Hot: read by every free() of the program. Written once, by oc_heap_arena_publish(),
 * base before size, while other threads may read. */
struct oc_heap_range {
	uintptr_t base;
	size_t size; /* 0: no arena */
};
extern struct oc_heap_range oc_heap_range __attribute__((visibility("hidden")));

/* True if all of [p, p + len) lies in this process's arena. */
static inline bool oc_heap_contains(const void *p, size_t len)
{
	size_t size = __atomic_load_n(&oc_heap_range.size, __ATOMIC_ACQUIRE);
	size_t off = (uintptr_t)p - __atomic_load_n(&oc_heap_range.base, __ATOMIC_RELAXED);

	return off < size && len <= size - off;
}

/* The arena's memfd, owned by the heap. -1 without an arena; in a forked child,
 * whose copy of the heap is its own and nobody's peer; and when the program has
 * closed it. Then the heap goes on, but no new peer can map it. */
int oc_heap_fd(void);

/* A forked child's, once its copy of the arena stands: private memory, without the memfd,
 * which this closes, unless the program has. */
void oc_heap_become_copy(void);
extern bool oc_heap_is_copy __attribute__((visibility("hidden")));

/* Makes [p, p + bytes) zero without touching what already is because nobody has
 * written it: those pages take no memory yet. Any thread. */
void oc_heap_arena_zero(const struct oc_heap_arena *arena, void *p, size_t bytes);

#endif
