/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_ARENA_H
#define OC_HEAP_ARENA_H

#include <stddef.h>

#include "file.h"

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

/* Makes [p, p + bytes) zero without touching what already is because nobody has
 * written it: those pages take no memory yet. Any thread. */
void oc_heap_arena_zero(const struct oc_heap_arena *arena, void *p, size_t bytes);

#endif
