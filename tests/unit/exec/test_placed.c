// SPDX-License-Identifier: BSD-3-Clause
/* Of a receive slot in pieces the pages that hold some of it are touched, and no others. */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/thp.h"
#include "exec/pieces.h"
#include "heap/arena.h"
#include "heap/heap.h"
#include "heap/huge.h"
#include "heap/place.h"
#include "../expect.h"

#define PAGE ((size_t)4096)
#define KIB  1024
#define ROOM ((size_t)1 << 20)

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

static char *room; /* the next one's middle */

/* Pages of the room that are there when @count elements of @n runs have been placed, each @stride
 * from the one before, and so are the elements. */
static size_t placed(uint64_t len, int64_t stride, uint32_t n, uint64_t count)
{
	struct oc_run runs[64];
	unsigned char pages[ROOM / PAGE];
	struct oc_layout *layout;
	struct oc_bind bind = {.recv = room};
	size_t there = 0;

	EXPECT(n <= 64);
	for (uint32_t i = 0; i < n; i++)
		runs[i] = (struct oc_run){.at = i * stride, .len = len};
	layout = oc_layout_make(runs, n, n * stride, count);
	EXPECT(layout);
	bind.recv_layout = layout;
	bind.recv_bytes = layout->bytes * count;
	for (int turn = 0; turn < 2; turn++)
		oc_pieces_place_recv(&bind, (uintptr_t)room - oc_heap_range.base);
	EXPECT(!mincore(room - ROOM / 2, ROOM, pages));
	for (size_t i = 0; i < ROOM / PAGE; i++)
		there += pages[i] & 1;
	free(layout);
	room += ROOM;
	return there;
}

int main(void)
{
	struct oc_heap_arena arena;
	const char *why = "";

	if (oc_heap_arena_create(&arena, &why)) {
		fprintf(stderr, "no arena: %s\n", why);
		return 77;
	}
	oc_heap_thp_create(arena.base, arena.size);
	oc_heap_place_create(arena.base, arena.size);
	oc_heap_arena_publish(&arena);
	room = arena.base + ROOM / 2;

	/* Runs of two pages, of which the second begins within one. */
	EXPECT(placed(2 * PAGE, 4 * PAGE, 8, 4) == 64);
	EXPECT(placed(8 * KIB, 17 * KIB, 2, 1) == 5);
	/* No whole page lies between them. */
	EXPECT(placed(3 * KIB, 6 * KIB, 16, 2) == (31 * 6 + 3 + 3) / 4);
	/* Not worth it. */
	EXPECT(placed(512, 2 * PAGE, 16, 2) == 0);
	/* Back to front. */
	EXPECT(placed(PAGE, -4 * (int64_t)PAGE, 8, 1) == 8);
	return 0;
}
