// SPDX-License-Identifier: BSD-3-Clause
/* What is placed is there, and again after its pages were given back, in whatever way they were. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thp.h"
#include "heap/arena.h"
#include "heap/changed.h"
#include "heap/dump.h"
#include "heap/extent.h"
#include "heap/heap.h"
#include "heap/huge.h"
#include "heap/idle.h"
#include "heap/place.h"
#include "../expect.h"

#define PAGE  ((size_t)4096)
#define MIB   ((size_t)1 << 20)
#define LARGE (10 * MIB)
#define MID   (3 * MIB)

/* Where huge pages come on request buffers are placed, on one node of memory too. */
enum oc_thp oc_thp_private(void)
{
	return OC_THP_ADVISE;
}

enum oc_thp_shared oc_thp_shared(void)
{
	return OC_THP_SHARED_ADVISE;
}

bool oc_thp_reports_free_pages(void)
{
	return false;
}

/* Of the pages of a block. */
static size_t resident(char *p, size_t bytes)
{
	static unsigned char pages[LARGE / PAGE];
	size_t n = 0;

	EXPECT(!mincore(p, bytes, pages));
	for (size_t i = 0; i < bytes / PAGE; i++)
		n += pages[i] & 1;
	return n;
}

static void place_all(char *p, size_t bytes)
{
	oc_heap_place(p, bytes);
	EXPECT(resident(p, bytes) == bytes / PAGE);
}

static void check_freed(char *p, size_t bytes, void (*give_back)(char *p, size_t bytes))
{
	place_all(p, bytes);
	give_back(p, bytes);
	EXPECT(resident(p, bytes) <= 1);
	place_all(p, bytes);
}

static void free_large(char *p, size_t bytes)
{
	size_t usable;

	oc_heap_extent_free(p, bytes, false);
	EXPECT(oc_heap_extent_alloc(bytes, 1, &usable) == p && usable == bytes);
}

static void discard(char *p, size_t bytes)
{
	EXPECT(!oc_heap_discard(p, p, bytes, false));
}

int main(void)
{
	struct oc_heap_arena arena;
	const char *why = "";
	size_t half, usable;
	char *large;

	if (oc_heap_arena_create(&arena, &why)) {
		fprintf(stderr, "no arena: %s\n", why);
		return 77;
	}
	half = arena.size / 2;
	/* None of the freed pages is kept. */
	EXPECT(!oc_heap_idle_create(arena.base, half, 0));
	EXPECT(!oc_heap_extent_create(arena.base + half, half, 0));
	oc_heap_dump_create(arena.base, arena.size);
	oc_heap_thp_create(arena.base, arena.size);
	oc_heap_place_create(arena.base, arena.size);
	oc_heap_arena_publish(&arena);
	large = oc_heap_extent_alloc(LARGE, 1, &usable);
	EXPECT(large && usable == LARGE);

	check_freed(arena.base, MID, oc_heap_idle_leave);
	check_freed(arena.base + 4 * MIB, 64 * PAGE, oc_heap_idle_leave);
	check_freed(large, LARGE, free_large);
	check_freed(large, LARGE, discard);
	check_freed(arena.base, MID, discard);
	return 0;
}
